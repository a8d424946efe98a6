//! The end of a request (`blk_mq_end_request`).

use super::effects::{Done, Effects};
use super::queue::{Queue, wake};
use super::request::NONE;
use engine::Time;
use proto::{IoOp, Status};

impl Queue {
    /// The driver says that the drive has done the request of a tag.
    ///
    /// # Panics
    /// If that tag is not at the drive.
    pub fn complete(&mut self, hctx: u16, tag: u32, status: Status, now: Time, effects: &mut Effects) {
        let holder = &mut self.hctxs[usize::from(hctx)].holders[tag as usize];
        let name = std::mem::replace(holder, NONE);
        assert!(name != NONE, "tag {tag} of hardware queue {hctx} is not at the drive");
        self.stats.in_flight.sub(now, 1);
        let request = &self.requests[name];
        if let Some(wbt) = &mut self.wbt {
            wbt.sample(request, now);
        }
        self.scheduler.completed(request, now);
        if request.op == IoOp::Flush {
            self.end_flush(name, status, now, effects);
        } else if request.flush_steps.is_some() {
            self.end_flush_data(name, status, now, effects);
        } else {
            self.end(name, status, now, effects);
        }
    }

    /// A request and its bios end.
    pub(super) fn end(&mut self, name: u32, status: Status, now: Time, effects: &mut Effects) {
        self.requests.end_bios(name, status, &mut self.wholes, &mut effects.done);
        self.free(name, now, effects);
    }

    /// A part of a bio that is in no request ends.
    pub(super) fn end_part(&mut self, whole: u32, status: Status, effects: &mut Effects) {
        if let Some((owner, status)) = self.wholes.end(whole, status) {
            effects.done.push(Done { owner, status });
        }
    }

    /// A request without bios is no more (`blk_mq_free_request`): its tags and tokens are free.
    pub(super) fn free(&mut self, name: u32, now: Time, effects: &mut Effects) {
        let request = &mut self.requests[name];
        let (hctx, sched_tag, account) = (request.hctx, request.sched_tag, request.account);
        let is_sync = request.in_batch_of_sync;
        self.scheduler.finish(request, &mut self.to_run);
        while let Some(hctx) = self.to_run.pop() {
            self.run_later(hctx, effects);
        }
        let stalled = &self.stalled;
        if let Some(wbt) = &mut self.wbt {
            wbt.done(name, account, now, &mut |who| wake(stalled, who, effects));
        }
        self.put_driver_tag(name, effects);
        if sched_tag != NONE {
            let stalled = &self.stalled;
            let state = &mut self.hctxs[usize::from(hctx)];
            state.sched_tags.put(sched_tag, |who| wake(stalled, who, effects));
            if let Some(who) = state.batches.as_mut().and_then(|batches| batches.put(is_sync)) {
                wake(stalled, who, effects);
            }
        }
        self.requests.remove(name);
        self.stats.queued.sub(now, 1);
        self.restart(hctx, effects);
    }

    /// `blk_mq_put_driver_tag`, if the request has one.
    pub(super) fn put_driver_tag(&mut self, name: u32, effects: &mut Effects) {
        let request = &mut self.requests[name];
        let tag = std::mem::replace(&mut request.tag, NONE);
        if tag != NONE {
            let stalled = &self.stalled;
            let tags = &mut self.hctxs[usize::from(request.hctx)].tags;
            tags.put(tag, |who| wake(stalled, who, effects));
        }
    }

    /// A hardware queue that could not go on is run again (`blk_mq_sched_restart`).
    pub(super) fn restart(&mut self, hctx: u16, effects: &mut Effects) {
        let state = &mut self.hctxs[usize::from(hctx)];
        if std::mem::replace(&mut state.restart, false) {
            self.run_later(hctx, effects);
        }
    }
}
