//! Submission of bios to the queue (`blk_mq_submit_bio`), by way of the task's plug.

use super::bio::{Attempt, Bio, Piece, Side, Stage, Waiting};
use super::queue::{Queue, Stalled, Submitted, wake};
use super::request::NONE;
use super::wbt::{Account, Wbt};
use super::{Effects, kind};
use engine::Time;
use proto::{IoOp, Status};

/// Submitting task and core.
#[derive(Clone, Copy, Debug)]
struct Submitter {
    core: u16,
    task: u32,
}

/// Unsubmitted rest of a bio.
#[derive(Clone, Copy, Debug)]
struct Rest {
    bio: Bio,
    whole: u32,
    /// True if the first part has permission to write, after the attempts to merge.
    leave: bool,
}

impl Queue {
    /// Submits a bio for a task on a core. The bio becomes one or more requests, or part of others; in `plug`, if
    /// given.
    ///
    /// # Panics
    /// If the host has no such core.
    pub fn submit(
        &mut self,
        mut bio: Bio,
        core: u16,
        task: u32,
        plug: Option<&mut Plug>,
        now: Time,
        effects: &mut Effects,
    ) -> Submitted {
        assert!(core < self.map.cores(), "no core {core}: the host has {} cores", self.map.cores());
        self.stats.bios[kind(bio.op)] += 1;
        if bio.op == IoOp::Flush {
            (bio.op, bio.flags.preflush) = (IoOp::Write, true);
        }
        debug_assert!(bio.bytes > 0 || bio.flags.preflush, "empty bio without a preflush: {bio:?}");
        let whole = self.wholes.begin(bio.owner);
        if bio.is_flush() && !self.device.write_cache {
            // `submit_bio_noacct`.
            self.stats.flushes_void += u64::from(bio.flags.preflush);
            (bio.flags.preflush, bio.flags.fua) = (false, false);
            if bio.bytes == 0 {
                self.end_part(whole, Status::Success, effects);
                return Submitted::Queued;
            }
        }
        self.submit_rest(Rest { bio, whole, leave: false }, Submitter { core, task }, plug, now, effects)
    }

    /// Resumes the bio of a [woken](super::Woken) task, on the task's current core.
    ///
    /// # Panics
    /// If the task was not woken for this bio.
    pub fn resume(
        &mut self,
        stalled: Stalled,
        core: u16,
        plug: Option<&mut Plug>,
        now: Time,
        effects: &mut Effects,
    ) -> Submitted {
        let waiting = self.stalled[stalled.0];
        self.stalled.remove(stalled.0);
        let waits = match waiting.stage {
            Stage::Throttled => &mut self.stats.throttle_waits,
            Stage::Tag(_) => &mut self.stats.tag_waits,
        };
        waits.time += now.since(waiting.since);
        match waiting.stage {
            Stage::Throttled => self.wbt.iter_mut().for_each(|wbt| wbt.arm_if_idle(now)),
            // If the task has moved, the wake-up is passed on (`blk_mq_get_tag`).
            Stage::Tag(hctx) if self.hctx_of(&waiting.rest, core) != hctx => {
                self.pass_on(hctx, waiting.rest.is_sync(), effects)
            }
            Stage::Tag(hctx) => {
                if let Some(batches) = &mut self.hctxs[usize::from(hctx)].batches {
                    batches.begin(waiting.task, now);
                }
            }
        }
        let at = Submitter { core, task: waiting.task };
        let rest = Rest { bio: waiting.rest, whole: waiting.whole, leave: true };
        self.submit_rest(rest, at, plug, now, effects)
    }

    /// Submits all parts of a bio, one after another (`__bio_split_to_limits`).
    fn submit_rest(
        &mut self,
        mut rest: Rest,
        at: Submitter,
        mut plug: Option<&mut Plug>,
        now: Time,
        effects: &mut Effects,
    ) -> Submitted {
        loop {
            let most = self.requests.limits.unsplit(rest.bio.op);
            let split = rest.bio.bytes > most;
            rest.bio.flags.polled &= !split;
            let bio = if split { Bio { bytes: most, ..rest.bio } } else { rest.bio };
            let nomerge = split || bio.flags.polled;
            let piece = Piece { bio, whole: rest.whole, nomerge };
            if let Err(stage) = self.submit_piece(&piece, at, rest.leave, plug.as_deref_mut(), now, effects) {
                return Submitted::MustWait(self.stall(&rest, at.task, stage, now));
            }
            if !split {
                self.end_part(rest.whole, Status::Success, effects);
                return Submitted::Queued;
            }
            self.stats.splits += 1;
            rest.leave = false;
            rest.bio.offset += u64::from(most);
            rest.bio.bytes -= most;
            rest.bio.announced = 0;
        }
    }

