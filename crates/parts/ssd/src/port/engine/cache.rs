//! Flash cache: look-up of requests, pages with work under way, and pages that leave it for flash.

use super::{Engine, Event, Out, Written};
use engine::{Cx, List, Lists, Mutant, planted_nth};
use proto::IoOp;
use proto::memory::{MemCommand, PAGE, Stage};

impl Engine {
    /// Puts a page into the write buffer: into an empty place, or that of the least recently used page among those that
    /// are whole in their places.
    pub(super) fn insert_written(
        &mut self,
        page: u64,
        written: Written,
    ) -> Option<(u32, Option<(u64, Written)>)> {
        // Only a waiting entry may drive another one out: it knows what to wait for.
        let may_evict = written.pending;
        self.writes.insert(page, written, |other| may_evict && !other.pending)
    }

    /// Evicts a page for `heir`, which waits for its place.
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

    /// Advances a leaving page as far as possible now: other versions out of the way, complete, translated, read out.
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

    /// Reads a page out of the DRAM; its place goes to its heir, whose data follow on the same bus.
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

    /// Handles the free place that a page has waited for.
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

    /// Handles a page that is on flash.
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

// Look-up of a request in the flash cache.

/// Result of a request's first look-up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Hit,
    Merge,
    Miss,
}

impl Engine {
    pub(super) fn dispatched(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let command = &mut self.requests[id];
        self.tally.command(Stage::Controller, command, cx.now());
        if !command.write
            && let Some(tracker) = &mut self.tracker
        {
            tracker.observe(command.pc, command.page / PAGE);
        }
        self.look_up(id, true, cx);
    }

    /// Looks a request up: for the first time, or again after an event of its page.
    pub(super) fn look_up(&mut self, id: u32, first: bool, cx: &mut impl Cx<Event, Out>) {
        let command = self.requests[id];
        let found =
            if command.write { self.write(id, &command, cx) } else { self.read(id, &command, first, cx) };
        if first {
            let counts = if command.write { &mut self.stats.writes } else { &mut self.stats.reads };
            counts.requests += 1;
            match found {
                Found::Hit => counts.hits += 1,
                Found::Merge => counts.merges += 1,
                Found::Miss => counts.misses += 1,
            }
        }
    }

    fn read(&mut self, id: u32, command: &MemCommand, first: bool, cx: &mut impl Cx<Event, Out>) -> Found {
        let page = command.page / PAGE;
        let busy = self.at.get(&page).copied();
        if let Some(name) = busy
            && self.pages[name].writes > 0
        {
            // Later look-ups must see the data of those writes.
            self.pages[name].wait(id, command.write, &mut self.waiting);
            return Found::Merge;
        }
        let written = self.written(page, busy);
        let valid = written.map_or(0, |(valid, _)| valid);
        if let Some((_, row)) = written
            && command.lines & !valid == 0
        {
            if let Some(place) = self.writes.find(page) {
                self.writes.touch(place);
            }
            self.stats.write_buffer_reads += u64::from(first);
            self.access(id, row, None, cx);
            return Found::Hit;
        }
        if let Some(place) = self.reads.find(page) {
            self.reads.touch(place);
            let copied = self.reads.meta_mut(place);
            self.stats.prefetch_used += u64::from(copied.ahead);
            copied.ahead = false;
            self.access(id, self.read_row(place), written, cx);
            return Found::Hit;
        }
        let name = self.busy_at(page);
        let state = &mut self.pages[name];
        state.wait(id, command.write, &mut self.waiting);
        if state.fetch != Fetch::None {
            // A late prefetch is used too.
            self.stats.prefetch_used += u64::from(!state.asked);
            state.asked = true;
            return Found::Merge;
        }
        if state.outbound != Outbound::No {
            return Found::Merge;
        }
        self.fetch(name, true, cx);
        if first {
            self.fetch_superpage(command, cx);
        }
        Found::Miss
    }

    fn write(&mut self, id: u32, command: &MemCommand, cx: &mut impl Cx<Event, Out>) -> Found {
        let page = command.page / PAGE;
        if let Some(name) = self.at.get(&page) {
            let state = &mut self.pages[*name];
            if state.writes > 0 || state.place != Place::Unneeded {
                state.wait(id, command.write, &mut self.waiting);
                return Found::Merge;
            }
            if let Some(leaving) = &mut state.leaving {
                leaving.valid |= command.lines;
                let row = leaving.row;
                self.access(id, row, None, cx);
                return Found::Hit;
            }
        }
        if let Some(place) = self.writes.find(page) {
            self.writes.touch(place);
            self.writes.meta_mut(place).valid |= command.lines;
            self.access(id, self.write_row(place), None, cx);
            return Found::Hit;
        }
        let new = Written { valid: command.lines, pending: false };
        if let Some((place, None)) = self.insert_written(page, new) {
            self.access(id, self.write_row(place), None, cx);
        } else {
            let name = self.busy_at(page);
            self.pages[name].wait(id, command.write, &mut self.waiting);
            self.stats.waits_for_place += 1;
            self.take_place(name, cx);
        }
        Found::Miss
    }

