//! Miss registers: fetches under way, and who waits for them.

use super::layout::{Layout, Target};
use engine::{List, Lists};
use proto::memory::{Access, PAGE};

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
