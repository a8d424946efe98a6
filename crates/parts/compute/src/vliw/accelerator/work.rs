//! Workers: from a screen to its sections, from one section to the next, and the frames of memory for sections.

use super::super::{Act, Ended, Instance as Number, Screen, State, Unit};
use super::load::Admitted;
use super::{Accelerator, Asked, Event, Message, Need, Out};
use crate::vliw::{
    frames::Claim,
    program::{Cost, Part},
};
use engine::{Cx, Ticket, Time};
use proto::groups::{Ask, Groups};
use std::ops::Range;

/// Worker core that executes kernels.
#[derive(Default)]
pub(super) struct Worker {
    unit: Option<Unit>,
    screen: Option<Screen>,
    /// Times of Flashvisor's decision on its screen, of the screen's begin, and since which it has computed nothing.
    decided: Time,
    since: Time,
    idle_since: Time,
    /// Sections of its screen, among those of its program; how many have been requested, and computed.
    sections: Range<usize>,
    asked: usize,
    computed: usize,
    /// Section that it computes.
    computes: Option<Computes>,
    /// Page groups of its sections.
    groups: u64,
}

/// Section being computed.
#[derive(Clone, Copy, Debug)]
struct Computes {
    since: Time,
    /// Time in which the worker issues.
    issues: Time,
    bytes: u64,
    /// Expected end with the present shares of memory.
    ends: Option<(Time, Ticket)>,
}

/// Section that a worker has requested.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) worker: u16,
    pub(super) groups: Vec<Need>,
    /// Number of claimed groups, and number of those not in memory.
    pub(super) claimed: usize,
    pub(super) missing: u32,
    /// True once the worker knows that all of it is in memory.
    pub(super) is_there: bool,
}

impl Accelerator {
    /// Assigns work to idle workers.
    pub(super) fn schedule(&mut self, cx: &mut impl Cx<Event, Out>) {
        for worker in 0..self.workers.len() {
            if self.workers[worker].unit.is_some() {
                continue;
            }
            let Some(unit) = self.scheduler.next(&self.chain, worker as u16) else { continue };
            let screen = self.chain.begin(unit);
            let cycles = self.spec.costs.schedule + self.spec.costs.message;
            let service = self.time(cycles.into());
            let decided = self.visor.grant(cx.now(), service);
            self.firmware(Act::Flashvisor, decided, service);
            self.turn(cx.now(), State::Idle, State::Waits);
            let of = &mut self.workers[worker];
            (of.unit, of.screen, of.decided) = (Some(unit), Some(screen), cx.now());
            let taken = self.time(self.spec.costs.message.into());
            let begins = decided - cx.now() + taken + self.spec.costs.boot.time();
            cx.after(begins, Event::Begins(worker as u16));
        }
    }

    /// Begins a screen on a worker.
    pub(super) fn begins(&mut self, worker: u16, cx: &mut impl Cx<Event, Out>) {
        let at = usize::from(worker);
        let screen = self.workers[at].screen.expect("a worker with an assignment");
        let number = self.chained[screen.instance as usize] as usize;
        let instance = &mut self.instances[number];
        if self.chain.is_first(screen) {
            instance.times.begun = cx.now();
        }
        let program = &self.programs[instance.program];
        let of = &mut self.workers[at];
        of.sections = program.screens[screen.microblock as usize][screen.screen as usize].clone();
        (of.asked, of.computed, of.groups) = (0, 0, 0);
        (of.since, of.idle_since) = (cx.now(), cx.now());
        self.stats.screens += 1;
        if self.workers[at].sections.is_empty() {
            return self.write_back(worker, cx);
        }
        for _ in 0..=self.spec.ahead {
            self.ask_section(worker, cx);
        }
    }

    /// Kernel whose screen a worker executes.
    pub(super) fn kernel_of(&self, worker: u16) -> Number {
        let screen = self.workers[usize::from(worker)].screen.expect("a worker with a screen");
        self.chained[screen.instance as usize]
    }

    fn slot(&self, worker: u16, section: usize) -> usize {
        let each = self.spec.ahead as usize + 1;
        usize::from(worker) * each + section % each
    }

