//! Lists of requests, linked through the requests themselves.

use super::{
    Effects, Issued, kind,
    queue::{Queue, RERUN},
    request::{NONE, Requests},
};
use engine::Time;

/// A list of requests. A request is in one list at most.
#[derive(Clone, Copy, Debug)]
pub struct RequestList {
    first: u32,
    last: u32,
}

impl Default for RequestList {
    fn default() -> RequestList {
        RequestList { first: NONE, last: NONE }
    }
}

impl RequestList {
    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// The first request.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// The last request.
    #[inline]
    pub fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// A request joins at the end.
    pub fn push_back(&mut self, requests: &mut Requests, name: u32) {
        let last = self.last;
        (requests[name].next, requests[name].previous) = (NONE, last);
        self.last = name;
        if last == NONE {
            self.first = name;
        } else {
            requests[last].next = name;
        }
    }

    /// A request joins in front.
    pub fn push_front(&mut self, requests: &mut Requests, name: u32) {
        let first = self.first;
        (requests[name].next, requests[name].previous) = (first, NONE);
        self.first = name;
        if first == NONE {
            self.last = name;
        } else {
            requests[first].previous = name;
        }
    }

    /// A request of this list joins in front of another one, which is in it as well.
    pub fn move_before(&mut self, requests: &mut Requests, name: u32, before: u32) {
        self.remove(requests, name);
        let previous = requests[before].previous;
        (requests[name].next, requests[name].previous) = (before, previous);
        requests[before].previous = name;
        if previous == NONE {
            self.first = name;
        } else {
            requests[previous].next = name;
        }
    }

    /// A request of this list leaves it.
    pub fn remove(&mut self, requests: &mut Requests, name: u32) {
        let (next, previous) = (requests[name].next, requests[name].previous);
        if previous == NONE {
            self.first = next;
        } else {
            requests[previous].next = next;
        }
        if next == NONE {
            self.last = previous;
        } else {
            requests[next].previous = previous;
        }
        (requests[name].next, requests[name].previous) = (NONE, NONE);
    }

    /// The first request leaves.
    pub fn pop_front(&mut self, requests: &mut Requests) -> Option<u32> {
        let name = self.first()?;
        self.remove(requests, name);
        Some(name)
    }

    /// All requests of another list join at the end.
    pub fn append(&mut self, requests: &mut Requests, other: RequestList) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other;
            return;
        }
        requests[self.last].next = other.first;
        requests[other.first].previous = self.last;
        self.last = other.last;
    }

    /// What it holds; it is empty afterwards.
    #[must_use]
    pub fn take(&mut self) -> RequestList {
        std::mem::take(self)
    }
}

// The way of a request to the driver (`__blk_mq_sched_dispatch_requests`).

impl Queue {
    /// Runs a hardware queue: what waits for the driver goes to it, then what the scheduler chooses, as far as tags reach.
    pub fn dispatch(&mut self, hctx: u16, now: Time, effects: &mut Effects) {
        self.stats.runs += 1;
        let state = &mut self.hctxs[usize::from(hctx)];
        state.told = false;
        if !state.dispatch.is_empty() {
            state.restart = true;
            let list = state.dispatch.take();
            if !self.issue_list(hctx, list, now, effects) {
                return;
            }
        }
        while self.dispatch_chosen(hctx, now, effects) {}
    }

    /// Requests of a list go to the driver; whether it took them all. The rest waits, and the queue is run again when one of its requests is no
    /// more (`blk_mq_dispatch_rq_list`).
    fn issue_list(&mut self, hctx: u16, mut list: RequestList, now: Time, effects: &mut Effects) -> bool {
        while let Some(name) = list.first() {
            if !self.get_driver_tag(name) {
                let state = &mut self.hctxs[usize::from(hctx)];
                state.dispatch.append(&mut self.requests, list);
                state.restart = true;
                return false;
            }
            list.remove(&mut self.requests, name);
            self.issue(name, now, effects);
        }
        true
    }

    /// Requests that the scheduler chooses, until it declines or there is no tag, go to the driver by hardware queue; whether any did
    /// (`__blk_mq_do_dispatch_sched`).
    fn dispatch_chosen(&mut self, hctx: u16, now: Time, effects: &mut Effects) -> bool {
        let mut declined = false;
        let mut several = false;
        while self.scheduler.has_work(hctx) && self.hctxs[usize::from(hctx)].dispatch.is_empty() {
            let Some(name) = self.scheduler.dispatch(&mut self.requests, hctx, now) else {
                declined = true;
                break;
            };
            let own = self.requests[name].hctx;
            several |= own != hctx;
            self.chosen.push((own, self.chosen.len() as u32, name));
            if !self.get_driver_tag(name) {
                break;
            }
        }
        if self.chosen.is_empty() && declined && self.rerun.is_none() {
            self.rerun = Some(now + RERUN);
        }
        if several {
            self.chosen.sort_unstable();
        }
        let mut issued = false;
        for at in 0..self.chosen.len() {
            let (own, _, name) = self.chosen[at];
            if self.requests[name].tag == NONE {
                let state = &mut self.hctxs[usize::from(own)];
                state.dispatch.push_back(&mut self.requests, name);
                state.restart = true;
            } else {
                self.issue(name, now, effects);
                issued = true;
            }
        }
        self.chosen.clear();
        issued
    }

    /// `blk_mq_get_driver_tag`.
    fn get_driver_tag(&mut self, name: u32) -> bool {
        let request = &mut self.requests[name];
        if request.tag == NONE
            && let Some(tag) = self.hctxs[usize::from(request.hctx)].tags.get(u32::MAX)
        {
            request.tag = tag;
        }
        request.tag != NONE
    }

    /// The driver gets a request that has a tag (`blk_mq_start_request`).
    pub(super) fn issue(&mut self, name: u32, now: Time, effects: &mut Effects) {
        let request = &mut self.requests[name];
        request.issued = now;
        let request = &self.requests[name];
        self.hctxs[usize::from(request.hctx)].holders[request.tag as usize] = name;
        if let Some(wbt) = &mut self.wbt {
            wbt.issue(name, request, now);
        }
        let kind = kind(request.op);
        self.stats.requests[kind] += 1;
        self.stats.bytes[kind] += u64::from(request.bytes);
        self.stats.in_flight.add(now, 1);
        effects.issued.push(Issued {
            hctx: request.hctx,
            tag: request.tag,
            core: request.core,
            op: request.op,
            offset: request.offset,
            bytes: request.bytes,
            fua: request.flags.fua,
            announced: request.announced,
        });
    }
}
