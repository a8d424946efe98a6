//! One line of the buffer.

use super::Sectors;
use super::destage::Pace;
use super::evict::LineState;
use engine::Snapshot;
use proto::Lpn;

/// A place for one map unit.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) lpn: Lpn,
    /// Sectors that are here.
    pub(super) present: Sectors,
    /// Sectors written since the last flush began; a subset of `present`.
    pub(super) dirty: Sectors,
    pub(super) state: LineState,
    /// The unit was deallocated after the flush under way began.
    pub(super) discarded: bool,
    /// The unit was read ahead, and has not been written since.
    pub(super) ahead: bool,
    /// The same, and nobody has read it.
    pub(super) unread: bool,
    /// What is dirty stays until room or a flush command asks for it.
    pub(super) kept: bool,
    /// Sequence number of the first write that made `dirty` not empty.
    pub(super) since: u64,
    /// The same of the data that is being flushed.
    pub(super) flushing_since: u64,
    /// Sectors of that data.
    pub(super) flushing_sectors: u32,
    /// Placement of the write that came last.
    pub(super) placement: u8,
    /// The same of the data that is being flushed.
    pub(super) flushing_placement: u8,
    /// How urgently it is.
    pub(super) pace: Pace,
}

impl Line {
    /// A line just taken, without data.
    pub(super) fn vacant(lpn: Lpn) -> Line {
        Line {
            lpn,
            present: 0,
            dirty: 0,
            state: LineState::Clean,
            discarded: false,
            ahead: false,
            unread: false,
            kept: false,
            since: 0,
            flushing_since: 0,
            flushing_sectors: 0,
            placement: 0,
            flushing_placement: 0,
            pace: Pace::Even,
        }
    }

    /// Sectors that are on their way to flash, or wait for it.
    pub(super) fn unflushed(&self) -> u64 {
        let under_way = if self.state == LineState::Flushing { self.flushing_sectors } else { 0 };
        u64::from(under_way) + self.waiting()
    }

    /// Sectors that wait for their flush.
    pub(super) fn waiting(&self) -> u64 {
        if self.kept { 0 } else { u64::from(self.dirty.count_ones()) }
    }

    /// The oldest write whose data is here and not durable.
    pub(super) fn oldest(&self) -> Option<u64> {
        if self.state == LineState::Flushing && !self.discarded {
            Some(self.flushing_since)
        } else {
            (self.dirty != 0).then_some(self.since)
        }
    }

    /// Whether the fields agree with each other.
    pub(super) fn is_sound(&self, unit: Sectors, sequence: u64) -> bool {
        self.present & !unit == 0
            && self.dirty & !self.present == 0
            && self.since <= sequence
            && self.flushing_since <= sequence
            && (self.dirty != 0 || !self.kept)
            && (self.state == LineState::Clean || !self.ahead)
            && (self.ahead || !self.unread)
            && match self.state {
                LineState::Clean => self.dirty == 0 && self.present != 0 && !self.discarded,
                LineState::Dirty => self.dirty != 0 && !self.discarded,
                LineState::Flushing => true,
            }
    }
}

impl Snapshot for LineState {
    fn save(&self, out: &mut Vec<u8>) {
        (*self as u8).save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        use LineState::*;
        [Clean, Dirty, Flushing].get(u8::load(input)? as usize).copied()
    }
}

impl Snapshot for Line {
    fn save(&self, out: &mut Vec<u8>) {
        let Line {
            lpn,
            present,
            dirty,
            state,
            discarded,
            ahead,
            unread,
            kept,
            since,
            flushing_since,
            flushing_sectors,
            placement,
            flushing_placement,
            pace,
        } = self;
        lpn.0.save(out);
        present.save(out);
        dirty.save(out);
        state.save(out);
        discarded.save(out);
        ahead.save(out);
        unread.save(out);
        kept.save(out);
        since.save(out);
        flushing_since.save(out);
        flushing_sectors.save(out);
        placement.save(out);
        flushing_placement.save(out);
        pace.save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        Some(Line {
            lpn: Lpn(u64::load(input)?),
            present: Sectors::load(input)?,
            dirty: Sectors::load(input)?,
            state: LineState::load(input)?,
            discarded: bool::load(input)?,
            ahead: bool::load(input)?,
            unread: bool::load(input)?,
            kept: bool::load(input)?,
            since: u64::load(input)?,
            flushing_since: u64::load(input)?,
            flushing_sectors: u32::load(input)?,
            placement: u8::load(input)?,
            flushing_placement: u8::load(input)?,
            pace: Pace::load(input)?,
        })
    }
}
