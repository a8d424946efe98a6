//! Data buffer in the drive's DRAM: a synchronous state machine without time.
//!
//! One line holds one map unit; any of its sectors may be present, and any of these dirty. The device requests flushes
//! and reports when their programs have completed, in any order. A unit has at most one flush in flight: data written
//! to it meanwhile makes it dirty again and waits. Dirty data leaves only by a completed flush or a deallocation.
//!
//! Durability is tracked by write sequence numbers: every write taken gets the next one, and each line knows the oldest
//! of its writes that is not durable. A flush command waits until the oldest of all is younger than the last write
//! before it ([`Buffer::barrier`], [`Buffer::is_durable`]).

pub mod admit;
pub mod ahead;
pub mod destage;
pub mod evict;
mod line;
mod order;
mod sets;
#[cfg(test)]
mod tests;

pub use line::{BufferCounters, BufferShape, Flush, Flushed, MAX_SECTORS, Sectors, Write};
pub use sets::Sets;

use admit::Admission;
use destage::Pace;
use evict::{Eviction, LineState};
use line::Line;
use order::Order;
use proto::Lpn;
use rustc_hash::FxHashMap;

/// State of the buffer. Every call is O(log lines) or better, amortised, and allocates nothing once every line has been
/// used.
pub struct Buffer {
    shape: BufferShape,
    /// High watermark in force; the low one follows.
    high: u32,
    low: u32,
    lines: Vec<Line>,
    free: Vec<u32>,
    index: FxHashMap<Lpn, u32>,
    /// Dirty lines by their oldest write.
    waiting: Order,
    /// Lines being flushed, by their oldest write that is not durable; without those that have none left.
    under_way: Order,
    eviction: Box<dyn Eviction>,
    admission: Box<dyn Admission>,
    /// Number of writes taken.
    sequence: u64,
    /// Number of dirty lines that want to be flushed.
    dirty: u32,
    flushing: u32,
    /// Number of sectors that want to be flushed, or are being flushed.
    unflushed: u64,
    /// True if the high watermark was passed and the low one is not reached.
    draining: bool,
    /// True if a request was refused for lack of room, and no room has appeared since.
    starving: bool,
    /// Counters.
    pub counters: BufferCounters,
}

impl Buffer {
    /// Creates an empty buffer.
    ///
    /// # Panics
    /// If the shape has no line, a unit of no sector or of more than [`MAX_SECTORS`], or `low` above `high`.
    pub fn new(shape: BufferShape, eviction: Box<dyn Eviction>, admission: Box<dyn Admission>) -> Buffer {
        assert!(shape.lines > 0, "a buffer needs at least one line");
        assert!((1..=MAX_SECTORS).contains(&shape.unit_sectors), "sectors per unit: {}", shape.unit_sectors);
        assert!(shape.low <= shape.high, "the low watermark is above the high one");
        let (high, low) = if shape.caches_writes { (shape.high, shape.low) } else { (0, 0) };
        Buffer {
            shape,
            high,
            low,
            lines: Vec::new(),
            free: Vec::new(),
            index: FxHashMap::default(),
            waiting: Order::default(),
            under_way: Order::default(),
            eviction,
            admission,
            sequence: 0,
            dirty: 0,
            flushing: 0,
            unflushed: 0,
            draining: false,
            starving: false,
            counters: BufferCounters::default(),
        }
    }

    /// Returns size and use of the buffer.
    pub fn shape(&self) -> &BufferShape {
        &self.shape
    }

    /// Reads sectors: returns the subset of `want` that is present. Makes the unit's line, if any, the most recently
    /// used.
    #[inline]
    pub fn read(&mut self, lpn: Lpn, want: Sectors) -> Sectors {
        let mut here = 0;
        if let Some(line) = self.find(lpn) {
            here = self.lines[line as usize].present & want;
            self.eviction.touch(line);
            if self.lines[line as usize].ahead {
                self.read_what_was_ahead(line, want);
            }
        }
        let counters = &mut self.counters;
        counters.read_hits += u64::from(here == want);
        counters.read_misses += u64::from(here != want);
        counters.read_hit_sectors += u64::from(here.count_ones());
        counters.read_miss_sectors += u64::from((want & !here).count_ones());
        here
    }

