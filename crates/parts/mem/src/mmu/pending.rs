//! Pending translations, merged by page: the page walk buffer and the faults under way.

use engine::Slab;
use proto::memory::{Absent, Translation};
use rustc_hash::FxHashMap;

/// End of a list.
const NONE: u32 = u32::MAX;

/// Event that the translations of a page wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// A walk, begun or not.
    Walk,
    /// A page fault.
    Fault,
    /// A page fault known to take long: translations need not wait for it.
    Refused,
}

/// Page that translations wait for, in order of arrival.
#[derive(Clone, Copy)]
struct Page {
    app: u8,
    page: u64,
    state: State,
    /// True if any of them waits for an absent page.
    waits: bool,
    first: u32,
    last: u32,
}

#[derive(Clone, Copy)]
struct Waiter {
    translation: Translation,
    next: u32,
}

/// All translations inside the unit.
#[derive(Default)]
pub(super) struct Pending {
    waiters: Slab<Waiter>,
    pages: Slab<Page>,
    by_page: FxHashMap<(u8, u64), u32>,
}

impl Pending {
    /// Adds a translation, which waits for no page yet.
    #[inline]
    pub(super) fn enter(&mut self, translation: Translation) -> u32 {
        self.waiters.insert(Waiter { translation, next: NONE })
    }

    /// Translation with a name.
    #[inline]
    pub(super) fn waiter_mut(&mut self, name: u32) -> &mut Translation {
        &mut self.waiters[name].translation
    }

    /// Removes a translation that waits for no page.
    #[inline]
    pub(super) fn leave(&mut self, name: u32) -> Translation {
        self.waiters.remove(name);
        self.waiters[name].translation
    }

    /// Number of translations inside.
    pub(super) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// Makes a translation wait for its page; returns the page, and whether the translation is its first.
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

    /// Event that a page's translations wait for.
    pub(super) fn state(&self, slot: u32) -> State {
        self.pages[slot].state
    }

    /// Application and number of a page.
    #[inline]
    pub(super) fn page(&self, slot: u32) -> (u8, u64) {
        (self.pages[slot].app, self.pages[slot].page)
    }

    /// Handling of the page's translations if it, or an entry of its tables, is absent: they wait if any of them does.
    #[inline]
    pub(super) fn absent(&self, slot: u32) -> Absent {
        if self.pages[slot].waits { Absent::Wait } else { Absent::Signal }
    }

    /// Marks the page as faulting; returns its first waiting translation, which represents all.
    pub(super) fn fault(&mut self, slot: u32) -> Translation {
        self.pages[slot].state = State::Fault;
        let absent = self.absent(slot);
        Translation { absent, ..self.waiters[self.pages[slot].first].translation }
    }

    /// Marks the page's fault as taking long.
    pub(super) fn refuse(&mut self, slot: u32) {
        self.pages[slot].state = State::Refused;
    }

    /// Slot of a page, if it faults.
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

    /// Removes translations of a page that do not wait for an absent one; the page is removed with the last. Returns
    /// true if it is still here.
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

    /// Removes a page with all its translations.
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

// Address spaces: the frame of a page, and its residency.

/// Residency of an application's pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Residency {
    /// All pages are always resident: no faults.
    Always,
    /// Tracked per page: none at first, then those resolved and not evicted. The frame of a page is its own.
    ByPage,
    /// Unknown to the unit: it asks at the end of each walk, and is told the frame.
    Asked,
}

/// Residency as known to the unit.
#[derive(Clone, Debug, Default)]
enum Resident {
    #[default]
    Always,
    /// Bit mask of resident pages.
    Pages(Vec<u64>),
    Asked,
}

/// Pages of one application.
#[derive(Clone, Debug, Default)]
struct Space {
    /// Frame of page zero; the other frames follow.
    first: u64,
    pages: u64,
    resident: Resident,
}

/// Address spaces of all applications, in consecutive frames.
#[derive(Clone, Debug, Default)]
pub(super) struct Spaces {
    spaces: Vec<Space>,
    frames: u64,
}

impl Spaces {
    /// Gives an application its pages.
    pub(super) fn add(&mut self, app: u8, pages: u64, residency: Residency) {
        let app = usize::from(app);
        if self.spaces.len() <= app {
            self.spaces.resize(app + 1, Space::default());
        }
        assert_eq!(self.spaces[app].pages, 0, "application {app} has an address space already");
        let resident = match residency {
            Residency::Always => Resident::Always,
            Residency::ByPage => Resident::Pages(vec![0; pages.div_ceil(64) as usize]),
            Residency::Asked => Resident::Asked,
        };
        self.spaces[app] = Space { first: self.frames, pages, resident };
        self.frames += pages;
    }

    /// Number of pages of every application.
    pub(super) fn pages(&self) -> Vec<u64> {
        self.spaces.iter().map(|space| space.pages).collect()
    }

    /// Number of frames of all applications.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    #[inline]
    fn space(&self, app: u8, page: u64) -> &Space {
        let space = &self.spaces[usize::from(app)];
        assert!(page < space.pages, "application {app} has {} pages, not page {page}", space.pages);
        space
    }

    /// Frame of a page, if the unit knows that it is resident.
    #[inline]
    pub(super) fn frame(&self, app: u8, page: u64) -> Option<u64> {
        let space = self.space(app, page);
        let known = match &space.resident {
            Resident::Always => true,
            Resident::Pages(words) => words[(page / 64) as usize] >> (page % 64) & 1 == 1,
            Resident::Asked => false,
        };
        known.then(|| space.first + page)
    }

    /// Application that owns a frame; `None` if the unit does not know.
    pub(super) fn owner(&self, frame: u64) -> Option<u8> {
        let has = |space: &&Space| (space.first..space.first + space.pages).contains(&frame);
        let app = self.spaces.iter().position(|space| has(&space))?;
        (!matches!(self.spaces[app].resident, Resident::Asked)).then_some(app as u8)
    }

    /// Sets the residency of a page, where the unit tracks it per page.
    pub(super) fn set_resident(&mut self, app: u8, page: u64, resident: bool) {
        self.space(app, page);
        if let Resident::Pages(words) = &mut self.spaces[usize::from(app)].resident {
            let word = &mut words[(page / 64) as usize];
            let bit = 1 << (page % 64);
            *word = if resident { *word | bit } else { *word & !bit };
        }
    }
}