    /// Submits one part of a bio: merges it or makes it a request. Returns the reason if the task has to wait.
    fn submit_piece(
        &mut self,
        piece: &Piece,
        at: Submitter,
        leave: bool,
        mut plug: Option<&mut Plug>,
        now: Time,
        effects: &mut Effects,
    ) -> Result<(), Stage> {
        if !leave {
            if self.merge(piece, at.core, plug.as_deref_mut(), now, effects) {
                self.wholes.add(piece.whole);
                return Ok(());
            }
            if self.wbt.as_mut().is_some_and(|wbt| !wbt.ask(&piece.bio, now)) {
                return Err(Stage::Throttled);
            }
        }
        let hctx = self.hctx_of(&piece.bio, at.core);
        let Some(tag) = self.tag(hctx, &piece.bio, at.task, now) else {
            // Queued requests are shown to the driver before the task sleeps (`blk_mq_get_tag`).
            self.run_now(hctx, effects);
            return Err(Stage::Tag(hctx));
        };
        self.wholes.add(piece.whole);
        let name = self.requests.of_bio(piece, at.core, hctx, now);
        self.stats.queued.add(now, 1);
        let request = &mut self.requests[name];
        (request.task, request.in_batch_of_sync) = (at.task, piece.bio.is_sync());
        *(if self.elevator { &mut request.sched_tag } else { &mut request.tag }) = tag;
        request.account = if self.wbt.is_some() { Wbt::account(&piece.bio) } else { Account::None };
        if piece.bio.is_flush() {
            self.insert_flush(name, now, effects);
        } else if let Some(plug) = plug {
            self.add_to_plug(plug, name, now, effects);
        } else if self.elevator {
            self.insert(name, now, effects);
            self.run_later(hctx, effects);
        } else {
            self.issue(name, now, effects);
        }
        Ok(())
    }

    /// Merges a bio into a request of the plug or of the queue (`blk_mq_attempt_bio_merge`).
    fn merge(
        &mut self,
        piece: &Piece,
        core: u16,
        plug: Option<&mut Plug>,
        now: Time,
        effects: &mut Effects,
    ) -> bool {
        if !self.merges || !piece.is_mergeable() {
            return false;
        }
        // `blk_attempt_plug_merge` tries the latest request only.
        let latest = plug.map_or(NONE, |plug| plug.first);
        let mut side = None;
        if latest != NONE
            && let Attempt::Merged(found) = self.requests.attempt_bio_merge(latest, piece)
        {
            self.stats.plug_merges += 1;
            side = Some(found);
        }
        if side.is_none() {
            side = self.scheduler.bio_merge(&mut self.requests, piece, core, &mut self.freed);
            self.free_merged(now, effects);
        }
        match side {
            Some(Side::Back) => self.stats.back_merges += 1,
            Some(Side::Front) => self.stats.front_merges += 1,
            None => {}
        }
        side.is_some()
    }

    /// Allocates a tag for a bio; the scheduler's limit does not apply to flushes (`__blk_mq_alloc_requests`).
    fn tag(&mut self, hctx: u16, bio: &Bio, task: u32, now: Time) -> Option<u32> {
        let hctx = &mut self.hctxs[usize::from(hctx)];
        if !self.elevator {
            return hctx.tags.get(u32::MAX);
        }
        if let Some(batches) = &mut hctx.batches
            && !batches.get(bio.is_sync(), task, now)
        {
            return None;
        }
        let write = bio.op != IoOp::Read;
        let shallow = if bio.is_flush() { u32::MAX } else { self.scheduler.shallow(bio.is_sync(), write) };
        hctx.sched_tags.get(shallow)
    }

    fn stall(&mut self, rest: &Rest, task: u32, stage: Stage, since: Time) -> Stalled {
        let (rest, whole) = (rest.bio, rest.whole);
        let name = self.stalled.insert(Waiting { rest, whole, task, since, stage });
        match stage {
            Stage::Throttled => {
                self.stats.throttle_waits.count += 1;
                self.wbt.iter_mut().for_each(|wbt| wbt.wait(&rest, name));
            }
            Stage::Tag(hctx) => {
                self.stats.tag_waits.count += 1;
                let (elevator, hctx) = (self.elevator, &mut self.hctxs[usize::from(hctx)]);
                match &mut hctx.batches {
                    Some(batches) => batches.wait(rest.is_sync(), name),
                    None => hctx.bio_tags(elevator).wait(name),
                }
            }
        }
        Stalled(name)
    }

