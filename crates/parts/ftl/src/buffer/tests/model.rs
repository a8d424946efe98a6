//! Naive reference: a map of units, searched from end to end for every decision.

use crate::buffer::admit::always::Always;
use crate::buffer::evict::{Eviction, cflru::Cflru, fifo::Fifo, lru::Lru};
use crate::buffer::{Buffer, BufferShape, Flush, Flushed, Sectors, Write};
use proptest::prelude::*;
use proto::Lpn;
use std::collections::BTreeMap;

pub(super) const UNITS: u64 = 10;
pub(super) const UNIT_SECTORS: u32 = 4;

/// Eviction policy of the reference.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    Fifo,
    Lru,
    Cflru(u32),
}

impl Rule {
    pub(super) fn policy(self) -> Box<dyn Eviction> {
        match self {
            Rule::Fifo => Box::new(Fifo::new()),
            Rule::Lru => Box::new(Lru::new()),
            Rule::Cflru(window) => Box::new(Cflru::new(window)),
        }
    }
}

pub(super) fn buffer(shape: BufferShape, rule: Rule) -> Buffer {
    Buffer::new(shape, rule.policy(), Box::new(Always::new()))
}

/// Possible steps of the device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Read(u64, Sectors),
    Write(u64, Sectors),
    Fill(u64, Sectors),
    Discard(u64),
    Keep(u64, bool),
    NextFlush,
    FlushLine(u64),
    /// Flush of a barrier, counted back from the newest write.
    FlushUntil(u64),
    /// End of a flush in flight, chosen modulo their number.
    Flushed(usize),
    Barrier,
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let unit = 0..UNITS;
    let sectors = 1..(1 as Sectors) << UNIT_SECTORS;
    let step = prop_oneof![
        2 => (unit.clone(), sectors.clone()).prop_map(|(u, s)| Step::Read(u, s)),
        6 => (unit.clone(), sectors.clone()).prop_map(|(u, s)| Step::Write(u, s)),
        3 => (unit.clone(), sectors).prop_map(|(u, s)| Step::Fill(u, s)),
        1 => unit.clone().prop_map(Step::Discard),
        2 => (unit.clone(), any::<bool>()).prop_map(|(u, kept)| Step::Keep(u, kept)),
        3 => Just(Step::NextFlush),
        1 => unit.prop_map(Step::FlushLine),
        1 => (0u64..8).prop_map(Step::FlushUntil),
        4 => any::<usize>().prop_map(Step::Flushed),
        1 => Just(Step::Barrier),
    ];
    prop::collection::vec(step, 0..200)
}

pub(super) fn shapes() -> impl Strategy<Value = (BufferShape, Rule)> {
    let rule = prop_oneof![Just(Rule::Fifo), Just(Rule::Lru), (1u32..=9).prop_map(Rule::Cflru)];
    (1u32..=8, any::<bool>(), prop::bool::weighted(0.8), 0u32..=9, 0u32..=9, rule).prop_map(
        |(lines, caches_reads, caches_writes, a, b, rule)| {
            let (high, low) = (a.max(b), a.min(b));
            let shape =
                BufferShape { lines, unit_sectors: UNIT_SECTORS, caches_reads, caches_writes, high, low };
            (shape, rule)
        },
    )
}

/// Unit with a line.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    present: Sectors,
    dirty: Sectors,
    since: u64,
    /// Flush in flight, of data since this write.
    flushing: Option<u64>,
    /// Sectors being flushed.
    in_flight: Sectors,
    kept: bool,
    discarded: bool,
    entered: u64,
    used: u64,
}

impl Unit {
    fn is_clean(&self) -> bool {
        self.dirty == 0 && self.flushing.is_none()
    }
    fn is_dirty(&self) -> bool {
        self.dirty != 0 && self.flushing.is_none()
    }
    fn wants_flush(&self) -> bool {
        self.is_dirty() && !self.kept
    }
    fn oldest(&self) -> Option<u64> {
        let flushing = self.flushing.filter(|_| !self.discarded);
        flushing.or(if self.dirty != 0 { Some(self.since) } else { None })
    }
}

