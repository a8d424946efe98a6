//! Translations under way, merged by page: the page walk buffer and the faults under way.

use engine::Slab;
use proto::memory::{Absent, Translation};
use rustc_hash::FxHashMap;

/// End of a list.
const NONE: u32 = u32::MAX;

/// What the translations of a page wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// A walk, begun or not.
    Walk,
    /// A page fault.
    Fault,
    /// A page fault of which it is known that it takes long: who does not want to wait for it is not made to.
    Refused,
}

/// A page that translations wait for, in the order of their arrival.
#[derive(Clone, Copy)]
struct Page {
    app: u8,
    page: u64,
    state: State,
    /// Whether any of them waits for an absent page.
    waits: bool,
    first: u32,
    last: u32,
}

#[derive(Clone, Copy)]
struct Waiter {
    translation: Translation,
    next: u32,
}

/// Every translation inside the unit.
#[derive(Default)]
pub(super) struct Pending {
    waiters: Slab<Waiter>,
    pages: Slab<Page>,
    by_page: FxHashMap<(u8, u64), u32>,
}

impl Pending {
    /// A translation has come; it waits for no page yet.
    #[inline]
    pub(super) fn enter(&mut self, translation: Translation) -> u32 {
        self.waiters.insert(Waiter { translation, next: NONE })
    }

    /// A translation.
    #[inline]
    pub(super) fn waiter_mut(&mut self, name: u32) -> &mut Translation {
        &mut self.waiters[name].translation
    }

    /// A translation that waits for no page goes.
    #[inline]
    pub(super) fn leave(&mut self, name: u32) -> Translation {
        self.waiters.remove(name);
        self.waiters[name].translation
    }

    /// Translations inside.
    pub(super) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// A translation begins to wait for its page; which that is, and whether it is the first one to.
    pub(super) fn join(&mut self, name: u32) -> (u32, bool) {
        let Translation { app, page, absent, .. } = self.waiters[name].translation;
        let waits = absent == Absent::Wait;
        if let Some(&slot) = self.by_page.get(&(app, page)) {
            self.pages[slot].waits |= waits;
            let last = std::mem::replace(&mut self.pages[slot].last, name);
            self.waiters[last].next = name;
            return (slot, false);
        }
        let slot = self.pages.insert(Page { app, page, state: State::Walk, waits, first: name, last: name });
        self.by_page.insert((app, page), slot);
        (slot, true)
    }

    /// What a page's translations wait for.
    pub(super) fn state(&self, slot: u32) -> State {
        self.pages[slot].state
    }

    /// Application and number of a page.
    #[inline]
    pub(super) fn page(&self, slot: u32) -> (u8, u64) {
        (self.pages[slot].app, self.pages[slot].page)
    }

    /// What becomes of the page's translations if it, or an entry of its tables, is absent: they wait if any of them does.
    #[inline]
    pub(super) fn absent(&self, slot: u32) -> Absent {
        if self.pages[slot].waits { Absent::Wait } else { Absent::Signal }
    }

    /// The page's walk has ended in a fault; the first translation that waits for it, which speaks for all.
    pub(super) fn fault(&mut self, slot: u32) -> Translation {
        self.pages[slot].state = State::Fault;
        let absent = self.absent(slot);
        Translation { absent, ..self.waiters[self.pages[slot].first].translation }
    }

    /// The page's fault takes long.
    pub(super) fn refuse(&mut self, slot: u32) {
        self.pages[slot].state = State::Refused;
    }

    /// The page, if it faults.
    pub(super) fn faulting(&self, app: u8, page: u64) -> Option<u32> {
        let slot = *self.by_page.get(&(app, page))?;
        (self.pages[slot].state != State::Walk).then_some(slot)
    }

    /// Visits the translations of a page.
    pub(super) fn each(&mut self, slot: u32, mut visit: impl FnMut(&mut Translation)) {
        let mut name = self.pages[slot].first;
        while name != NONE {
            let waiter = &mut self.waiters[name];
            visit(&mut waiter.translation);
            name = waiter.next;
        }
    }

    /// Translations of a page that do not wait for an absent one go; the page goes with the last. Whether it is still here.
    pub(super) fn take_signals(&mut self, slot: u32, mut visit: impl FnMut(Translation)) -> bool {
        let mut name = std::mem::replace(&mut self.pages[slot].first, NONE);
        let mut last = NONE;
        while name != NONE {
            let Waiter { translation, next } = self.waiters[name];
            if translation.absent == Absent::Wait {
                match last {
                    NONE => self.pages[slot].first = name,
                    last => self.waiters[last].next = name,
                }
                self.waiters[name].next = NONE;
                last = name;
            } else {
                self.waiters.remove(name);
                visit(translation);
            }
            name = next;
        }
        self.pages[slot].last = last;
        if last == NONE {
            let Page { app, page, .. } = self.pages[slot];
            self.by_page.remove(&(app, page));
            self.pages.remove(slot);
        }
        last != NONE
    }

    /// A page goes with all its translations.
    pub(super) fn take(&mut self, slot: u32, mut visit: impl FnMut(Translation)) {
        let Page { app, page, first, .. } = self.pages[slot];
        self.by_page.remove(&(app, page));
        self.pages.remove(slot);
        let mut name = first;
        while name != NONE {
            let Waiter { translation, next } = self.waiters[name];
            self.waiters.remove(name);
            visit(translation);
            name = next;
        }
    }
}
