//! What goes into the buffer's calls and comes out of them.

use proto::Lpn;

/// A set of 512-byte sectors of one map unit: bit n is sector n.
pub type Sectors = u128;

/// Sectors that [`Sectors`] can name.
pub const MAX_SECTORS: u32 = Sectors::BITS;

/// Size and use of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferShape {
    /// Capacity in map units, at least 1.
    pub lines: u32,
    /// 512-byte sectors a map unit, 1 to [`MAX_SECTORS`].
    pub unit_sectors: u32,
    /// Whether data that flash holds too is kept for reads: what was read from flash, and what has been flushed.
    pub caches_reads: bool,
    /// Whether written data waits here. If not, it is written through: every dirty line wants to be flushed at once,
    /// the watermarks do not count, and the device reports a write as done when its flush has completed.
    pub caches_writes: bool,
    /// Flushing begins when more lines than this are dirty.
    pub high: u32,
    /// Flushing goes on until no more lines than this are dirty; at most `high`.
    pub low: u32,
}

impl BufferShape {
    /// All sectors of a unit.
    pub fn unit(&self) -> Sectors {
        Sectors::MAX >> (MAX_SECTORS - self.unit_sectors)
    }
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The unit took a line.
    New,
    /// The unit had a line.
    Merged,
    /// No room, and nothing has changed: no line is free and the eviction policy gives no clean one up. Policies
    /// other than CFLRU decline only when every line is dirty or being flushed.
    Full,
}

/// A flush that begins: the unit is to be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush {
    /// The unit.
    pub lpn: Lpn,
    /// Sectors that flash does not hold.
    pub dirty: Sectors,
    /// Sectors that are in the buffer, the dirty ones among them: what is missing has to be read from flash.
    pub present: Sectors,
}

/// A flush that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushed {
    /// The unit was deallocated after the flush began: the programmed copy must not become the unit's data.
    pub discarded: bool,
    /// The unit was written after the flush began, and is dirty again.
    pub dirty: bool,
    /// A write of a unit that is not in the buffer would now find room.
    pub room: bool,
}

/// Counters of the buffer: requests unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounters {
    /// Reads served here in full.
    pub read_hits: u64,
    /// Reads of which some sector was not here.
    pub read_misses: u64,
    /// Sectors read that were here.
    pub read_hit_sectors: u64,
    /// Sectors read that were not here.
    pub read_miss_sectors: u64,
    /// Writes taken, merged ones among them.
    pub writes: u64,
    /// Writes of a unit that had a line.
    pub writes_merged: u64,
    /// Writes of a unit that was waiting to be flushed already: each saves one program.
    pub writes_absorbed: u64,
    /// Writes turned away for want of room; a write that tries again counts again.
    pub writes_full: u64,
    /// Units read from flash that took or had a line.
    pub fills: u64,
    /// Units read from flash that were not kept, by policy or for want of room.
    pub fills_refused: u64,
    /// Units read ahead that a read has found here.
    pub ahead_used: u64,
    /// Units read ahead that were evicted, written over or deallocated before anybody read them.
    pub ahead_wasted: u64,
    /// Clean lines given up to make room.
    pub evictions: u64,
    /// Flushes begun.
    pub flushes: u64,
    /// Flushes completed whose unit had been deallocated in the meantime.
    pub flushes_discarded: u64,
    /// Units deallocated with data that was not durable yet.
    pub discards: u64,
    /// Units deallocated with data that no flush had begun of: each saves one program.
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
    /// The sum of both.
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