pub(super) struct Model {
    shape: BufferShape,
    rule: Rule,
    units: BTreeMap<u64, Unit>,
    sequence: u64,
    clock: u64,
    draining: bool,
    starving: bool,
}

impl Model {
    pub(super) fn new(shape: BufferShape, rule: Rule) -> Model {
        Model { shape, rule, units: BTreeMap::new(), sequence: 0, clock: 0, draining: false, starving: false }
    }

    fn first(&self, fits: impl Fn(&Unit) -> bool) -> Option<u64> {
        let age = |unit: &Unit| if matches!(self.rule, Rule::Fifo) { unit.entered } else { unit.used };
        self.units.iter().filter(|(_, u)| fits(u)).min_by_key(|(_, u)| age(u)).map(|(lpn, _)| *lpn)
    }

    fn victim(&self) -> Option<u64> {
        let victim = self.first(Unit::is_clean)?;
        match self.rule {
            Rule::Fifo | Rule::Lru => Some(victim),
            Rule::Cflru(window) => {
                let used = self.units[&victim].used;
                let older = self.units.values().filter(|u| u.used < used).count();
                (older < window as usize).then_some(victim)
            }
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.units.len() < self.shape.lines as usize || self.victim().is_some()
    }
    pub(super) fn dirty(&self) -> u32 {
        self.units.values().filter(|u| u.wants_flush()).count() as u32
    }
    pub(super) fn unflushed(&self) -> u64 {
        let of = |unit: &Unit| {
            let under_way = unit.flushing.map_or(0, |_| unit.in_flight.count_ones());
            under_way + if unit.kept { 0 } else { unit.dirty.count_ones() }
        };
        self.units.values().map(|unit| u64::from(of(unit))).sum()
    }
    /// Returns whether a flush can begin where one is wanted.
    pub(super) fn has_dirty(&self) -> bool {
        self.units.values().any(Unit::is_dirty)
    }
    pub(super) fn keep(&mut self, lpn: u64, kept: bool) {
        if let Some(unit) = self.units.get_mut(&lpn).filter(|unit| unit.dirty != 0) {
            unit.kept = kept;
        }
        self.settle();
    }
    pub(super) fn flushing(&self) -> u32 {
        self.units.values().filter(|u| u.flushing.is_some()).count() as u32
    }
    pub(super) fn lines(&self) -> u32 {
        self.units.len() as u32
    }
    pub(super) fn is_dirty(&self, lpn: u64) -> bool {
        self.units.get(&lpn).is_some_and(|u| u.oldest().is_some())
    }
    pub(super) fn oldest_unflushed(&self) -> Option<u64> {
        self.units.values().filter_map(Unit::oldest).min()
    }
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }
    pub(super) fn wants_flush(&self) -> bool {
        self.draining || (self.starving && self.flushing() == 0)
    }
    pub(super) fn under_way(&self, nth: usize) -> Option<u64> {
        let flushing: Vec<u64> =
            self.units.iter().filter(|(_, u)| u.flushing.is_some()).map(|(lpn, _)| *lpn).collect();
        (!flushing.is_empty()).then(|| flushing[nth % flushing.len()])
    }

    fn settle(&mut self) {
        let (high, low) = if self.shape.caches_writes { (self.shape.high, self.shape.low) } else { (0, 0) };
        let dirty = self.dirty();
        self.draining = dirty > high || (self.draining && dirty > low);
    }

    fn make_room(&mut self) -> bool {
        if !self.has_room() {
            let low = if self.shape.caches_writes { self.shape.low } else { 0 };
            self.starving = true;
            self.draining |= self.flushing() == 0 && self.dirty() > low;
            return false;
        }
        if self.units.len() == self.shape.lines as usize {
            let victim = self.victim().expect("there is room");
            assert_eq!(self.units[&victim].dirty, 0, "dirty data is never evicted");
            self.units.remove(&victim);
        }
        self.starving = false;
        true
    }

