//! Miss registers: fetches under way, and who waits for them.

use super::{
    Event, L2, Out,
    bank::Line,
    layout::{Layout, Target},
    note,
};
use engine::{Cx, List, Lists};
use proto::memory::{Access, AccessKind, MemCommand, PAGE, Stage};

/// No page; no register.
const NO_PAGE: u64 = u64::MAX;
const NONE: u32 = u32::MAX;

/// An access that waits for a fetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) access: Access,
    /// Whether a write slot is kept for it.
    pub(super) slot: bool,
}

/// A fetch under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Register {
    pub(super) page: u64,
    /// Fetched lines that others may wait for, and that will be kept. A write that passes its line on the way to memory
    /// takes it out: what comes back is old.
    pub(super) open: u64,
    /// Of them, lines for which an atomic waits.
    pub(super) locked: u64,
    /// The line that began it.
    pub(super) line: u32,
    pub(super) app: u8,
    waiters: List,
    /// How many they are.
    waiting: u32,
    /// The next register of its bucket.
    beside: u32,
}

/// The miss registers of a bank.
pub(super) struct Registers {
    items: Vec<Register>,
    free: Vec<u32>,
    /// The first register in use of each bucket of pages: every access asks for those of its page.
    buckets: Vec<u32>,
    waiters: Lists<Waiter>,
    merges: u32,
}

impl Registers {
    /// `count` registers, each with room for `merges` accesses.
    pub(super) fn new(count: u32, merges: u32) -> Registers {
        let empty = Register {
            page: NO_PAGE,
            open: 0,
            locked: 0,
            line: 0,
            app: 0,
            waiters: List::EMPTY,
            waiting: 0,
            beside: NONE,
        };
        Registers {
            items: vec![empty; count as usize],
            free: (0..count).rev().collect(),
            // Few are in use at once: a table that stays in the processor's cache is worth more than short buckets.
            buckets: vec![NONE; (count as usize / 4).next_power_of_two()],
            waiters: Lists::default(),
            merges,
        }
    }

    /// Registers in use.
    fn live(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// Fetches under way and accesses that wait for them.
    pub(super) fn outstanding(&self) -> usize {
        self.live() + self.waiters.len()
    }

    /// Whether no fetch can be begun.
    #[inline]
    pub(super) fn full(&self) -> bool {
        self.free.is_empty()
    }

    /// The page that a register fetches.
    #[inline]
    pub(super) fn page(&self, register: u32) -> Option<u64> {
        let page = self.items[register as usize].page;
        (page != NO_PAGE).then_some(page)
    }

    /// The registers that fetch lines of a page.
    #[inline]
    fn of(&self, page: u64) -> impl Iterator<Item = u32> {
        let some = |register: u32| (register != NONE).then_some(register);
        let bucket = std::iter::successors(some(self.buckets[self.bucket(page)]), move |register| {
            some(self.items[*register as usize].beside)
        });
        bucket.filter(move |register| self.items[*register as usize].page == page)
    }

    #[inline]
    fn bucket(&self, page: u64) -> usize {
        // Fibonacci hashing (Knuth, volume 3, 6.4): neighbours spread.
        let hash = (page / PAGE).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (hash >> 32) as usize & (self.buckets.len() - 1)
    }

    /// The register that brings a line; there is one at most.
    #[inline]
    pub(super) fn find(&self, target: Target) -> Option<u32> {
        self.of(target.page).find(|r| self.items[*r as usize].open & target.bit() != 0)
    }

    /// Lines of a page that are on their way.
    pub(super) fn in_flight(&self, page: u64) -> u64 {
        self.of(page).fold(0, |lines, r| lines | self.items[r as usize].open)
    }

    /// Whether an atomic waits for the line.
    pub(super) fn locked(&self, target: Target) -> bool {
        self.of(target.page).any(|r| self.items[r as usize].locked & target.bit() != 0)
    }

    /// What is on its way of the line is old.
    pub(super) fn forget(&mut self, target: Target) {
        if let Some(register) = self.find(target) {
            self.items[register as usize].open &= !target.bit();
        }
    }

    /// Whether one more may wait for a register's fetch.
    #[inline]
    pub(super) fn has_room(&self, register: u32) -> bool {
        self.items[register as usize].waiting < self.merges
    }

    /// Begins a fetch of `lines` of the target's page; nobody waits for it yet.
    ///
    /// # Panics
    /// If all are in use.
    pub(super) fn begin(&mut self, target: Target, lines: u64, app: u8) -> u32 {
        let register = self.free.pop().expect("a fetch begins only when a register is free");
        let bucket = self.bucket(target.page);
        let beside = std::mem::replace(&mut self.buckets[bucket], register);
        self.items[register as usize] = Register {
            page: target.page,
            open: lines,
            locked: 0,
            line: target.line,
            app,
            waiters: List::EMPTY,
            waiting: 0,
            beside,
        };
        register
    }

    /// An access waits for a register's fetch; for an atomic the line is locked, and a write slot may be kept.
    pub(super) fn wait(&mut self, register: u32, access: Access, lock: u64, slot: bool) {
        let item = &mut self.items[register as usize];
        item.locked |= lock;
        item.waiting += 1;
        self.waiters.push(&mut item.waiters, Waiter { access, slot });
    }

    /// A fetch has come back without data: its register stays, and nobody waits for it. Those who did are to be taken with
    /// [`Registers::take`]; who waits again must be told.
    pub(super) fn reopen(&mut self, register: u32) -> Register {
        let item = &mut self.items[register as usize];
        let before = *item;
        (item.waiters, item.waiting) = (List::EMPTY, 0);
        before
    }

    /// A fetch has come back: its register is free. Those who waited are to be taken with [`Registers::take`].
    pub(super) fn end(&mut self, register: u32) -> Register {
        let ended = self.items[register as usize];
        let bucket = self.bucket(ended.page);
        let mut before = self.buckets[bucket];
        if before == register {
            self.buckets[bucket] = ended.beside;
        } else {
            while self.items[before as usize].beside != register {
                before = self.items[before as usize].beside;
            }
            self.items[before as usize].beside = ended.beside;
        }
        self.items[register as usize].page = NO_PAGE;
        self.free.push(register);
        ended
    }

    /// Lines that those who wait have asked for.
    pub(super) fn wanted(&self, item: &Register, layout: &Layout) -> u64 {
        let lines = self.waiters.iter(&item.waiters).map(|waiter| 1 << layout.line_of(waiter.access.address));
        lines.fold(0, |all, line| all | line)
    }

    /// The next that waited for a fetch, in the order of their coming.
    pub(super) fn take(&mut self, item: &mut Register) -> Option<Waiter> {
        self.waiters.pop(&mut item.waiters)
    }

    /// What is on its way for an application will not be kept, nor may more wait for it, except lines for which
    /// `keep` holds.
    pub(super) fn forget_app(&mut self, app: u8, keep: impl Fn(&Register, u32) -> bool) {
        for item in self.items.iter_mut().filter(|item| item.page != NO_PAGE) {
            if item.app == app {
                let old = super::layout::bits(item.open & !item.locked).filter(|line| !keep(item, *line));
                let old = old.fold(0, |lines, line| lines | 1 << line);
                item.open &= !old;
            }
        }
    }
}

// What a fetch has brought.

impl L2 {
    /// Lines have come: they are kept, and those who waited are answered.
    pub(super) fn fetched(&mut self, command: &MemCommand, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let layout = self.layout;
        let registers = &mut self.bank(command.port).registers;
        let mut register = registers.end(command.tag);
        debug_assert_eq!(register.page, command.page, "an answer to another fetch");
        let wanted = registers.wanted(&register, &layout);
        let first =
            Target::new(&layout, command.port, command.page + u64::from(register.line) * layout.line());
        let mut filled = self.complete(command.tag, first, register.open);
        let mut stage = Stage::L2;
        while let Some(mut waiter) = self.bank(command.port).registers.take(&mut register) {
            // The first one's milestones are those of the fetch, the others waited for it as a whole.
            if stage == Stage::L2 {
                waiter.access.since = command.since;
            }
            self.fulfil(command.port, (command.tag, &register), waiter, stage, cx);
            stage = Stage::L2Merge;
        }
        // Only now, because new lines may push out old ones, and atomics have been promised that theirs is here.
        filled += self.keep(command.tag, first, &register, wanted, cx);
        let time = self.write_latency.times(filled.into());
        self.bank(command.port).port.grant(now, time);
    }

