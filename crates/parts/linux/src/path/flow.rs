//! Flows of requests: each is a thread that reads and writes a file, one request after another, or several at once.

use super::frame::Frame;
use super::thread::Step;
use super::{Event, Host, Out};
use crate::Inode;
use crate::pagecache::readahead::Mapping;
use crate::tasks::Task;
use engine::{Cx, Inside, Time};
use proto::file::{Advice, OpenFlags, Program, Way};
use proto::{Batches, BufferState, Command, Completion, IoOp, Status};
use std::collections::{BTreeMap, VecDeque};

/// Flow of requests.
pub(super) struct Flow {
    /// Drive, access path, and number of the flow among those of its sender on this path.
    key: (u16, Way, u16),
    pub(super) task: Task,
    /// Open file; of several, the one served last.
    pub(super) file: u32,
    /// Other open files.
    pub(super) others: BTreeMap<Inode, u32>,
    /// Advice for its future reads.
    pub(super) advice: Advice,
    pub(super) waiting: VecDeque<Command>,
    /// True if a request has just been answered.
    pub(super) answered: bool,
    /// Submitted requests that are not answered, if it does not wait for each.
    pub(super) under_way: u32,
    /// Submitted requests that have ended and that it has not taken.
    pub(super) done: VecDeque<Completion>,
    /// Batches in which it submits and takes; how many more it submits in the current call, and whether it waits in
    /// order to refill its queue.
    pub(super) batches: Batches,
    pub(super) in_call: u32,
    full: bool,
    /// True while in the call that waits for completions.
    pub(super) reaping: bool,
    /// True while the flow's thread polls for completions on its core.
    pub(super) spins: bool,
    /// Flushes of a ring, and the thread that waits for them.
    pub(super) syncs: VecDeque<Command>,
    pub(super) worker: Option<Task>,
}

impl Flow {
    /// Drive of the flow.
    pub(super) fn disk(&self) -> u16 {
        self.key.0
    }

    pub(super) fn way(&self) -> Way {
        self.key.1
    }

    /// Number of requests that are not answered.
    fn outstanding(&self) -> u32 {
        self.waiting.len() as u32 + self.under_way
    }

    /// Number of completions it takes now, if it checks.
    pub(super) fn takes(&self) -> u32 {
        self.batches.takes(self.done.len() as u32, self.outstanding(), self.full)
    }

    /// Handles an answered request: the queue is refilled once few enough are left.
    pub(super) fn drained(&mut self) {
        self.full &= self.outstanding() > self.batches.low.min(self.batches.depth - 1);
    }
}

/// Answer to a request.
pub(super) fn answer_to(command: &Command) -> Completion {
    Completion {
        tag: command.tag,
        to: command.from,
        status: Status::Success,
        errors: 0,
        buffer: BufferState::Unknown,
    }
}

impl<P: Program> Host<P> {
    /// Submits a request of a flow: a system call on the file that fills a drive, or on a file laid out there. Requests
    /// of a flow are served one after another, or concurrently if the path is queued ([`Way::is_queued`]). A flush is
    /// `fsync`, force unit access `O_DSYNC`. A served request is reported ([`Out::Complete`]).
    pub fn submit_request(&mut self, disk: u16, way: Way, command: Command, cx: &mut impl Cx<Event, Out>) {
        let key = (disk, way, command.flow);
        let at = match self.flows.iter().position(|flow| flow.key == key) {
            Some(at) => at,
            None => self.begin_flow(key, Advice::Normal),
        };
        let flow = &mut self.flows[at];
        flow.waiting.push_back(command);
        flow.full |= flow.outstanding() >= flow.batches.depth;
        self.tell_flow(at as u16, cx);
    }

    /// Configures a flow before its first request: the batches in which it submits and takes (one by one if `None`),
    /// and its advice, which for a mapping also goes to `madvise`.
    pub fn open_flow(&mut self, disk: u16, way: Way, flow: u16, batches: Option<Batches>, advice: Advice) {
        let at = self.begin_flow((disk, way, flow), advice);
        self.flows[at].batches = batches.unwrap_or(Batches::ONE);
    }

    /// Opens a file as a flow on this path does, with its advice.
    pub(super) fn open_for(&mut self, inode: Inode, way: Way, advice: Advice) -> u32 {
        let name = self.open(inode, OpenFlags { direct: !way.is_cached(), ..OpenFlags::default() });
        let file = &mut self.open[name];
        file.ra.advise(advice, self.ra_pages);
        file.mapping = match advice {
            Advice::Random => Mapping::Random,
            Advice::Sequential => Mapping::Sequential,
            _ => Mapping::Normal,
        };
        name
    }

    fn begin_flow(&mut self, key: (u16, Way, u16), advice: Advice) -> usize {
        let inode = self.first_file(key.0);
        let file = self.open_for(inode, key.1, advice);
        let at = self.flows.len();
        let task = self.spawn(Frame::Flow(at as u16));
        self.flows.push(Flow {
            key,
            task,
            file,
            others: BTreeMap::new(),
            advice,
            waiting: VecDeque::new(),
            answered: false,
            under_way: 0,
            done: VecDeque::new(),
            batches: Batches::ONE,
            in_call: 0,
            full: false,
            reaping: false,
            spins: false,
            syncs: VecDeque::new(),
            worker: None,
        });
        at
    }