    fn enter(&mut self, lpn: u64) {
        self.clock += 1;
        self.units.insert(lpn, Unit { entered: self.clock, used: self.clock, ..Unit::default() });
    }

    pub(super) fn read(&mut self, lpn: u64, want: Sectors) -> Sectors {
        self.clock += 1;
        let Some(unit) = self.units.get_mut(&lpn) else { return 0 };
        unit.used = self.clock;
        unit.present & want
    }

    pub(super) fn write(&mut self, lpn: u64, sectors: Sectors) -> Write {
        let known = self.units.contains_key(&lpn);
        if !known {
            if !self.make_room() {
                return Write::Full;
            }
            self.enter(lpn);
        }
        self.sequence += 1;
        self.clock += 1;
        let unit = self.units.get_mut(&lpn).expect("it has a line now");
        unit.used = self.clock;
        if unit.dirty == 0 {
            unit.since = self.sequence;
        }
        unit.dirty |= sectors;
        unit.present |= sectors;
        self.settle();
        if known { Write::Merged } else { Write::New }
    }

    pub(super) fn fill(&mut self, lpn: u64, sectors: Sectors) -> Sectors {
        if !self.shape.caches_reads || self.units.get(&lpn).is_some_and(|u| u.discarded) {
            return 0;
        }
        if !self.units.contains_key(&lpn) {
            if !self.make_room() {
                return 0;
            }
            self.enter(lpn);
        }
        let unit = self.units.get_mut(&lpn).expect("it has a line now");
        let entered = sectors & !unit.present;
        unit.present |= sectors;
        entered
    }

    pub(super) fn discard(&mut self, lpn: u64) -> bool {
        let Some(unit) = self.units.get_mut(&lpn) else { return false };
        let lost = unit.oldest().is_some();
        if unit.flushing.is_some() {
            (unit.present, unit.dirty, unit.kept, unit.discarded) = (0, 0, false, true);
        } else {
            self.units.remove(&lpn);
        }
        self.settle();
        self.starving &= !self.has_room();
        lost
    }

    fn begin(&mut self, lpn: u64) -> Flush {
        let unit = self.units.get_mut(&lpn).expect("only a unit with a line is flushed");
        assert!(unit.flushing.is_none(), "two flushes of unit {lpn}");
        let flush = Flush { lpn: Lpn(lpn), dirty: unit.dirty, present: unit.present };
        unit.flushing = Some(unit.since);
        unit.in_flight = unit.dirty;
        (unit.dirty, unit.kept) = (0, false);
        self.settle();
        flush
    }

    pub(super) fn next_flush(&mut self) -> Option<Flush> {
        let longest_kept = || {
            let kept = self.units.iter().filter(|(_, u)| self.starving && u.is_dirty());
            kept.min_by_key(|(_, u)| u.since).map(|(lpn, _)| *lpn)
        };
        let lpn = self.first(Unit::wants_flush).or_else(longest_kept)?;
        Some(self.begin(lpn))
    }

    pub(super) fn flush_line(&mut self, lpn: u64) -> Option<Flush> {
        self.units.get(&lpn).is_some_and(Unit::is_dirty).then(|| self.begin(lpn))
    }

    pub(super) fn flush_until(&mut self, barrier: u64) -> Option<Flush> {
        let waiting = self.units.iter().filter(|(_, u)| u.is_dirty() && u.since <= barrier);
        let lpn = *waiting.min_by_key(|(_, u)| u.since)?.0;
        Some(self.begin(lpn))
    }

    pub(super) fn flushed(&mut self, lpn: u64) -> Flushed {
        let unit = self.units.get_mut(&lpn).expect("only a unit with a line is flushed");
        let (discarded, dirty) = (unit.discarded, unit.dirty != 0);
        (unit.flushing, unit.discarded) = (None, false);
        if !dirty && (!self.shape.caches_reads || unit.present == 0) {
            self.units.remove(&lpn);
        }
        self.settle();
        let room = self.has_room();
        self.starving &= !room;
        Flushed { discarded, dirty, room }
    }
}