    fn pass_on(&mut self, hctx: u16, is_sync: bool, effects: &mut Effects) {
        let (elevator, stalled) = (self.elevator, &self.stalled);
        let state = &mut self.hctxs[usize::from(hctx)];
        match &mut state.batches {
            Some(batches) => batches.next(is_sync).into_iter().for_each(|who| wake(stalled, who, effects)),
            None => state.bio_tags(elevator).came_back(|who| wake(stalled, who, effects)),
        }
    }

    /// Passes a request to the scheduler.
    pub(super) fn insert(&mut self, name: u32, now: Time, effects: &mut Effects) {
        self.scheduler.insert(&mut self.requests, name, self.merges, now, &mut self.freed);
        self.free_merged(now, effects);
    }

    /// Frees requests that were merged into others.
    fn free_merged(&mut self, now: Time, effects: &mut Effects) {
        while let Some(name) = self.freed.pop() {
            self.stats.request_merges += 1;
            self.free(name, now, effects);
        }
    }
}

// Plugs: requests that a task gathers before it shows them to the queue.

/// `BLK_MAX_REQUEST_COUNT`.
const MOST: u32 = 32;

/// `BLK_PLUG_FLUSH_SIZE`.
const FLUSH_BYTES: u32 = 128 << 10;

/// Requests of one queue that a task gathers (`struct blk_plug`), latest first. It must be flushed with
/// [`Queue::flush_plug`](super::Queue::flush_plug) before it is dropped.
///
/// A task has one plug per drive. *Chosen*: Linux has one plug for all drives, with 64 requests from the second drive
/// on.
#[derive(Debug)]
pub struct Plug {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Default for Plug {
    /// Creates an empty plug (`blk_start_plug`).
    fn default() -> Plug {
        Plug { first: NONE, count: 0 }
    }
}

impl Plug {
    /// Returns whether the plug is empty.
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Number of requests in the plug.
    pub fn len(&self) -> u32 {
        self.count
    }
}

impl Queue {
    /// `blk_add_rq_to_plug`.
    pub(super) fn add_to_plug(&mut self, plug: &mut Plug, name: u32, now: Time, effects: &mut Effects) {
        let full = plug.count >= MOST;
        let long = plug.count > 0 && self.merges && self.requests[plug.first].bytes >= FLUSH_BYTES;
        if full || long {
            self.flush_plug(plug, false, now, effects);
        }
        self.requests[name].next = plug.first;
        plug.first = name;
        plug.count += 1;
    }

    /// Shows a task's gathered requests to the queue (`blk_mq_flush_plug_list`), at the end of its work or because it
    /// is about to sleep (`from_schedule`). In the second case, or with a scheduler, requests keep their order of
    /// arrival; otherwise they go to the driver at once, latest first.
    pub fn flush_plug(&mut self, plug: &mut Plug, from_schedule: bool, now: Time, effects: &mut Effects) {
        plug.count = 0;
        let mut at = std::mem::replace(&mut plug.first, NONE);
        if !self.elevator && !from_schedule {
            while at != NONE {
                let next = std::mem::replace(&mut self.requests[at].next, NONE);
                self.issue(at, now, effects);
                at = next;
            }
            return;
        }
        // `blk_mq_dispatch_plug_list` as of 6.1.21 (34e0a279a993): grouped by core, the core of the latest request
        // first, each group in order of arrival.
        let mut gathered = self.turned(at);
        while let Some(core) = self.latest_core(gathered) {
            let mut rest = (NONE, NONE);
            let mut hctx = 0;
            let mut at = gathered;
            while at != NONE {
                let next = self.requests[at].next;
                self.requests[at].next = NONE;
                if self.requests[at].core == core {
                    hctx = self.requests[at].hctx;
                    self.insert(at, now, effects);
                } else {
                    match rest {
                        (NONE, _) => rest.0 = at,
                        (_, last) => self.requests[last].next = at,
                    }
                    rest.1 = at;
                }
                at = next;
            }
            gathered = rest.0;
            if from_schedule {
                self.run_later(hctx, effects);
            } else {
                self.run_now(hctx, effects);
            }
        }
    }

    /// Reverses a chain of requests.
    fn turned(&mut self, mut at: u32) -> u32 {
        let mut turned = NONE;
        while at != NONE {
            let next = std::mem::replace(&mut self.requests[at].next, turned);
            (turned, at) = (at, next);
        }
        turned
    }

    /// Core of the last request of a chain.
    fn latest_core(&self, mut at: u32) -> Option<u16> {
        let mut core = None;
        while at != NONE {
            core = Some(self.requests[at].core);
            at = self.requests[at].next;
        }
        core
    }
}
