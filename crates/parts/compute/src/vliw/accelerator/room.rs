//! Frames for sections: what is there, what comes from flash, and what must go first.

use super::{Accelerator, Asked, Event, Out};
use crate::vliw::frames::Claim;
use engine::Cx;
use proto::groups::{Ask, Groups};

/// Groups that flash brings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Accelerator {
    /// Claims the groups of a section: first what is there or on its way, then as many frames as there are.
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

    /// Claims the groups of a section that it has not claimed yet, as far as there are frames; whether that were all.
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
                    // Nothing was ever written there: it begins as zeroes.
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

    /// Flash has brought groups: they have crossed memory.
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

    /// A worker is told that a section is there.
    fn tell(&mut self, slot: u32, cx: &mut impl Cx<Event, Out>) {
        let taken = self.time(self.spec.costs.message.into());
        cx.after(taken, Event::There(slot));
    }

    /// Sections that wait for frames go on, the first first, as far as they get.
    pub(super) fn feed(&mut self, cx: &mut impl Cx<Event, Out>) {
        for _ in 0..self.hungry.len() {
            let Some(slot) = self.hungry.pop_front() else { break };
            let before = self.slots[slot as usize].claimed;
            let is_whole = self.claim_on(slot, cx);
            let of = &self.slots[slot as usize];
            of.groups[before..of.claimed].iter().for_each(|need| self.frames.unwant(need.group));
            if !is_whole {
                // All of them go round once, so that their order stays.
                self.hungry.push_back(slot);
            }
        }
        self.make_room(cx);
    }

    /// As many changed groups go to flash as sections lack frames, all at once: those that were used longest ago.
    fn make_room(&mut self, cx: &mut impl Cx<Event, Out>) {
        while let Some(group) = self.frames.write_oldest() {
            self.program_group(group, cx);
        }
    }

    /// A group goes to flash.
    pub(super) fn program_group(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        let groups = Groups { first: group, last: group };
        self.carry(cx.now(), super::GROUP);
        self.ask(Asked::Write(group), |tag| Ask::Write { tag, groups }, cx);
    }

    /// Flash has a group.
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