    /// Marks sectors of a unit read ahead as read. If reads are not cached, data leaves with its last sector read.
    fn read_what_was_ahead(&mut self, line: u32, want: Sectors) {
        let record = &mut self.lines[line as usize];
        self.counters.ahead_used += u64::from(std::mem::take(&mut record.unread));
        if want >> (self.shape.unit_sectors - 1) & 1 == 1 && !self.shape.caches_reads {
            self.vacate(line);
        }
    }

    /// Takes a whole unit that was read ahead. Refused if the unit has a line, which holds data at least as new, and if
    /// no line is free or clean.
    pub fn read_ahead(&mut self, lpn: Lpn) -> bool {
        if self.find(lpn).is_some() || self.starving || !self.has_room() {
            return false;
        }
        let Some(line) = self.take(lpn, LineState::Clean) else { return false };
        let record = &mut self.lines[line as usize];
        (record.present, record.ahead, record.unread) = (self.shape.unit(), true, true);
        true
    }

    /// Returns the number of units read ahead that have not been read.
    pub fn unread(&self) -> u64 {
        self.index.values().filter(|line| self.lines[**line as usize].unread).count() as u64
    }

    /// Returns whether a unit has a line.
    pub fn has_line(&self, lpn: Lpn) -> bool {
        self.find(lpn).is_some()
    }

    /// Takes a host write of at least one sector; a clean line is evicted if that makes room.
    pub fn write(&mut self, lpn: Lpn, sectors: Sectors) -> Write {
        debug_assert!(sectors != 0 && sectors & !self.shape.unit() == 0, "sectors {sectors:#x}");
        let (line, outcome) = match self.find(lpn) {
            Some(line) => (line, Write::Merged),
            None => match self.take(lpn, LineState::Dirty) {
                Some(line) => (line, Write::New),
                None => {
                    self.counters.writes_full += 1;
                    return Write::Full;
                }
            },
        };
        self.sequence += 1;
        self.counters.writes += 1;
        self.counters.writes_merged += u64::from(outcome == Write::Merged);
        let record = &mut self.lines[line as usize];
        record.ahead = false;
        self.counters.ahead_wasted += u64::from(std::mem::take(&mut record.unread));
        let absorbed = record.dirty != 0;
        self.counters.writes_absorbed += u64::from(absorbed);
        let before = record.waiting();
        record.present |= sectors;
        record.dirty |= sectors;
        self.unflushed += record.waiting() - before;
        if outcome == Write::Merged {
            self.eviction.touch(line);
        }
        if !absorbed {
            record.since = self.sequence;
            match record.state {
                LineState::Flushing if record.discarded => self.under_way.insert(line, self.sequence),
                LineState::Flushing => {}
                LineState::Clean => {
                    self.turn(line, LineState::Dirty);
                    self.wait(line);
                }
                LineState::Dirty => self.wait(line),
            }
        }
        outcome
    }

    /// Sets whether the dirty data of a unit that is not being flushed stays until room is needed or a flush command
    /// comes: the watermarks then ignore it. Does nothing for a unit without dirty data; a flush ends it.
    pub fn keep(&mut self, lpn: Lpn, kept: bool) {
        let Some(line) = self.find(lpn) else { return };
        let record = &mut self.lines[line as usize];
        if record.dirty == 0 || record.kept == kept {
            return;
        }
        let before = record.waiting();
        let waits = record.state == LineState::Dirty;
        if waits {
            self.unwait(line);
        }
        let record = &mut self.lines[line as usize];
        record.kept = kept;
        self.unflushed = self.unflushed - before + record.waiting();
        if waits {
            self.turn(line, LineState::Dirty);
            self.wait(line);
        }
    }

    /// Sets the placement of the last write of a unit with a line.
    pub fn place(&mut self, lpn: Lpn, placement: u8) {
        if let Some(line) = self.find(lpn) {
            self.lines[line as usize].placement = placement;
        }
    }

    /// Returns the placement of a unit's data that is being flushed.
    pub fn placement(&self, lpn: Lpn) -> u8 {
        self.find(lpn).map_or(0, |line| self.lines[line as usize].flushing_placement)
    }

    /// Sets the urgency of a flush that has just begun.
    pub fn set_pace(&mut self, lpn: Lpn, pace: Pace) {
        if let Some(line) = self.find(lpn) {
            self.lines[line as usize].pace = pace;
        }
    }

    /// Returns the urgency of a unit's flush.
    pub fn pace(&self, lpn: Lpn) -> Pace {
        self.find(lpn).map_or(Pace::Even, |line| self.lines[line as usize].pace)
    }

