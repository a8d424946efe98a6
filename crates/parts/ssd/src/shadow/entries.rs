//! Entries of the map, as the shadow keeps them.

use proto::Slot;
use std::sync::Arc;

/// One entry: 0 for a unit without data, one more than its slot otherwise.
pub(super) type Word = u64;

/// An entry that nobody has written or read.
pub(super) const UNKNOWN: Word = u64::MAX;

pub(super) fn word(slot: Option<Slot>) -> Word {
    slot.map_or(0, |slot| slot.0 + 1)
}

/// The entries of a translation page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Entries {
    /// No translation page, or nothing that can be relied on.
    #[default]
    Unknown,
    /// As they were when the shadow began.
    Initial,
    /// One by one.
    Known(Arc<[Word]>),
}
