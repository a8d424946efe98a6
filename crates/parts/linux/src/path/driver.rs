//! Between block layer and drive: commands, interrupts, the ends of bios. Orders to coprocessors go the same way.

use super::frame::Frame;
use super::io::Io;
use super::spec::Costs;
use super::thread::Step;
use super::wait::Wait;
use super::{Event, Host, Out};
use crate::PAGE;
use crate::block::{Effects, Issued, Plug, Submitted};
use crate::pagecache::Folio;
use crate::tasks::Task;
use engine::{Cx, Inside, Time};
use proto::{Command, Completion, Status, offload::Order};

/// A command at a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) disk: u16,
    issued: Issued,
}

/// An interrupt vector: that of a hardware queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Vector {
    /// Completions that no handler has taken.
    pending: Vec<(Issued, Completion)>,
    /// Those that one is at.
    batch: Vec<(Issued, Completion)>,
    /// Whether a handler is at work, or called, or a thread that polls is at work.
    pub(super) active: bool,
}

impl Vector {
    /// Whether it has nothing to do.
    pub(super) fn is_idle(&self) -> bool {
        !self.active && self.pending.is_empty() && self.batch.is_empty()
    }

    /// Whether there is something that nobody is at.
    pub(super) fn has_more(&self) -> bool {
        !self.active && !self.pending.is_empty()
    }

    /// Completions that somebody is at.
    pub(super) fn taken(&self) -> u64 {
        self.batch.len() as u64
    }

    /// Takes what is there (`nvme_poll_cq`); what that costs.
    pub(super) fn take(&mut self, costs: &Costs) -> Time {
        std::mem::swap(&mut self.pending, &mut self.batch);
        let pages = self.batch.iter().map(|(issued, _)| u64::from(issued.bytes).div_ceil(PAGE)).sum();
        costs.complete.times(self.batch.len() as u64) + costs.end_page.times(pages)
    }
}

/// A vector as an event names it.
fn name(disk: u16, hctx: u16) -> u32 {
    u32::from(disk) << 16 | u32::from(hctx)
}

fn vector(name: u32) -> (u16, u16) {
    ((name >> 16) as u16, name as u16)
}

use proto::file::{CallError, Program};

