//! Completions that a thread looks for itself, of a queue that does not interrupt (`blk_mq_poll`, `nvme_poll`). It looks until there is one, or
//! it has to give its core to another; hybrid polling, which sleeps for a while first, is left out.

use super::flow::Flow;
use super::frame::Frame;
use super::thread::Step;
use super::{Event, Host, Out};
use crate::tasks::Task;
use engine::{Cx, Inside};
use proto::file::{Program, Way};

impl<P: Program> Host<P> {
    /// The queue on which a flow looks, if its drive has one.
    fn queue_of(&self, flow: &Flow) -> Option<u16> {
        let core = self.threads[flow.task.0 as usize].submits_on?;
        self.disks[usize::from(flow.disk())].queue.polled_hctx(core)
    }

    /// A flow looks for ends of its requests (`io_do_iopoll`): takes what its queue has, or looks on. On a drive without such queues it looks
    /// for what interrupts bring.
    pub(super) fn poll(&mut self, task: Task, at: u16) -> Step {
        let flow = &self.flows[usize::from(at)];
        let (disk, hctx) = (usize::from(flow.disk()), self.queue_of(flow));
        if let Some(hctx) = hctx {
            let vector = &mut self.disks[disk].vectors[usize::from(hctx)];
            if vector.has_more() {
                vector.active = true;
                let cost = vector.take(&self.costs);
                self.stats.polled += vector.taken();
                self.charge(task, cost);
                self.push(task, Frame::Polled(at));
                return Step::Pay;
            }
        }
        let core = self.threads[task.0 as usize].submits_on.unwrap_or(0);
        let has_room = self.disks[disk].queue.polled_has_room(core);
        let flow = &mut self.flows[usize::from(at)];
        if flow.takes() > 0 || !flow.waiting.is_empty() && has_room {
            return Step::Again;
        }
        flow.spins = true;
        self.push(task, Frame::Poll(at));
        Step::Spin
    }

    /// A flow has taken what its queue had: it ends, whosever it is.
    pub(super) fn polled(&mut self, task: Task, at: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Polled(at));
        }
        let flow = &self.flows[usize::from(at)];
        if let Some(hctx) = self.queue_of(flow) {
            let disk = flow.disk();
            self.disks[usize::from(disk)].vectors[usize::from(hctx)].active = false;
            self.end_batch(disk, hctx, cx);
            // What has come meanwhile is for whoever looks.
            if self.disks[usize::from(disk)].vectors[usize::from(hctx)].has_more() {
                self.seen(disk, hctx, cx);
            }
        }
        Step::Again
    }

    /// A drive has written a completion into a queue that does not interrupt: who looks sees it.
    pub(super) fn seen(&mut self, disk: u16, hctx: u16, cx: &mut impl Cx<Event, Out>) {
        let looks = |flow: &Flow| {
            flow.way() == Way::Polled
                && flow.disk() == disk
                && flow.spins
                && self.queue_of(flow) == Some(hctx)
        };
        if let Some(at) = self.flows.iter().position(looks) {
            self.tell_flow(at as u16, cx);
        }
    }

    /// A thread that spins looks again.
    pub(super) fn unspin(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) {
        let burst = self.tick;
        self.cores.cut(task, burst, &mut Inside::of(cx));
    }
}
