//! What blocks of a drive hold, as far as recovery looks at it.

/// The number of a transaction, counted from one. Without a journal, that of a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tid(pub u32);

/// What a block of metadata, or of the journal, holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// The journal's superblock.
    Superblock {
        /// Where the log begins, in blocks from the superblock.
        tail: u32,
        /// The transaction that begins there.
        tid: Tid,
    },
    /// One of the descriptors, revoke blocks and copies of a transaction.
    Log {
        /// The transaction.
        tid: Tid,
        /// Which of them.
        index: u32,
        /// How many there are.
        of: u32,
    },
    /// A commit block.
    Commit {
        /// The transaction.
        tid: Tid,
    },
    /// A block in its home place, as it was when this transaction was closed.
    Home {
        /// The transaction.
        tid: Tid,
    },
}
