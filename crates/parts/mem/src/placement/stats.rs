//! What a placement has counted.

use engine::Time;

/// Counters of one measured window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlacementStats {
    /// Those of each memory, in order.
    pub targets: Vec<TargetStats>,
    /// Pages that were given a frame because they were used for the first time; none where a page's frame follows from its address.
    pub first_touches: u64,
    /// Pages that were hot, and might have risen.
    pub candidates: u64,
    /// Of them, those beyond the rate.
    pub limited: u64,
    /// Of them, those for which too many exchanges were under way.
    pub crowded: u64,
    /// Of them, those for which no page could make room.
    pub without_room: u64,
    /// Pages moved to an earlier memory.
    pub promotions: u64,
    /// Pages moved to a later memory, to make room.
    pub demotions: u64,
    /// Bytes that exchanges have written; they have read as many.
    pub moved_bytes: u64,
    /// Commands that have waited because their page was on the move.
    pub waits: u64,
    /// Time that they have waited, summed over them.
    pub wait: Time,
}

/// Counters of one memory: what it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TargetStats {
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Lines to be read.
    pub lines_read: u64,
    /// Lines to be written.
    pub lines_written: u64,
    /// Pages read by exchanges, which leave; not among the above.
    pub pages_out: u64,
    /// Pages written by exchanges, which come; not among the above.
    pub pages_in: u64,
}

/// Two numbers that must agree, each counted in another way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// What they count.
    pub name: &'static str,
    /// One of them, and what it is of.
    pub one: (&'static str, u64),
    /// The other.
    pub other: (&'static str, u64),
}

impl Account {
    /// Whether they agree.
    pub fn holds(&self) -> bool {
        self.one.1 == self.other.1
    }
}

/// What has happened since the beginning, for the accounts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    /// Commands that have come, and that have gone back.
    pub(super) came: u64,
    pub(super) done: u64,
    /// Lines of commands that have come, and of those that targets were sent.
    pub(super) lines_came: u64,
    pub(super) lines_sent: u64,
    /// Bytes that targets have read and written for exchanges.
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
}