    /// Returns the placement of the last write of a unit.
    pub fn last_placement(&self, lpn: Lpn) -> u8 {
        self.find(lpn).map_or(0, |line| self.lines[line as usize].placement)
    }

    /// Offers sectors that were read from flash. They enter as clean if reads are cached, and if the unit has a line or
    /// is admitted and finds room; sectors already present are unchanged. Returns the sectors that have entered.
    ///
    /// The device must offer only current data: while the read was in flight, the unit may have been written, flushed
    /// and evicted, or deallocated. The data is current if the map still names the slot that was read.
    pub fn fill(&mut self, lpn: Lpn, sectors: Sectors) -> Sectors {
        debug_assert!(sectors != 0 && sectors & !self.shape.unit() == 0, "sectors {sectors:#x}");
        let line = match self.find(lpn) {
            _ if !self.shape.caches_reads => None,
            // The flush in flight is of deallocated data, and so is anything that flash can still deliver.
            Some(line) if self.lines[line as usize].discarded => None,
            Some(line) => Some(line),
            None if self.admission.admit(lpn) => self.take(lpn, LineState::Clean),
            None => None,
        };
        let Some(line) = line else {
            self.counters.fills_refused += 1;
            return 0;
        };
        self.counters.fills += 1;
        let present = &mut self.lines[line as usize].present;
        let entered = sectors & !*present;
        *present |= entered;
        entered
    }

    /// Deallocates a unit: drops its data, dirty or clean, and marks a flush of it that is in flight. Returns whether
    /// data was dropped that was not durable.
    pub fn discard(&mut self, lpn: Lpn) -> bool {
        let Some(line) = self.find(lpn) else { return false };
        let record = &mut self.lines[line as usize];
        let lost = record.oldest().is_some();
        self.counters.discards += u64::from(lost);
        self.counters.drops += u64::from(record.dirty != 0);
        self.unflushed -= record.waiting();
        match record.state {
            LineState::Flushing => {
                record.present = 0;
                record.dirty = 0;
                record.kept = false;
                record.discarded = true;
                self.under_way.remove(line);
            }
            LineState::Dirty => {
                self.unwait(line);
                self.vacate(line);
            }
            LineState::Clean => self.vacate(line),
        }
        if self.starving {
            self.starving = !self.has_room();
        }
        lost
    }

    /// Returns whether the device should flush: either the number of dirty lines has exceeded the high watermark and
    /// not yet fallen to the low one, or a request found no room and no flush in flight will make some.
    #[inline]
    pub fn wants_flush(&self) -> bool {
        self.draining || (self.starving && self.flushing == 0)
    }

    /// Begins the flush that the eviction policy wants next; a kept line is flushed only if room is needed and no other
    /// exists. `None` if no such line is dirty.
    pub fn next_flush(&mut self) -> Option<Flush> {
        let kept = || self.waiting.first().filter(|_| self.starving).map(|(_, line)| line);
        let line = self.eviction.flush().or_else(kept)?;
        Some(self.begin(line))
    }

    /// Begins the flush of a given unit. `None` if it is not dirty or is being flushed.
    pub fn flush_line(&mut self, lpn: Lpn) -> Option<Flush> {
        let line = self.find(lpn)?;
        (self.lines[line as usize].state == LineState::Dirty).then(|| self.begin(line))
    }

    /// Begins the flush of the unit that has been dirty longest, if that is since write `barrier` or earlier. `None`
    /// once all data that a flush command with this [`Buffer::barrier`] waits for is being flushed, or waits for the
    /// flush of an older copy.
    pub fn flush_until(&mut self, barrier: u64) -> Option<Flush> {
        let (_, line) = self.waiting.first().filter(|(since, _)| *since <= barrier)?;
        Some(self.begin(line))
    }

    /// Completes the program of a unit's flush. Its line becomes clean, or free if reads are not cached; it is dirty if
    /// the unit was written meanwhile.
    ///
    /// # Panics
    /// If no flush of the unit is in flight.
    pub fn flushed(&mut self, lpn: Lpn) -> Flushed {
        let flushing = self.find(lpn).filter(|l| self.lines[*l as usize].state == LineState::Flushing);
        let line = flushing.expect("a flush completes once, after it began");
        self.under_way.remove(line);
        self.flushing -= 1;
        let record = &mut self.lines[line as usize];
        self.unflushed -= u64::from(record.flushing_sectors);
        let discarded = std::mem::take(&mut record.discarded);
        self.counters.flushes_discarded += u64::from(discarded);
        let dirty = record.dirty != 0;
        if dirty {
            self.turn(line, LineState::Dirty);
            self.wait(line);
        } else if self.shape.caches_reads && record.present != 0 {
            self.turn(line, LineState::Clean);
        } else {
            self.vacate(line);
        }
        let room = self.has_room();
        self.starving &= !room;
        Flushed { discarded, dirty, room }
    }