impl<P: Program> Host<P> {
    /// Submits a thread's bios, and flushes its plug; it sleeps if the block layer has no room.
    pub(super) fn submit(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Submit);
        }
        if self.thread(task).waits_for_room && self.thread(task).stalled.is_none() {
            // Somebody else has woken it: its bio still waits (the loop of `blk_mq_get_tag`).
            return self.wait_for(task, Wait::Room, Frame::Submit);
        }
        let core = self.thread(task).submits_on.unwrap_or(self.cores.core_of(task));
        let mut prepared = Time::ZERO;
        let mut effects = std::mem::take(&mut self.effects);
        let mut asleep = false;
        if let Some((disk, stalled)) = self.thread(task).stalled.take() {
            let thread = &mut self.threads[task.0 as usize];
            let queue = &mut self.disks[usize::from(disk)].queue;
            let plug = &mut thread.plugs[usize::from(disk)];
            asleep = queue.resume(stalled, core, Some(plug), cx.now(), &mut effects) != Submitted::Queued;
            prepared += self.apply(disk, &mut effects, cx);
        }
        while !asleep && let Some((disk, bio)) = self.thread(task).bios.pop_front() {
            let thread = &mut self.threads[task.0 as usize];
            let queue = &mut self.disks[usize::from(disk)].queue;
            let plug = &mut thread.plugs[usize::from(disk)];
            asleep = queue.submit(bio, core, task.0, Some(plug), cx.now(), &mut effects) != Submitted::Queued;
            prepared += self.apply(disk, &mut effects, cx);
        }
        self.effects = effects;
        if asleep || !self.thread(task).gathers {
            prepared += self.unplug(task, asleep, cx);
        }
        for disk in 0..self.disks.len() as u16 {
            self.arm_queue_timer(disk, cx);
        }
        let thread = self.thread(task);
        thread.waits_for_room = asleep;
        thread.prepared += prepared;
        if asleep {
            // What it did before it slept may have woken it already.
            if self.thread(task).stalled.is_none() {
                return self.wait_for(task, Wait::Room, Frame::Submit);
            }
            self.push(task, Frame::Submit);
        }
        Step::Again
    }

    /// What a thread has gathered becomes visible; the time of the driver for it.
    fn unplug(&mut self, task: Task, asleep: bool, cx: &mut impl Cx<Event, Out>) -> Time {
        let mut prepared = Time::ZERO;
        let mut effects = std::mem::take(&mut self.effects);
        for disk in 0..self.disks.len() as u16 {
            let plug = &mut self.threads[task.0 as usize].plugs[usize::from(disk)];
            self.disks[usize::from(disk)].queue.flush_plug(plug, asleep, cx.now(), &mut effects);
            prepared += self.apply(disk, &mut effects, cx);
        }
        self.effects = effects;
        prepared
    }

    /// A thread is about to sleep with requests that it gathers: they become visible (`sched_submit_work`). It pays for that when it wakes.
    pub(super) fn unplug_to_sleep(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) {
        let thread = self.thread(task);
        if !thread.gathers || thread.plugs.iter().all(Plug::is_empty) {
            return;
        }
        let prepared = self.unplug(task, true, cx);
        self.charge(task, prepared);
        for disk in 0..self.disks.len() as u16 {
            self.arm_queue_timer(disk, cx);
        }
    }

    /// Does what a call of a disk's queue has brought about; the time of the driver for it.
    pub(super) fn apply(&mut self, disk: u16, effects: &mut Effects, cx: &mut impl Cx<Event, Out>) -> Time {
        let mut at = Time::ZERO;
        while !(effects.issued.is_empty()
            && effects.done.is_empty()
            && effects.woken.is_empty()
            && effects.runs.is_empty())
        {
            for issued in effects.issued.drain(..) {
                // The driver prepares one command after the other.
                at += self.costs.request;
                let sent = self.sent.insert(Sent { disk, issued });
                cx.after(at, Event::Issue(sent));
            }
            for done in effects.done.drain(..) {
                self.ended(done.owner, done.status, cx);
            }
            for woken in effects.woken.drain(..) {
                let task = Task(woken.task);
                self.thread(task).stalled = Some((disk, woken.stalled));
                self.wake(task, cx);
            }
            let runs = std::mem::take(&mut effects.runs);
            for run in &runs {
                if run.later {
                    cx.after(Time::ZERO, Event::Run(name(disk, run.hctx)));
                } else {
                    self.disks[usize::from(disk)].queue.dispatch(run.hctx, cx.now(), effects);
                }
            }
        }
        at
    }

    /// A command goes to its drive.
    pub(super) fn issue(&mut self, sent: u32, cx: &mut impl Cx<Event, Out>) {
        let Sent { disk, issued } = self.sent[sent];
        let command = Command {
            fua: issued.fua,
            queue: issued.hctx,
            announced: issued.announced,
            ..Command::new(sent, issued.op, issued.offset, u64::from(issued.bytes))
        };
        cx.emit(Out::Submit { disk, command });
    }

    /// A hardware queue is run by the kernel's worker.
    pub(super) fn run_queue(&mut self, named: u32, cx: &mut impl Cx<Event, Out>) {
        let (disk, hctx) = vector(named);
        let mut effects = std::mem::take(&mut self.effects);
        self.disks[usize::from(disk)].queue.dispatch(hctx, cx.now(), &mut effects);
        self.apply(disk, &mut effects, cx);
        self.effects = effects;
    }

    /// A drive has done a command.
    pub fn completed(&mut self, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        let Sent { disk, issued } = self.sent[completion.tag];
        self.sent.remove(completion.tag);
        let vector = &mut self.disks[usize::from(disk)].vectors[usize::from(issued.hctx)];
        vector.pending.push((issued, completion));
        if vector.active {
            return;
        }
        if self.disks[usize::from(disk)].queue.is_polled(issued.hctx) {
            return self.seen(disk, issued.hctx, cx);
        }
        let vector = &self.disks[usize::from(disk)].vectors[usize::from(issued.hctx)];
        let named = name(disk, issued.hctx);
        if self.coalescing.0 <= 1 || vector.pending.len() >= usize::from(self.coalescing.0) {
            self.interrupt(named, cx);
        } else if vector.pending.len() == 1 {
            cx.after(self.coalescing.1, Event::Coalesced(named));
        }
    }

    /// Completions have waited for others as long as they may.
    pub(super) fn coalesced(&mut self, named: u32, cx: &mut impl Cx<Event, Out>) {
        let (disk, hctx) = vector(named);
        let vector = &self.disks[usize::from(disk)].vectors[usize::from(hctx)];
        if !vector.active && !vector.pending.is_empty() {
            self.interrupt(named, cx);
        }
    }

    /// A drive interrupts the core of a queue.
    fn interrupt(&mut self, named: u32, cx: &mut impl Cx<Event, Out>) {
        let (disk, hctx) = vector(named);
        self.disks[usize::from(disk)].vectors[usize::from(hctx)].active = true;
        self.stats.interrupts += 1;
        let core = self.disks[usize::from(disk)].queue.map().cores_of(hctx).start;
        let delay = self.cores.interrupt(core, self.costs.interrupt, &mut Inside::of(cx));
        cx.after(delay, Event::Interrupted(named));
    }

    /// The handler takes what is there (`nvme_poll_cq`).
    pub(super) fn interrupted(&mut self, named: u32, cx: &mut impl Cx<Event, Out>) {
        let (disk, hctx) = vector(named);
        let at = &mut self.disks[usize::from(disk)];
        let core = at.queue.map().cores_of(hctx).start;
        let cost = at.vectors[usize::from(hctx)].take(&self.costs);
        let delay = self.cores.interrupt(core, cost, &mut Inside::of(cx));
        cx.after(delay, Event::Handled(named));
    }

    /// The handler has done what it had taken, and looks for more.
    pub(super) fn handled(&mut self, named: u32, cx: &mut impl Cx<Event, Out>) {
        let (disk, hctx) = vector(named);
        let vector = &mut self.disks[usize::from(disk)].vectors[usize::from(hctx)];
        vector.active = !vector.pending.is_empty();
        if vector.active {
            cx.after(Time::ZERO, Event::Interrupted(named));
        }
        self.end_batch(disk, hctx, cx);
    }

    /// What a handler, or a thread that polls, has taken from a queue ends.
    pub(super) fn end_batch(&mut self, disk: u16, hctx: u16, cx: &mut impl Cx<Event, Out>) {
        let mut batch = std::mem::take(&mut self.disks[usize::from(disk)].vectors[usize::from(hctx)].batch);
        let mut effects = std::mem::take(&mut self.effects);
        for (issued, completion) in batch.drain(..) {
            self.buffer_says(disk, completion.buffer, cx);
            self.disks[usize::from(disk)].queue.complete(
                hctx,
                issued.tag,
                completion.status,
                cx.now(),
                &mut effects,
            );
            self.apply(disk, &mut effects, cx);
        }
        self.effects = effects;
        self.disks[usize::from(disk)].vectors[usize::from(hctx)].batch = batch;
        self.arm_queue_timer(disk, cx);
    }

    /// Completions of a disk that say that it has room, and that it is full, and that no handler has looked at.
    #[cfg(any(test, feature = "soak"))]
    pub(super) fn waiting(&self, disk: u16) -> [u64; 2] {
        let vectors = &self.disks[usize::from(disk)].vectors;
        let waiting = vectors.iter().flat_map(|vector| vector.pending.iter().chain(&vector.batch));
        waiting.fold([0; 2], |[room, full], (_, completion)| match completion.buffer {
            proto::BufferState::Unknown => [room, full],
            proto::BufferState::Room => [room + 1, full],
            proto::BufferState::Full => [room, full + 1],
        })
    }

    /// A scheduler's timer, or that of throttling.
    pub(super) fn queue_timer(&mut self, disk: u16, cx: &mut impl Cx<Event, Out>) {
        self.disks[usize::from(disk)].timer = None;
        let mut effects = std::mem::take(&mut self.effects);
        self.disks[usize::from(disk)].queue.timer(cx.now(), &mut effects);
        self.apply(disk, &mut effects, cx);
        self.effects = effects;
        self.arm_queue_timer(disk, cx);
    }

    fn arm_queue_timer(&mut self, disk: u16, cx: &mut impl Cx<Event, Out>) {
        let at = &mut self.disks[usize::from(disk)];
        if at.timer.is_none()
            && let Some(due) = at.queue.next_timer()
        {
            at.timer = Some(due);
            cx.after(due.since(cx.now()), Event::QueueTimer(disk));
        }
    }

    /// A bio has ended.
    fn ended(&mut self, owner: u32, status: Status, cx: &mut impl Cx<Event, Out>) {
        let io = self.ios[owner];
        self.ios.remove(owner);
        self.stats.errors += u64::from(status != Status::Success);
        match io {
            Io::Read { inode, page, pages } if status == Status::Success => {
                self.filled(inode, page, u64::from(pages));
            }
            Io::Read { inode, page, pages } => self.unfilled(inode, page, u64::from(pages)),
            Io::Write { inode, page, pages, io_end } => {
                self.note_written(inode, page, u64::from(pages), status, io_end, cx);
            }
            Io::Home { disk, block } => self.home_written(disk, block, cx.now()),
            Io::Dio(dio) => self.dio_ended(dio, status, cx),
            Io::Counted(counter) => {
                let counter = &mut self.waits.counters[counter];
                counter.left -= 1;
                counter.failed |= status != Status::Success;
                if counter.left == 0 {
                    let (waiter, log) = (counter.waiter.take(), counter.log);
                    if let Some((disk, tid)) = counter.commit.filter(|_| !counter.failed) {
                        self.disks[usize::from(disk)].committed = tid;
                    }
                    self.log_written(log);
                    waiter.into_iter().for_each(|task| self.wake(task, cx));
                }
            }
        }
        self.wake_woken(cx);
    }

    /// Waits for all bios of a count.
    pub(super) fn count(&mut self, task: Task, counter: u32) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Count(counter));
        }
        if self.waits.counters[counter].left == 0 {
            if self.waits.counters[counter].failed {
                self.fail(task, CallError::Io);
            }
            self.waits.counters.remove(counter);
            return Step::Again;
        }
        self.wait_for(task, Wait::Count(counter), Frame::Count(counter))
    }

    /// Those who wait for a page look again.
    pub(super) fn changed(&mut self, folio: Folio) {
        self.waits.folio_changed(folio, &mut self.woken);
    }
}

