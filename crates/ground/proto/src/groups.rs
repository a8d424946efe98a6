//! Messages between an accelerator and flash that it governs by itself: ranges of page groups that are locked, read and written, and work that keeping the flash is for the accelerator's cores.
//!
//! A page group is what flash is translated by. Groups are named by their number in the accelerator's address space.

/// Page groups, the first and the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Groups {
    /// The first.
    pub first: u32,
    /// The last.
    pub last: u32,
}

impl Groups {
    /// How many.
    pub fn count(self) -> u32 {
        self.last - self.first + 1
    }
}

/// What an accelerator asks of flash. A `tag` is the asker's and comes back in the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// A data section is to be mapped: for reads, beside which others may read, or for writes. Answered by [`Tell::Locked`].
    Lock {
        /// The asker's.
        tag: u32,
        /// What.
        groups: Groups,
        /// For writes.
        write: bool,
    },
    /// It is given back, whether it was locked or waits for that. Not answered.
    Unlock {
        /// That of the lock.
        tag: u32,
    },
    /// Groups are brought to the accelerator. Answered by [`Tell::Done`] when all are there.
    Read {
        /// The asker's.
        tag: u32,
        /// What.
        groups: Groups,
    },
    /// Groups are programmed, from memory that the asker keeps as it is until the answer: [`Tell::Done`].
    Write {
        /// The asker's.
        tag: u32,
        /// What.
        groups: Groups,
    },
    /// The core has done the work of a [`Tell::Work`]. Not answered.
    Worked {
        /// That of the work.
        tag: u32,
    },
}

/// What flash answers an accelerator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tell {
    /// A lock is held.
    Locked {
        /// That of the request.
        tag: u32,
    },
    /// A read or a write is over.
    Done {
        /// That of the request.
        tag: u32,
        /// Groups of it that could not be read or written.
        failed: u32,
    },
    /// Work for the core that keeps the flash.
    Work {
        /// Flash's.
        tag: u32,
        /// What it is.
        work: Work,
    },
}

/// Work of the core that keeps the flash, by what it is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Entries of the map that are read or changed.
    pub entries: u32,
    /// Operations of flash that are begun.
    pub operations: u32,
}
