//! Sweeps: every combination of values in a TOML file, each run's document in a store that is keyed by what decides it.

mod axis;
mod file;
mod point;
mod store;
mod table;
mod worker;

pub(crate) use file::Sweep;
pub(crate) use point::points;
pub(crate) use store::Store;
pub(crate) use table::{csv, human};
pub(crate) use worker::{Outcome, run_all};
