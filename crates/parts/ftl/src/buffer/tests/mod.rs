//! Buffer against a naive reference, and against the guarantees of a drive.

mod model;

use super::admit::{Admission, always::Always, second_touch::SecondTouch, writes_only::WritesOnly};
use super::evict::lru::Lru;
use super::*;
use model::{Model, Step, UNIT_SECTORS, UNITS, buffer, shapes, steps};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Does one step with both; their answers must be equal.
fn step(buffer: &mut Buffer, model: &mut Model, step: Step) -> Result<(), TestCaseError> {
    match step {
        Step::Read(u, s) => prop_assert_eq!(buffer.read(Lpn(u), s), model.read(u, s)),
        Step::Write(u, s) => prop_assert_eq!(buffer.write(Lpn(u), s), model.write(u, s)),
        Step::Fill(u, s) => prop_assert_eq!(buffer.fill(Lpn(u), s), model.fill(u, s)),
        Step::Discard(u) => prop_assert_eq!(buffer.discard(Lpn(u)), model.discard(u)),
        Step::Keep(u, kept) => {
            buffer.keep(Lpn(u), kept);
            model.keep(u, kept);
        }
        Step::NextFlush => prop_assert_eq!(buffer.next_flush(), model.next_flush()),
        Step::FlushLine(u) => prop_assert_eq!(buffer.flush_line(Lpn(u)), model.flush_line(u)),
        Step::FlushUntil(back) => {
            let barrier = model.sequence().saturating_sub(back);
            prop_assert_eq!(buffer.flush_until(barrier), model.flush_until(barrier));
        }
        Step::Flushed(nth) => {
            if let Some(u) = model.under_way(nth) {
                prop_assert_eq!(buffer.flushed(Lpn(u)), model.flushed(u));
            }
        }
        Step::Barrier => {}
    }
    prop_assert_eq!(buffer.wants_flush(), model.wants_flush());
    Ok(())
}

fn saved(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = Vec::new();
    buffer.save(&mut bytes);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn answers_as_the_reference_does((shape, rule) in shapes(), steps in steps()) {
        let (mut buffer, mut model) = (buffer(shape, rule), Model::new(shape, rule));
        for s in steps {
            step(&mut buffer, &mut model, s)?;
            prop_assert_eq!(buffer.dirty(), model.dirty());
            prop_assert_eq!(buffer.flushing(), model.flushing());
            prop_assert_eq!(buffer.lines(), model.lines());
            prop_assert!(buffer.lines() <= shape.lines);
            prop_assert_eq!(buffer.barrier(), model.sequence());
            prop_assert_eq!(buffer.oldest_unflushed(), model.oldest_unflushed());
            prop_assert_eq!(buffer.has_room(), model.has_room());
            prop_assert_eq!(buffer.unflushed(), model.unflushed());
            prop_assert!(!buffer.wants_flush() || model.has_dirty(), "a flush is wanted and none is possible");
            for u in 0..UNITS {
                prop_assert_eq!(buffer.is_dirty(Lpn(u)), model.is_dirty(u));
            }
        }
    }

    #[test]
    fn what_is_saved_is_loaded((shape, rule) in shapes(), steps in steps(), split in 0usize..200) {
        let (mut first, mut model) = (buffer(shape, rule), Model::new(shape, rule));
        let split = split.min(steps.len());
        for s in &steps[..split] {
            step(&mut first, &mut model, *s)?;
        }
        let bytes = saved(&first);
        let mut second = buffer(shape, rule);
        let mut input = bytes.as_slice();
        prop_assert_eq!(second.load(&mut input), Some(()));
        prop_assert!(input.is_empty());
        prop_assert_eq!(saved(&second), bytes);
        // The copy continues as the original would have.
        for s in &steps[split..] {
            step(&mut second, &mut model, *s)?;
        }
    }

    #[test]
    fn a_damaged_save_does_no_harm((shape, rule) in shapes(), steps in steps(), at: usize, bit in 0u32..8) {
        let (mut first, mut model) = (buffer(shape, rule), Model::new(shape, rule));
        for s in steps {
            step(&mut first, &mut model, s)?;
        }
        let mut bytes = saved(&first);
        let at = at % bytes.len();
        prop_assert_eq!(buffer(shape, rule).load(&mut &bytes[..at]), None, "cut short");
        // Detection depends on the place; it must not panic.
        bytes[at] ^= 1 << bit;
        let _ = buffer(shape, rule).load(&mut bytes.as_slice());
    }
}

