//! Driver between block layer and drive: commands, interrupts, completions of bios. Orders to coprocessors take the
//! same path.

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

/// Command at a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) disk: u16,
    issued: Issued,
}

/// Interrupt vector of a hardware queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Vector {
    /// Completions not yet taken by a handler.
    pending: Vec<(Issued, Completion)>,
    /// Completions being handled.
    batch: Vec<(Issued, Completion)>,
    /// True if a handler is at work or scheduled, or a polling thread is at work.
    pub(super) active: bool,
}

impl Vector {
    /// Returns whether the vector has no work.
    pub(super) fn is_idle(&self) -> bool {
        !self.active && self.pending.is_empty() && self.batch.is_empty()
    }

    /// Returns whether completions are pending without a handler.
    pub(super) fn has_more(&self) -> bool {
        !self.active && !self.pending.is_empty()
    }

    /// Number of completions being handled.
    pub(super) fn taken(&self) -> u64 {
        self.batch.len() as u64
    }

    /// Takes the pending completions (`nvme_poll_cq`); returns their cost.
    pub(super) fn take(&mut self, costs: &Costs) -> Time {
        std::mem::swap(&mut self.pending, &mut self.batch);
        let pages = self.batch.iter().map(|(issued, _)| u64::from(issued.bytes).div_ceil(PAGE)).sum();
        costs.complete.times(self.batch.len() as u64) + costs.end_page.times(pages)
    }
}

/// Number of a vector in events.
fn name(disk: u16, hctx: u16) -> u32 {
    u32::from(disk) << 16 | u32::from(hctx)
}

fn vector(name: u32) -> (u16, u16) {
    ((name >> 16) as u16, name as u16)
}

use proto::file::{CallError, Program};

