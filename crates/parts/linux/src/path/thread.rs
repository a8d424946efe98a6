//! Threads of a host: what each is doing, as a stack of frames.

use super::wait::Wait;
use super::{
    Event, Host, Out,
    frame::{Access, Frame},
};
use crate::pagecache::{Cause, Folio, Next, Pressure, Reclaimed, ScanControl, Throttle};
use crate::writeback::{Dirtier, Reason};
use crate::{
    PAGE,
    block::{Bio, Plug, Stalled},
    tasks::Task,
};
use engine::{Cx, Time};
use proto::file::{CallError, Program};
use std::collections::VecDeque;

/// A thread, of a program or of the kernel.
pub(super) struct Thread {
    /// What it is doing; the last frame is the innermost.
    pub(super) frames: Vec<Frame>,
    /// Core time of the kernel that it has used and not been on a core for.
    pub(super) owed: Time,
    /// When it wants to be woken.
    pub(super) alarm: Option<Time>,
    /// What else it sleeps for.
    pub(super) wait: Option<Wait>,
    /// What it has told the block layer and not shown it, by disk.
    pub(super) plugs: Vec<Plug>,
    /// Whether it shows nothing before it has submitted all requests of its call.
    pub(super) gathers: bool,
    /// The bio that it could not submit, and its disk, once there is room.
    pub(super) stalled: Option<(u16, Stalled)>,
    /// Whether a bio of it waits in the block layer: it submits nothing else before.
    pub(super) waits_for_room: bool,
    /// What it has made dirty.
    pub(super) dirtier: Dirtier,
    /// Until when it pauses for that.
    pub(super) pause: Option<Time>,
    /// The reclaim that it is in the middle of.
    pub(super) scan: Option<ScanControl>,
    /// Pages that it has submitted since it was told to write some, where it goes on, and how many it may still write.
    pub(super) submitted: u64,
    pub(super) next_page: u64,
    pub(super) left: u64,
    /// Pages of a victimization that its next bio announces.
    pub(super) announced: u32,
    /// Bios that it is about to submit, each with its disk.
    pub(super) bios: VecDeque<(u16, Bio)>,
    /// Why its call has failed.
    pub(super) failed: Option<CallError>,
    /// How long it had had a core when its program was last told.
    pub(super) told: Time,
    /// Time of the driver for what it has submitted, if it is to pay for it.
    pub(super) prepared: Time,
    /// The core that it submits as if it were on: that of the queue on which it looks for completions.
    pub(super) submits_on: Option<u16>,
}

impl Thread {
    pub(super) fn new(bottom: Frame, disks: usize) -> Thread {
        Thread {
            frames: vec![bottom],
            owed: Time::ZERO,
            alarm: None,
            wait: None,
            plugs: (0..disks).map(|_| Plug::default()).collect(),
            gathers: false,
            stalled: None,
            waits_for_room: false,
            dirtier: Dirtier::default(),
            pause: None,
            scan: None,
            submitted: 0,
            next_page: 0,
            left: 0,
            announced: 0,
            bios: VecDeque::new(),
            failed: None,
            told: Time::ZERO,
            prepared: Time::ZERO,
            submits_on: None,
        }
    }
}

/// What a thread does after a step of its innermost frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Goes on at once.
    Again,
    /// Is on its core for what it owes, then goes on.
    Pay,
    /// Computes.
    Compute(Time),
    /// Looks for completions until one comes, or its tick is over.
    Spin,
    /// Sleeps until it is woken. It must owe nothing.
    Sleep,
    /// Ends.
    End,
}

// Writes through the page cache.

/// Pages that a thread copies before it looks whether others want its core.
const BATCH: u32 = 32;

impl<P: Program> Host<P> {
    /// `generic_perform_write`: page by page, with a look at the dirty limits after each.
    pub(super) fn write(&mut self, task: Task, mut access: Access, cx: &mut impl Cx<Event, Out>) -> Step {
        let inode = access.inode;
        let disk = self.nodes[inode.0 as usize].disk;
        for _ in 0..BATCH {
            if access.is_over() || self.has_failed(task) {
                return Step::Pay;
            }
            let found = self.cache.seek(inode, access.page());
            if let Some(folio) = self.under_read(found) {
                return self.wait_uptodate(task, folio, Frame::Write(access));
            }
            self.charge(task, self.costs.lookup);
            self.cache.count_lookup(found);
            let found = match self.write_begin(task, &access, found) {
                Ok(found) => found,
                Err(step) => return step,
            };
            let bytes = access.in_page();
            match self.extend(task, || Frame::Write(access), inode, (access.offset, bytes), cx) {
                Err(step) => return step,
                Ok(Some(error)) => {
                    self.refuse(task, error);
                    return Step::Pay;
                }
                Ok(None) => {}
            }
            let folio = found.unwrap_or_else(|| self.new_page(task, &access));
            self.charge(task, self.costs.copy(bytes));
            self.shadow_store(inode, access.page(), folio);
            access.advance();
            if self.dirtied(task, folio, disk, cx) {
                self.push(task, Frame::Write(access));
                self.push(task, Frame::Balance(disk));
                return Step::Pay;
            }
        }
        self.pay_then(task, Frame::Write(access))
    }

