//! A bank of the shared cache: its state.

use super::registers::Registers;
use super::{Event, L2, L2Spec, Out, layout::Target, note};
use crate::cache::{Shape, Tags};
use engine::resource::Serial;
use engine::{Cx, Rng, Slab, Time};
use proto::memory::Access;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// What is known of a line that is here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Line {
    /// All of it is here; without, only what has been written.
    pub(super) valid: bool,
    /// Memory does not have what is here.
    pub(super) dirty: bool,
    /// It belongs to a parked page and cannot make room.
    pub(super) pinned: bool,
    /// A fetch of it is under way, and it cannot make room until it comes.
    pub(super) filling: bool,
    /// A prefetch has brought it.
    pub(super) prefetched: bool,
    /// It has been read.
    pub(super) accessed: bool,
    /// The application.
    pub(super) app: u8,
}

impl Line {
    /// Whether it can make room, once memory has it.
    #[inline]
    pub(super) fn may_go(&self) -> bool {
        !self.pinned && !self.filling
    }
}

/// What a bank does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Nothing waits.
    Idle,
    /// It is occupied for the first access that waits, or by a fill before it.
    Serving,
    /// It cannot place the first access that waits, since then.
    Stalled(Time),
}

/// An application whose lines leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purge {
    pub(super) app: u8,
    /// Places before this hold none of its lines any more.
    pub(super) next: u32,
}

/// A bank.
pub(super) struct Bank {
    pub(super) tags: Tags<Line>,
    /// Its one port.
    pub(super) port: Serial,
    /// Occupied before the measured window.
    pub(super) busy_before: Time,
    pub(super) state: State,
    pub(super) queue: VecDeque<Access>,
    /// Whether the prefetcher has been told of the first access that waits.
    pub(super) told: bool,
    pub(super) registers: Registers,
    pub(super) slots: Slots,
    pub(super) parked: Parked,
    pub(super) purges: VecDeque<Purge>,
}

impl Bank {
    /// The bank of a number, as a checked spec says.
    pub(super) fn new(spec: &L2Spec, seed: u64, number: u16) -> Bank {
        let shape = Shape { sets: spec.sets, ways: spec.ways };
        let seed = Rng::stream(seed, &format!("l2/bank{number}")).next_u64();
        Bank {
            tags: Tags::seeded(shape, &spec.replacement, seed),
            port: Serial::default(),
            busy_before: Time::ZERO,
            state: State::Idle,
            queue: VecDeque::new(),
            told: false,
            registers: Registers::new(spec.registers, spec.merges),
            slots: Slots::new(spec.write_slots),
            parked: Parked::new(spec.parked_lines() / spec.page_lines()),
            purges: VecDeque::new(),
        }
    }

    /// Whether one more line of the set of `key` may be pinned: a way stays free of them.
    pub(super) fn may_pin(&self, key: u64) -> bool {
        let set = self.tags.set(key);
        let ways = set.len();
        let pinned = set.filter(|p| self.tags.line(*p).is_some() && self.tags.meta(*p).pinned).count();
        pinned + 1 < ways
    }

    /// Accesses and commands inside.
    pub(super) fn outstanding(&self) -> usize {
        self.queue.len() + self.registers.outstanding() + self.slots.outstanding()
    }
}

// Write slots: writes to memory under way.

/// A write under way.
#[derive(Clone, Copy, Debug)]
struct Slot {
    page: u64,
    /// Who waits for it.
    access: Option<Access>,
}

/// The write slots of a bank.
pub(super) struct Slots {
    items: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// Free ones that are kept for atomics whose line is being fetched.
    kept: usize,
}

impl Slots {
    /// `count` slots.
    pub(super) fn new(count: u32) -> Slots {
        Slots { items: vec![None; count as usize], free: (0..count).rev().collect(), kept: 0 }
    }

    /// Slots that can be taken.
    #[inline]
    pub(super) fn free(&self) -> usize {
        self.free.len() - self.kept
    }

    /// Writes under way, and accesses that wait for them.
    pub(super) fn outstanding(&self) -> usize {
        let waiting = self.items.iter().flatten().filter(|slot| slot.access.is_some()).count();
        self.items.len() - self.free.len() + waiting
    }

