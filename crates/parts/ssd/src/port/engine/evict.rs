//! Pages on their way from the write buffer to flash.

use super::busy::{Fetch, Leaving, Outbound, Place, Translation};
use super::{Engine, Event, Out, Written};
use engine::{Cx, Mutant, planted_nth};
use proto::IoOp;
use proto::memory::{PAGE, Stage};

impl Engine {
    /// Puts a page into the write buffer: into an empty place, or into that of the page that has not been used for
    /// longest among those that are whole in their places.
    pub(super) fn insert_written(
        &mut self,
        page: u64,
        written: Written,
    ) -> Option<(u32, Option<(u64, Written)>)> {
        // Only an entry that waits may drive another out: it knows whom to wait for.
        let may_evict = written.pending;
        self.writes.insert(page, written, |other| may_evict && !other.pending)
    }

    /// A page makes room for `heir`, which waits for its place.
    pub(super) fn evict(
        &mut self,
        page: u64,
        valid: u64,
        place: u32,
        heir: u32,
        cx: &mut impl Cx<Event, Out>,
    ) {
        self.ledger.evictions += 1;
        self.stats.evictions += 1;
        let row = self.write_row(place);
        let name = self.busy_at(page);
        let state = &mut self.pages[name];
        debug_assert!(state.leaving.is_none(), "a page that leaves is not in the write buffer");
        state.leaving = Some(Leaving { valid, row, heir, translation: Translation::Needed });
        self.advance(name, cx);
    }

    /// Takes a leaving page as far as it gets now: other versions of it out of the way, complete, translated, read out.
    pub(super) fn advance(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let state = self.pages[name];
        let Some(leaving) = state.leaving else { return };
        if state.outbound != Outbound::No || state.fetch != Fetch::None {
            return;
        }
        if leaving.valid != self.lines.all() && self.reads.find(state.page).is_none() {
            self.fetch(name, true, cx);
            return;
        }
        match leaving.translation {
            Translation::Needed => {
                self.set_translation(name, Translation::UnderWay);
                let end = self.translate(cx);
                cx.after(end - cx.now(), Event::Placed(name));
            }
            Translation::UnderWay | Translation::Held => {}
            Translation::Done if self.outbound < self.outbound_limit => self.read_out(name, leaving, cx),
            Translation::Done => {
                self.set_translation(name, Translation::Held);
                self.held.push_back(name);
            }
        }
    }

    fn set_translation(&mut self, name: u32, translation: Translation) {
        if let Some(leaving) = &mut self.pages[name].leaving {
            leaving.translation = translation;
        }
    }

    pub(super) fn placed(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        self.set_translation(name, Translation::Done);
        self.advance(name, cx);
    }

    /// Reads a page out of the DRAM; its place goes to the one that waits for it, whose data follow on the same bus.
    fn read_out(&mut self, name: u32, leaving: Leaving, cx: &mut impl Cx<Event, Out>) {
        let page = self.pages[name].page;
        let copy = self.reads.find(page);
        #[cfg(test)]
        self.trail.push(super::trail::Moved::Out {
            page,
            row: leaving.row,
            lines: leaving.valid,
            rest: copy.map(|place| self.read_row(place)),
        });
        if let Some(place) = copy {
            // It is out of date from here on.
            self.stats.merged_from_buffer += u64::from(leaving.valid != self.lines.all());
            self.stats.prefetch_unused += u64::from(self.reads.meta(place).ahead);
            self.reads.remove(place);
        }
        let end = self.dram.access(cx.now(), leaving.row, PAGE);
        cx.after(end - cx.now(), Event::ReadOut(name));
        let state = &mut self.pages[name];
        (state.leaving, state.outbound) = (None, Outbound::ReadOut);
        self.outbound += 1;
        debug_assert!(self.outbound <= self.outbound_limit);
        self.inherit(leaving.heir, cx);
    }

    /// The place that a page waits for is free.
    fn inherit(&mut self, heir: u32, cx: &mut impl Cx<Event, Out>) {
        let Place::Of(place) = self.pages[heir].place else { unreachable!("an heir waits for one place") };
        self.pages[heir].place = Place::Unneeded;
        self.writes.meta_mut(place).pending = false;
        let set = (self.pages[heir].page % self.write_sets) as usize;
        self.wake(heir, Stage::Buffer, cx);
        self.retire(heir);
        if let Some(next) = self.without_place[set].pop_front() {
            self.take_place(next, cx);
        }
    }

    pub(super) fn read_out_done(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        if planted_nth(Mutant::DroppedByEngine, 4) {
            self.programmed(name, cx);
            return;
        }
        self.pages[name].outbound = Outbound::Writing;
        self.ledger.stored += 1;
        self.stats.flash_writes += 1;
        self.submit(name, IoOp::Write, cx);
    }

    /// The page is on flash.
    pub(super) fn programmed(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        self.pages[name].outbound = Outbound::No;
        self.outbound -= 1;
        self.wake(name, Stage::Array, cx);
        self.advance(name, cx);
        self.retire(name);
        while self.outbound < self.outbound_limit
            && let Some(next) = self.held.pop_front()
        {
            self.set_translation(next, Translation::Done);
            self.advance(next, cx);
        }
    }
}
