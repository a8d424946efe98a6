//! Eviction: the choice of a victim, and the evict buffer.

use super::backside::Step;
use super::{DramCache, Event, NONE, Out, Page, note};
use engine::{Cx, Mutant, Snapshot, planted_nth};
use proto::memory::PAGE;

/// Page in the evict buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub(super) page: u64,
    pub(super) controller: u16,
    /// Application that wrote it last.
    pub(super) app: u8,
    dirty: bool,
    /// True if the page has been sent to flash.
    stored: bool,
    /// True if the page has been copied out of its way.
    pub(super) copied: bool,
    /// Fetch that takes the page back when it has been copied.
    pub(super) reclaimed: u32,
}

impl Leaving {
    /// Returns true if the page is dirty and has not been sent to flash.
    pub(super) fn is_unsaved(&self) -> bool {
        self.dirty && !self.stored
    }
}

impl DramCache {
    /// Place of a page in the evict buffer.
    pub(super) fn in_buffer(&self, page: u64) -> Option<u32> {
        let controller = &self.controllers[usize::from(self.controller_of(page))];
        controller.buffer.iter().copied().find(|name| self.leaving[*name].page == page)
    }

    /// Finds a way for a fetch whose tags are known.
    pub(super) fn choose(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let fetch = self.fetches[name];
        let (number, line, most) = (fetch.controller, self.layout.line_of(fetch.page), self.buffer);
        let writing = self.in_buffer(fetch.page).is_some_and(|leaving| self.leaving[leaving].dirty);
        let controller = self.controller(number);
        let full = controller.tags.set(line).all(|place| controller.tags.line(place).is_some());
        if full && controller.buffer.len() == most {
            controller.without_room.push_back(name);
            self.stats.buffer_waits += u64::from(fetch.step == Step::Look);
            self.fetches[name].step = Step::Room;
            return;
        }
        let page = Page { coming: true, writing, ..Page::default() };
        let Some((place, victim)) = controller.tags.insert(line, page, Page::may_go) else {
            controller.without_way.push_back(name);
            self.stats.way_waits += u64::from(fetch.step != Step::Way);
            self.fetches[name].step = Step::Way;
            return;
        };
        self.fetches[name].place = place;
        let Some((victim, Page { dirty, app, .. })) = victim else {
            self.ready(name, cx);
            return;
        };
        let page = self.layout.page_of(number, victim);
        note!(self, Evict(page));
        *(if dirty { &mut self.stats.dirty_evictions } else { &mut self.stats.clean_evictions }) += 1;
        let leaving = self.leaving.insert(Leaving {
            page,
            controller: number,
            app,
            dirty,
            stored: false,
            copied: false,
            reclaimed: NONE,
        });
        self.controller(number).buffer.push(leaving);
        self.fetches[name].victim = leaving;
        self.step(name, Step::Drop, cx);
    }

    /// Handles a victim that is in the evict buffer.
    pub(super) fn copied(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let victim = self.fetches[name].victim;
        let leaving = &mut self.leaving[victim];
        leaving.copied = true;
        let Leaving { dirty, reclaimed, .. } = *leaving;
        if reclaimed != NONE {
            self.come(reclaimed, cx);
        }
        if dirty && !planted_nth(Mutant::DroppedPage, 4) {
            self.step(name, Step::Store, cx);
        } else {
            self.ready(name, cx);
            self.leave(victim, cx);
        }
    }

    /// Sends a dirty page to flash.
    pub(super) fn store(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        self.stats.write_backs += 1;
        self.ledger.stored += 1;
        self.leaving[name].stored = true;
        self.write_page(name, cx);
    }

    /// Handles a page that flash has taken.
    pub(super) fn written(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let Leaving { page, controller: number, .. } = self.leaving[name];
        let line = self.layout.line_of(page);
        self.leave(name, cx);
        // The page may have come back meanwhile.
        let tags = &mut self.controller(number).tags;
        if let Some(place) = tags.find(line) {
            tags.meta_mut(place).writing = false;
            self.may_go(number, place, cx);
        }
    }

    /// Removes a page from the evict buffer.
    fn leave(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let number = self.leaving[name].controller;
        note!(self, Gone(self.leaving[name].page, self.leaving[name].dirty));
        self.leaving.remove(name);
        let most = self.buffer;
        let controller = self.controller(number);
        controller.buffer.retain(|other| *other != name);
        while self.controller(number).buffer.len() < most {
            let Some(fetch) = self.controller(number).without_room.pop_front() else { return };
            self.choose(fetch, cx);
        }
    }

    /// Retries fetches of a set in which the page in a place may have become evictable.
    pub(super) fn may_go(&mut self, number: u16, place: u32, cx: &mut impl Cx<Event, Out>) {
        for _ in 0..self.controller(number).without_way.len() {
            let Some(name) = self.controller(number).without_way.pop_front() else { return };
            let line = self.layout.line_of(self.fetches[name].page);
            let controller = self.controller(number);
            if controller.tags.set(line).contains(&place) {
                self.choose(name, cx);
            } else {
                controller.without_way.push_back(name);
            }
        }
    }
}

// State of a DRAM cache left by use before a run, as bytes.

engine::snapshot!(Page { coming, dirty, writing, app, pins });

impl DramCache {
    /// Appends the pages in the cache, and other changes by [`warm`](DramCache::warm), before the first command.
    ///
    /// # Panics
    /// Panics if the cache is at work.
    pub fn save_warm(&self, out: &mut Vec<u8>) {
        assert_eq!(self.outstanding(), 0, "a cache is saved before its first command");
        self.controllers.iter().for_each(|controller| controller.tags.save(out));
        (self.ledger.dirtied, self.ledger.stored).save(out);
    }

    /// Loads the saved state of a cache of the same pages, into a cache as built, from the front of `input`. Returns
    /// `None` if it is malformed, if a page is beyond the first `pages`, or if pages and their number contradict each
    /// other. The cache must then not be used before a different state has been loaded.
    pub fn load_warm(&mut self, input: &mut &[u8], pages: u64) -> Option<()> {
        for controller in &mut self.controllers {
            controller.tags.load(input)?;
        }
        (self.ledger.dirtied, self.ledger.stored) = Snapshot::load(input)?;
        let mut dirty = 0;
        for (number, controller) in (0..).zip(&self.controllers) {
            for place in 0..controller.tags.places() {
                let page = controller.tags.meta(place);
                let line = controller.tags.line(place);
                let is_at_rest = Page { dirty: false, ..*page } == Page::default();
                if !is_at_rest || !line.map_or(!page.dirty, |line| self.is_placed(number, line, pages)) {
                    return None;
                }
                dirty += u64::from(page.dirty);
            }
        }
        // Small enough that a run never counts to the end of 64 bits.
        let counts = self.ledger.dirtied < 1 << 62
            && self.ledger.dirtied.checked_sub(self.ledger.stored) == Some(dirty);
        counts.then_some(())
    }

    /// Returns true if a line of a controller is a page below `pages` that belongs there.
    fn is_placed(&self, number: u16, line: u64, pages: u64) -> bool {
        if line >= pages {
            return false;
        }
        let page = self.layout.page_of(number, line);
        page / PAGE < pages && self.controller_of(page) == number && self.layout.flat(page).is_none()
    }
}
