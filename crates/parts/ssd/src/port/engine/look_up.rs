//! What a request finds in the flash cache.

use super::busy::{Fetch, Outbound, Place};
use super::{Engine, Event, Out, Written};
use engine::Cx;
use proto::memory::{MemCommand, PAGE, Stage};

/// How a request was looked up for the first time.
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

    /// Looks a request up: for the first time, or again because something has happened to its page.
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
            // What those writes store is to be seen.
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
            // A prefetch that comes late is used too.
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

    /// The request's lines cross the bus. `written` are lines that another row has newer.
    fn access(&mut self, id: u32, row: u32, written: Option<(u64, u32)>, cx: &mut impl Cx<Event, Out>) {
        let command = &self.requests[id];
        #[cfg(test)]
        self.trail.push(super::trail::Moved::lines(command, row, written));
        #[cfg(not(test))]
        let _ = written;
        let end = self.dram.access(cx.now(), row, self.lines.bytes_of(command.lines));
        cx.after(end - cx.now(), Event::Answered(id));
    }

    /// The write waits for a place that it has not found.
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
