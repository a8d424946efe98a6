//! Buffer lines, the types of the buffer's calls, and saving and loading of a buffer.

use super::evict::LineState;
use super::{Buffer, Order, destage::Pace};
use engine::Snapshot;
use proto::Lpn;
use rustc_hash::FxHashMap;

/// Buffer line: the place of one map unit.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) lpn: Lpn,
    /// Sectors present.
    pub(super) present: Sectors,
    /// Sectors written since the last flush began; a subset of `present`.
    pub(super) dirty: Sectors,
    pub(super) state: LineState,
    /// True if the unit was deallocated after the flush in flight began.
    pub(super) discarded: bool,
    /// True if the unit was read ahead, and has not been written since.
    pub(super) ahead: bool,
    /// True if the unit was read ahead, and has been neither written nor read since.
    pub(super) unread: bool,
    /// True if the dirty data stays until room or a flush command requires it.
    pub(super) kept: bool,
    /// Sequence number of the first write that made `dirty` not empty.
    pub(super) since: u64,
    /// Sequence number of the first write of the data being flushed.
    pub(super) flushing_since: u64,
    /// Number of sectors being flushed.
    pub(super) flushing_sectors: u32,
    /// Placement of the last write.
    pub(super) placement: u8,
    /// Placement of the data being flushed.
    pub(super) flushing_placement: u8,
    /// Urgency of the flush.
    pub(super) pace: Pace,
}

impl Line {
    /// Creates a line just taken, without data.
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

    /// Returns the number of sectors that are on their way to flash, or wait for it.
    pub(super) fn unflushed(&self) -> u64 {
        let under_way = if self.state == LineState::Flushing { self.flushing_sectors } else { 0 };
        u64::from(under_way) + self.waiting()
    }

    /// Returns the number of sectors that wait for their flush.
    pub(super) fn waiting(&self) -> u64 {
        if self.kept { 0 } else { u64::from(self.dirty.count_ones()) }
    }

    /// Returns the oldest write whose data is present and not durable.
    pub(super) fn oldest(&self) -> Option<u64> {
        if self.state == LineState::Flushing && !self.discarded {
            Some(self.flushing_since)
        } else {
            (self.dirty != 0).then_some(self.since)
        }
    }

    /// Returns whether the fields are consistent.
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

// Inputs and outputs of the buffer's calls.

/// Set of 512-byte sectors of one map unit: bit n is sector n.
pub type Sectors = u128;

/// Maximum number of sectors in [`Sectors`].
pub const MAX_SECTORS: u32 = Sectors::BITS;

/// Size and use of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferShape {
    /// Capacity in map units, at least 1.
    pub lines: u32,
    /// Number of 512-byte sectors per map unit, 1 to [`MAX_SECTORS`].
    pub unit_sectors: u32,
    /// True if data that is also on flash is kept for reads: data read from flash, and flushed data.
    pub caches_reads: bool,
    /// True if written data waits in the buffer. Otherwise it is written through: every dirty line wants to be flushed
    /// at once, the watermarks are ignored, and the device completes a write when its flush has completed.
    pub caches_writes: bool,
    /// High watermark: flushing begins when more lines than this are dirty.
    pub high: u32,
    /// Low watermark: flushing goes on until no more lines than this are dirty; at most `high`.
    pub low: u32,
}

impl BufferShape {
    /// Returns all sectors of a unit.
    pub fn unit(&self) -> Sectors {
        Sectors::MAX >> (MAX_SECTORS - self.unit_sectors)
    }
}

/// Outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The unit took a new line.
    New,
    /// The unit already had a line.
    Merged,
    /// No room, and nothing has changed: no line is free and the eviction policy gives up no clean one. Policies other
    /// than CFLRU decline only when every line is dirty or being flushed.
    Full,
}

