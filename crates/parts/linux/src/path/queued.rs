//! Flows with several requests in flight: direct requests that are submitted, and taken when they have ended
//! (`fs/aio.c`, `io_uring/rw.c`, `fs/iomap/direct-io.c`).
//!
//! The thread of such a flow works as fio's: it submits while it has requests to submit, then takes completions, and
//! sleeps in the kernel if too few requests have ended. A call submits one request and takes one completion, unless the
//! flow has [`Batches`](proto::Batches) with larger numbers. If a call submits more than two, the requests share a
//! plug: neighbours merge, and none is sent before the last has been submitted (`AIO_PLUG_THRESHOLD`,
//! `IO_PLUG_THRESHOLD`).

use super::flow::answer_to;
use super::frame::Frame;
use super::io::Dio;
use super::thread::Step;
use super::{Event, Host, Out};
use crate::tasks::Task;
use engine::{Cx, Time};
use proto::file::Way;
use proto::{Command, Completion, IoOp, Status};

use proto::file::Program;

/// Maximum requests of a call that are not plugged: `AIO_PLUG_THRESHOLD` of fs/aio.c, `IO_PLUG_THRESHOLD` of io_uring.
const FEW: usize = 2;

impl<P: Program> Host<P> {
    /// Returns the next step of a flow's thread, in its frame.
    pub(super) fn queued(&mut self, task: Task, at: u16) -> Step {
        let way = self.flows[usize::from(at)].way();
        let next = self.flows[usize::from(at)].waiting.front().copied();
        let next = next.filter(|_| self.may_submit(task, at));
        let in_call = self.flows[usize::from(at)].in_call > 0;
        let goes_on = |next: &Command| in_call && !(way == Way::Aio && next.op == IoOp::Flush);
        if self.thread(task).gathers && !next.as_ref().is_some_and(goes_on) {
            // `blk_finish_plug` at the end of the call. `fsync` is a call of its own.
            self.thread(task).gathers = false;
            self.push(task, Frame::Submitted(None));
            self.push(task, Frame::Submit);
            return Step::Again;
        }
        if let Some(command) = next {
            return self.submit_queued(task, at, &command);
        }
        let flow = &mut self.flows[usize::from(at)];
        flow.in_call = 0;
        if std::mem::take(&mut flow.answered) {
            // An answered sender asks for the next request in the same instant.
            return Step::Compute(Time::ZERO);
        }
        if flow.under_way == 0 && flow.waiting.is_empty() {
            return Step::Sleep;
        }
        // `io_getevents` is always a call; completions of a ring are visible to the thread without one.
        let ended = flow.takes() > 0;
        if !flow.reaping && (way == Way::Aio || !ended) {
            flow.reaping = true;
            self.charge(task, self.costs.call);
            return Step::Pay;
        }
        if ended {
            flow.reaping = false;
            self.push(task, Frame::Reap(at));
            return Step::Again;
        }
        if way == Way::Polled {
            self.push(task, Frame::Poll(at));
            return Step::Again;
        }
        Step::Sleep
    }

    /// Returns whether a flow can submit without sleeping for a tag that only its own poll of a queue would free.
    fn may_submit(&mut self, task: Task, at: u16) -> bool {
        let flow = &self.flows[usize::from(at)];
        if flow.way() != Way::Polled {
            return true;
        }
        let (disk, idle) = (usize::from(flow.disk()), flow.under_way == 0);
        let now_on = self.cores.core_of(task);
        let core = &mut self.threads[task.0 as usize].submits_on;
        // While requests are in flight, the flow stays with their queue.
        let core = if idle { *core.insert(now_on) } else { *core.get_or_insert(now_on) };
        self.disks[disk].queue.polled_has_room(core)
    }