    /// Wakes a flow's thread if it waits for the event that has occurred.
    pub(super) fn tell_flow(&mut self, at: u16, cx: &mut impl Cx<Event, Out>) {
        let flow = &mut self.flows[usize::from(at)];
        let task = flow.task;
        if std::mem::take(&mut flow.spins) {
            self.unspin(task, cx);
        } else if matches!(self.thread(task).frames.last(), Some(Frame::Flow(_))) {
            self.wake(task, cx);
        }
    }

    /// Number of unserved requests of flows.
    pub fn requests(&self) -> usize {
        self.flows.iter().map(|flow| flow.waiting.len() + flow.under_way as usize).sum()
    }

    /// Starts the next request of a flow.
    pub(super) fn flow(&mut self, task: Task, at: u16) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Flow(at));
        }
        self.push(task, Frame::Flow(at));
        if self.flows[usize::from(at)].way().is_queued() {
            return self.queued(task, at);
        }
        let flow = &mut self.flows[usize::from(at)];
        let Some(command) = flow.waiting.front().copied() else {
            // An answered sender asks for the next request in the same instant, so the thread of the flow does not
            // sleep in between.
            let looks_again = std::mem::take(&mut flow.answered);
            return if looks_again { Step::Compute(Time::ZERO) } else { Step::Sleep };
        };
        flow.answered = false;
        let is_mapped = flow.way() == Way::Mapped;
        self.push(task, Frame::Answer(at));
        if is_mapped && command.op != IoOp::Flush {
            return self.serve_mapped(task, at, &command);
        }
        self.charge(task, self.costs.call);
        self.serve(task, at, &command)
    }

    /// Serves a request as a system call that the thread waits for.
    pub(super) fn serve(&mut self, task: Task, at: u16, command: &Command) -> Step {
        let (file, offset) = self.addressed(at, command);
        match command.op {
            IoOp::Read => self.call_read(task, file, offset, command.bytes),
            IoOp::Write => {
                self.open[file].flags.data_sync = command.fua;
                self.call_write(task, file, offset, command.bytes)
            }
            IoOp::Flush => {
                // `msync` skips metadata not needed to read the data back (`vfs_fsync_range`).
                let data_only = self.flows[usize::from(at)].way() == Way::Mapped;
                self.call_sync(task, file, data_only)
            }
            IoOp::Trim | IoOp::WriteZeroes => unreachable!("the machine rejects hole punching in files"),
        }
    }

    /// Serves a request as loads or stores of the file's mapping, without a system call. Force unit access is an
    /// `msync` afterwards.
    fn serve_mapped(&mut self, task: Task, at: u16, command: &Command) -> Step {
        let (file, offset) = self.addressed(at, command);
        let access = self.access(file, offset, command.bytes);
        let write = command.op == IoOp::Write;
        if command.fua {
            self.push(task, Frame::Sync { file, data_only: true });
            self.push_integrity(task, access.inode, access.page(), access.end_page());
        }
        self.push(task, Frame::Mapped { access, write });
        Step::Again
    }

    /// Answers a served request; the flow's thread is back from the kernel.
    pub(super) fn answer(&mut self, task: Task, at: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Answer(at));
        }
        let flow = &mut self.flows[usize::from(at)];
        flow.answered = true;
        let Some(command) = flow.waiting.pop_front() else { return Step::Again };
        let status = self.status(task, command.op);
        cx.emit(Out::Complete(Completion { status, ..answer_to(&command) }));
        Step::Again
    }
}

// Polling for completions of a queue that does not interrupt (`blk_mq_poll`, `nvme_poll`). A thread polls until there
// is one, or it has to give up its core. Hybrid polling, which sleeps for a while first, is left out.

impl<P: Program> Host<P> {
    /// Queue that a flow polls, if its drive has one.
    fn queue_of(&self, flow: &Flow) -> Option<u16> {
        let core = self.threads[flow.task.0 as usize].submits_on?;
        self.disks[usize::from(flow.disk())].queue.polled_hctx(core)
    }

    /// Polls for completions of a flow (`io_do_iopoll`): takes those in its queue, or polls on. On a drive without such
    /// queues it waits for interrupts.
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

    /// Ends the requests that a flow has taken from its queue, whatever flow they belong to.
    pub(super) fn polled(&mut self, task: Task, at: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Polled(at));
        }
        let flow = &self.flows[usize::from(at)];
        if let Some(hctx) = self.queue_of(flow) {
            let disk = flow.disk();
            self.disks[usize::from(disk)].vectors[usize::from(hctx)].active = false;
            self.end_batch(disk, hctx, cx);
            // Completions that arrived meanwhile go to another polling thread.
            if self.disks[usize::from(disk)].vectors[usize::from(hctx)].has_more() {
                self.seen(disk, hctx, cx);
            }
        }
        Step::Again
    }

    /// Handles a completion in a queue that does not interrupt: a polling thread sees it.
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

    /// Makes a spinning thread check again.
    pub(super) fn unspin(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) {
        let burst = self.tick;
        self.cores.cut(task, burst, &mut Inside::of(cx));
    }
}
