//! Messages between an accelerator and the flash that it manages itself: page groups to be locked, read and written,
//! and flash management work for the accelerator's cores.
//!
//! A page group is the unit of flash address translation. Groups are named by their number in the accelerator's address
//! space.

/// Range of page groups, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Groups {
    /// First group.
    pub first: u32,
    /// Last group.
    pub last: u32,
}

impl Groups {
    /// Number of groups.
    pub fn count(self) -> u32 {
        self.last - self.first + 1
    }
}

/// Request of an accelerator to flash. A `tag` is the requester's and comes back in the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Maps a data section: for reads, which other readers may share, or for writes. Answered by [`Tell::Locked`].
    Lock {
        /// Requester's tag.
        tag: u32,
        /// Groups of the section.
        groups: Groups,
        /// True for writes.
        write: bool,
    },
    /// Releases a lock, whether it is held or still waits. Not answered.
    Unlock {
        /// Tag of the lock.
        tag: u32,
    },
    /// Reads groups. Answered by [`Tell::Done`] when all have arrived.
    Read {
        /// Requester's tag.
        tag: u32,
        /// Groups to read.
        groups: Groups,
    },
    /// Programs groups, from memory that the requester does not change until the answer: [`Tell::Done`].
    Write {
        /// Requester's tag.
        tag: u32,
        /// Groups to program.
        groups: Groups,
    },
    /// Reports the completion of a [`Tell::Work`] by the core. Not answered.
    Worked {
        /// Tag of the work.
        tag: u32,
    },
}

/// Message of flash to an accelerator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tell {
    /// A lock is held.
    Locked {
        /// Tag of the request.
        tag: u32,
    },
    /// A read or a write has ended.
    Done {
        /// Tag of the request.
        tag: u32,
        /// Groups of the request that could not be read or written.
        failed: u32,
    },
    /// Work for the core that manages the flash.
    Work {
        /// Flash's tag.
        tag: u32,
        /// Amount of work.
        work: Work,
    },
}

/// Amount of flash management work for the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Map entries read or changed.
    pub entries: u32,
    /// Flash operations started.
    pub operations: u32,
}
