//! Frontside controllers: accesses, from the look-up in the tags to the answer.

use super::inner::Waiter;
use super::{DramCache, Event, NONE, Out, note};
use engine::{Cx, Mutant, planted};
use proto::memory::{Absent, MemCommand, Stage};

/// Command inside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) command: MemCommand,
    pub(super) controller: u16,
    step: Step,
    /// Place of the page in the tags, while it is pinned there.
    place: u32,
    /// True if the request is the first to change its page: the tags must record that.
    changes: bool,
}

/// Event that a request waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Controller, to open the row and access the column of the tags, or that of a page table.
    Open,
    /// Tags, or the request's turn behind a miss that blocks all.
    Tags,
    /// Page.
    Page,
    /// Controller, to access the columns of the data.
    Column,
    /// Data.
    Data,
    /// Controller, to answer.
    Answer,
}

impl DramCache {
    /// Accepts a command.
    pub(super) fn arrive(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        assert!(command.lines != 0 && command.lines & !self.lines.all() == 0, "lines of a page: {command:?}");
        let number = self.controller_of(command.page);
        let request = Request { command, controller: number, step: Step::Open, place: NONE, changes: false };
        let name = self.requests.insert(request);
        assert!(self.requests.len() <= self.bound, "more than {} commands at the same time", self.bound);
        let controller = self.controller(number);
        if controller.blocked.is_empty() {
            self.issue(name, Step::Open, 2, cx);
        } else {
            controller.waiting.push_back(name);
        }
    }

    /// Makes the controller issue `commands` commands for a request.
    fn issue(&mut self, name: u32, step: Step, commands: u64, cx: &mut impl Cx<Event, Out>) {
        let service = self.front_command.times(commands);
        let request = &mut self.requests[name];
        request.step = step;
        let front = &mut self.controllers[usize::from(request.controller)].front;
        let end = front.grant(cx.now(), service);
        cx.after(end - cx.now(), Event::Issued(name));
    }

    /// Handles what the controller has issued for a request.
    pub(super) fn issued(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let request = &mut self.requests[name];
        self.tally.command(Stage::Controller, &mut request.command, cx.now());
        let Request { command, controller, place, changes, .. } = *request;
        match request.step {
            Step::Open => {
                if let Some(address) = self.layout.flat(command.page) {
                    request.step = Step::Data;
                    self.stats.flat += 1;
                    let columns = self.layout.columns(command.lines);
                    self.access_dram(Waiter::Request(name), address, columns, command.write, cx);
                } else {
                    request.step = Step::Tags;
                    let address = self.layout.tags(controller, command.page);
                    self.access_dram(Waiter::Request(name), address, 1, false, cx);
                }
            }
            Step::Column => {
                request.step = Step::Data;
                let address = self.layout.way(controller, place);
                let columns = self.layout.columns(command.lines);
                self.access_dram(Waiter::Request(name), address, columns, command.write, cx);
                if changes {
                    let address = self.layout.tags(controller, command.page);
                    self.access_dram(Waiter::Nobody, address, 1, true, cx);
                }
            }
            Step::Answer => {
                self.requests.remove(name);
                cx.emit(Out::Done(command));
            }
            Step::Tags | Step::Page | Step::Data => unreachable!("nothing is issued in {:?}", request.step),
        }
    }

    /// Handles a completed DRAM command of a request.
    pub(super) fn accessed(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let request = &mut self.requests[name];
        let number = request.controller;
        if request.step == Step::Tags {
            self.tally.command(Stage::Tags, &mut request.command, cx.now());
            if !self.controller(number).blocked.is_empty() {
                self.controller(number).blocked.push_back(name);
            } else if !self.decide(name, cx) {
                self.stats.stalls += 1;
                self.controller(number).blocked.push_back(name);
            }
            return;
        }
        self.tally.command(Stage::Memory, &mut request.command, cx.now());
        let (place, read) = (request.place, request.command.page);
        let is_kept = !self.layout.is_read_once(read);
        self.issue(name, Step::Answer, 1, cx);
        if place != NONE {
            let tags = &mut self.controller(number).tags;
            let page = tags.meta_mut(place);
            page.pins -= 1;
            if page.pins == 0 {
                if !is_kept && page.may_go() && !page.dirty {
                    tags.remove(place);
                    self.stats.drops += 1;
                    note!(self, Evict(read));
                    note!(self, Gone(read, false));
                }
                self.may_go(number, place, cx);
            }
        }
    }

    /// Decides on hit or miss; returns false if the backside controller has no room for a miss.
    fn decide(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        let Request { command, controller: number, .. } = self.requests[name];
        let (line, most) = (self.layout.line_of(command.page), self.queue);
        let controller = self.controller(number);
        if let Some(place) = controller.tags.find(line).filter(|place| !controller.tags.meta(*place).coming) {
            self.serve(name, place, cx);
            return true;
        }
        if command.absent == Absent::Probe && !command.write {
            self.stats.probes += 1;
            self.requests[name].command.absent = Absent::Signalled;
            self.issue(name, Step::Answer, 1, cx);
            return true;
        }
        if controller.queue.len() == most {
            return false;
        }
        controller.queue.push_back(command.page);
        self.stats.misses += 1;
        let fetch = self.missing_page(&command, number);
        if command.absent == Absent::Signal && !command.write {
            self.stats.signalled += 1;
            self.requests[name].command.absent = Absent::Signalled;
            self.issue(name, Step::Answer, 2, cx);
        } else {
            self.stats.waits += 1;
            let request = &mut self.requests[name];
            self.tally.command(Stage::Controller, &mut request.command, cx.now());
            request.step = Step::Page;
            self.waiters.push(&mut self.fetches[fetch].waiting, name);
            // Sending the miss takes the controller's time too.
            let service = self.front_command;
            self.controller(number).front.grant(cx.now(), service);
        }
        self.start_search(number, cx);
        true
    }

    /// Accesses the data of a request whose page is in a place.
    pub(super) fn serve(&mut self, name: u32, place: u32, cx: &mut impl Cx<Event, Out>) {
        let request = &mut self.requests[name];
        self.stats.hits += 1;
        if request.step == Step::Page {
            self.tally.command(Stage::Refill, &mut request.command, cx.now());
        }
        request.place = place;
        let tags = &mut self.controllers[usize::from(request.controller)].tags;
        tags.touch(place);
        let page = tags.meta_mut(place);
        page.pins += 1;
        request.changes = request.command.write && !page.dirty;
        self.ledger.dirtied += u64::from(request.changes);
        page.dirty |= request.command.write && !planted(Mutant::CleanPage);
        if request.command.write {
            page.app = request.command.app;
        }
        note!(self, Serve(request.command));
        let commands = 1 + u64::from(request.changes);
        self.issue(name, Step::Column, commands, cx);
    }

    /// Answers a request whose page has arrived and is not kept, from the controller's buffer.
    pub(super) fn pass(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let command = &mut self.requests[name].command;
        self.stats.passes += 1;
        self.tally.command(Stage::Refill, command, cx.now());
        note!(self, Pass(*command));
        self.issue(name, Step::Answer, 1, cx);
    }

    /// Resumes requests when the backside controller has room again.
    pub(super) fn unblock(&mut self, number: u16, cx: &mut impl Cx<Event, Out>) {
        while let Some(name) = self.controller(number).blocked.front().copied() {
            if !self.decide(name, cx) {
                return;
            }
            self.controller(number).blocked.pop_front();
        }
        while let Some(name) = self.controller(number).waiting.pop_front() {
            self.issue(name, Step::Open, 2, cx);
        }
    }
}