/// Flush that begins: the unit is to be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush {
    /// Map unit.
    pub lpn: Lpn,
    /// Sectors that are not on flash.
    pub dirty: Sectors,
    /// Sectors present in the buffer, including the dirty ones: missing sectors must be read from flash.
    pub present: Sectors,
}

/// Flush that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushed {
    /// True if the unit was deallocated after the flush began: the programmed copy must not become the unit's data.
    pub discarded: bool,
    /// True if the unit was written after the flush began, and is dirty again.
    pub dirty: bool,
    /// True if a write of a unit that is not in the buffer would now find room.
    pub room: bool,
}

/// Counters of the buffer, in requests unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounters {
    /// Reads served entirely from the buffer.
    pub read_hits: u64,
    /// Reads with a sector missing from the buffer.
    pub read_misses: u64,
    /// Sectors read that were in the buffer.
    pub read_hit_sectors: u64,
    /// Sectors read that were not in the buffer.
    pub read_miss_sectors: u64,
    /// Writes taken, including merged ones.
    pub writes: u64,
    /// Writes of a unit that had a line.
    pub writes_merged: u64,
    /// Writes of a unit that was already waiting to be flushed: each saves one program.
    pub writes_absorbed: u64,
    /// Writes refused for lack of room; a write that tries again counts again.
    pub writes_full: u64,
    /// Units read from flash that took or had a line.
    pub fills: u64,
    /// Units read from flash that were not kept, by policy or for lack of room.
    pub fills_refused: u64,
    /// Units read ahead that a read has found in the buffer.
    pub ahead_used: u64,
    /// Units read ahead that were evicted, overwritten or deallocated without being read.
    pub ahead_wasted: u64,
    /// Clean lines evicted to make room.
    pub evictions: u64,
    /// Flushes begun.
    pub flushes: u64,
    /// Flushes completed whose unit had been deallocated in the meantime.
    pub flushes_discarded: u64,
    /// Units deallocated with data that was not durable yet.
    pub discards: u64,
    /// Units deallocated with data whose flush had not begun: each saves one program.
    pub drops: u64,
}

engine::snapshot!(BufferCounters {
    read_hits,
    read_misses,
    read_hit_sectors,
    read_miss_sectors,
    writes,
    writes_merged,
    writes_absorbed,
    writes_full,
    fills,
    fills_refused,
    ahead_used,
    ahead_wasted,
    evictions,
    flushes,
    flushes_discarded,
    discards,
    drops
});

impl BufferCounters {
    /// Returns the sum of both.
    pub(super) fn plus(&self, other: &BufferCounters) -> BufferCounters {
        BufferCounters {
            read_hits: self.read_hits + other.read_hits,
            read_misses: self.read_misses + other.read_misses,
            read_hit_sectors: self.read_hit_sectors + other.read_hit_sectors,
            read_miss_sectors: self.read_miss_sectors + other.read_miss_sectors,
            writes: self.writes + other.writes,
            writes_merged: self.writes_merged + other.writes_merged,
            writes_absorbed: self.writes_absorbed + other.writes_absorbed,
            writes_full: self.writes_full + other.writes_full,
            fills: self.fills + other.fills,
            fills_refused: self.fills_refused + other.fills_refused,
            ahead_used: self.ahead_used + other.ahead_used,
            ahead_wasted: self.ahead_wasted + other.ahead_wasted,
            evictions: self.evictions + other.evictions,
            flushes: self.flushes + other.flushes,
            flushes_discarded: self.flushes_discarded + other.flushes_discarded,
            discards: self.discards + other.discards,
            drops: self.drops + other.drops,
        }
    }
}

// Saving and loading a buffer.

