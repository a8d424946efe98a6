//! Kernel on each core: its pieces of work, one after the other.

use super::{Event, Job, Out, Phase, Place, Swap, SwapBacking};
use engine::{Cx, List, Mutant, planted_nth};
use proto::memory::PAGE;
use proto::{Command, IoOp};
use std::collections::VecDeque;

/// Work of the kernel on a core, up to the named end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// A fault for a page that is under way.
    Joined,
    /// A fault, up to its command.
    Fault(u32),
    /// The command that reads a page.
    Read(u32),
    /// The choice of a victim page.
    Select,
    /// The victim's entry in the page table.
    Unmap(u32),
    /// The victim's translations in the TLBs.
    Shoot(u32),
    /// The command that writes the victim.
    Write(u32),
    /// The interrupt for a page that was read.
    Came(u32),
    /// The page table entry of a page that was read.
    Map(u32),
    /// The interrupt for a page that was written.
    Stored(u32),
}

/// Kernel on one core.
#[derive(Clone, Debug, Default)]
pub(super) struct Kernel {
    at: Option<Work>,
    queue: VecDeque<Work>,
}

impl Kernel {
    pub(super) fn outstanding(&self) -> usize {
        self.queue.len() + usize::from(self.at.is_some())
    }
}

impl Swap {
    /// Adds work for the kernel of a core from outside.
    pub(super) fn enqueue(&mut self, core: u16, work: Work, cx: &mut impl Cx<Event, Out>) {
        let kernel = &mut self.kernels[usize::from(core)];
        if kernel.at.is_some() {
            kernel.queue.push_back(work);
        } else {
            self.begin(core, work, cx);
        }
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        let core = match event {
            Event::Worked(core) => core,
            Event::Moved(job) => return self.moved(job, cx),
        };
        let kernel = &mut self.kernels[usize::from(core)];
        let done = kernel.at.take().expect("a kernel that works");
        let next = self.ended(core, done, cx);
        let next = next.or_else(|| self.kernels[usize::from(core)].queue.pop_front());
        if let Some(next) = next {
            self.begin(core, next, cx);
        }
    }

    fn begin(&mut self, core: u16, work: Work, cx: &mut impl Cx<Event, Out>) {
        let times = self.times;
        let time = match work {
            Work::Joined | Work::Fault(_) => times.fault,
            Work::Read(_) | Work::Write(_) => times.submit,
            Work::Select => times.select,
            Work::Came(_) | Work::Stored(_) => times.complete,
            Work::Unmap(_) | Work::Map(_) => {
                let end = self.lock.grant(cx.now(), times.lock) - cx.now();
                self.stats.spinning += end - times.lock;
                end
            }
            Work::Shoot(_) => {
                self.interrupt_others(core, cx);
                times.shootdown
            }
        };
        self.kernels[usize::from(core)].at = Some(work);
        self.stats.kernel += time;
        cx.emit(Out::Interrupt { core, time });
        cx.after(time, Event::Worked(core));
    }

    fn interrupt_others(&mut self, core: u16, cx: &mut impl Cx<Event, Out>) {
        let time = self.times.respond;
        self.stats.shootdowns += 1;
        self.stats.shooting += self.times.shootdown;
        for other in (0..self.kernels.len() as u16).filter(|other| *other != core) {
            self.stats.kernel += time;
            self.stats.shooting += time;
            cx.emit(Out::Interrupt { core: other, time });
        }
    }

    /// Handles a finished piece of work; returns the work that follows at once on the same core.
    fn ended(&mut self, core: u16, work: Work, cx: &mut impl Cx<Event, Out>) -> Option<Work> {
        match work {
            Work::Joined => None,
            Work::Fault(job) => self.read(job).or_else(|| self.reclaim()),
            Work::Read(job) => {
                self.command(job, IoOp::Read, cx);
                self.reclaim()
            }
            Work::Select => self.selected(core),
            Work::Unmap(job) => Some(Work::Shoot(job)),
            Work::Shoot(job) => self.shot(job, cx),
            Work::Write(job) => {
                self.stats.write_backs += 1;
                self.command(job, IoOp::Write, cx);
                None
            }
            Work::Came(job) => Some(Work::Map(job)),
            Work::Map(job) => {
                self.mapped(job, cx);
                self.reclaim()
            }
            Work::Stored(job) => {
                self.ledger.stored += 1;
                self.left(job)
            }
        }
    }

    /// Reads a page as soon as there is a frame for it.
    fn read(&mut self, job: u32) -> Option<Work> {
        self.jobs[job].frame = self.frames.take();
        if self.jobs[job].frame.is_none() {
            self.stats.starved += 1;
            self.without_frame.push_back(job);
            return None;
        }
        Some(Work::Read(job))
    }

    /// Chooses a further victim if the evictions under way make too little room.
    fn reclaim(&mut self) -> Option<Work> {
        let wanted = self.keep + self.without_frame.len();
        (self.frames.free() + self.leaving < wanted && self.frames.mapped() > 0).then_some(Work::Select)
    }

    fn selected(&mut self, core: u16) -> Option<Work> {
        let (frame, page) = self.frames.victim()?;
        self.stats.evictions += 1;
        self.leaving += 1;
        let job = Job { page, phase: Phase::Leaving, core, frame: Some(frame), waiting: List::EMPTY };
        let job = self.jobs.insert(job);
        self.at.insert(page, Place::Busy(job));
        Some(Work::Unmap(job))
    }

    /// Continues after no core has the translation of a page any more.
    fn shot(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) -> Option<Work> {
        let Job { page, frame, .. } = self.jobs[job];
        cx.emit(Out::Evict { page });
        let changed = frame.is_some_and(|frame| self.frames.is_dirty(frame));
        if changed && !planted_nth(Mutant::DroppedFrame, 4) { Some(Work::Write(job)) } else { self.left(job) }
    }

    /// Handles a page that is in flash only. Its frame goes to the longest waiter; a fault for it may have arrived.
    fn left(&mut self, job: u32) -> Option<Work> {
        self.leaving -= 1;
        if let Some(frame) = self.jobs[job].frame.take() {
            self.frames.release(frame);
        }
        if self.jobs[job].waiting.is_empty() {
            self.at.remove(&self.jobs[job].page);
            self.jobs.remove(job);
        } else {
            self.stats.faults += 1;
            self.jobs[job].phase = Phase::Coming;
            self.without_frame.push_back(job);
        }
        let next = self.without_frame.pop_front()?;
        self.jobs[next].frame = self.frames.take();
        if self.jobs[next].frame.is_none() {
            self.without_frame.push_front(next);
            return self.reclaim();
        }
        Some(Work::Read(next))
    }

    fn mapped(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        let Job { page, frame, waiting, .. } = self.jobs[job];
        let Some(frame) = frame else { return };
        self.stats.mapped += 1;
        self.jobs.remove(job);
        self.frames.map(frame, page);
        self.at.insert(page, Place::Mapped(frame));
        self.tell(waiting, frame, cx);
    }

    fn command(&self, job: u32, op: IoOp, cx: &mut impl Cx<Event, Out>) {
        match &self.backing {
            SwapBacking::device => {
                cx.emit(Out::Submit(Command::new(job, op, self.jobs[job].page * PAGE, PAGE)));
            }
            SwapBacking::fixed(times) => {
                let time = if op == IoOp::Read { times.read } else { times.write };
                cx.after(time.time(), Event::Moved(job));
            }
        }
    }
}