    /// Section of a worker's screen, if it exists.
    fn section(&self, worker: u16, section: usize) -> Option<Part> {
        let program = self.instances[self.kernel_of(worker) as usize].program;
        let Admitted { sections, .. } = &self.programs[program];
        sections[self.workers[usize::from(worker)].sections.clone()].get(section).copied()
    }

    /// Requests a worker's next section, if any.
    fn ask_section(&mut self, worker: u16, cx: &mut impl Cx<Event, Out>) {
        let at = usize::from(worker);
        let section = self.workers[at].asked;
        let Some(part) = self.section(worker, section) else { return };
        self.workers[at].asked += 1;
        let slot = self.slot(worker, section);
        let mut groups = std::mem::take(&mut self.slots[slot].groups);
        self.needs(worker, &part, &mut groups);
        self.workers[at].groups += groups.len() as u64;
        let cycles = groups.len() as u64 * u64::from(self.spec.costs.entry);
        self.slots[slot] = Slot { worker, groups, claimed: 0, missing: 0, is_there: false };
        self.send(Message::Map(slot as u32), cycles, cx);
    }

    /// Notifies a worker that a section is in memory; it computes the section if it is its next.
    pub(super) fn there(&mut self, slot: u32, cx: &mut impl Cx<Event, Out>) {
        self.slots[slot as usize].is_there = true;
        self.compute(self.slots[slot as usize].worker, cx);
    }

    /// Computes a worker's next section, if it is in memory.
    fn compute(&mut self, worker: u16, cx: &mut impl Cx<Event, Out>) {
        let at = usize::from(worker);
        let section = self.workers[at].computed;
        let slot = self.slot(worker, section);
        if self.workers[at].computes.is_some()
            || section >= self.workers[at].asked
            || !self.slots[slot].is_there
        {
            return;
        }
        self.stats.waited[at] += cx.now() - self.workers[at].idle_since;
        let program = self.instances[self.kernel_of(worker) as usize].program;
        let part = self.section(worker, section).expect("a requested section");
        let Cost { issue, stall, bytes } =
            self.programs[program].program.cost(&part, section == 0, &self.spec.core, &mut self.scratch);
        self.turn(cx.now(), State::Waits, State::Computes);
        self.stats.sections += 1;
        let alone = self.time(issue + stall);
        self.workers[at].computes =
            Some(Computes { since: cx.now(), issues: self.time(issue), bytes, ends: None });
        self.sharing.begin(cx.now(), at, alone, bytes);
        self.share(cx);
    }

    /// Redistributes memory bandwidth among the computing workers.
    fn share(&mut self, cx: &mut impl Cx<Event, Out>) {
        for (worker, at) in self.sharing.ends_at() {
            let of = self.workers[worker].computes.as_mut().expect("a worker that computes");
            if of.ends.is_some_and(|(ends, _)| ends == at) {
                continue;
            }
            if let Some((_, ticket)) = of.ends {
                cx.cancel(ticket);
            }
            of.ends = Some((at, cx.after(at - cx.now(), Event::Computed(worker as u16))));
        }
    }

    /// Ends a section, unless flash has taken memory's time meanwhile.
    pub(super) fn may_have_computed(&mut self, worker: u16, cx: &mut impl Cx<Event, Out>) {
        let at = usize::from(worker);
        let of = self.workers[at].computes.as_mut().expect("a worker that computes");
        of.ends = None;
        let Computes { since, issues, bytes, .. } = *of;
        let is_over = self.sharing.ends(cx.now(), at);
        self.share(cx);
        if is_over {
            let took = cx.now() - since;
            self.workers[at].computes = None;
            self.cross(bytes, since, cx.now());
            self.stats.busy[at] += took;
            let stalled = took - issues.min(took);
            self.stats.stalled[at] += stalled;
            let kernel = self.workers[at].screen.map(|screen| self.chained[screen.instance as usize]);
            self.show(Act::Section { worker, stalled }, kernel, since, cx.now());
            self.computed(worker, cx);
        }
    }

