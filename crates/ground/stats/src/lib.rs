//! Statistics of components: histograms, time-weighted gauges, milestones, interval estimates.
//!
//! Everything is integer and exact while the simulation runs; only reports use real numbers.
//!
//! * Knows counts, times and their summaries, Little's identity, the end of a transient, confidence intervals.
//! * Does not know events or clocks. Callers pass the simulated time.
//! * Read first: `histogram.rs`; then `meter.rs`, the milestones of a request.

mod breakdown;
mod energy;
mod histogram;
mod intervals;
mod levels;
mod meter;
mod occupancy;
mod series;
mod summary;
mod tail;

pub use breakdown::{Breakdown, Milestones, Untiled};
pub use energy::{
    Activity, ActivityEnergy, ActivityKind, EnergyReport, PowerSeries, PowerWindow, Spent, joules,
};
pub use histogram::{Bucket, Histogram};
pub use intervals::{BatchMeans, Batched, Interval, Mser, student_t_cdf, student_t_quantile};
pub use levels::{LevelWindow, Levels, Samples};
pub use meter::{Attojoules, Meter};
pub use occupancy::{Busy, Gauge, Little, LittleViolation, Span};
pub use series::{Series, Window};
pub use summary::{HalfWidths, OpStats, Parts, Summary};
pub use tail::{Slowest, Tail};
