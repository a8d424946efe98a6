//! Request queue of a drive: its components and its whole-queue operations.

use super::bio::{Bio, Waiting, Wholes};
use super::dispatch::FlushQueue;
use super::request::{NONE, Request, RequestList, Requests};
use super::sched::{Context, Scheduler};
use super::tags::{Batches, Tags};
use super::wbt::Wbt;
use super::{BlockSpec, BlockStats, Device, Done, Effects, Limits, Map, Run, Woken};
use config::SpecError;
use engine::{Slab, Time};
use proto::{IoOp, Status};

/// `BLKDEV_DEFAULT_RQ`.
const DEFAULT_REQUESTS: u32 = 128;
/// `BLK_MQ_BUDGET_DELAY`: delay before all hardware queues run again, after a scheduler had work but dispatched none.
pub(super) const RERUN: Time = Time::from_ms(3);

/// Bio whose task sleeps, passed to [`Queue::resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled(pub(super) u32);

/// Result of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Submitted {
    /// The queue has the whole bio.
    Queued,
    /// The task must sleep until it is [woken](super::Woken), then [resume](Queue::resume).
    MustWait(Stalled),
}

/// Hardware queue (`struct blk_mq_hw_ctx`).
pub(super) struct Hctx {
    /// Driver tags.
    pub(super) tags: Tags,
    /// Scheduler tags; without an elevator, as many as the driver's and unused.
    pub(super) sched_tags: Tags,
    /// Admission to the scheduler tags, if requests are allocated in batches.
    pub(super) batches: Option<Batches>,
    /// Request of each driver tag.
    pub(super) holders: Vec<u32>,
    /// Requests past the scheduler that wait for the driver.
    pub(super) dispatch: RequestList,
    /// True if the queue runs again when one of its requests is freed (`BLK_MQ_S_SCHED_RESTART`).
    pub(super) restart: bool,
    /// True if a worker has been told to run the queue.
    pub(super) told: bool,
    pub(super) flush: FlushQueue,
}

impl Hctx {
    /// Tags that a bio needs to become a request.
    pub(super) fn bio_tags(&mut self, elevator: bool) -> &mut Tags {
        if elevator { &mut self.sched_tags } else { &mut self.tags }
    }
}

/// Request queue of one drive (`struct request_queue`). The [module](super) documentation describes its use.
pub struct Queue {
    pub(super) device: Device,
    pub(super) merges: bool,
    pub(super) map: Map,
    /// Polled hardware queues, which come after those that interrupt.
    polled: Option<Map>,
    pub(super) requests: Requests,
    pub(super) wholes: Wholes,
    pub(super) stalled: Slab<Waiting>,
    pub(super) hctxs: Vec<Hctx>,
    pub(super) scheduler: Box<dyn Scheduler>,
    pub(super) elevator: bool,
    pub(super) wbt: Option<Wbt>,
    /// Time at which all hardware queues run again.
    pub(super) rerun: Option<Time>,
    pub(super) stats: BlockStats,
    /// Requests merged into others; hardware queues to be run; both empty between calls.
    pub(super) freed: Vec<u32>,
    pub(super) to_run: Vec<u16>,
    /// Requests chosen and not yet issued, with their hardware queues and places; empty between calls.
    pub(super) chosen: Vec<(u16, u32, u32)>,
}

impl Queue {
    /// Creates the queue of a device, for a host of `cores` cores.
    ///
    /// # Errors
    /// If `nr_requests` exceeds the depth of the device's queues, without an elevator.
    ///
    /// # Panics
    /// If the host has no core, or the device has no queue or one of depth zero.
    pub fn new(spec: &BlockSpec, device: Device, cores: u16) -> Result<Queue, SpecError> {
        Queue::polled(spec, device, cores, 0)
    }