    /// Lines of a page in the write buffer, and their row.
    fn written(&self, page: u64, busy: Option<u32>) -> Option<(u64, u32)> {
        if let Some(leaving) = busy.and_then(|name| self.pages[name].leaving) {
            return Some((leaving.valid, leaving.row));
        }
        let place = self.writes.find(page)?;
        let written = self.writes.meta(place);
        (!written.pending).then(|| (written.valid, self.write_row(place)))
    }

    /// Moves the request's lines over the bus. `written` are lines of which another row has a newer version.
    fn access(&mut self, id: u32, row: u32, written: Option<(u64, u32)>, cx: &mut impl Cx<Event, Out>) {
        let command = &self.requests[id];
        #[cfg(test)]
        self.trail.push(super::trail::Moved::lines(command, row, written));
        #[cfg(not(test))]
        let _ = written;
        let end = self.dram.access(cx.now(), row, self.lines.bytes_of(command.lines));
        cx.after(end - cx.now(), Event::Answered(id));
    }

    /// Takes a place for a write, which has not found one.
    pub(super) fn take_place(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let page = self.pages[name].page;
        match self.insert_written(page, Written { valid: 0, pending: true }) {
            Some((place, gone)) => {
                self.pages[name].place = Place::Of(place);
                let (victim, written) = gone.expect("a set that was full has no empty place");
                self.evict(victim, written.valid, place, name, cx);
            }
            None => {
                self.pages[name].place = Place::None;
                self.without_place[(page % self.write_sets) as usize].push_back(name);
            }
        }
    }
}

// Pages with work under way, and the requests that wait for them.

/// Page in flight from flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fetch {
    None,
    /// Waiting for the FTL.
    Translating,
    /// Being read at the device.
    Reading,
}

/// Place in the write buffer that a page waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The page waits for none.
    Unneeded,
    /// No place of its set is available yet.
    None,
    /// Place with this number, once the page in it has been read out.
    Of(u32),
}

/// Page evicted from the write buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// Lines of the page in the buffer.
    pub(super) valid: u64,
    /// Row of the page.
    pub(super) row: u32,
    /// Busy page that waits for this place.
    pub(super) heir: u32,
    pub(super) translation: Translation,
}

/// Progress of a leaving page at the FTL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Translation {
    Needed,
    UnderWay,
    Done,
    /// Waits until fewer pages are in flight to flash.
    Held,
}

/// Page in flight to flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outbound {
    No,
    /// Being read out of the DRAM.
    ReadOut,
    /// Being written at the device.
    Writing,
}

/// Page with work under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    pub(super) page: u64,
    pub(super) fetch: Fetch,
    /// True if the fetch was requested; otherwise it is a prefetch.
    pub(super) asked: bool,
    pub(super) leaving: Option<Leaving>,
    /// Version of the page that has left the buffer.
    pub(super) outbound: Outbound,
    pub(super) place: Place,
    /// Requests that wait for the page.
    waiting: List,
    /// Number of writes among the waiting requests.
    pub(super) writes: u32,
}

impl Busy {
    pub(super) fn new(page: u64) -> Busy {
        Busy {
            page,
            fetch: Fetch::None,
            asked: false,
            leaving: None,
            outbound: Outbound::No,
            place: Place::Unneeded,
            waiting: List::EMPTY,
            writes: 0,
        }
    }

    /// Returns true if nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.fetch == Fetch::None
            && self.leaving.is_none()
            && self.outbound == Outbound::No
            && self.place == Place::Unneeded
            && self.waiting.is_empty()
    }

    /// Returns true if the device has a command for the page.
    pub(super) fn at_device(&self) -> bool {
        self.fetch == Fetch::Reading || self.outbound == Outbound::Writing
    }

    /// Queues the request behind the others.
    #[inline]
    pub(super) fn wait(&mut self, id: u32, write: bool, waiting: &mut Lists<u32>) {
        waiting.push(&mut self.waiting, id);
        self.writes += u32::from(write);
    }

    /// Takes the list of waiting requests.
    #[inline]
    pub(super) fn take_waiting(&mut self) -> List {
        self.writes = 0;
        self.waiting.take()
    }

    /// Requests that wait.
    pub(super) fn waiting(&self) -> &List {
        &self.waiting
    }
}
