//! Pages on their way from flash to the DRAM.

use super::busy::Fetch;
use super::{Copied, Engine, Event, Out};
use engine::Cx;
use proto::IoOp;
use proto::memory::{MemCommand, PAGE, Stage};

impl Engine {
    /// Begins to read a page from flash, with the FTL.
    pub(super) fn fetch(&mut self, name: u32, asked: bool, cx: &mut impl Cx<Event, Out>) {
        let state = &mut self.pages[name];
        (state.fetch, state.asked) = (Fetch::Translating, asked);
        self.ledger.fetches += 1;
        self.stats.flash_reads += 1;
        self.stats.prefetched += u64::from(!asked);
        let end = self.translate(cx);
        cx.after(end - cx.now(), Event::Translated(name));
    }

    /// Joins the FTL's queue; returns when the translation is done.
    pub(super) fn translate(&mut self, cx: &impl Cx<Event, Out>) -> engine::Time {
        self.ledger.translations += 1;
        self.stats.ftl_requests += 1;
        self.ftl.grant(cx.now(), self.ftl_time)
    }

    /// Fetches the other pages of a superpage, if the instruction reads in sequence.
    pub(super) fn fetch_superpage(&mut self, command: &MemCommand, cx: &mut impl Cx<Event, Out>) {
        let Some(tracker) = &self.tracker else { return };
        let Some(superpage) = tracker.superpage(command.pc, command.page / PAGE) else { return };
        for page in superpage.start..superpage.end.min(self.device_pages) {
            let here = self.reads.find(page).is_some() || self.writes.find(page).is_some();
            if !here && !self.at.contains_key(&page) {
                let name = self.busy_at(page);
                self.fetch(name, false, cx);
            }
        }
    }

    pub(super) fn translated(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let state = &mut self.pages[name];
        state.fetch = Fetch::Reading;
        for id in self.waiting.iter(state.waiting()) {
            self.tally.command(Stage::Ftl, &mut self.requests[*id], cx.now());
        }
        self.submit(name, IoOp::Read, cx);
    }

    /// The page has come. It enters the read buffer, or completes a page that is leaving the write buffer.
    pub(super) fn fetched(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let all = self.lines.all();
        let state = &mut self.pages[name];
        state.fetch = Fetch::None;
        if let Some(leaving) = &mut state.leaving {
            let missing = all & !leaving.valid;
            leaving.valid = all;
            #[cfg(test)]
            self.trail.push(super::trail::Moved::Filled {
                page: state.page,
                row: leaving.row,
                lines: missing,
            });
            if missing != 0 {
                self.stats.merged_from_flash += 1;
                self.dram.access(cx.now(), leaving.row, self.lines.bytes_of(missing));
            }
        } else {
            let (page, ahead) = (state.page, !state.asked);
            let (place, gone) =
                self.reads.insert(page, Copied { ahead }, |_| true).expect("any clean page may go");
            self.stats.prefetch_unused += u64::from(gone.is_some_and(|(_, copied)| copied.ahead));
            let row = self.read_row(place);
            #[cfg(test)]
            self.trail.push(super::trail::Moved::Filled { page, row, lines: all });
            self.dram.access(cx.now(), row, PAGE);
        }
        self.wake(name, Stage::Array, cx);
        self.advance(name, cx);
        self.retire(name);
    }
}
