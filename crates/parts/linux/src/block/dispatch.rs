//! Dispatch of requests to the driver (`__blk_mq_sched_dispatch_requests`), with pre- and post-flushes.

use super::queue::{Queue, RERUN};
use super::request::{NONE, RequestList, Requests};
use super::{Effects, Issued, kind};
use engine::Time;
use proto::{IoOp, Status};

impl Queue {
    /// Runs a hardware queue: issues requests that wait for the driver, then the scheduler's choices while tags last.
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

    /// Issues the requests of a list to the driver; returns whether it took all of them. The rest waits until a request
    /// of the queue is freed (`blk_mq_dispatch_rq_list`).
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

    /// Issues the scheduler's choices by hardware queue until it declines or tags run out; returns whether any was
    /// issued (`__blk_mq_do_dispatch_sched`).
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

    /// Gives the driver a request that has a tag (`blk_mq_start_request`).
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

// Pre- and post-flushes (block/blk-flush.c).
//
// A request that asks for a flush takes up to three steps: a flush of earlier writes, its data, and a flush of its data
// if the drive lacks force unit access. Requests that wait for a flush at the same time share one. While one flush is
// at the drive, the next one gathers requests. It is held back for up to five seconds while data of such requests is at
// the drive (C1 to C3 in the kernel's file).
//
// Left out: the requeue worker (`blk_mq_requeue_work`). Requests go directly to the front of their hardware queue,
// which a worker then runs.

/// `REQ_FSEQ_PREFLUSH`.
const PREFLUSH: u8 = 1;

/// `REQ_FSEQ_DATA`.
const DATA_STEP: u8 = 2;

/// `REQ_FSEQ_POSTFLUSH`.
const POSTFLUSH: u8 = 4;

/// All steps.
const ALL_STEPS: u8 = PREFLUSH | DATA_STEP | POSTFLUSH;

/// `FLUSH_PENDING_TIMEOUT`.
const FLUSH_TIMEOUT: Time = Time::from_s(5);

/// Flush state of one hardware queue (`struct blk_flush_queue`).
#[derive(Debug)]
pub(super) struct FlushQueue {
    /// Requests that wait for the next flush, and requests covered by the flush at the drive.
    queues: [RequestList; 2],
    pending: usize,
    running: usize,
    pending_since: Time,
    /// Requests of flush sequences whose data is at the drive.
    data_in_flight: u32,
    /// Request that carries the flush.
    request: u32,
}

impl FlushQueue {
    pub(super) fn new(request: u32) -> FlushQueue {
        FlushQueue {
            queues: Default::default(),
            pending: 0,
            running: 0,
            pending_since: Time::ZERO,
            data_in_flight: 0,
            request,
        }
    }

    /// Queues a request for the next flush.
    fn queue(&mut self, requests: &mut Requests, name: u32, now: Time) {
        let pending = &mut self.queues[self.pending];
        if pending.is_empty() {
            self.pending_since = now;
        }
        pending.push_back(requests, name);
    }

    /// Starts the next flush if it may be sent, and returns the first request it covers (`blk_kick_flush`).
    fn kick(&mut self, now: Time) -> Option<u32> {
        let first = self.queues[self.pending].first()?;
        let data = self.data_in_flight > 0 && now < self.pending_since + FLUSH_TIMEOUT;
        if self.pending != self.running || data {
            return None;
        }
        self.pending ^= 1;
        Some(first)
    }
}

impl Queue {
    /// Starts a request that asks for a flush or for force unit access (`blk_insert_flush`).
    pub(super) fn insert_flush(&mut self, name: u32, now: Time, effects: &mut Effects) {
        let fua = self.device.fua;
        let request = &mut self.requests[name];
        let hctx = request.hctx;
        // `blk_flush_policy`.
        let mut steps = if request.bytes > 0 { DATA_STEP } else { 0 };
        steps |= if request.flags.preflush { PREFLUSH } else { 0 };
        steps |= if request.flags.fua && !fua { POSTFLUSH } else { 0 };
        self.stats.flushes_asked += u64::from((steps & (PREFLUSH | POSTFLUSH)).count_ones());
        request.flags.preflush = false;
        request.flags.fua &= fua;
        request.flags.sync = true;
        if steps == 0 {
            self.end(name, Status::Success, now, effects);
        } else if steps == DATA_STEP {
            self.hctxs[usize::from(hctx)].dispatch.push_back(&mut self.requests, name);
            self.run_now(hctx, effects);
        } else {
            request.flush_steps = Some(0);
            self.complete_step(name, ALL_STEPS & !steps, Status::Success, now, effects);
        }
    }