impl Buffer {
    /// Appends the state, including that of the policies, without the shape and the policies' parameters.
    pub fn save(&self, out: &mut Vec<u8>) {
        // Naming every field turns a forgotten one into a compile error. Omitted fields follow from the lines.
        let Buffer {
            shape: _,
            high: _,
            low: _,
            lines,
            free,
            index: _,
            waiting: _,
            under_way: _,
            eviction,
            admission,
            sequence,
            dirty: _,
            flushing: _,
            unflushed: _,
            draining,
            starving,
            counters,
        } = self;
        lines.save(out);
        free.save(out);
        sequence.save(out);
        draining.save(out);
        starving.save(out);
        counters.save(out);
        eviction.save(out);
        admission.save(out);
    }

    /// Restores the state that a buffer with the same shape and policies saved. `None` if it is truncated or malformed:
    /// the buffer must then not be used any more.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.lines = Vec::load(input)?;
        self.free = Vec::load(input)?;
        self.sequence = u64::load(input)?;
        self.draining = bool::load(input)?;
        self.starving = bool::load(input)?;
        self.counters = BufferCounters::load(input)?;
        self.eviction.load(input)?;
        self.admission.load(input)?;
        self.derive()
    }

    /// Derives everything that follows from the lines.
    fn derive(&mut self) -> Option<()> {
        if self.lines.len() > self.shape.lines as usize {
            return None;
        }
        let mut vacant = vec![false; self.lines.len()];
        for line in &self.free {
            if std::mem::replace(vacant.get_mut(*line as usize)?, true) {
                return None;
            }
        }
        self.index = FxHashMap::default();
        let (mut waiting, mut under_way) = (Vec::new(), Vec::new());
        for (name, line) in (0u32..).zip(&self.lines).filter(|(name, _)| !vacant[*name as usize]) {
            if !line.is_sound(self.shape.unit(), self.sequence) || self.index.insert(line.lpn, name).is_some()
            {
                return None;
            }
            match line.state {
                LineState::Clean => {}
                LineState::Dirty => waiting.push((line.since, name)),
                LineState::Flushing => under_way.extend(line.oldest().map(|since| (since, name))),
            }
        }
        waiting.sort_unstable();
        under_way.sort_unstable();
        self.flushing = self.count(LineState::Flushing, &vacant);
        self.dirty = waiting.iter().filter(|(_, line)| !self.lines[*line as usize].kept).count() as u32;
        let used = self.lines.iter().zip(&vacant).filter(|(_, vacant)| !**vacant);
        self.unflushed = used.map(|(line, _)| line.unflushed()).sum();
        self.waiting = Order::from_sorted(&waiting, self.lines.len())?;
        self.under_way = Order::from_sorted(&under_way, self.lines.len())?;
        Some(())
    }

    fn count(&self, state: LineState, vacant: &[bool]) -> u32 {
        let held = self.lines.iter().zip(vacant).filter(|(line, vacant)| !**vacant && line.state == state);
        held.count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Line;
    use crate::buffer::evict::LineState;
    use engine::Snapshot;
    use proto::Lpn;
    use std::fmt::Debug;

    #[test]
    fn an_unsound_line_is_seen() {
        let line = Line { present: 3, dirty: 1, state: LineState::Dirty, since: 4, ..Line::vacant(Lpn(7)) };
        assert!(line.is_sound(0xf, 4));
        assert!(!line.is_sound(0x1, 4), "a sector outside of the unit");
        assert!(!line.is_sound(0xf, 3), "a write that never was");
        assert!(!Line { dirty: 4, ..line.clone() }.is_sound(0xf, 4), "dirty and absent");
        assert!(
            !Line { state: LineState::Clean, ..line.clone() }.is_sound(0xf, 4),
            "clean with dirty sectors"
        );
    }

    #[test]
    fn states_are_loaded_as_saved() {
        fn same<T: Snapshot + PartialEq + Debug>(value: T) {
            let mut bytes = Vec::new();
            value.save(&mut bytes);
            assert_eq!(T::load(&mut bytes.as_slice()), Some(value));
        }
        same([LineState::Clean, LineState::Dirty, LineState::Flushing]);
        assert_eq!(LineState::load(&mut [3u8].as_slice()), None);
    }
}
