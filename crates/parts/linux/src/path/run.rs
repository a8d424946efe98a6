//! Threads run: one step after another, until they must be on their core or sleep.

use super::frame::Frame;
use super::thread::Step;
use super::{Event, Host, Out};
use crate::tasks::{Mode, Task};
use engine::{Cx, Inside, Time};
use proto::file::Next;

use proto::file::Program;

impl<P: Program> Host<P> {
    /// A thread is on its core and has had what it asked for.
    pub(super) fn resume(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) {
        loop {
            let step = self.step(task, cx);
            self.wake_woken(cx);
            match step {
                Step::Again => {}
                Step::Pay => {
                    let owed = std::mem::take(&mut self.thread(task).owed);
                    if owed > Time::ZERO {
                        return self.cores.run(task, owed, Mode::System, &mut Inside::of(cx));
                    }
                }
                Step::Compute(time) => {
                    return self.cores.run(task, time, Mode::User, &mut Inside::of(cx));
                }
                Step::Spin => {
                    let burst = self.tick;
                    return self.cores.run(task, burst, Mode::System, &mut Inside::of(cx));
                }
                Step::Sleep => {
                    debug_assert!(self.thread(task).owed == Time::ZERO, "it sleeps before it has paid");
                    self.unplug_to_sleep(task, cx);
                    return self.cores.sleep(task, &mut Inside::of(cx));
                }
                Step::End => return self.cores.end(task, &mut Inside::of(cx)),
            }
        }
    }

    /// The next step of a thread's innermost frame.
    fn step(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) -> Step {
        let Some(frame) = self.thread(task).frames.pop() else { return Step::End };
        match frame {
            Frame::Program { program, thread } => self.program(task, program, thread, cx),
            Frame::Flow(flow) => self.flow(task, flow),
            Frame::Answer(flow) => self.answer(task, flow, cx),
            Frame::Answered(flow, op, completion) => self.answered(task, flow, (op, completion), cx),
            Frame::Reap(flow) => self.reap(flow, cx),
            Frame::Poll(flow) => self.poll(task, flow),
            Frame::Polled(flow) => self.polled(task, flow, cx),
            Frame::Worker(flow) => self.worker(task, flow),
            Frame::Worked(flow, completion) => self.worked(task, flow, completion, cx),
            Frame::Call(program, call) => self.call(task, program, call),
            Frame::Order { device, order } => self.order(task, device, order, cx),
            Frame::Ordered(tag) => self.wait_order(task, tag),
            Frame::Read(access) => self.read(task, access),
            Frame::Write(access) => self.write(task, access, cx),
            Frame::Touch { access, write } => self.touch(task, access, write, cx),
            Frame::Mapped { access, write } => self.mapped(task, access, write),
            Frame::Direct { access, write, dio } => self.direct(task, access, write, dio, cx),
            Frame::Submitted(dio) => self.submitted(task, dio, cx),
            Frame::Finish(disk) => self.finish(task, disk),
            Frame::Finished(dio) => self.finished(task, dio, cx),
            Frame::DirectWritten(access) => self.direct_written(task, access, cx),
            Frame::Balance(disk) => self.balance(task, disk, cx),
            Frame::Lock(inode) => self.lock(task, inode),
            Frame::LockDirect { access, write, waited } => self.lock_direct(task, access, write, waited, cx),
            Frame::Unlock(inode) => self.unlock(inode, cx),
            Frame::Submit => self.submit(task, cx),
            Frame::Count(counter) => self.count(task, counter),
            Frame::Range(range) => self.range(task, range, cx),
            Frame::Forget(range) => self.forget(task, range),
            Frame::WaitRange(range) => self.wait_range(task, range),
            Frame::BeginWritepages(range) => self.begin_writepages(task, range, cx),
            Frame::EndWritepages(disk) => self.end_writepages(disk, cx),
            Frame::Sync { file, data_only } => self.sync(task, file, data_only),
            Frame::Synced { disk, tid } => self.synced(task, disk, tid),
            Frame::SyncDisk(disk) => self.sync_disk(task, disk),
            Frame::WaitCommit { disk, tid } => self.wait_commit(task, disk, tid, cx),
            Frame::WaitLog(disk) => self.wait_log(task, disk),
            Frame::WriteHome { disk, inode, again } => self.write_homes(task, disk, inode, again, cx),
            Frame::WaitHome(disk) => self.wait_home(task, disk),
            Frame::Flush(disk) => self.flush(task, disk),
            Frame::Create(inode) => self.create(task, inode, cx),
            Frame::Resize(resize) => self.resize(task, resize, cx),
            Frame::Checkpoint(disk) => self.checkpoint(task, disk, cx),
            Frame::Superblock { disk, block, tail, tid, fua } => {
                self.superblock(task, (disk, block), tail, tid, fua)
            }
            Frame::TailWritten { disk, tail, tid, checkpoint } => {
                self.tail_written(disk, tail, tid, checkpoint)
            }
            Frame::Reclaim => self.reclaim(task, cx),
            Frame::Nap(time) => self.sleep_for(task, time, cx),
            Frame::Flusher(disk) => self.flusher(task, disk, cx),
            Frame::Flushed { disk, inode, from } => self.flushed(task, disk, inode, from, cx),
            Frame::Device { disk, from, pages } => self.write_device(task, disk, from, pages, cx),
            Frame::Journal(disk) => self.journal(task, disk, cx),
            Frame::Convert(disk) => self.convert(task, disk, cx),
            Frame::Kswapd => self.kswapd(task, cx),
        }
    }