    /// Submits a request (`io_submit`, `io_uring_enter`).
    fn submit_queued(&mut self, task: Task, at: u16, command: &Command) -> Step {
        let flow = &mut self.flows[usize::from(at)];
        flow.waiting.pop_front();
        flow.under_way += 1;
        flow.answered = false;
        let (way, disk) = (flow.way(), flow.disk());
        let begins = flow.in_call == 0;
        flow.in_call = if begins { flow.batches.submit } else { flow.in_call } - 1;
        if begins {
            // Control blocks of one call; `fsync` and the requests after it take a new call.
            let one_call = |next: &&Command| way != Way::Aio || next.op != IoOp::Flush;
            let first = usize::from(one_call(&command));
            let rest = flow.waiting.iter().take(flow.in_call as usize).take_while(one_call).count();
            // Polled requests do not merge, and must not wait in a plug while their thread sleeps: *chosen*, a polled
            // ring has no plug.
            let gathers = first > 0 && first + rest > FEW && way != Way::Polled;
            self.thread(task).gathers = gathers;
            self.charge(task, self.costs.call);
        }
        if command.op == IoOp::Flush && way != Way::Aio {
            return self.hand_over(at, *command);
        }
        let (file, offset) = self.addressed(at, command);
        let mut access = self.access(file, offset, command.bytes);
        let write = command.op == IoOp::Write;
        if !write {
            access.end = access.end.min(self.nodes[access.inode.0 as usize].bytes);
        }
        let fs = self.disks[usize::from(disk)].fs.as_ref();
        let bytes = access.end.saturating_sub(access.offset);
        let needs = write && fs.is_some_and(|fs| fs.direct_has_end(access.inode, access.offset, bytes));
        if command.op == IoOp::Flush || access.is_over() || needs || !self.has_direct(access.inode) {
            // `fsync` is a call of its own. A write that needs blocks is waited for (`IOMAP_DIO_FORCE_WAIT`). A request
            // through the page cache ends before the call does.
            self.push(task, Frame::Answered(at, command.op, answer_to(command)));
            return if access.is_over() && command.op != IoOp::Flush {
                Step::Again
            } else {
                self.serve(task, at, command)
            };
        }
        // `IOMAP_F_DIRTY`: force unit access is not enough if metadata are not in the journal yet.
        let clean = fs.is_none_or(|fs| !fs.is_datasync_dirty(access.inode));
        let sync = write && command.fua;
        let dio = self.dios.insert(Dio {
            flow: at,
            completion: answer_to(command),
            access,
            write,
            fua: sync && clean,
            sync: sync && !clean,
            polled: way == Way::Polled,
            count: 1,
        });
        self.push_direct(task, access, write, Some(dio));
        Step::Again
    }

    /// Handles the end of a bio of a request.
    pub(super) fn dio_ended(&mut self, dio: u32, status: Status, cx: &mut impl Cx<Event, Out>) {
        let at = &mut self.dios[dio].completion;
        if at.status == Status::Success {
            at.status = status;
        }
        self.put_dio(dio, cx);
    }

    /// Drops a reference to a request. After the last, a write to a file ends in a kernel thread
    /// (`iomap_dio_bio_end_io`), any other request at once (`blkdev_bio_end_io_async`).
    pub(super) fn put_dio(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let dio = &mut self.dios[name];
        dio.count -= 1;
        if dio.count > 0 {
            return;
        }
        let disk = self.flows[usize::from(dio.flow)].disk();
        if dio.write && self.disks[usize::from(disk)].fs.is_some() {
            let finisher = match self.disks[usize::from(disk)].finisher {
                Some(finisher) => finisher,
                None => {
                    let finisher = self.spawn(Frame::Finish(disk));
                    *self.disks[usize::from(disk)].finisher.insert(finisher)
                }
            };
            self.disks[usize::from(disk)].finishing.push_back(name);
            self.wake(finisher, cx);
        } else {
            self.end_dio(name, cx);
        }
    }

    /// Ends a request: its flow may take it (`ki_complete`).
    fn end_dio(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let Dio { flow, completion, .. } = self.dios[name];
        self.dios.remove(name);
        self.ended_for(flow, completion, cx);
    }

