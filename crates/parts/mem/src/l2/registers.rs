//! Miss registers (MSHRs): fetches under way, and their waiters.

use super::layout::{Layout, Target};
use engine::{List, Lists};
use proto::memory::{Access, PAGE};

/// Invalid page number, of an unused register.
const NO_PAGE: u64 = u64::MAX;
const NONE: u32 = u32::MAX;

/// Access that waits for a fetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) access: Access,
    /// True if a write slot is reserved for it.
    pub(super) slot: bool,
}

/// Fetch under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Register {
    pub(super) page: u64,
    /// Fetched lines that others may join, and that will be kept. A write that overtakes its line on the way to memory
    /// removes it: the fetched data are outdated.
    pub(super) open: u64,
    /// Lines among these for which an atomic waits.
    pub(super) locked: u64,
    /// Line that began the fetch.
    pub(super) line: u32,
    pub(super) app: u8,
    waiters: List,
    /// Number of waiters.
    waiting: u32,
    /// Next register of the bucket.
    beside: u32,
}

/// Miss registers of a bank.
pub(super) struct Registers {
    items: Vec<Register>,
    free: Vec<u32>,
    /// First register in use of each bucket of pages: every access looks for those of its page.
    buckets: Vec<u32>,
    waiters: Lists<Waiter>,
    merges: u32,
}

impl Registers {
    /// Creates `count` registers, each with room for `merges` accesses.
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
            // Few are in use at once: a table that fits in the processor's cache matters more than short buckets.
            buckets: vec![NONE; (count as usize / 4).next_power_of_two()],
            waiters: Lists::default(),
            merges,
        }
    }

    /// Number of registers in use.
    fn live(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// Number of fetches under way and of accesses that wait for them.
    pub(super) fn outstanding(&self) -> usize {
        self.live() + self.waiters.len()
    }

    /// Returns true if no fetch can begin.
    #[inline]
    pub(super) fn full(&self) -> bool {
        self.free.is_empty()
    }

    /// Page that a register fetches.
    #[inline]
    pub(super) fn page(&self, register: u32) -> Option<u64> {
        let page = self.items[register as usize].page;
        (page != NO_PAGE).then_some(page)
    }

    /// Registers that fetch lines of a page.
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

    /// Register that fetches a line, if any; there is at most one.
    #[inline]
    pub(super) fn find(&self, target: Target) -> Option<u32> {
        self.of(target.page).find(|r| self.items[*r as usize].open & target.bit() != 0)
    }

    /// Lines of a page that are in flight.
    pub(super) fn in_flight(&self, page: u64) -> u64 {
        self.of(page).fold(0, |lines, r| lines | self.items[r as usize].open)
    }

    /// Returns true if an atomic waits for the line.
    pub(super) fn locked(&self, target: Target) -> bool {
        self.of(target.page).any(|r| self.items[r as usize].locked & target.bit() != 0)
    }

    /// Marks the line in flight as outdated.
    pub(super) fn forget(&mut self, target: Target) {
        if let Some(register) = self.find(target) {
            self.items[register as usize].open &= !target.bit();
        }
    }

    /// Returns true if one more access may wait for a register's fetch.
    #[inline]
    pub(super) fn has_room(&self, register: u32) -> bool {
        self.items[register as usize].waiting < self.merges
    }

    /// Starts a fetch of `lines` of the target's page, without waiters.
    ///
    /// # Panics
    /// Panics if all registers are in use.
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

    /// Makes an access wait for a register's fetch; for an atomic the line is locked, and a write slot may be reserved.
    pub(super) fn wait(&mut self, register: u32, access: Access, lock: u64, slot: bool) {
        let item = &mut self.items[register as usize];
        item.locked |= lock;
        item.waiting += 1;
        self.waiters.push(&mut item.waiters, Waiter { access, slot });
    }

    /// Handles a fetch without data: its register stays, without waiters. Former waiters must be taken with
    /// [`Registers::take`]; those that wait again must be added again.
    pub(super) fn reopen(&mut self, register: u32) -> Register {
        let item = &mut self.items[register as usize];
        let before = *item;
        (item.waiters, item.waiting) = (List::EMPTY, 0);
        before
    }

    /// Ends a fetch: its register is free. The waiters must be taken with [`Registers::take`].
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

    /// Lines requested by the waiters.
    pub(super) fn wanted(&self, item: &Register, layout: &Layout) -> u64 {
        let lines = self.waiters.iter(&item.waiters).map(|waiter| 1 << layout.line_of(waiter.access.address));
        lines.fold(0, |all, line| all | line)
    }

    /// Next waiter of a fetch, in order of arrival.
    pub(super) fn take(&mut self, item: &mut Register) -> Option<Waiter> {
        self.waiters.pop(&mut item.waiters)
    }

    /// Marks lines in flight for an application as not to be kept nor joined, except lines for which `keep` holds.
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
