//! Which pages are parked.

use engine::Slab;
use rustc_hash::FxHashMap;

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
