//! Kernel sampling: chooses which kernels of a run to simulate, and predicts the time of all from them.
//!
//! * Knows profiles of kernels and the statistics of samples.
//! * Does not know the machine: the caller simulates the sample.
//! * Read first: `plan.rs`.
//!
//! A workload of machine learning starts millions of kernels, but of few kinds. Allegro (E. Chung, S. Na, H. Kim,
//! Allegro: GPU Simulation Acceleration for Machine Learning Workloads, MLArchSys 2024; used for the traces of MQMS,
//! section 3.1) groups them by name, grid and block, splits a group by 1-D k-means (k = 2) until it is homogeneous, and
//! simulates as many kernels of each group as its variance requires:
//!
//! ```text
//! let mut plan = Plan::new(&Profile::read(path)?, Bound::new(0.05, 0.95)?, Rule::Allegro)?;
//! let sample = plan.draw(seed);
//! let prediction = sample.predict(&plan, |kernel| simulated_ns(kernel));
//! ```
//!
//! The formulas and the claim behind them are in [`Plan`] and [`Prediction`], the format of a selection in
//! [`Selection`]; `docs/sampling.md` has the method with its sources, and its accuracy on recorded profiles.

mod plan;
mod prediction;
mod profile;
mod read;
mod rule;
mod selection;

pub use plan::{Group, Plan, Run, two_means};
pub use prediction::{Bound, Prediction};
pub use profile::{Dims, Format, Kind, Profile};
pub use rule::Rule;
pub use selection::{Sample, Selected, Selection};
