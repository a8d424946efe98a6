//! Statistics of components: histograms, time-weighted gauges, milestones, interval estimates.
//!
//! Everything is integer and exact while the simulation runs; real numbers appear in reports alone.
//!
//! * Knows counts, times and their summaries, Little's identity, the end of a transient, confidence intervals.
//! * Does not know events and clocks. Callers pass the simulated time.
//! * Read first: `histogram.rs`; then `meter.rs`, the milestones of a request.

mod batched;
mod breakdown;
mod busy;
mod energy;
mod histogram;
mod levels;
mod little;
mod meter;
mod mser;
mod samples;
mod series;
mod student;
mod summary;
mod tail;

pub use batched::Batched;
pub use breakdown::{Breakdown, Milestones, Untiled};
pub use busy::{Busy, Gauge, Span};
pub use energy::{
    Activity, ActivityEnergy, ActivityKind, EnergyReport, PowerSeries, PowerWindow, Spent, joules,
};
pub use histogram::{Bucket, Histogram};
pub use levels::{LevelWindow, Levels};
pub use little::{Little, LittleViolation};
pub use meter::{Attojoules, Meter};
pub use mser::Mser;
pub use samples::Samples;
pub use series::{Series, Window};
pub use student::{BatchMeans, Interval, student_t_cdf, student_t_quantile};
pub use summary::{HalfWidths, OpStats, Parts, Summary};
pub use tail::{Slowest, Tail};
