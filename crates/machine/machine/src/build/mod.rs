//! Builds processors with network, caches and memory, hosts with their drives, accelerators with flash, and
//! coprocessors.

pub(crate) mod accelerator;
pub(crate) mod gpu;
pub(crate) mod host;
mod memory;
pub(crate) mod server;
mod warm;

pub(crate) use warm::Source;

use engine::Rng;
use spec::Id;

/// Seed of a part: the run's for the first of a kind, a derived one for each later part, independent of names.
fn seed_of(seed: u64, id: Id) -> u64 {
    match id.number {
        0 => seed,
        later => Rng::stream(seed, &format!("{}{later}", id.kind.name())).next_u64(),
    }
}
