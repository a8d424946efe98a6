//! Flushes in front of data and behind it (block/blk-flush.c).
//!
//! A request that asks for a flush goes through up to three steps: a flush of what was written before, its data, a flush of its data if the
//! drive has no force unit access. Those that wait for a flush at the same time share one: while one is at the drive the next gathers, and it
//! is not sent while data of such requests is at the drive, up to five seconds (C1 to C3 in the kernel's file).
//!
//! Left out: the worker that puts requests back (`blk_mq_requeue_work`); they are in front of their hardware queue at once, and a worker runs it.

use super::Effects;
use super::list::RequestList;
use super::queue::Queue;
use super::request::{NONE, Requests};
use engine::Time;
use proto::{IoOp, Status};

/// `REQ_FSEQ_PREFLUSH`.
const PREFLUSH: u8 = 1;
/// `REQ_FSEQ_DATA`.
const DATA: u8 = 2;
/// `REQ_FSEQ_POSTFLUSH`.
const POSTFLUSH: u8 = 4;
/// All steps.
const ALL: u8 = PREFLUSH | DATA | POSTFLUSH;
/// `FLUSH_PENDING_TIMEOUT`.
const TIMEOUT: Time = Time::from_s(5);

/// Flushes of one hardware queue (`struct blk_flush_queue`).
#[derive(Debug)]
pub(super) struct FlushQueue {
    /// Requests that wait for the next flush, and those that the one at the drive is for.
    queues: [RequestList; 2],
    pending: usize,
    running: usize,
    pending_since: Time,
    /// Requests of sequences whose data is at the drive.
    data_in_flight: u32,
    /// The request that is the flush.
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

    /// A request waits for the next flush.
    fn queue(&mut self, requests: &mut Requests, name: u32, now: Time) {
        let pending = &mut self.queues[self.pending];
        if pending.is_empty() {
            self.pending_since = now;
        }
        pending.push_back(requests, name);
    }

    /// Whether the next flush may be sent; if so it is the one at the drive from now on (`blk_kick_flush`).
    fn kick(&mut self, now: Time) -> Option<u32> {
        let first = self.queues[self.pending].first()?;
        let data = self.data_in_flight > 0 && now < self.pending_since + TIMEOUT;
        if self.pending != self.running || data {
            return None;
        }
        self.pending ^= 1;
        Some(first)
    }
}

impl Queue {
    /// A request that asks for a flush or for force unit access (`blk_insert_flush`).
    pub(super) fn insert_flush(&mut self, name: u32, now: Time, effects: &mut Effects) {
        let fua = self.device.fua;
        let request = &mut self.requests[name];
        let hctx = request.hctx;
        // `blk_flush_policy`.
        let mut steps = if request.bytes > 0 { DATA } else { 0 };
        steps |= if request.flags.preflush { PREFLUSH } else { 0 };
        steps |= if request.flags.fua && !fua { POSTFLUSH } else { 0 };
        self.stats.flushes_asked += u64::from((steps & (PREFLUSH | POSTFLUSH)).count_ones());
        request.flags.preflush = false;
        request.flags.fua &= fua;
        request.flags.sync = true;
        if steps == 0 {
            self.end(name, Status::Success, now, effects);
        } else if steps == DATA {
            self.hctxs[usize::from(hctx)].dispatch.push_back(&mut self.requests, name);
            self.run_now(hctx, effects);
        } else {
            request.flush_steps = Some(0);
            self.complete_step(name, ALL & !steps, Status::Success, now, effects);
        }
    }

    /// Steps of a sequence are done: the next one begins (`blk_flush_complete_seq`). An error ends the sequence.
    fn complete_step(&mut self, name: u32, steps: u8, status: Status, now: Time, effects: &mut Effects) {
        let request = &mut self.requests[name];
        let done = request.flush_steps.unwrap_or(0) | steps;
        request.flush_steps = Some(done);
        let hctx = request.hctx;
        let next = if status == Status::Success { 1 << done.trailing_ones() } else { ALL + 1 };
        let flush = &mut self.hctxs[usize::from(hctx)].flush;
        match next {
            PREFLUSH | POSTFLUSH => flush.queue(&mut self.requests, name, now),
            DATA => {
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

    /// Sends a flush if it is time. It borrows the tag of the first request that it is for.
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

    /// A request of a sequence goes to the driver before all others (`blk_flush_queue_rq`, `blk_mq_sched_insert_request`).
    fn put_in_front(&mut self, name: u32, effects: &mut Effects) {
        let hctx = self.requests[name].hctx;
        self.hctxs[usize::from(hctx)].dispatch.push_front(&mut self.requests, name);
        self.run_later(hctx, effects);
    }

    /// The drive has done the data of a sequence (`mq_flush_data_end_io`).
    pub(super) fn end_flush_data(&mut self, name: u32, status: Status, now: Time, effects: &mut Effects) {
        let hctx = self.requests[name].hctx;
        self.hctxs[usize::from(hctx)].flush.data_in_flight -= 1;
        if self.elevator {
            self.put_driver_tag(name, effects);
        }
        self.complete_step(name, DATA, status, now, effects);
        self.restart(hctx, effects);
    }

    /// The drive has done a flush (`flush_end_io`): all that it was for go on.
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
