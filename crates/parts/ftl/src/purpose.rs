//! What the operations of a controller with a map of pages are for.

use nand::dies::op::Op;

/// What becomes of an operation when it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Purpose {
    /// Data of a command: `owner` is the command.
    Host,
    /// Where units without data would lie: `owner` is the command.
    Absent,
    /// The same, of a unit that the buffer has in part: `owner` is the merge.
    AbsentMerge,
    /// The rest of a unit that the buffer has in part: `owner` is the merge.
    FlushMerge,
    /// Units from the buffer.
    Flush,
    /// Garbage collection: `owner` is the group.
    Reclaim,
    /// A translation page: `owner` is the fetch or the write-back.
    Map,
    /// Units read ahead of a stream, into the buffer.
    Ahead,
    /// Units from the buffer, evicted in the foreground.
    Foreground,
    /// The same in the background.
    Background,
    /// Parity of program units on other dies.
    Parity,
    /// What a page is rebuilt from: `owner` is the rebuild.
    Rebuild,
}

impl Purpose {
    /// All, in order.
    const ALL: [Purpose; 12] = [
        Purpose::Host,
        Purpose::Absent,
        Purpose::AbsentMerge,
        Purpose::FlushMerge,
        Purpose::Flush,
        Purpose::Reclaim,
        Purpose::Map,
        Purpose::Ahead,
        Purpose::Foreground,
        Purpose::Background,
        Purpose::Parity,
        Purpose::Rebuild,
    ];

    /// What an operation was queued for.
    #[inline]
    pub fn of(op: &Op) -> Purpose {
        Purpose::ALL[usize::from(op.tag)]
    }

    /// Whether no data of a map unit is read or programmed.
    #[inline]
    pub fn is_for_parity(self) -> bool {
        matches!(self, Purpose::Parity | Purpose::Rebuild)
    }

    /// An operation for this purpose.
    #[inline]
    pub fn tags(self, mut op: Op) -> Op {
        op.tag = self as u8;
        op
    }
}

#[cfg(test)]
mod tests {
    use super::Purpose;

    #[test]
    fn tags_are_places_in_the_list() {
        assert!(Purpose::ALL.iter().enumerate().all(|(n, purpose)| *purpose as usize == n));
    }
}
