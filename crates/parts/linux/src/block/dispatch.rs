//! The way of a request to the driver (`__blk_mq_sched_dispatch_requests`).

use super::list::RequestList;
use super::queue::{Queue, RERUN};
use super::request::NONE;
use super::{Effects, Issued, kind};
use engine::Time;

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