/// Data of a unit: a version for each sector.
type Unit = [u64; UNIT_SECTORS as usize];

fn sectors(set: Sectors) -> impl Iterator<Item = usize> {
    (0..UNIT_SECTORS as usize).filter(move |n| set >> n & 1 == 1)
}

/// Drive around the buffer that carries versions along, and checks its guarantees. Knows the buffer only by its
/// answers.
struct Drive {
    buffer: Buffer,
    /// Newest version of each sector, 0 if none.
    newest: [Unit; UNITS as usize],
    flash: [Unit; UNITS as usize],
    /// Versions last put into the buffer.
    dram: [Unit; UNITS as usize],
    /// Flushes in flight, with their data.
    flights: BTreeMap<u64, (Flush, Unit)>,
    finished: u64,
    /// Writes that are not durable: sequence number, unit, whether in flight.
    pending: Vec<(u64, u64, bool)>,
    barriers: Vec<u64>,
}

impl Drive {
    fn begin(&mut self, flush: Option<Flush>) -> Option<Flush> {
        let flush = flush?;
        let u = flush.lpn.0;
        assert!(flush.dirty != 0 && flush.dirty & !flush.present == 0);
        let before = self.flights.insert(u, (flush, self.dram[u as usize]));
        assert!(before.is_none(), "two flushes of unit {u}");
        self.pending.iter_mut().filter(|p| p.1 == u).for_each(|p| p.2 = true);
        Some(flush)
    }

    fn finish(&mut self, u: u64) {
        let (flush, data) = self.flights.remove(&u).expect("under way");
        self.finished += 1;
        if !self.buffer.flushed(Lpn(u)).discarded {
            sectors(flush.dirty).for_each(|n| self.flash[u as usize][n] = data[n]);
        }
        self.pending.retain(|p| !(p.1 == u && p.2));
    }

