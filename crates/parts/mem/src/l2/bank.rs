//! State of a bank of the shared cache.

use super::registers::Registers;
use super::{Event, L2, L2Spec, Out, layout::Target, note};
use crate::cache::{Shape, Tags};
use engine::resource::Serial;
use engine::{Cx, Rng, Slab, Time};
use proto::memory::Access;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// State of a line in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Line {
    /// True if the whole line is here; otherwise only its written part.
    pub(super) valid: bool,
    /// True if memory does not have this version.
    pub(super) dirty: bool,
    /// True if the line belongs to a parked page and cannot be evicted.
    pub(super) pinned: bool,
    /// True while a fetch of the line is under way: it cannot be evicted until the fetch ends.
    pub(super) filling: bool,
    /// True if a prefetch has brought the line.
    pub(super) prefetched: bool,
    /// True if the line has been read.
    pub(super) accessed: bool,
    /// Application of the line.
    pub(super) app: u8,
}

impl Line {
    /// Returns true if the line can be evicted, once memory has it.
    #[inline]
    pub(super) fn may_go(&self) -> bool {
        !self.pinned && !self.filling
    }
}

/// Activity of a bank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// No access waits.
    Idle,
    /// Occupied for the first waiting access, or by a fill before it.
    Serving,
    /// Unable to place the first waiting access, since this time.
    Stalled(Time),
}

/// Purge of an application's lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purge {
    pub(super) app: u8,
    /// Place before which none of its lines is left.
    pub(super) next: u32,
}

/// Bank of the shared cache.
pub(super) struct Bank {
    pub(super) tags: Tags<Line>,
    /// Single port of the bank.
    pub(super) port: Serial,
    /// Time occupied before the measured window.
    pub(super) busy_before: Time,
    pub(super) state: State,
    pub(super) queue: VecDeque<Access>,
    /// True if the prefetcher has been told of the first waiting access.
    pub(super) told: bool,
    pub(super) registers: Registers,
    pub(super) slots: Slots,
    pub(super) parked: Parked,
    pub(super) purges: VecDeque<Purge>,
}

impl Bank {
    /// Creates the bank of a number, from a checked spec.
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

    /// Returns true if one more line of the set of `key` may be pinned: one way is never pinned.
    pub(super) fn may_pin(&self, key: u64) -> bool {
        let set = self.tags.set(key);
        let ways = set.len();
        let pinned = set.filter(|p| self.tags.line(*p).is_some() && self.tags.meta(*p).pinned).count();
        pinned + 1 < ways
    }

    /// Number of accesses and commands inside.
    pub(super) fn outstanding(&self) -> usize {
        self.queue.len() + self.registers.outstanding() + self.slots.outstanding()
    }
}

// Write slots: writes to memory under way.

/// Write under way.
#[derive(Clone, Copy, Debug)]
struct Slot {
    page: u64,
    /// Access that waits for it.
    access: Option<Access>,
}

/// Write slots of a bank.
pub(super) struct Slots {
    items: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// Free slots reserved for atomics whose line is being fetched.
    kept: usize,
}

impl Slots {
    /// Creates `count` slots.
    pub(super) fn new(count: u32) -> Slots {
        Slots { items: vec![None; count as usize], free: (0..count).rev().collect(), kept: 0 }
    }

    /// Number of slots that can be taken.
    #[inline]
    pub(super) fn free(&self) -> usize {
        self.free.len() - self.kept
    }

    /// Number of writes under way, and of accesses that wait for them.
    pub(super) fn outstanding(&self) -> usize {
        let waiting = self.items.iter().flatten().filter(|slot| slot.access.is_some()).count();
        self.items.len() - self.free.len() + waiting
    }

    /// Returns true if lines of a page are being written to memory.
    pub(super) fn writes_to(&self, page: u64) -> bool {
        self.items.iter().flatten().any(|slot| slot.page == page)
    }

