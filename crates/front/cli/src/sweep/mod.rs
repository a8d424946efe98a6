//! Sweeps: every combination of values in a TOML file, each run's document in a store that is keyed by what decides it.

mod axes;
mod axis;
mod digests;
mod file;
mod human;
mod jobs;
mod keys;
mod live;
mod metrics;
mod on;
mod outcome;
#[cfg(feature = "parquet")]
mod parquet;
mod point;
mod search;
mod store;
mod table;
mod validate;
mod worker;

#[cfg(feature = "parquet")]
pub(crate) use self::parquet::parquet;
pub(crate) use file::Sweep;
pub(crate) use human::{found, human};
pub(crate) use live::Live;
pub(crate) use metrics::refuse_absent;
pub(crate) use on::{Answer as OfWorker, Cluster, On, Order};
pub(crate) use outcome::Outcome;
pub(crate) use point::{Point, point};
pub(crate) use search::{Answer, Ended, choice};
pub(crate) use store::Store;
pub(crate) use table::{Table, answer_csv};
pub(crate) use validate::refuse_unusable;
pub(crate) use worker::{Where, Work, run_all, simulate};