    /// Fails a request if its thread's work has failed.
    pub(super) fn fail_dio(&mut self, task: Task, name: u32) {
        let op = if self.dios[name].write { IoOp::Write } else { IoOp::Read };
        let status = self.status(task, op);
        let at = &mut self.dios[name].completion.status;
        if *at == Status::Success {
            *at = status;
        }
    }

    fn ended_for(&mut self, at: u16, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        let flow = &mut self.flows[usize::from(at)];
        flow.done.push_back(completion);
        // A thread in `io_getevents` wakes at each completion, one that waits for a ring when there are enough
        // (`io_should_wake`).
        if flow.way() != Way::Uring || flow.takes() > 0 {
            self.tell_flow(at, cx);
        }
    }

    /// Runs the thread that ends direct writes of a disk's files (`iomap_dio_complete_work`).
    pub(super) fn finish(&mut self, task: Task, disk: u16) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Finish(disk));
        }
        self.push(task, Frame::Finish(disk));
        let Some(name) = self.disks[usize::from(disk)].finishing.pop_front() else { return Step::Sleep };
        let Dio { access, sync, completion, .. } = self.dios[name];
        self.push(task, Frame::Finished(name));
        if completion.status != Status::Success {
            return Step::Again;
        }
        if sync {
            self.push(task, Frame::Sync { file: access.file, data_only: true });
            self.push_integrity(task, access.inode, access.page(), access.end_page());
        }
        self.push(task, Frame::DirectWritten(access));
        Step::Again
    }

    /// Ends one such write.
    pub(super) fn finished(&mut self, task: Task, name: u32, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Finished(name));
        }
        self.fail_dio(task, name);
        self.end_dio(name, cx);
        Step::Again
    }

    /// Takes up to the wanted number of completions for a flow.
    pub(super) fn reap(&mut self, at: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        for _ in 0..self.flows[usize::from(at)].takes() {
            self.take_one(at, cx);
        }
        Step::Again
    }

    fn take_one(&mut self, at: u16, cx: &mut impl Cx<Event, Out>) {
        let flow = &mut self.flows[usize::from(at)];
        let Some(completion) = flow.done.pop_front() else { return };
        flow.under_way -= 1;
        flow.answered = true;
        flow.drained();
        cx.emit(Out::Complete(completion));
    }

    /// Handles a request served in the call that submitted it.
    pub(super) fn answered(
        &mut self,
        task: Task,
        at: u16,
        (op, mut completion): (IoOp, Completion),
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Answered(at, op, completion));
        }
        completion.status = self.status(task, op);
        self.flows[usize::from(at)].done.push_front(completion);
        self.take_one(at, cx);
        Step::Again
    }

    /// Hands a blocking request of a ring to a worker thread (`io_queue_iowq`). *Chosen*: one worker, so that its
    /// flushes run one after another.
    fn hand_over(&mut self, at: u16, command: Command) -> Step {
        let flow = &mut self.flows[usize::from(at)];
        flow.syncs.push_back(command);
        let worker = match flow.worker {
            Some(worker) => worker,
            None => {
                let worker = self.spawn(Frame::Worker(at));
                *self.flows[usize::from(at)].worker.insert(worker)
            }
        };
        self.woken.push(worker);
        Step::Pay
    }

    /// Runs the worker of a ring.
    pub(super) fn worker(&mut self, task: Task, at: u16) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Worker(at));
        }
        self.push(task, Frame::Worker(at));
        let Some(command) = self.flows[usize::from(at)].syncs.pop_front() else { return Step::Sleep };
        self.push(task, Frame::Worked(at, answer_to(&command)));
        self.serve(task, at, &command)
    }

    /// Ends an operation of the worker.
    pub(super) fn worked(
        &mut self,
        task: Task,
        at: u16,
        mut completion: Completion,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Worked(at, completion));
        }
        completion.status = self.status(task, IoOp::Flush);
        self.ended_for(at, completion, cx);
        Step::Again
    }
}