    /// Creates a queue with additional polled hardware queues, as far as the device has queues and the host has cores
    /// for them. One queue of the device is left for interrupts (`nvme_setup_irqs`).
    ///
    /// # Errors
    /// See [`Queue::new`].
    ///
    /// # Panics
    /// See [`Queue::new`].
    pub fn polled(
        spec: &BlockSpec,
        device: Device,
        cores: u16,
        poll_queues: u16,
    ) -> Result<Queue, SpecError> {
        assert!(device.queue_depth > 0, "the device's queue depth is 0");
        let queues = device.queues.min(cores.saturating_add(poll_queues));
        let poll_queues = poll_queues.min(cores).min(queues.saturating_sub(1));
        let hctxs = cores.min(queues - poll_queues).min(spec.hardware_queues.unwrap_or(u16::MAX));
        let map = Map::new(cores, hctxs);
        let polled = (poll_queues > 0).then(|| Map::new(cores, poll_queues));
        let depth = device.queue_depth;
        // `blk_mq_init_sched`.
        let requests = spec.nr_requests.unwrap_or(2 * depth.min(DEFAULT_REQUESTS));
        let word = Tags::new(requests).word();
        let scheduler = spec.scheduler.build(&Context { map, requests, word });
        let elevator = scheduler.is_elevator();
        let requests = if elevator { requests } else { spec.nr_requests.unwrap_or(depth) };
        if !elevator && requests > depth {
            let what =
                format!("`nr_requests` is {requests}, but a queue of the drive holds {depth} requests");
            return Err(SpecError::new("nr_requests", what).help("lower it, omit it, or choose a scheduler"));
        }
        let mut store = Requests::new(Limits::new(spec, &device));
        let hctxs = (0..hctxs + poll_queues).map(|hctx| {
            let driver_tags = if elevator { depth } else { requests };
            let batches = scheduler.gives_batches().then(|| Batches::new(requests));
            let mut sched_tags = Tags::new(batches.as_ref().map_or(requests, Batches::most));
            sched_tags.set_shallow(scheduler.least_shallow());
            let core = if hctx < map.hctxs() { map.cores_of(hctx).start } else { 0 };
            let flush = store.insert(Request::empty(IoOp::Flush, core, hctx, Time::ZERO));
            Hctx {
                tags: Tags::new(driver_tags),
                sched_tags,
                batches,
                holders: vec![NONE; driver_tags as usize],
                dispatch: RequestList::default(),
                restart: false,
                told: false,
                flush: FlushQueue::new(flush),
            }
        });
        let hctxs = hctxs.collect();
        let target = spec.wbt_lat.time();
        // Based on the scheduler's requests when the queue is created; later changes of the scheduler or of
        // `nr_requests` are not propagated (`elevator_get_default`, `wbt_init`).
        let begins_with = if map.hctxs() == 1 { 2 * depth.min(DEFAULT_REQUESTS) } else { depth };
        let wbt = (target > Time::ZERO).then(|| Wbt::new(target, begins_with, device.write_cache));
        Ok(Queue {
            device,
            merges: spec.merges,
            map,
            polled,
            requests: store,
            wholes: Wholes::default(),
            stalled: Slab::default(),
            hctxs,
            scheduler,
            elevator,
            wbt,
            rerun: None,
            stats: BlockStats::default(),
            freed: Vec::new(),
            to_run: Vec::new(),
            chosen: Vec::new(),
        })
    }

    /// Map from cores to the hardware queues that interrupt.
    pub fn map(&self) -> Map {
        self.map
    }

    /// Number of hardware queues: those that interrupt, then the polled ones.
    pub fn hctxs(&self) -> u16 {
        self.hctxs.len() as u16
    }

    /// Returns whether requests go through a scheduler.
    pub fn has_elevator(&self) -> bool {
        self.elevator
    }

    /// Polled hardware queue of a core, if any.
    pub fn polled_hctx(&self, core: u16) -> Option<u16> {
        self.polled.map(|polled| self.map.hctxs() + polled.hctx(core))
    }

    /// Returns whether a hardware queue is polled.
    pub fn is_polled(&self, hctx: u16) -> bool {
        hctx >= self.map.hctxs()
    }

    /// Returns whether a polled bio of a core would find a tag. Its task must not sleep for one, since no other task
    /// polls for the completion that would free it (`REQ_NOWAIT` of `bio_set_polled`).
    pub fn polled_has_room(&self, core: u16) -> bool {
        self.polled_hctx(core).is_none_or(|hctx| self.hctxs[usize::from(hctx)].tags.has_room())
    }

    /// Hardware queue of a bio submitted on a core (`blk_mq_map_queue`).
    pub(super) fn hctx_of(&self, bio: &Bio, core: u16) -> u16 {
        let polled = if bio.flags.polled && !bio.is_flush() { self.polled_hctx(core) } else { None };
        polled.unwrap_or_else(|| self.map.hctx(core))
    }

    /// Limits of the queue's requests.
    pub fn limits(&self) -> Limits {
        self.requests.limits
    }

    /// Returns whether the queue is idle: no bio, no request, no sleeping task.
    pub fn is_idle(&self) -> bool {
        self.requests.len() == self.hctxs.len() && self.wholes.is_empty() && self.stalled.is_empty()
    }

    /// Returns whether a hardware queue will run although no request ends: a worker has been told to run it, or will be
    /// after a delay.
    pub(crate) fn will_run(&self) -> bool {
        self.rerun.is_some() || self.hctxs.iter().any(|hctx| hctx.told)
    }