    /// Returns whether a write of a unit that is not in the buffer would find room.
    pub fn has_room(&mut self) -> bool {
        !self.free.is_empty()
            || self.lines.len() < self.shape.lines as usize
            || self.eviction.evict().is_some()
    }

    /// Returns the number of lines that are dirty and not being flushed, without kept ones.
    pub fn dirty(&self) -> u32 {
        self.dirty
    }
    /// Returns whether a request was refused for lack of room, and no room has appeared since.
    pub fn is_starving(&self) -> bool {
        self.starving
    }
    /// Returns the number of sectors that want to be flushed, or are being flushed.
    pub fn unflushed(&self) -> u64 {
        self.unflushed
    }
    /// Returns the number of lines being flushed.
    pub fn flushing(&self) -> u32 {
        self.flushing
    }
    /// Returns the number of map-unit programs, including those in flight, after which all data would be on flash, and
    /// the number of their 512-byte sectors. A unit written while it is being flushed counts twice; one deallocated
    /// then has no sectors.
    pub fn left(&self) -> (u64, u64) {
        let lines = self.index.values().map(|name| &self.lines[*name as usize]);
        let of = |line: &Line| {
            let flushing = line.state == LineState::Flushing;
            let under_way = if flushing && !line.discarded { line.flushing_sectors } else { 0 };
            (u64::from(flushing) + u64::from(line.dirty != 0), u64::from(under_way + line.dirty.count_ones()))
        };
        lines.map(of).fold((0, 0), |sum, line| (sum.0 + line.0, sum.1 + line.1))
    }
    /// Returns the number of lines in use: clean, dirty or being flushed.
    pub fn lines(&self) -> u32 {
        self.index.len() as u32
    }
    /// Returns the sectors of the unit that are present.
    pub fn present(&self, lpn: Lpn) -> Sectors {
        self.find(lpn).map_or(0, |line| self.lines[line as usize].present)
    }
    /// Returns whether some data of the unit is present and not durable.
    pub fn is_dirty(&self, lpn: Lpn) -> bool {
        self.find(lpn).is_some_and(|line| self.lines[line as usize].oldest().is_some())
    }
    /// Returns whether some data of the unit waits to be flushed, and is not kept.
    pub fn wants_out(&self, lpn: Lpn) -> bool {
        self.find(lpn).is_some_and(|line| self.lines[line as usize].waiting() > 0)
    }
    /// Returns the number of sectors of the unit that are being flushed.
    pub fn flushing_sectors(&self, lpn: Lpn) -> u32 {
        let line = self.find(lpn).map(|line| &self.lines[line as usize]);
        line.filter(|line| line.state == LineState::Flushing).map_or(0, |line| line.flushing_sectors)
    }
    /// Returns the units with data that is not durable, oldest first, with its sectors; for a unit being flushed, all
    /// sectors present.
    pub fn not_durable(&self) -> Vec<(Lpn, Sectors)> {
        let mut lines: Vec<&Line> = self
            .index
            .values()
            .map(|name| &self.lines[*name as usize])
            .filter(|l| l.oldest().is_some())
            .collect();
        lines.sort_unstable_by_key(|line| line.oldest());
        let whole = |line: &Line| line.state == LineState::Flushing && !line.discarded;
        lines.into_iter().map(|l| (l.lpn, if whole(l) { l.present } else { l.dirty })).collect()
    }
    /// Returns the oldest write of a unit that is not durable.
    fn oldest_of(&self, lpn: Lpn) -> Option<u64> {
        self.find(lpn).and_then(|line| self.lines[line as usize].oldest())
    }
    /// Returns every unit with a line.
    pub fn held(&self) -> Vec<Lpn> {
        let mut units: Vec<Lpn> = self.index.keys().copied().collect();
        units.sort_unstable();
        units
    }
    /// Returns whether a flush of the unit is in flight, discarded or not.
    pub fn is_flushing(&self, lpn: Lpn) -> bool {
        self.find(lpn).is_some_and(|line| self.lines[line as usize].state == LineState::Flushing)
    }