    /// Completes the lines that are here already: written in part, or a place held for an atomic. How many.
    fn complete(&mut self, fetch: u32, first: Target, lines: u64) -> u32 {
        let mut filled = 0;
        for target in first.siblings(lines) {
            let tags = &mut self.bank(target.bank).tags;
            let Some(place) = tags.find(target.key) else {
                continue;
            };
            let line = tags.meta_mut(place);
            debug_assert!(line.filling, "who puts a line in while it is fetched says so");
            line.filling = false;
            line.valid = true;
            filled += 1;
            note!(self, Fill(fetch, target));
        }
        filled
    }

    /// Keeps the other lines that have come. How many were written into the cells.
    fn keep(
        &mut self,
        fetch: u32,
        first: Target,
        register: &Register,
        wanted: u64,
        cx: &mut impl Cx<Event, Out>,
    ) -> u32 {
        // The write of an atomic that goes through has made its line old.
        let old = if self.keeps_writes() { 0 } else { register.locked };
        let mut filled = 0;
        for target in first.siblings(register.open & !old) {
            if self.bank(target.bank).tags.find(target.key).is_some() {
                continue;
            }
            let prefetched = target.line != register.line;
            let accessed = wanted & target.bit() != 0;
            self.stats.used_prefetched_lines += u64::from(prefetched && accessed);
            let line = Line { valid: true, prefetched, accessed, app: register.app, ..Line::default() };
            if self.enter(target, line, cx) {
                filled += 1;
                note!(self, Fill(fetch, target));
            } else {
                self.stats.unkept_lines += 1;
            }
        }
        filled
    }

    /// Answers an access that waited for a fetch, or sends its write on.
    fn fulfil(
        &mut self,
        number: u16,
        (fetch, register): (u32, &Register),
        waiter: Waiter,
        stage: Stage,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let Waiter { access, slot } = waiter;
        let target = Target::new(&self.layout, number, access.address);
        let keeps_writes = self.keeps_writes();
        let bank = self.bank(number);
        if slot {
            bank.slots.unkeep();
        }
        let place = bank.tags.find(target.key);
        let stays = keeps_writes || place.is_some_and(|p| bank.tags.meta(p).pinned);
        // What has been written to the line meanwhile is part of it, unless the fetch was told that it would be old.
        if place.is_some() && register.open & target.bit() != 0 {
            note!(self, FromLine(target, access));
        } else {
            note!(self, FromFetch(fetch, target, access));
        }
        match access.kind {
            AccessKind::Atomic if stays => {
                self.store(target, access);
                self.answer(access, stage, cx);
            }
            AccessKind::Atomic => self.write_through(target, access, stage, Some(fetch), cx),
            _ => self.answer(access, stage, cx),
        }
    }
}
