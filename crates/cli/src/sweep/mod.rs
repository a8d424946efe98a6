//! Sweeps: every combination of values in a TOML file, each run's document in a store that is keyed by what decides it.

mod axis;
mod digests;
mod file;
mod human;
mod live;
mod metrics;
mod outcome;
#[cfg(feature = "parquet")]
mod parquet;
mod point;
mod store;
mod table;
mod validate;
mod worker;

#[cfg(feature = "parquet")]
pub(crate) use self::parquet::parquet;
pub(crate) use file::Sweep;
pub(crate) use human::human;
pub(crate) use live::Live;
pub(crate) use metrics::refuse_absent;
pub(crate) use outcome::Outcome;
pub(crate) use point::points;
pub(crate) use store::Store;
pub(crate) use table::Table;
pub(crate) use validate::refuse_unusable;
pub(crate) use worker::{Work, run_all};