// Orders of programs to coprocessors: a call of the driver, sleep, an interrupt.
//
// The driver's steps cost what those of a drive's driver cost (`CostsSpec`): the call and the request before the device hears of it, the
// interrupt and the completion after it is done, on the core that the thread slept on. What the device itself needs is the device's.

/// An order at a coprocessor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered {
    /// The thread that sleeps until it is done.
    task: Task,
    /// Whether it is, as far as the kernel knows.
    pub(super) done: bool,
}

impl<P: Program> Host<P> {
    /// A thread that has paid for the driver's work gives a coprocessor an order.
    pub(super) fn order(
        &mut self,
        task: Task,
        device: u16,
        order: Order,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Order { device, order });
        }
        let tag = self.orders.insert(Ordered { task, done: false });
        cx.emit(Out::Order { tag, device, order });
        self.wait_for(task, Wait::Order(tag), Frame::Ordered(tag))
    }

    /// A coprocessor has done an order, and interrupts.
    pub fn ordered(&mut self, tag: u32, cx: &mut impl Cx<Event, Out>) {
        let core = self.cores.core_of(self.orders[tag].task);
        let cost = self.costs.interrupt + self.costs.complete;
        let delay = self.cores.interrupt(core, cost, &mut Inside::of(cx));
        cx.after(delay, Event::Ordered(tag));
    }

    /// The handler of the interrupt wakes who waits.
    pub(super) fn order_ended(&mut self, tag: u32, cx: &mut impl Cx<Event, Out>) {
        self.stats.orders += 1;
        let at = &mut self.orders[tag];
        at.done = true;
        let task = at.task;
        self.wake(task, cx);
    }

    /// A thread looks whether its order is done.
    pub(super) fn wait_order(&mut self, task: Task, tag: u32) -> Step {
        if !self.orders[tag].done {
            return self.wait_for(task, Wait::Order(tag), Frame::Ordered(tag));
        }
        self.orders.remove(tag);
        Step::Again
    }
}