    /// Page written from a slot.
    #[inline]
    pub(super) fn page(&self, slot: u32) -> Option<u64> {
        self.items[slot as usize].map(|slot| slot.page)
    }

    /// Takes a slot for a write to a page.
    ///
    /// Panics if none is free.
    /// If none is free.
    pub(super) fn take(&mut self, page: u64, access: Option<Access>) -> u32 {
        assert!(self.free() > 0, "a write is sent only when a slot is free");
        let slot = self.free.pop().expect("counted above");
        self.items[slot as usize] = Some(Slot { page, access });
        slot
    }

    /// Reserves a slot.
    ///
    /// Panics if none is free.
    /// If none is free.
    pub(super) fn keep(&mut self) {
        assert!(self.free() > 0, "a slot is kept only when one is free");
        self.kept += 1;
    }

    /// Releases a reserved slot.
    pub(super) fn unkeep(&mut self) {
        self.kept -= 1;
    }

    /// Ends a write; returns the access that waited for it.
    pub(super) fn end(&mut self, slot: u32) -> Option<Access> {
        let ended = self.items[slot as usize].take().expect("a write that ends was under way");
        self.free.push(slot);
        ended.access
    }
}

/// Invalid page name.
const NONE: u32 = u32::MAX;

/// Parked page: its pinned lines are all dirty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) page: u64,
    pub(super) app: u8,
    pub(super) lines: u64,
    older: u32,
    newer: u32,
}

/// Parked pages of a bank, in the order of their last writes.
pub(super) struct Parked {
    capacity: usize,
    items: Slab<Page>,
    names: FxHashMap<u64, u32>,
    oldest: u32,
    newest: u32,
}

impl Parked {
    /// Creates room for `capacity` pages.
    pub(super) fn new(capacity: u32) -> Parked {
        Parked {
            capacity: capacity as usize,
            items: Slab::default(),
            names: FxHashMap::default(),
            oldest: NONE,
            newest: NONE,
        }
    }

    /// Returns true if there is room for one more page.
    pub(super) fn has_room(&self) -> bool {
        self.items.len() < self.capacity
    }

    /// Returns true if no page can ever be parked.
    pub(super) fn is_off(&self) -> bool {
        self.capacity == 0
    }

    /// Name of a page, if it is parked.
    #[inline]
    pub(super) fn find(&self, page: u64) -> Option<u32> {
        if self.names.is_empty() {
            return None;
        }
        self.names.get(&page).copied()
    }

    /// Parks a page that is not parked yet.
    pub(super) fn add(&mut self, page: u64, lines: u64, app: u8) {
        let name = self.items.insert(Page { page, app, lines, older: NONE, newer: NONE });
        self.names.insert(page, name);
        self.link(name);
    }

    /// Notes a write to lines of a parked page.
    pub(super) fn written(&mut self, name: u32, lines: u64) {
        self.items[name].lines |= lines;
        self.unlink(name);
        self.link(name);
    }

    /// Removes a page from the parked ones.
    pub(super) fn remove(&mut self, name: u32) -> Page {
        self.unlink(name);
        let page = self.items[name];
        self.names.remove(&page.page);
        self.items.remove(name);
        page
    }

    /// Parked pages with their names, least recently written first.
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

// Purging: garbage collection of an application evicts all its lines.

/// Progress of a purge.
#[derive(PartialEq, Eq)]
enum Progress {
    /// No line left to purge.
    Done,
    /// Waits for a write slot, or for a fetch.
    Waits,
}

impl L2 {
    /// Evicts all lines of an application. Its parked pages and its dirty lines go to memory, as fast as write slots
    /// allow, a page's lines of a bank in one command. Lines being fetched for it are passed on to their waiters and
    /// not kept; a line that is here and being fetched is evicted once the fetch has ended. New accesses of the
    /// application are served as usual: the caller must hold them back if unwanted.
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

    /// Continues the purges of a bank.
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

    /// Drops the application's lines, and writes the dirty ones, from the purge's present position.
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

    /// Dirty lines of a target's page in its bank that can be evicted.
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
