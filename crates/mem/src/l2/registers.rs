//! Miss registers: fetches under way, and who waits for them.

use super::layout::{Layout, Target};
use kernel::Slab;
use proto::memory::Access;

/// No page; no waiter.
const NO_PAGE: u64 = u64::MAX;
const NONE: u32 = u32::MAX;

/// An access that waits for a fetch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) access: Access,
    /// Whether a write slot is kept for it.
    pub(super) slot: bool,
    next: u32,
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
    first: u32,
    last: u32,
    waiting: u32,
}

/// The miss registers of a bank.
pub(super) struct Registers {
    /// The page of each register in use.
    pages: Vec<u64>,
    items: Vec<Register>,
    free: Vec<u32>,
    waiters: Slab<Waiter>,
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
            first: NONE,
            last: NONE,
            waiting: 0,
        };
        Registers {
            pages: vec![NO_PAGE; count as usize],
            items: vec![empty; count as usize],
            // The lowest first, so that a search finds those in use early.
            free: (0..count).rev().collect(),
            waiters: Slab::default(),
            merges,
        }
    }

    /// Registers in use.
    fn live(&self) -> usize {
        self.pages.len() - self.free.len()
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

    /// The registers that fetch lines of a page.
    #[inline]
    fn of(&self, page: u64) -> impl Iterator<Item = u32> {
        let pages = if self.live() > 0 { &self.pages[..] } else { &[] };
        let those = pages.iter().enumerate().filter(move |(_, p)| **p == page);
        those.map(|(register, _)| register as u32)
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
        self.pages[register as usize] = target.page;
        self.items[register as usize] = Register {
            page: target.page,
            open: lines,
            locked: 0,
            line: target.line,
            app,
            first: NONE,
            last: NONE,
            waiting: 0,
        };
        register
    }

    /// An access waits for a register's fetch; for an atomic the line is locked, and a write slot may be kept.
    pub(super) fn wait(&mut self, register: u32, access: Access, lock: u64, slot: bool) {
        let waiter = self.waiters.insert(Waiter { access, slot, next: NONE });
        let item = &mut self.items[register as usize];
        item.locked |= lock;
        item.waiting += 1;
        match item.last {
            NONE => item.first = waiter,
            last => self.waiters[last].next = waiter,
        }
        item.last = waiter;
    }

    /// A fetch has come back without data: its register stays, and nobody waits for it. Those who did are to be taken with
    /// [`Registers::take`]; who waits again must be told.
    pub(super) fn reopen(&mut self, register: u32) -> Register {
        let item = &mut self.items[register as usize];
        let before = *item;
        (item.first, item.last, item.waiting) = (NONE, NONE, 0);
        before
    }

    /// A fetch has come back: its register is free. Those who waited are to be taken with [`Registers::take`].
    pub(super) fn end(&mut self, register: u32) -> Register {
        self.pages[register as usize] = NO_PAGE;
        self.free.push(register);
        self.items[register as usize]
    }

    /// Lines that those who wait have asked for.
    pub(super) fn wanted(&self, item: &Register, layout: &Layout) -> u64 {
        let (mut lines, mut waiter) = (0, item.first);
        while waiter != NONE {
            let Waiter { access, next, .. } = self.waiters[waiter];
            lines |= 1 << layout.line_of(access.address);
            waiter = next;
        }
        lines
    }

    /// The next that waited for a fetch, in the order of their coming.
    pub(super) fn take(&mut self, item: &mut Register) -> Option<Waiter> {
        if item.first == NONE {
            return None;
        }
        let waiter = self.waiters[item.first];
        self.waiters.remove(item.first);
        item.first = waiter.next;
        Some(waiter)
    }

    /// What is on its way for an application will not be kept, nor may more wait for it, except lines for which
    /// `keep` holds.
    pub(super) fn forget_app(&mut self, app: u8, keep: impl Fn(&Register, u32) -> bool) {
        for item in self.items.iter_mut().zip(&self.pages).filter(|(_, page)| **page != NO_PAGE) {
            let item = item.0;
            if item.app == app {
                let old = super::layout::bits(item.open & !item.locked).filter(|line| !keep(item, *line));
                let old = old.fold(0, |lines, line| lines | 1 << line);
                item.open &= !old;
            }
        }
    }
}
