//! What happens inside cores, what leaves them, and the tags of their requests.

use proto::Probed;
use proto::memory::{Access, CPU_LINE, Translation};

/// Bytes of a line.
pub(super) const LINE: u64 = CPU_LINE;
/// Bit of a request's tag that says that it is for instructions.
pub(super) const TEXT: u32 = 1 << 8;
/// Tag of a line that is sent back changed: nobody waits for its answer.
pub(super) const WRITE_BACK: u32 = 1 << 9;

/// What leaves the cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A line is wanted, or sent back changed. Its port is the core.
    Access(Access),
    /// A translation is wanted. Its port is the core.
    Translate(Translation),
    /// The answer to a probe.
    Probed(Probed),
    /// A core does not have a line any more that it had not changed.
    Dropped {
        /// The core.
        core: u16,
        /// First byte of the line, physical.
        address: u64,
    },
}

engine::events! {
    /// What happens inside cores.
    pub enum Event {
        /// A core can go on.
        Go(u16),
        /// A request's time has come.
        Send(u32),
    }
}