    /// Completes steps of a sequence and starts the next one (`blk_flush_complete_seq`). An error ends the sequence.
    fn complete_step(&mut self, name: u32, steps: u8, status: Status, now: Time, effects: &mut Effects) {
        let request = &mut self.requests[name];
        let done = request.flush_steps.unwrap_or(0) | steps;
        request.flush_steps = Some(done);
        let hctx = request.hctx;
        let next = if status == Status::Success { 1 << done.trailing_ones() } else { ALL_STEPS + 1 };
        let flush = &mut self.hctxs[usize::from(hctx)].flush;
        match next {
            PREFLUSH | POSTFLUSH => flush.queue(&mut self.requests, name, now),
            DATA_STEP => {
                flush.data_in_flight += 1;
                self.put_in_front(name, effects);
            }
            _ => {
                self.requests[name].flush_steps = None;
                self.end(name, status, now, effects);
            }
        }
        self.kick_flush(hctx, now, effects);
    }

    /// Sends a flush if it is due. The flush borrows the tag of the first request it covers.
    fn kick_flush(&mut self, hctx: u16, now: Time, effects: &mut Effects) {
        let flush = &mut self.hctxs[usize::from(hctx)].flush;
        let Some(first) = flush.kick(now) else { return };
        let (tag, core) = (self.requests[first].tag, self.requests[first].core);
        let name = flush.request;
        let request = &mut self.requests[name];
        (request.start, request.core) = (now, core);
        if !self.elevator {
            request.tag = tag;
        }
        self.put_in_front(name, effects);
    }

    /// Puts a request of a sequence in front of all others for the driver (`blk_flush_queue_rq`,
    /// `blk_mq_sched_insert_request`).
    fn put_in_front(&mut self, name: u32, effects: &mut Effects) {
        let hctx = self.requests[name].hctx;
        self.hctxs[usize::from(hctx)].dispatch.push_front(&mut self.requests, name);
        self.run_later(hctx, effects);
    }

    /// Handles the completion of a sequence's data (`mq_flush_data_end_io`).
    pub(super) fn end_flush_data(&mut self, name: u32, status: Status, now: Time, effects: &mut Effects) {
        let hctx = self.requests[name].hctx;
        self.hctxs[usize::from(hctx)].flush.data_in_flight -= 1;
        if self.elevator {
            self.put_driver_tag(name, effects);
        }
        self.complete_step(name, DATA_STEP, status, now, effects);
        self.restart(hctx, effects);
    }

    /// Handles the completion of a flush (`flush_end_io`): all requests it covers go on.
    pub(super) fn end_flush(&mut self, name: u32, status: Status, now: Time, effects: &mut Effects) {
        debug_assert_eq!(self.requests[name].op, IoOp::Flush);
        let hctx = self.requests[name].hctx;
        if self.elevator {
            self.put_driver_tag(name, effects);
        } else {
            self.requests[name].tag = NONE;
        }
        let flush = &mut self.hctxs[usize::from(hctx)].flush;
        let mut served = flush.queues[flush.running].take();
        flush.running ^= 1;
        while let Some(name) = served.pop_front(&mut self.requests) {
            let done = self.requests[name].flush_steps.unwrap_or(0);
            self.complete_step(name, 1 << done.trailing_ones(), status, now, effects);
        }
    }
}