    /// A thread returns to this frame after what it does next.
    pub(super) fn push(&mut self, task: Task, frame: Frame) {
        self.thread(task).frames.push(frame);
    }

    /// A thread has used the kernel for so long.
    pub(super) fn charge(&mut self, task: Task, cost: Time) {
        self.thread(task).owed += cost;
    }

    /// A thread goes on with a frame once it has been on its core for what it owes.
    pub(super) fn pay_then(&mut self, task: Task, frame: Frame) -> Step {
        self.push(task, frame);
        Step::Pay
    }

    pub(super) fn owes(&mut self, task: Task) -> bool {
        self.thread(task).owed > Time::ZERO
    }

    /// A thread sleeps for a time, if nobody wakes it before.
    pub(super) fn sleep_for(&mut self, task: Task, time: Time, cx: &mut impl Cx<Event, Out>) -> Step {
        self.thread(task).alarm = Some(cx.now() + time);
        cx.after(time, Event::Alarm(task.0));
        Step::Sleep
    }

    /// The time may be over for which a thread wanted to sleep.
    pub(super) fn alarm(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) {
        if self.thread(task).alarm == Some(cx.now()) {
            self.wake(task, cx);
        }
    }

    /// Wakes a thread, which looks again at what it waited for.
    pub(super) fn wake(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) {
        if !self.cores.sleeps(task) {
            return;
        }
        let thread = self.thread(task);
        (thread.alarm, thread.wait) = (None, None);
        self.cores.wake(task, Time::ZERO, Mode::System, &mut Inside::of(cx));
    }

    /// Wakes those who are to be woken.
    pub(super) fn wake_woken(&mut self, cx: &mut impl Cx<Event, Out>) {
        let mut woken = std::mem::take(&mut self.woken);
        for task in woken.drain(..) {
            self.wake(task, cx);
        }
        self.woken = woken;
    }

    /// What the thread of a program does next.
    fn program(&mut self, task: Task, program: u16, thread: u32, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Program { program, thread });
        }
        let now = cx.now();
        let failed = self.thread(task).failed.take();
        let ran = self.cores.ran(task);
        let core = ran - std::mem::replace(&mut self.thread(task).told, ran);
        let running = &mut self.programs[usize::from(program)];
        running.program.used(thread, core);
        if let Some(error) = failed {
            running.program.failed(thread, error);
        }
        let next = running.program.next(thread, now);
        if next == Next::End {
            running.left -= 1;
            let core = self.cores.core_of(task);
            self.writeback.exit(&self.threads[task.0 as usize].dirtier, core);
            return Step::End;
        }
        let first = running.first;
        self.push(task, Frame::Program { program, thread });
        match next {
            Next::Compute(time) => Step::Compute(time),
            Next::Call(call) => {
                self.charge(task, self.costs.call);
                self.push(task, Frame::Call(program, call));
                Step::Again
            }
            Next::Order { device, order } => {
                self.charge(task, self.costs.call + self.costs.request);
                self.push(task, Frame::Order { device, order });
                Step::Again
            }
            Next::Until(time) if time <= now => Step::Again,
            Next::Until(time) => self.sleep_for(task, time - now, cx),
            Next::Wait => Step::Sleep,
            Next::Wake(other) => {
                self.wake(Task(first + other), cx);
                Step::Again
            }
            Next::End => Step::End,
        }
    }
}
