//! Buffers side by side: each unit has its line in one of them, by its address. One order of writes spans all.

use super::destage::Pace;
use super::{Buffer, BufferCounters, BufferShape, Flush, Flushed, Sectors, Write};
use engine::Snapshot;
use nand::numbers::FastDiv;
use proto::Lpn;

/// Assignment of units to sets.
#[derive(Clone, Debug)]
struct Places {
    count: FastDiv,
    /// Set of each unit, repeated periodically.
    sets: Vec<u32>,
}

/// One or several buffers.
pub struct Sets {
    sets: Vec<Buffer>,
    places: Option<Places>,
    /// Number of writes taken.
    sequence: u64,
    /// Sets that may want to be flushed, including all that do.
    due: Vec<u32>,
    /// Sums over all sets.
    unflushed: u64,
    flushing: u32,
}

impl From<Buffer> for Sets {
    /// Creates one buffer for all units.
    fn from(buffer: Buffer) -> Sets {
        Sets { sets: vec![buffer], places: None, sequence: 0, due: Vec::new(), unflushed: 0, flushing: 0 }
    }
}

impl Sets {
    /// Creates buffers of one shape; unit `n` belongs to set `of[n % of.len()]`.
    ///
    /// # Panics
    /// If `of` is empty, or names a set beyond the last.
    pub fn spread(sets: Vec<Buffer>, of: Vec<u32>) -> Sets {
        assert!(of.iter().all(|set| (*set as usize) < sets.len()), "places are sets");
        let places = Places { count: FastDiv::new(of.len() as u64), sets: of };
        Sets { sets, places: Some(places), sequence: 0, due: Vec::new(), unflushed: 0, flushing: 0 }
    }

    /// Returns the number of buffers.
    pub fn count(&self) -> usize {
        self.sets.len()
    }

    /// Returns the set of a unit.
    #[inline]
    pub fn set_of(&self, lpn: Lpn) -> usize {
        self.places.as_ref().map_or(0, |places| {
            let (_, at) = places.count.div_rem(lpn.0);
            places.sets[at as usize] as usize
        })
    }

    #[inline]
    fn of(&self, lpn: Lpn) -> &Buffer {
        &self.sets[self.set_of(lpn)]
    }

    #[inline]
    fn of_mut(&mut self, lpn: Lpn) -> &mut Buffer {
        let set = self.set_of(lpn);
        &mut self.sets[set]
    }

    /// Changes a set, which may then want to be flushed.
    #[inline]
    fn change<R>(&mut self, set: usize, change: impl FnOnce(&mut Buffer) -> R) -> R {
        let buffer = &mut self.sets[set];
        if self.places.is_none() {
            return change(buffer);
        }
        let (unflushed, flushing) = (buffer.unflushed(), buffer.flushing());
        let changed = change(buffer);
        self.unflushed = self.unflushed + buffer.unflushed() - unflushed;
        self.flushing = self.flushing + buffer.flushing() - flushing;
        if self.due.last() != Some(&(set as u32)) {
            self.due.push(set as u32);
        }
        changed
    }

    /// Returns size and use of each buffer.
    pub fn shape(&self) -> &BufferShape {
        self.sets[0].shape()
    }

    /// Returns the counters of all buffers together.
    pub fn counters(&self) -> BufferCounters {
        self.sets.iter().fold(BufferCounters::default(), |sum, set| sum.plus(&set.counters))
    }

    /// Returns the counters of the first buffer.
    #[cfg(any(test, feature = "testing"))]
    pub fn counters_mut(&mut self) -> &mut BufferCounters {
        &mut self.sets[0].counters
    }

    /// Calls [`Buffer::read`].
    #[inline]
    pub fn read(&mut self, lpn: Lpn, want: Sectors) -> Sectors {
        self.of_mut(lpn).read(lpn, want)
    }

    /// Calls [`Buffer::write`].
    #[inline]
    pub fn write(&mut self, lpn: Lpn, sectors: Sectors) -> Write {
        let (set, sequence) = (self.set_of(lpn), self.sequence);
        let (outcome, sequence) = self.change(set, |buffer| {
            buffer.sequence = sequence;
            (buffer.write(lpn, sectors), buffer.sequence)
        });
        self.sequence = sequence;
        outcome
    }

    /// Calls [`Buffer::keep`].
    pub fn keep(&mut self, lpn: Lpn, kept: bool) {
        let set = self.set_of(lpn);
        self.change(set, |buffer| buffer.keep(lpn, kept));
    }

    /// Calls [`Buffer::place`].
    pub fn place(&mut self, lpn: Lpn, placement: u8) {
        self.of_mut(lpn).place(lpn, placement);
    }