    /// The page that is written to, in memory and unlocked, or none if it has only to be inserted (`write_begin`); otherwise what the thread does
    /// until it tries again.
    #[inline]
    fn write_begin(
        &mut self,
        task: Task,
        access: &Access,
        found: Option<Folio>,
    ) -> Result<Option<Folio>, Step> {
        if found.is_some() {
            return Ok(found);
        }
        let (inode, page) = (access.inode, access.page());
        if !self.has_room() {
            self.push(task, Frame::Write(*access));
            self.push(task, Frame::Reclaim);
            return Err(Step::Again);
        }
        // What a write covers in part is read first, if it is there (`__block_write_begin_int`).
        if access.in_page() < PAGE && page * PAGE < self.nodes[inode.0 as usize].bytes {
            self.push(task, Frame::Write(*access));
            self.push(task, Frame::Submit);
            self.bring(task, inode, page, 1, |_| Cause::Write);
            return Err(Step::Pay);
        }
        Ok(None)
    }

    /// A page that a write covers, or that was never written. Nobody sees it before the data are in it.
    fn new_page(&mut self, task: Task, access: &Access) -> Folio {
        self.charge(task, self.costs.allocate + self.costs.insert);
        let folio = self.cache.insert(access.inode, access.page(), Cause::Write);
        self.cache.set_uptodate(folio);
        self.cache.unlock(folio);
        folio
    }
}

// Memory: who makes room for a page that comes.

/// How long who is throttled by write-back sleeps (`reclaim_throttle`): a tenth of a second.
const WRITEBACK: Time = Time::from_ms(100);

/// How long a task waits for `kswapd` at most (`throttle_direct_reclaim`).
const ALLOWANCE: Time = Time::from_s(1);

impl<P: Program> Host<P> {
    /// Whether there is memory for a page; where there is little, `kswapd` is woken.
    pub(super) fn has_room(&mut self) -> bool {
        let pressure = self.cache.pressure();
        if pressure != Pressure::None && !self.cache.is_hopeless() {
            self.woken.push(self.kswapd);
        }
        pressure != Pressure::Direct
    }

    /// A task that needs a page reclaims itself (`try_to_free_pages`).
    pub(super) fn reclaim(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Reclaim);
        }
        if self.cache.pressure() != Pressure::Direct {
            self.thread(task).scan = None;
            return Step::Again;
        }
        if self.thread(task).scan.is_none() {
            self.stats.direct_reclaims += 1;
            if !self.cache.allows_direct_reclaim() {
                self.waits.on_memory(task);
                self.push(task, Frame::Reclaim);
                self.thread(task).scan = Some(ScanControl::direct());
                self.woken.push(self.kswapd);
                return self.sleep_for(task, ALLOWANCE, cx);
            }
        }
        let mut control = self.thread(task).scan.take().unwrap_or_else(ScanControl::direct);
        let done = self.round(task, &mut control, cx);
        let pause = match (done.next, done.throttle) {
            (Next::Failed, _) | (_, Some(Throttle::Congested | Throttle::NoProgress)) => Some(self.tick),
            (_, Some(Throttle::Writeback)) => Some(WRITEBACK),
            (_, None) => None,
        };
        if done.next == Next::Again {
            self.thread(task).scan = Some(control);
        }
        if done.next != Next::Done {
            self.push(task, Frame::Reclaim);
        }
        match pause {
            Some(pause) => self.pause(task, pause),
            None => Step::Again,
        }
    }

    /// `kswapd`: until there is as much memory as it wants.
    pub(super) fn kswapd(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Kswapd);
        }
        self.push(task, Frame::Kswapd);
        if self.thread(task).scan.is_none() && self.cache.pressure() == Pressure::None {
            return Step::Sleep;
        }
        let mut control = self.thread(task).scan.take().unwrap_or_else(ScanControl::kswapd);
        let done = self.round(task, &mut control, cx);
        // ext4 leaves what it would have to allocate blocks for to the flusher (`ext4_writepage`).
        self.pageouts.clear();
        self.cache.pageouts(&mut self.pageouts);
        match done.next {
            Next::Again => self.thread(task).scan = Some(control),
            Next::Done | Next::Failed => self.waits.memory_freed(&mut self.woken),
        }
        match done.throttle {
            _ if done.next == Next::Failed && self.cache.is_hopeless() => self.pause(task, WRITEBACK),
            Some(Throttle::Writeback) => self.pause(task, WRITEBACK),
            Some(_) => self.pause(task, self.tick),
            None => Step::Again,
        }
    }

    /// A round of a reclaim.
    fn round(&mut self, task: Task, control: &mut ScanControl, cx: &mut impl Cx<Event, Out>) -> Reclaimed {
        let done = self.cache.reclaim(control);
        self.charge(task, self.costs.scan.times(done.scanned) + self.costs.insert.times(done.freed));
        if done.wakes_flushers {
            for disk in 0..self.disks.len() as u16 {
                let wake = self.writeback.start_all(disk, Reason::Vmscan);
                self.flusher_wakes(disk, wake, cx);
            }
        }
        done
    }

    /// A thread pays what it owes, then sleeps for a time.
    fn pause(&mut self, task: Task, time: Time) -> Step {
        self.pay_then(task, Frame::Nap(time))
    }
}