    /// Ends a section: the worker releases it, requests a new one and continues with the next.
    fn computed(&mut self, worker: u16, cx: &mut impl Cx<Event, Out>) {
        let at = usize::from(worker);
        let slot = self.slot(worker, self.workers[at].computed);
        self.workers[at].idle_since = cx.now();
        self.turn(cx.now(), State::Computes, State::Waits);
        self.workers[at].computed += 1;
        let groups = std::mem::take(&mut self.slots[slot].groups);
        for need in &groups {
            self.frames.release(need.group, need.writes);
        }
        self.slots[slot].groups = groups;
        self.slots[slot].is_there = false;
        self.feed(cx);
        self.ask_section(worker, cx);
        if self.workers[at].computed < self.workers[at].sections.len() {
            return self.compute(worker, cx);
        }
        self.write_back(worker, cx);
    }

    /// Ends a worker's computation of a screen: its changed cache lines go to memory, and Flashvisor is notified.
    fn write_back(&mut self, worker: u16, cx: &mut impl Cx<Event, Out>) {
        let at = usize::from(worker);
        let write_back = self.spec.core.cycles_to_write_back(self.workers[at].groups);
        let cycles = write_back + u64::from(self.spec.costs.message);
        cx.after(self.time(cycles), Event::Clean(worker));
    }

    /// Ends a worker's screen.
    pub(super) fn end_screen(&mut self, worker: u16, cx: &mut impl Cx<Event, Out>) {
        let at = usize::from(worker);
        let screen = self.workers[at].screen.take().expect("a worker with a screen");
        self.stats.held[at] += cx.now() - self.workers[at].since;
        self.stats.waited[at] += cx.now() - self.workers[at].idle_since;
        let took = cx.now() - self.workers[at].decided;
        self.stats.work += took;
        let Screen { instance, microblock, screen: number } = screen;
        let act = Act::Screen { worker, microblock, screen: number };
        self.show(act, Some(self.chained[instance as usize]), self.workers[at].decided, cx.now());
        let unit = self.workers[at].unit;
        let ended = self.chain.end(screen);
        let instance = &mut self.instances[self.chained[screen.instance as usize] as usize];
        instance.longest = instance.longest.max(took);
        if ended != Ended::Screen {
            instance.times.path += std::mem::take(&mut instance.longest);
        }
        if ended == Ended::Kernel {
            self.workers[at].unit = None;
            self.turn(cx.now(), State::Waits, State::Idle);
            return self.end_kernel(self.chained[screen.instance as usize], cx);
        }
        if let Some(Unit::Kernel(instance)) = unit {
            self.workers[at].screen = Some(self.chain.next(instance));
            self.workers[at].decided = cx.now();
            return self.begins(worker, cx);
        }
        self.workers[at].unit = None;
        self.turn(cx.now(), State::Waits, State::Idle);
    }
}

// Frames for sections: groups in memory, groups from flash, and evictions.