    /// Calls [`Buffer::placement`].
    pub fn placement(&self, lpn: Lpn) -> u8 {
        self.of(lpn).placement(lpn)
    }

    /// Calls [`Buffer::set_pace`].
    pub fn set_pace(&mut self, lpn: Lpn, pace: Pace) {
        self.of_mut(lpn).set_pace(lpn, pace);
    }

    /// Calls [`Buffer::pace`].
    pub fn pace(&self, lpn: Lpn) -> Pace {
        self.of(lpn).pace(lpn)
    }

    /// Sums [`Buffer::dirty`] over all.
    pub fn dirty(&self) -> u32 {
        self.sets.iter().map(Buffer::dirty).sum()
    }

    /// Returns whether one of them is [starving](Buffer::is_starving).
    pub fn is_starving(&self) -> bool {
        self.sets.iter().any(Buffer::is_starving)
    }

    /// Returns the placement of the unit's last write.
    pub fn last_placement(&self, lpn: Lpn) -> u8 {
        self.of(lpn).last_placement(lpn)
    }

    /// Calls [`Buffer::fill`].
    pub fn fill(&mut self, lpn: Lpn, sectors: Sectors) -> Sectors {
        self.of_mut(lpn).fill(lpn, sectors)
    }

    /// Calls [`Buffer::read_ahead`].
    pub fn read_ahead(&mut self, lpn: Lpn) -> bool {
        self.of_mut(lpn).read_ahead(lpn)
    }

    /// Sums [`Buffer::unread`] over all.
    pub fn unread(&self) -> u64 {
        self.sets.iter().map(Buffer::unread).sum()
    }

    /// Calls [`Buffer::discard`].
    pub fn discard(&mut self, lpn: Lpn) -> bool {
        let set = self.set_of(lpn);
        self.change(set, |buffer| buffer.discard(lpn))
    }

    /// Returns whether one of them should flush.
    #[inline]
    pub fn wants_flush(&mut self) -> bool {
        if self.places.is_none() {
            return self.sets[0].wants_flush();
        }
        while let Some(set) = self.due.last() {
            if self.sets[*set as usize].wants_flush() {
                return true;
            }
            self.due.pop();
        }
        false
    }

    /// Calls [`Buffer::next_flush`] of one that should flush, or of the only one.
    pub fn next_flush(&mut self) -> Option<Flush> {
        if self.places.is_none() {
            return self.sets[0].next_flush();
        }
        while self.wants_flush() {
            let set = *self.due.last()?;
            if let Some(flush) = self.change(set as usize, Buffer::next_flush) {
                return Some(flush);
            }
            self.due.pop();
        }
        None
    }

    /// Calls [`Buffer::flush_until`] of any.
    pub fn flush_until(&mut self, barrier: u64) -> Option<Flush> {
        (0..self.sets.len()).find_map(|set| match self.sets[set].is_durable(barrier) {
            true => None,
            false => self.change(set, |buffer| buffer.flush_until(barrier)),
        })
    }

    /// Calls [`Buffer::flushed`].
    pub fn flushed(&mut self, lpn: Lpn) -> Flushed {
        let set = self.set_of(lpn);
        self.change(set, |buffer| buffer.flushed(lpn))
    }

    /// Returns the number of sectors that want to be flushed, or are being flushed.
    #[inline]
    pub fn unflushed(&self) -> u64 {
        if self.places.is_none() { self.sets[0].unflushed() } else { self.unflushed }
    }

    /// Returns the number of lines being flushed.
    #[inline]
    pub fn flushing(&self) -> u32 {
        if self.places.is_none() { self.sets[0].flushing() } else { self.flushing }
    }

    /// Sums [`Buffer::left`] over all.
    pub fn left(&self) -> (u64, u64) {
        self.sets.iter().map(Buffer::left).fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
    }

    /// Calls [`Buffer::present`].
    pub fn present(&self, lpn: Lpn) -> Sectors {
        self.of(lpn).present(lpn)
    }

    /// Calls [`Buffer::has_line`].
    pub fn has_line(&self, lpn: Lpn) -> bool {
        self.of(lpn).has_line(lpn)
    }

    /// Calls [`Buffer::wants_out`].
    pub fn wants_out(&self, lpn: Lpn) -> bool {
        self.of(lpn).wants_out(lpn)
    }

    /// Calls [`Buffer::flushing_sectors`].
    pub fn flushing_sectors(&self, lpn: Lpn) -> u32 {
        self.of(lpn).flushing_sectors(lpn)
    }

