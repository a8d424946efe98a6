//! Threads of a host: each is a stack of frames, and runs one step after another until it must be on its core or sleep.

use super::wait::Wait;
use super::{Event, Host, Out, frame::Frame};
use crate::pagecache::ScanControl;
use crate::writeback::Dirtier;
use crate::{
    block::{Bio, Plug, Stalled},
    tasks::{Mode, Task},
};
use engine::{Cx, Inside, Time};
use proto::file::{CallError, Next, Program};
use std::collections::VecDeque;

/// Thread of a program or of the kernel.
pub(super) struct Thread {
    /// Current frames; the last one is the innermost.
    pub(super) frames: Vec<Frame>,
    /// Kernel core time that it owes.
    pub(super) owed: Time,
    /// Time at which it wants to be woken.
    pub(super) alarm: Option<Time>,
    /// Event that it also sleeps for.
    pub(super) wait: Option<Wait>,
    /// Plugs with its unflushed requests, by disk.
    pub(super) plugs: Vec<Plug>,
    /// True if the thread holds its plugs until it has submitted all requests of its call.
    pub(super) gathers: bool,
    /// Bio that it could not submit for lack of room, and its disk.
    pub(super) stalled: Option<(u16, Stalled)>,
    /// True while a bio of the thread waits in the block layer, which must be submitted first.
    pub(super) waits_for_room: bool,
    /// Pages that it has dirtied.
    pub(super) dirtier: Dirtier,
    /// End of its dirtying pause.
    pub(super) pause: Option<Time>,
    /// Reclaim in progress.
    pub(super) scan: Option<ScanControl>,
    /// Pages submitted since it was told to write some, the position where it goes on, and the number it may still
    /// write.
    pub(super) submitted: u64,
    pub(super) next_page: u64,
    pub(super) left: u64,
    /// Pages of the victimization that its next bio announces.
    pub(super) announced: u32,
    /// Bios that it is about to submit, each with its disk.
    pub(super) bios: VecDeque<(u16, Bio)>,
    /// Failure of its call.
    pub(super) failed: Option<CallError>,
    /// Core time that it had had at its program's last notification.
    pub(super) told: Time,
    /// Driver time for its submissions, if it is to pay for it.
    pub(super) prepared: Time,
    /// Core under which it submits: that of the queue that it polls.
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

/// Action of a thread after a step of its innermost frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Continues at once.
    Again,
    /// Spends its owed time on its core, then continues.
    Pay,
    /// Computes.
    Compute(Time),
    /// Polls for completions until one comes, or its tick is over.
    Spin,
    /// Sleeps until it is woken. It must owe no time.
    Sleep,
    /// Ends.
    End,
}

// Execution of threads: one step after another, until they must be on their core or sleep.

impl<P: Program> Host<P> {
    /// Resumes a thread that is on its core and has had its requested time.
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
                    debug_assert!(self.thread(task).owed == Time::ZERO, "a thread sleeps but owes time");
                    self.unplug_to_sleep(task, cx);
                    return self.cores.sleep(task, &mut Inside::of(cx));
                }
                Step::End => return self.cores.end(task, &mut Inside::of(cx)),
            }
        }
    }

    /// Runs the next step of a thread's innermost frame.
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

    /// Pushes a frame to return to after the thread's next step.
    pub(super) fn push(&mut self, task: Task, frame: Frame) {
        self.thread(task).frames.push(frame);
    }

    /// Charges a thread kernel time.
    pub(super) fn charge(&mut self, task: Task, cost: Time) {
        self.thread(task).owed += cost;
    }

    /// Continues a thread with a frame once it has spent its owed time on its core.
    pub(super) fn pay_then(&mut self, task: Task, frame: Frame) -> Step {
        self.push(task, frame);
        Step::Pay
    }

    pub(super) fn owes(&mut self, task: Task) -> bool {
        self.thread(task).owed > Time::ZERO
    }

    /// Puts a thread to sleep for a time, unless it is woken earlier.
    pub(super) fn sleep_for(&mut self, task: Task, time: Time, cx: &mut impl Cx<Event, Out>) -> Step {
        self.thread(task).alarm = Some(cx.now() + time);
        cx.after(time, Event::Alarm(task.0));
        Step::Sleep
    }

    /// Handles a thread's alarm, if it has expired.
    pub(super) fn alarm(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) {
        if self.thread(task).alarm == Some(cx.now()) {
            self.wake(task, cx);
        }
    }

    /// Wakes a thread, which checks again for the condition that it waited for.
    pub(super) fn wake(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) {
        if !self.cores.sleeps(task) {
            return;
        }
        let thread = self.thread(task);
        (thread.alarm, thread.wait) = (None, None);
        self.cores.wake(task, Time::ZERO, Mode::System, &mut Inside::of(cx));
    }

    /// Wakes the threads that are due to be woken.
    pub(super) fn wake_woken(&mut self, cx: &mut impl Cx<Event, Out>) {
        let mut woken = std::mem::take(&mut self.woken);
        for task in woken.drain(..) {
            self.wake(task, cx);
        }
        self.woken = woken;
    }

    /// Starts the next action of a program's thread.
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