    /// Notes that a writer of dirty pages was paused (`balance_dirty_pages`); writes are throttled less for one second.
    pub fn writer_paused(&mut self, now: Time) {
        if let Some(wbt) = &mut self.wbt {
            wbt.paused(now);
        }
    }

    /// Time of the next call of [`Queue::timer`]. It may become earlier or later with every call.
    pub fn next_timer(&self) -> Option<Time> {
        let wbt = self.wbt.as_ref().and_then(Wbt::next_timer);
        [self.scheduler.next_timer(), wbt, self.rerun].into_iter().flatten().min()
    }

    /// Runs the timers that are due; does nothing if none is.
    pub fn timer(&mut self, now: Time, effects: &mut Effects) {
        if self.scheduler.next_timer().is_some_and(|at| at <= now) {
            self.scheduler.timer(now);
        }
        if let Some(wbt) = &mut self.wbt {
            let stalled = &self.stalled;
            wbt.timer(now, &mut |who| wake(stalled, who, effects));
        }
        if self.rerun.is_some_and(|at| at <= now) {
            self.rerun = None;
            for hctx in 0..self.map.hctxs() {
                self.run_later(hctx, effects);
            }
        }
    }

    /// Statistics up to now.
    pub fn stats(&self) -> BlockStats {
        let mut stats = self.stats.clone();
        stats.scheduler = self.scheduler.stats();
        stats.wbt = self.wbt.as_ref().map(Wbt::stats).unwrap_or_default();
        stats
    }

    /// Restarts the statistics, at the end of a warm-up.
    pub fn reset_stats(&mut self, now: Time) {
        self.stats.reset(now);
        self.scheduler.reset_stats(now);
        if let Some(wbt) = &mut self.wbt {
            wbt.reset_stats();
        }
    }

    /// `blk_mq_hctx_has_pending`.
    pub(super) fn has_work(&self, hctx: u16) -> bool {
        !self.hctxs[usize::from(hctx)].dispatch.is_empty() || self.scheduler.has_work(hctx)
    }

    /// Lets a worker run a hardware queue that has work (`blk_mq_run_hw_queue(hctx, true)`); repeated requests run it
    /// once.
    pub(super) fn run_later(&mut self, hctx: u16, effects: &mut Effects) {
        if self.has_work(hctx) && !std::mem::replace(&mut self.hctxs[usize::from(hctx)].told, true) {
            effects.runs.push(Run { hctx, later: true });
        }
    }

    /// Lets the caller run a hardware queue that has work (`blk_mq_run_hw_queue(hctx, false)`).
    pub(super) fn run_now(&self, hctx: u16, effects: &mut Effects) {
        let run = Run { hctx, later: false };
        if self.has_work(hctx) && effects.runs.last() != Some(&run) {
            effects.runs.push(run);
        }
    }
}

/// Wakes the task of a bio.
pub(super) fn wake(stalled: &Slab<Waiting>, who: u32, effects: &mut Effects) {
    effects.woken.push(Woken { task: stalled[who].task, stalled: Stalled(who) });
}

// Completion of a request (`blk_mq_end_request`).

impl Queue {
    /// Completes the request of a driver tag.
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

    /// Ends a request and its bios.
    pub(super) fn end(&mut self, name: u32, status: Status, now: Time, effects: &mut Effects) {
        self.requests.end_bios(name, status, &mut self.wholes, &mut effects.done);
        self.free(name, now, effects);
    }

    /// Ends a part of a bio that is in no request.
    pub(super) fn end_part(&mut self, whole: u32, status: Status, effects: &mut Effects) {
        if let Some((owner, status)) = self.wholes.end(whole, status) {
            effects.done.push(Done { owner, status });
        }
    }

    /// Frees a request without bios (`blk_mq_free_request`), with its tags and tokens.
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

    /// Returns the driver tag of a request, if it has one (`blk_mq_put_driver_tag`).
    pub(super) fn put_driver_tag(&mut self, name: u32, effects: &mut Effects) {
        let request = &mut self.requests[name];
        let tag = std::mem::replace(&mut request.tag, NONE);
        if tag != NONE {
            let stalled = &self.stalled;
            let tags = &mut self.hctxs[usize::from(request.hctx)].tags;
            tags.put(tag, |who| wake(stalled, who, effects));
        }
    }

    /// Runs a stalled hardware queue again (`blk_mq_sched_restart`).
    pub(super) fn restart(&mut self, hctx: u16, effects: &mut Effects) {
        let state = &mut self.hctxs[usize::from(hctx)];
        if std::mem::replace(&mut state.restart, false) {
            self.run_later(hctx, effects);
        }
    }
}