    /// Returns the sequence number of the last write taken, from 1; 0 if none. A flush command takes it on arrival.
    pub fn barrier(&self) -> u64 {
        self.sequence
    }
    /// Returns the oldest write that is not durable. A write is durable when a flush of its unit that began after it
    /// has completed, or when the unit was deallocated.
    pub fn oldest_unflushed(&self) -> Option<u64> {
        let firsts = [self.waiting.first(), self.under_way.first()];
        firsts.into_iter().flatten().map(|(since, _)| since).min()
    }
    /// Returns the write that the next line to become clean waits for, while every line is dirty: the oldest one whose
    /// flush has not begun, or else of those in flight. `None` while a line is free or clean.
    pub fn next_to_leave(&mut self) -> Option<u64> {
        if self.has_room() {
            return None;
        }
        let first = self.waiting.first().or_else(|| self.under_way.first());
        first.map(|(since, _)| since)
    }

    /// Returns whether every write up to the barrier is durable.
    pub fn is_durable(&self, barrier: u64) -> bool {
        self.oldest_unflushed().is_none_or(|oldest| oldest > barrier)
    }

    #[inline]
    fn find(&self, lpn: Lpn) -> Option<u32> {
        self.index.get(&lpn).copied()
    }

    /// Takes a line for a unit that has none.
    fn take(&mut self, lpn: Lpn, state: LineState) -> Option<u32> {
        if self.free.is_empty() && self.lines.len() == self.shape.lines as usize {
            match self.eviction.evict() {
                Some(line) => {
                    self.vacate(line);
                    self.counters.evictions += 1;
                }
                None => {
                    self.starve();
                    return None;
                }
            }
        }
        self.starving = false;
        let record = Line { state, ..Line::vacant(lpn) };
        let line = if let Some(line) = self.free.pop() {
            self.lines[line as usize] = record;
            line
        } else {
            self.lines.push(record);
            if self.lines.len() == self.shape.lines as usize {
                // Reserve the final size: a half-empty table cleans up in place, and never grows again.
                self.index.reserve(self.lines.len());
            }
            (self.lines.len() - 1) as u32
        };
        self.index.insert(lpn, line);
        self.eviction.enter(line, state);
        Some(line)
    }

    /// Frees a line.
    fn vacate(&mut self, line: u32) {
        let record = &mut self.lines[line as usize];
        self.counters.ahead_wasted += u64::from(std::mem::take(&mut record.unread));
        self.index.remove(&record.lpn);
        self.eviction.leave(line);
        self.free.push(line);
    }

    fn turn(&mut self, line: u32, state: LineState) {
        let record = &mut self.lines[line as usize];
        record.state = state;
        // A kept line must not be chosen: the policy treats it as one whose flush is in flight.
        let stays = record.kept && state == LineState::Dirty;
        self.eviction.turn(line, if stays { LineState::Flushing } else { state });
    }

    /// Registers a line that has become dirty.
    fn wait(&mut self, line: u32) {
        let record = &self.lines[line as usize];
        self.waiting.insert(line, record.since);
        self.dirty += u32::from(!record.kept);
        self.draining |= self.dirty > self.high;
    }

    /// Registers a line that has become clean.
    fn unwait(&mut self, line: u32) {
        self.waiting.remove(line);
        self.dirty -= u32::from(!self.lines[line as usize].kept);
        self.draining &= self.dirty > self.low;
    }

    /// Handles a lack of room. If nothing in flight will make some, a drain begins as if the high watermark had been
    /// passed: with a high watermark of all lines, or a policy that puts dirty lines first, nothing else would start
    /// it.
    fn starve(&mut self) {
        self.starving = true;
        self.draining |= self.flushing == 0 && self.dirty > self.low;
    }

    fn begin(&mut self, line: u32) -> Flush {
        self.unwait(line);
        let record = &mut self.lines[line as usize];
        let flush = Flush { lpn: record.lpn, dirty: record.dirty, present: record.present };
        let before = record.waiting();
        record.kept = false;
        record.flushing_since = record.since;
        record.flushing_sectors = record.dirty.count_ones();
        record.flushing_placement = record.placement;
        record.pace = Pace::Even;
        self.unflushed = self.unflushed - before + u64::from(record.flushing_sectors);
        record.dirty = 0;
        self.under_way.insert(line, record.flushing_since);
        self.flushing += 1;
        self.counters.flushes += 1;
        self.turn(line, LineState::Flushing);
        flush
    }
}