    /// Whether lines of a page are on their way to memory.
    pub(super) fn writes_to(&self, page: u64) -> bool {
        self.items.iter().flatten().any(|slot| slot.page == page)
    }

    /// The page that is written from a slot.
    #[inline]
    pub(super) fn page(&self, slot: u32) -> Option<u64> {
        self.items[slot as usize].map(|slot| slot.page)
    }

    /// Takes a slot for a write to a page.
    ///
    /// # Panics
    /// If none is free.
    pub(super) fn take(&mut self, page: u64, access: Option<Access>) -> u32 {
        assert!(self.free() > 0, "a write is sent only when a slot is free");
        let slot = self.free.pop().expect("counted above");
        self.items[slot as usize] = Some(Slot { page, access });
        slot
    }

    /// Keeps a slot.
    ///
    /// # Panics
    /// If none is free.
    pub(super) fn keep(&mut self) {
        assert!(self.free() > 0, "a slot is kept only when one is free");
        self.kept += 1;
    }

    /// Gives back a slot that was kept.
    pub(super) fn unkeep(&mut self) {
        self.kept -= 1;
    }

    /// A write has been done; who waited for it.
    pub(super) fn end(&mut self, slot: u32) -> Option<Access> {
        let ended = self.items[slot as usize].take().expect("a write that ends was under way");
        self.free.push(slot);
        ended.access
    }
}

/// No page.
const NONE: u32 = u32::MAX;

/// A parked page: its pinned lines are all dirty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) page: u64,
    pub(super) app: u8,
    pub(super) lines: u64,
    older: u32,
    newer: u32,
}

/// The parked pages of a bank, in the order in which they were written last.
pub(super) struct Parked {
    capacity: usize,
    items: Slab<Page>,
    names: FxHashMap<u64, u32>,
    oldest: u32,
    newest: u32,
}

impl Parked {
    /// Room for `capacity` pages.
    pub(super) fn new(capacity: u32) -> Parked {
        Parked {
            capacity: capacity as usize,
            items: Slab::default(),
            names: FxHashMap::default(),
            oldest: NONE,
            newest: NONE,
        }
    }

    /// Whether there is room for one more page.
    pub(super) fn has_room(&self) -> bool {
        self.items.len() < self.capacity
    }

    /// Whether no page can ever be parked.
    pub(super) fn is_off(&self) -> bool {
        self.capacity == 0
    }

    /// The name of a page, if it is parked.
    #[inline]
    pub(super) fn find(&self, page: u64) -> Option<u32> {
        if self.names.is_empty() {
            return None;
        }
        self.names.get(&page).copied()
    }

    /// Parks a page that is not.
    pub(super) fn add(&mut self, page: u64, lines: u64, app: u8) {
        let name = self.items.insert(Page { page, app, lines, older: NONE, newer: NONE });
        self.names.insert(page, name);
        self.link(name);
    }

    /// Lines of a parked page have been written.
    pub(super) fn written(&mut self, name: u32, lines: u64) {
        self.items[name].lines |= lines;
        self.unlink(name);
        self.link(name);
    }

    /// A page is no longer parked.
    pub(super) fn remove(&mut self, name: u32) -> Page {
        self.unlink(name);
        let page = self.items[name];
        self.names.remove(&page.page);
        self.items.remove(name);
        page
    }

    /// The parked pages with their names, the one that was written least recently first.
    pub(super) fn by_age(&self) -> impl Iterator<Item = (u32, &Page)> {
        let named = |name: u32| (name != NONE).then(|| (name, &self.items[name]));
        std::iter::successors(named(self.oldest), move |(_, page)| named(page.newer))
    }

    fn link(&mut self, name: u32) {
        let item = &mut self.items[name];
        (item.older, item.newer) = (self.newest, NONE);
        match std::mem::replace(&mut self.newest, name) {
            NONE => self.oldest = name,
            before => self.items[before].newer = name,
        }
    }

    fn unlink(&mut self, name: u32) {
        let Page { older, newer, .. } = self.items[name];
        match older {
            NONE => self.oldest = newer,
            older => self.items[older].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.items[newer].older = older,
        }
    }
}

// Purging: garbage collection of an application makes all its lines leave.