    /// Reads through the buffer: missing data comes from flash.
    fn read(&mut self, u: u64, want: Sectors) -> Sectors {
        let here = self.buffer.read(Lpn(u), want);
        for n in sectors(want) {
            let source = if here >> n & 1 == 1 { &self.dram } else { &self.flash };
            assert_eq!(source[u as usize][n], self.newest[u as usize][n], "unit {u}, sector {n}");
        }
        want & !here
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Read(u, want) => {
                self.read(u, want);
            }
            Step::Fill(u, want) => {
                let missing = self.read(u, want);
                if missing != 0 && self.flash[u as usize] != [0; UNIT_SECTORS as usize] {
                    let entered = self.buffer.fill(Lpn(u), missing);
                    sectors(entered).for_each(|n| self.dram[u as usize][n] = self.flash[u as usize][n]);
                }
            }
            Step::Write(u, set) => {
                if self.buffer.write(Lpn(u), set) != Write::Full {
                    let version = self.buffer.barrier();
                    sectors(set).for_each(|n| self.newest[u as usize][n] = version);
                    sectors(set).for_each(|n| self.dram[u as usize][n] = version);
                    self.pending.push((version, u, false));
                } else {
                    assert_eq!(self.buffer.lines(), self.buffer.shape().lines);
                    assert!(
                        self.buffer.flushing() > 0 || self.buffer.wants_flush(),
                        "nothing will make room"
                    );
                }
            }
            Step::Discard(u) => {
                let lost = self.buffer.discard(Lpn(u));
                assert_eq!(lost, self.pending.iter().any(|p| p.1 == u));
                self.pending.retain(|p| p.1 != u);
                self.newest[u as usize] = Unit::default();
                self.flash[u as usize] = Unit::default();
            }
            Step::Keep(u, kept) => self.buffer.keep(Lpn(u), kept),
            Step::NextFlush => {
                let flush = self.buffer.next_flush();
                self.begin(flush);
            }
            Step::FlushLine(u) => {
                let flush = self.buffer.flush_line(Lpn(u));
                self.begin(flush);
            }
            Step::FlushUntil(back) => self.flush_command(self.buffer.barrier().saturating_sub(back)),
            Step::Flushed(nth) => {
                let u = self.flights.keys().nth(nth % self.flights.len().max(1)).copied();
                u.into_iter().for_each(|u| self.finish(u));
            }
            Step::Barrier => self.barriers.push(self.buffer.barrier()),
        }
        for barrier in &self.barriers {
            let durable = self.pending.iter().all(|p| p.0 > *barrier);
            assert_eq!(self.buffer.is_durable(*barrier), durable, "barrier {barrier}");
        }
        assert_eq!(self.buffer.counters.flushes, self.finished + self.flights.len() as u64);
    }

    /// Runs a flush command: it waits for the older writes and causes no other flush.
    fn flush_command(&mut self, barrier: u64) {
        while !self.buffer.is_durable(barrier) {
            while let Some(flush) = self.buffer.flush_until(barrier) {
                assert!(self.pending.iter().any(|p| p.1 == flush.lpn.0 && p.0 <= barrier && !p.2));
                self.begin(Some(flush));
            }
            let u = *self.flights.keys().next().expect("data that is not durable is being flushed");
            self.finish(u);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_data_is_lost_and_barriers_are_exact((shape, rule) in shapes(), steps in steps()) {
        let blank = [Unit::default(); UNITS as usize];
        let mut drive = Drive {
            buffer: buffer(shape, rule),
            newest: blank,
            flash: blank,
            dram: blank,
            flights: BTreeMap::new(),
            finished: 0,
            pending: Vec::new(),
            barriers: Vec::new(),
        };
        steps.into_iter().for_each(|s| drive.step(s));
        let unit = shape.unit();
        (0..UNITS).for_each(|u| { drive.read(u, unit); });
        drive.flush_command(drive.buffer.barrier());
        prop_assert_eq!(drive.flash, drive.newest);
        // A flush of deallocated data may still be in flight.
        while let Some(u) = drive.flights.keys().next().copied() {
            drive.finish(u);
        }
        prop_assert_eq!((drive.buffer.dirty(), drive.buffer.flushing()), (0, 0));
        prop_assert!(drive.buffer.has_room() && drive.buffer.oldest_unflushed().is_none());
    }
}

const SHAPE: BufferShape =
    BufferShape { lines: 8, unit_sectors: 8, caches_reads: true, caches_writes: true, high: 4, low: 2 };

fn lru(shape: BufferShape) -> Buffer {
    Buffer::new(shape, Box::new(Lru::new()), Box::new(Always::new()))
}

#[test]
fn flushing_goes_on_from_high_to_low() {
    let mut buffer = lru(SHAPE);
    for u in 0..4 {
        buffer.write(Lpn(u), 1);
        assert!(!buffer.wants_flush(), "{} dirty lines are allowed", u + 1);
    }
    buffer.write(Lpn(4), 1);
    let mut flushed = 0;
    while buffer.wants_flush() {
        assert_eq!(buffer.next_flush().map(|f| f.lpn), Some(Lpn(flushed)), "least recently used first");
        flushed += 1;
    }
    assert_eq!((flushed, buffer.dirty()), (3, 2));
    // Above low again, but not above high.
    buffer.write(Lpn(5), 1);
    assert!(!buffer.wants_flush());
}

#[test]
fn a_drain_begins_when_nothing_else_makes_room() {
    // The high watermark cannot be passed.
    let mut buffer = lru(BufferShape { high: 8, low: 5, ..SHAPE });
    (0..8).for_each(|u| assert_eq!(buffer.write(Lpn(u), 1), Write::New));
    assert!(!buffer.wants_flush());
    assert_eq!(buffer.write(Lpn(8), 1), Write::Full);
    let mut begun = Vec::new();
    while buffer.wants_flush() {
        begun.extend(buffer.next_flush());
    }
    assert_eq!(begun.len(), 3);
    assert_eq!(buffer.write(Lpn(8), 1), Write::Full, "they are still here");
    assert!(!buffer.wants_flush(), "a flush in flight will make room");
    assert_eq!(buffer.flushed(Lpn(1)), Flushed { discarded: false, dirty: false, room: true });
    assert_eq!(buffer.write(Lpn(8), 1), Write::New);
    assert_eq!(buffer.read(Lpn(1), 1), 0, "the one clean line made room");
    let BufferCounters { writes, writes_full, evictions, flushes, .. } = buffer.counters;
    assert_eq!((writes, writes_full, evictions, flushes), (9, 2, 1, 3));
}

#[test]
fn a_write_during_a_flush_waits_for_the_next() {
    let mut buffer = lru(SHAPE);
    buffer.write(Lpn(7), 0b0011);
    let barrier = buffer.barrier();
    assert_eq!(buffer.flush_line(Lpn(7)), Some(Flush { lpn: Lpn(7), dirty: 0b0011, present: 0b0011 }));
    assert_eq!(buffer.write(Lpn(7), 0b0110), Write::Merged);
    assert_eq!((buffer.flush_line(Lpn(7)), buffer.next_flush()), (None, None), "one flush at a time");
    assert!(!buffer.is_durable(barrier));
    assert_eq!(buffer.flushed(Lpn(7)), Flushed { discarded: false, dirty: true, room: true });
    assert!(buffer.is_durable(barrier) && !buffer.is_durable(buffer.barrier()));
    assert_eq!(buffer.next_flush(), Some(Flush { lpn: Lpn(7), dirty: 0b0110, present: 0b0111 }));
}

#[test]
fn a_deallocation_outlives_the_flush_under_way() {
    let mut buffer = lru(SHAPE);
    buffer.write(Lpn(7), 0b0011);
    buffer.next_flush();
    assert!(buffer.discard(Lpn(7)));
    assert!(!buffer.discard(Lpn(7)), "nothing is left to drop");
    assert_eq!((buffer.read(Lpn(7), 0xff), buffer.is_dirty(Lpn(7))), (0, false));
    assert!(buffer.is_durable(buffer.barrier()), "no flush command waits for deallocated data");
    assert_eq!(buffer.fill(Lpn(7), 0b1000), 0);
    buffer.write(Lpn(7), 0b0100);
    assert!(buffer.is_flushing(Lpn(7)) && !buffer.is_durable(buffer.barrier()));
    assert_eq!(buffer.flushed(Lpn(7)), Flushed { discarded: true, dirty: true, room: true });
    assert_eq!(buffer.next_flush(), Some(Flush { lpn: Lpn(7), dirty: 0b0100, present: 0b0100 }));
    assert_eq!(buffer.flushed(Lpn(7)), Flushed { discarded: false, dirty: false, room: true });
    assert_eq!((buffer.counters.discards, buffer.counters.flushes_discarded), (1, 1));
}

#[test]
fn without_read_caching_a_flushed_line_is_free() {
    let mut buffer = lru(BufferShape { caches_reads: false, ..SHAPE });
    assert_eq!(buffer.fill(Lpn(1), 1), 0);
    buffer.write(Lpn(1), 1);
    buffer.next_flush();
    assert_eq!(buffer.read(Lpn(1), 1), 1, "data in flight is here");
    buffer.flushed(Lpn(1));
    assert_eq!((buffer.read(Lpn(1), 1), buffer.lines()), (0, 0));
}

#[test]
fn without_write_caching_every_write_wants_to_be_flushed() {
    let mut buffer = lru(BufferShape { caches_writes: false, high: 8, low: 8, ..SHAPE });
    buffer.write(Lpn(1), 1);
    assert!(buffer.wants_flush());
    buffer.next_flush();
    assert!(!buffer.wants_flush());
}

#[test]
fn reads_and_writes_are_counted() {
    let mut buffer = lru(BufferShape { unit_sectors: 128, ..SHAPE });
    assert_eq!(buffer.shape().unit(), Sectors::MAX, "64 KiB");
    buffer.write(Lpn(0), Sectors::MAX >> 64);
    buffer.write(Lpn(0), 1);
    assert_eq!(buffer.read(Lpn(0), 1 << 63), 1 << 63);
    assert_eq!(buffer.read(Lpn(0), Sectors::MAX), Sectors::MAX >> 64);
    assert_eq!(buffer.read(Lpn(1), 0b11), 0);
    buffer.next_flush();
    buffer.write(Lpn(0), 1);
    buffer.fill(Lpn(1), 0b11);
    let expected = BufferCounters {
        read_hits: 1,
        read_misses: 2,
        read_hit_sectors: 65,
        read_miss_sectors: 66,
        writes: 3,
        writes_merged: 2,
        writes_absorbed: 1,
        fills: 1,
        flushes: 1,
        ..BufferCounters::default()
    };
    assert_eq!(buffer.counters, expected);
}

#[test]
fn admission_decides_about_reads_only() {
    let enters = |admission: Box<dyn Admission>| {
        let mut buffer = Buffer::new(SHAPE, Box::new(Lru::new()), admission);
        buffer.write(Lpn(0), 1);
        let fills = [(); 3].map(|()| buffer.fill(Lpn(1), 1));
        (buffer.read(Lpn(0), 1), buffer.fill(Lpn(0), 2), fills, buffer.counters.fills_refused)
    };
    // The third time all of it is in the buffer.
    assert_eq!(enters(Box::new(Always::new())), (1, 2, [1, 0, 0], 0));
    assert_eq!(enters(Box::new(SecondTouch::new(1))), (1, 2, [0, 1, 0], 1));
    assert_eq!(enters(Box::new(WritesOnly::new())), (1, 2, [0, 0, 0], 3));
}
