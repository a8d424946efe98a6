//! Sweeps: every combination of values in a TOML file, or those that a search asks for. Each run's document is in a
//! store, keyed by everything that decides the run.
//!
//! * Knows the file of a sweep, its runs in order, their documents, tables of them, and clusters that make them.
//! * Does not know the command line or the screen: it reports each finished run to its caller.
//! * Read first: `file.rs`; then `rounds.rs` and `worker.rs`.

mod axes;
mod cluster;
mod file;
mod jobs;
#[cfg(feature = "parquet")]
mod parquet;
mod point;
mod rounds;
mod search;
mod sensitivity;
mod store;
mod table;
mod validate;
mod worker;

#[cfg(feature = "parquet")]
pub use self::parquet::parquet;
pub use cluster::{Answer as OfWorker, Order};
pub use file::Sweep;
pub use jobs::{TraceText, warmup};
pub use point::{Outcome, Point, Ran, columns};
pub use rounds::{Made, Progress, RunEnded, make};
pub use search::Answer;
pub use sensitivity::{Effect, Sensitivity, Side, plans, sensitivity};
pub use store::Store;
pub use table::{Table, answer_csv, answered, text};
pub use validate::{refuse_absent, refuse_unusable};
pub use worker::{Where, simulate};
