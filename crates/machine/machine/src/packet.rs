//! What networks carry.

use proto::memory::{Access, MemCommand};
use proto::{Probe, Probed};

/// What a packet on a network carries.
#[derive(Clone, Copy, Debug)]
pub enum Packet {
    /// An access on its way to the bank, or the tile, that serves its line.
    Access(Access),
    /// Its answer.
    Answer(Access),
    /// A directory asks a core.
    Probe(Probe),
    /// The core's answer.
    Probed(Probed),
    /// A command on its way to a controller of the memory of this number.
    Command(u16, MemCommand),
    /// Its answer, from the memory of this number.
    Done(u16, MemCommand),
    /// Lines of a dirty page that the cache has taken from flash registers. Nobody waits for them.
    Parked,
}
