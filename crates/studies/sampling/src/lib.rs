//! Kernel sampling: which kernels of a run to simulate, and what they say of the time of the whole.
//!
//! A workload of machine learning starts millions of kernels, but of few kinds. Allegro (E. Chung, S. Na, H. Kim,
//! Allegro: GPU Simulation Acceleration for Machine Learning Workloads, MLArchSys 2024; used for the traces of MQMS,
//! section 3.1) groups them by name, grid and block, splits a group by 1-D k-means (k = 2) until it is homogeneous, and
//! simulates of each group as many kernels as its variance asks for:
//!
//! ```text
//! let mut plan = Plan::new(&Profile::read(path)?, Bound::new(0.05, 0.95)?, Rule::Allegro)?;
//! let sample = plan.draw(seed);
//! let prediction = sample.predict(&plan, |kernel| simulated_ns(kernel));
//! ```
//!
//! The formulas and the claim that they back are in [`Plan`] and [`Prediction`], the format of a selection in
//! [`Selection`]; `docs/sampling.md` has all of it with its sources, and how it does on recorded profiles.
//!
//! * Knows profiles of kernels and the statistics of samples.
//! * Does not know the machine: the caller simulates the sample.
//! * Read first: `plan.rs`.

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
