//! What happens in the multiprocessors, and what they say.

use proto::memory::{Access, Translation};

/// The multiprocessors' own event: a cycle in which one of them has something to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A cycle.
    Cycle,
}

impl engine::Event for Event {
    const BITS: u32 = 0;
    #[inline]
    fn word(self) -> u64 {
        0
    }
    #[inline]
    fn from_word(_: u64) -> Event {
        Event::Cycle
    }
}

/// Messages that the multiprocessors send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A line is read, written or changed.
    Access(Access),
    /// A translation is needed. Pages and frames are numbers, in units of the reach.
    Translate(Translation),
    /// An application has no kernel left.
    Finished(u8),
}