/// How far a purge has come.
#[derive(PartialEq, Eq)]
enum Progress {
    /// Nothing is left.
    Done,
    /// It needs a write slot, or a fetch to come back.
    Waits,
}

impl L2 {
    /// All lines of an application leave: its parked pages and its dirty lines go to memory, as fast as write slots
    /// allow, a page's lines of a bank in one command. What is being fetched for it is passed on to those who wait, and
    /// not kept; a line that is here and being fetched leaves once the fetch has come. New accesses of the
    /// application are served as usual: who wants none must hold them back.
    pub fn purge(&mut self, app: u8, cx: &mut impl Cx<Event, Out>) {
        let layout = self.layout;
        for number in 0..self.banks() {
            let bank = self.bank(number);
            let tags = &bank.tags;
            bank.registers.forget_app(app, |register, line| {
                let first = Target::new(&layout, number, register.page + layout.line() * u64::from(line));
                tags.find(first.key).is_some()
            });
            bank.purges.push_back(Purge { app, next: 0 });
            self.purge_on(number, cx);
        }
    }

    /// Goes on with the purges of a bank.
    pub(super) fn purge_on(&mut self, number: u16, cx: &mut impl Cx<Event, Out>) {
        while let Some(purge) = self.bank(number).purges.front().copied() {
            let done = self.purge_pages(number, purge.app, cx) == Progress::Done
                && self.purge_lines(number, purge, cx) == Progress::Done;
            if !done {
                return;
            }
            self.bank(number).purges.pop_front();
        }
    }

    /// Writes the application's parked pages.
    fn purge_pages(&mut self, number: u16, app: u8, cx: &mut impl Cx<Event, Out>) -> Progress {
        loop {
            let bank = self.bank(number);
            let Some((name, page)) = bank.parked.by_age().find(|(_, page)| page.app == app) else {
                return Progress::Done;
            };
            let (base, lines) = (page.page, page.lines);
            let target = Target::new(&self.layout, number, base);
            let bank = self.bank(number);
            let fetched = |line: Target| {
                let place = bank.tags.find(line.key).expect("pinned lines are here");
                bank.tags.meta(place).filling
            };
            if bank.slots.free() == 0 || target.siblings(lines).any(fetched) {
                return Progress::Waits;
            }
            bank.parked.remove(name);
            self.stats.unparked_pages += 1;
            self.write_back(target, lines, app, cx);
            self.drop_lines(target, lines);
        }
    }

    /// Drops the application's lines, and writes the dirty ones, from where the purge stands.
    fn purge_lines(&mut self, number: u16, purge: Purge, cx: &mut impl Cx<Event, Out>) -> Progress {
        for place in purge.next..self.bank(number).tags.places() {
            let bank = self.bank(number);
            let line = *bank.tags.meta(place);
            let Some(key) = bank.tags.line(place).filter(|_| line.app == purge.app && !line.pinned) else {
                continue;
            };
            if line.filling || line.dirty && bank.slots.free() == 0 {
                bank.purges.front_mut().expect("it is under way").next = place;
                return Progress::Waits;
            }
            let target = Target::of(&self.layout, number, key);
            if line.dirty {
                let lines = self.dirty_lines(target, purge.app);
                self.write_back(target, lines, purge.app, cx);
                self.drop_lines(target, lines);
            } else {
                self.drop_lines(target, target.bit());
            }
        }
        Progress::Done
    }

    /// The dirty lines of a target's page in its bank that can leave.
    fn dirty_lines(&self, target: Target, app: u8) -> u64 {
        let tags = &self.banks[usize::from(target.bank)].tags;
        let count = self.layout.neighbours();
        let first = target.line / count * count;
        let leaves = |line: &u32| {
            tags.find(target.sibling(*line).key).is_some_and(|place| {
                let line = tags.meta(place);
                line.dirty && !line.pinned && !line.filling && line.app == app
            })
        };
        (first..first + count).filter(leaves).fold(0, |lines, line| lines | 1 << line)
    }

    fn drop_lines(&mut self, target: Target, lines: u64) {
        for line in target.siblings(lines) {
            let tags = &mut self.bank(target.bank).tags;
            let place = tags.find(line.key).expect("lines that leave are here");
            tags.remove(place);
            self.stats.purged_lines += 1;
            note!(self, Drop(line));
        }
    }
}