impl<P: Program> Host<P> {
    /// Submits a thread's bios, and flushes its plug; the thread sleeps if the block layer has no room.
    pub(super) fn submit(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Submit);
        }
        if self.thread(task).waits_for_room && self.thread(task).stalled.is_none() {
            // Woken for a different reason: its bio still waits (the loop of `blk_mq_get_tag`).
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
            // The thread's own work before its sleep may have woken it already.
            if self.thread(task).stalled.is_none() {
                return self.wait_for(task, Wait::Room, Frame::Submit);
            }
            self.push(task, Frame::Submit);
        }
        Step::Again
    }

    /// Flushes a thread's plug; returns the driver's time for it.
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

    /// Flushes the plug of a thread that is about to sleep (`sched_submit_work`). The thread pays for it when it wakes.
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

    /// Carries out the effects of a call of a disk's queue; returns the driver's time for them.
    pub(super) fn apply(&mut self, disk: u16, effects: &mut Effects, cx: &mut impl Cx<Event, Out>) -> Time {
        let mut at = Time::ZERO;
        while !(effects.issued.is_empty()
            && effects.done.is_empty()
            && effects.woken.is_empty()
            && effects.runs.is_empty())
        {
            for issued in effects.issued.drain(..) {
                // The driver prepares one command after another.
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

    /// Sends a command to its drive.
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

    /// Runs a hardware queue in the kernel's worker.
    pub(super) fn run_queue(&mut self, named: u32, cx: &mut impl Cx<Event, Out>) {
        let (disk, hctx) = vector(named);
        let mut effects = std::mem::take(&mut self.effects);
        self.disks[usize::from(disk)].queue.dispatch(hctx, cx.now(), &mut effects);
        self.apply(disk, &mut effects, cx);
        self.effects = effects;
    }

    /// Handles a command's completion by a drive.
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

    /// Interrupts after the coalescing time of a vector has passed.
    pub(super) fn coalesced(&mut self, named: u32, cx: &mut impl Cx<Event, Out>) {
        let (disk, hctx) = vector(named);
        let vector = &self.disks[usize::from(disk)].vectors[usize::from(hctx)];
        if !vector.active && !vector.pending.is_empty() {
            self.interrupt(named, cx);
        }
    }

    /// Interrupts the core of a queue.
    fn interrupt(&mut self, named: u32, cx: &mut impl Cx<Event, Out>) {
        let (disk, hctx) = vector(named);
        self.disks[usize::from(disk)].vectors[usize::from(hctx)].active = true;
        self.stats.interrupts += 1;
        let core = self.disks[usize::from(disk)].queue.map().cores_of(hctx).start;
        let delay = self.cores.interrupt(core, self.costs.interrupt, &mut Inside::of(cx));
        cx.after(delay, Event::Interrupted(named));
    }

    /// Runs the handler, which takes the pending completions (`nvme_poll_cq`).
    pub(super) fn interrupted(&mut self, named: u32, cx: &mut impl Cx<Event, Out>) {
        let (disk, hctx) = vector(named);
        let at = &mut self.disks[usize::from(disk)];
        let core = at.queue.map().cores_of(hctx).start;
        let cost = at.vectors[usize::from(hctx)].take(&self.costs);
        let delay = self.cores.interrupt(core, cost, &mut Inside::of(cx));
        cx.after(delay, Event::Handled(named));
    }

    /// Ends the handler's batch, and checks for more.
    pub(super) fn handled(&mut self, named: u32, cx: &mut impl Cx<Event, Out>) {
        let (disk, hctx) = vector(named);
        let vector = &mut self.disks[usize::from(disk)].vectors[usize::from(hctx)];
        vector.active = !vector.pending.is_empty();
        if vector.active {
            cx.after(Time::ZERO, Event::Interrupted(named));
        }
        self.end_batch(disk, hctx, cx);
    }

    /// Ends the requests that a handler or a polling thread has taken from a queue.
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

    /// Completions of a disk not yet handled, by reported buffer state: room, full.
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

    /// Runs the timer of a disk's scheduler or throttling.
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

    /// Handles the end of a bio.
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

    /// Waits for all bios of a counter.
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

    /// Wakes the threads that wait for a page.
    pub(super) fn changed(&mut self, folio: Folio) {
        self.waits.folio_changed(folio, &mut self.woken);
    }
}

// Orders of programs to coprocessors: a driver call, a sleep, an interrupt.
//
// The driver's steps cost the same as those of a drive's driver (`CostsSpec`): the call and the request before the
// device receives the order, the interrupt and the completion after it is done, on the core where the thread slept. The
// device's own time is modelled in the device.

/// Order at a coprocessor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered {
    /// Thread that sleeps until the order is done.
    task: Task,
    /// True if the kernel has learned that the order is done.
    pub(super) done: bool,
}

impl<P: Program> Host<P> {
    /// Sends an order to a coprocessor, for a thread that has paid for the driver's work.
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

    /// Handles a coprocessor's completion interrupt.
    pub fn ordered(&mut self, tag: u32, cx: &mut impl Cx<Event, Out>) {
        let core = self.cores.core_of(self.orders[tag].task);
        let cost = self.costs.interrupt + self.costs.complete;
        let delay = self.cores.interrupt(core, cost, &mut Inside::of(cx));
        cx.after(delay, Event::Ordered(tag));
    }

    /// Ends an order in the interrupt handler, and wakes its thread.
    pub(super) fn order_ended(&mut self, tag: u32, cx: &mut impl Cx<Event, Out>) {
        self.stats.orders += 1;
        let at = &mut self.orders[tag];
        at.done = true;
        let task = at.task;
        self.wake(task, cx);
    }

    /// Checks whether a thread's order is done, and waits otherwise.
    pub(super) fn wait_order(&mut self, task: Task, tag: u32) -> Step {
        if !self.orders[tag].done {
            return self.wait_for(task, Wait::Order(tag), Frame::Ordered(tag));
        }
        self.orders.remove(tag);
        Step::Again
    }
}
