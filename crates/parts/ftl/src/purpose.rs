//! Purposes of the operations of a controller with a page map.

use nand::dies::op::Op;

/// Purpose of an operation, which determines what happens when it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Purpose {
    /// Data of a command: `owner` is the command.
    Host,
    /// Place where units without data would be: `owner` is the command.
    Absent,
    /// Place of a unit without data that is partly in the buffer: `owner` is the merge.
    AbsentMerge,
    /// Rest of a unit that is partly in the buffer: `owner` is the merge.
    FlushMerge,
    /// Units from the buffer.
    Flush,
    /// Garbage collection: `owner` is the group.
    Reclaim,
    /// Translation page: `owner` is the fetch or the write-back.
    Map,
    /// Units read ahead of a stream, into the buffer.
    Ahead,
    /// Units from the buffer, in foreground write-back.
    Foreground,
    /// Units from the buffer, in background write-back.
    Background,
    /// Parity of program units on other dies.
    Parity,
    /// Source from which a page is rebuilt: `owner` is the rebuild.
    Rebuild,
}

impl Purpose {
    /// All purposes, in order.
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

    /// Returns the purpose that an operation was queued for.
    #[inline]
    pub fn of(op: &Op) -> Purpose {
        Purpose::ALL[usize::from(op.tag)]
    }

    /// Returns whether no data of a map unit is read or programmed.
    #[inline]
    pub fn is_for_parity(self) -> bool {
        matches!(self, Purpose::Parity | Purpose::Rebuild)
    }

    /// Tags an operation with this purpose.
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
