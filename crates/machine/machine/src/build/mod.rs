//! From a spec to a processor with its network, caches and memory, to a host with its path to drives, to an accelerator with its flash, and to coprocessors.

pub(crate) mod accelerator;
pub(crate) mod gpu;
pub(crate) mod host;
mod memory;
pub(crate) mod server;
mod warm;

pub(crate) use warm::Source;

use engine::Rng;
use spec::Id;

/// The seed of a part: the first of a kind has that of the run, a later one its own, whatever the user calls it.
fn seed_of(seed: u64, id: Id) -> u64 {
    match id.number {
        0 => seed,
        later => Rng::stream(seed, &format!("{}{later}", id.kind.name())).next_u64(),
    }
}
