//! Memory: who makes room for a page that comes.

use super::frame::Frame;
use super::thread::Step;
use super::{Event, Host, Out};
use crate::pagecache::{Next, Pressure, Reclaimed, ScanControl, Throttle};
use crate::tasks::Task;
use crate::writeback::Reason;
use engine::{Cx, Time};
use proto::file::Program;

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