/// Groups that flash brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Accelerator {
    /// Claims the groups of a section: first those in memory or under way, then as many frames as available.
    pub(super) fn claim(&mut self, slot: u32, cx: &mut impl Cx<Event, Out>) {
        let (frames, absent) = (&self.frames, &mut self.absent);
        let groups = &mut self.slots[slot as usize].groups;
        groups.retain(|need| {
            let is_absent = frames.is_absent(need.group);
            if is_absent {
                absent.push(*need);
            }
            !is_absent
        });
        groups.append(absent);
        if !self.claim_on(slot, cx) {
            let of = &self.slots[slot as usize];
            of.groups[of.claimed..].iter().for_each(|need| self.frames.want(need.group));
            self.stats.hungry += 1;
            self.hungry.push_back(slot);
        }
        self.make_room(cx);
    }

    /// Claims the remaining groups of a section, as far as frames are available; returns whether all are claimed.
    fn claim_on(&mut self, slot: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        let at = slot as usize;
        let groups = std::mem::take(&mut self.slots[at].groups);
        let mut fetch: Option<Fetch> = None;
        let mut claimed = self.slots[at].claimed;
        let mut missing = 0;
        while let Some(need) = groups.get(claimed) {
            let claim = self.frames.claim(need.group);
            let is_new = claim == Claim::Fetch && !self.on_flash[need.group as usize];
            match claim {
                Claim::NoRoom => break,
                Claim::Here => self.stats.found += 1,
                Claim::Fetch if is_new => {
                    // Never written: the group begins as zeroes.
                    self.frames.arrived(need.group);
                    self.stats.fresh += 1;
                }
                Claim::Coming | Claim::Fetch => {
                    missing += 1;
                    self.waiting.push(&mut self.waits[need.group as usize], slot);
                    self.stats.coming += u64::from(claim == Claim::Coming);
                }
            }
            if claim == Claim::Fetch && !is_new {
                self.stats.fetched += 1;
                fetch = Some(match fetch {
                    Some(Fetch { first, count }) if first + count == need.group => {
                        Fetch { first, count: count + 1 }
                    }
                    Some(other) => {
                        self.bring(other, cx);
                        Fetch { first: need.group, count: 1 }
                    }
                    None => Fetch { first: need.group, count: 1 },
                });
            }
            claimed += 1;
        }
        if let Some(fetch) = fetch {
            self.bring(fetch, cx);
        }
        let is_whole = claimed == groups.len();
        let of = &mut self.slots[at];
        (of.groups, of.claimed) = (groups, claimed);
        of.missing += missing;
        if is_whole && of.missing == 0 {
            self.tell(slot, cx);
        }
        is_whole
    }

    fn bring(&mut self, fetch: Fetch, cx: &mut impl Cx<Event, Out>) {
        let groups = Groups { first: fetch.first, last: fetch.first + fetch.count - 1 };
        self.ask(Asked::Read(fetch), |tag| Ask::Read { tag, groups }, cx);
    }

    /// Handles groups from flash that have crossed memory.
    pub(super) fn fetched(&mut self, fetch: Fetch, cx: &mut impl Cx<Event, Out>) {
        let bytes = u64::from(fetch.count) * super::GROUP;
        self.carry(cx.now(), bytes);
        for group in fetch.first..fetch.first + fetch.count {
            self.frames.arrived(group);
            let mut list = self.waits[group as usize].take();
            while let Some(slot) = self.waiting.pop(&mut list) {
                let of = &mut self.slots[slot as usize];
                of.missing -= 1;
                if of.missing == 0 && of.claimed == of.groups.len() {
                    self.tell(slot, cx);
                }
            }
        }
    }

    /// Notifies a worker that a section is in memory.
    fn tell(&mut self, slot: u32, cx: &mut impl Cx<Event, Out>) {
        let taken = self.time(self.spec.costs.message.into());
        cx.after(taken, Event::There(slot));
    }

    /// Continues sections that wait for frames, in order, as far as possible.
    pub(super) fn feed(&mut self, cx: &mut impl Cx<Event, Out>) {
        for _ in 0..self.hungry.len() {
            let Some(slot) = self.hungry.pop_front() else { break };
            let before = self.slots[slot as usize].claimed;
            let is_whole = self.claim_on(slot, cx);
            let of = &self.slots[slot as usize];
            of.groups[before..of.claimed].iter().for_each(|need| self.frames.unwant(need.group));
            if !is_whole {
                // All of them go round once, so that their order is kept.
                self.hungry.push_back(slot);
            }
        }
        self.make_room(cx);
    }

    /// Writes as many changed groups to flash as sections lack frames, all at once: least recently used first.
    fn make_room(&mut self, cx: &mut impl Cx<Event, Out>) {
        while let Some(group) = self.frames.write_oldest() {
            self.program_group(group, cx);
        }
    }

    /// Writes a group to flash.
    pub(super) fn program_group(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        let groups = Groups { first: group, last: group };
        self.carry(cx.now(), super::GROUP);
        self.ask(Asked::Write(group), |tag| Ask::Write { tag, groups }, cx);
    }

    /// Handles the completion of a group's write.
    pub(super) fn programmed(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        self.stats.written += 1;
        self.on_flash[group as usize] = true;
        self.frames.written(group);
        let owner = self.owner[group as usize];
        let instance = &mut self.instances[owner as usize];
        if instance.leaving > 0 {
            instance.leaving -= 1;
            self.leave(owner, cx);
        }
        self.feed(cx);
    }
}
