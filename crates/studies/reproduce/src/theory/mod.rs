//! Closed forms beside simulated values.
//!
//! The formulas are those of the `theory` crate, which shares no code with the simulator, or sums written out here
//! from the constants of the spec.

mod constants;
mod delay;
mod drive;
mod latency;
mod queue;
mod server;
mod skew;
mod throughput;
mod uniform;

use super::Case;

/// Every case.
pub(super) fn cases() -> Vec<Case> {
    [
        latency::cases(),
        throughput::cases(),
        queue::cases(),
        server::cases(),
        delay::cases(),
        uniform::cases(),
        skew::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