    /// Calls [`Buffer::is_flushing`].
    pub fn is_flushing(&self, lpn: Lpn) -> bool {
        self.of(lpn).is_flushing(lpn)
    }

    /// Collects [`Buffer::not_durable`] of all, oldest first.
    pub fn not_durable(&self) -> Vec<(Lpn, Sectors)> {
        let mut lines: Vec<_> = self
            .sets
            .iter()
            .flat_map(|set| set.not_durable().into_iter().map(|line| (set.oldest_of(line.0), line)))
            .collect();
        lines.sort_unstable_by_key(|(oldest, _)| *oldest);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    /// Returns every unit with a line.
    pub fn held(&self) -> Vec<Lpn> {
        let mut units: Vec<Lpn> = self.sets.iter().flat_map(Buffer::held).collect();
        units.sort_unstable();
        units
    }

    /// Returns the sequence number of the last write taken, from 1; 0 if none.
    pub fn barrier(&self) -> u64 {
        self.sequence
    }

    /// Calls [`Buffer::next_to_leave`] if there is only one buffer.
    pub fn next_to_leave(&mut self) -> Option<u64> {
        self.sets.first_mut().filter(|_| self.places.is_none()).and_then(Buffer::next_to_leave)
    }

    /// Returns whether every write up to the barrier is durable.
    pub fn is_durable(&self, barrier: u64) -> bool {
        self.sets.iter().all(|set| set.is_durable(barrier))
    }

    /// Appends the state.
    pub fn save(&self, out: &mut Vec<u8>) {
        let Sets { sets, places: _, sequence, due: _, unflushed: _, flushing: _ } = self;
        sets.iter().for_each(|set| set.save(out));
        sequence.save(out);
    }

    /// Restores the state that buffers with the same parameters saved; `None` if it is truncated or malformed.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.sets.iter_mut().try_for_each(|set| set.load(input))?;
        self.sequence = u64::load(input)?;
        if self.places.is_some() {
            self.due = (0..self.sets.len() as u32).collect();
            self.unflushed = self.sets.iter().map(Buffer::unflushed).sum();
            self.flushing = self.sets.iter().map(Buffer::flushing).sum();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::admit::AdmissionPolicy;
    use crate::buffer::evict::EvictionPolicy;

    /// Two sets of two lines; units 0, 3, 4, 7, ... belong to the first.
    fn sets() -> Sets {
        let shape = BufferShape {
            lines: 2,
            unit_sectors: 8,
            caches_reads: false,
            caches_writes: true,
            high: 2,
            low: 2,
        };
        let one = || Buffer::new(shape, EvictionPolicy::lru.build(&()), AdmissionPolicy::always.build(&()));
        Sets::spread(vec![one(), one()], vec![0, 1, 1, 0])
    }

    #[test]
    fn a_full_set_flushes_and_the_other_takes_writes() {
        let mut sets = sets();
        let write = |sets: &mut Sets, unit| sets.write(Lpn(unit), 0xff);
        assert_eq!([write(&mut sets, 0), write(&mut sets, 3)], [Write::New, Write::New]);
        assert!(!sets.wants_flush());
        assert_eq!([write(&mut sets, 4), write(&mut sets, 1)], [Write::Full, Write::New]);
        let flush = sets.next_flush().expect("the first set has no room");
        assert_eq!((flush.lpn, sets.next_flush(), sets.flushing()), (Lpn(0), None, 1));
        assert!(sets.flushed(Lpn(0)).room);
        assert_eq!(
            (write(&mut sets, 4), write(&mut sets, 2), write(&mut sets, 5)),
            (Write::New, Write::New, Write::Full)
        );
        assert_eq!((sets.counters().writes, sets.counters().writes_full, sets.left().0), (5, 2, 4));
    }

    #[test]
    fn one_order_of_writes_spans_all() {
        let mut sets = sets();
        [1, 0, 3, 2].into_iter().for_each(|unit| _ = sets.write(Lpn(unit), 1));
        assert_eq!(sets.not_durable().into_iter().map(|(lpn, _)| lpn.0).collect::<Vec<_>>(), [1, 0, 3, 2]);
        let barrier = sets.barrier();
        sets.write(Lpn(1), 2);
        let mut until = Vec::new();
        while let Some(flush) = sets.flush_until(barrier) {
            until.push(flush.lpn.0);
        }
        until.sort_unstable();
        assert_eq!(until, [0, 1, 2, 3]);
        assert!(!sets.is_durable(barrier));
        until.iter().for_each(|unit| _ = sets.flushed(Lpn(*unit)));
        assert!(sets.is_durable(sets.barrier()));
    }
}
