//! The driver's threads: what they do next, and how long it takes.

use super::{Event, Out, Paging, Phase};
use engine::resource::Serial;
use engine::{Cx, Time};
use proto::{Command, IoOp};
use std::collections::VecDeque;

/// A thread of the driver.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub(super) cpu: Serial,
    state: State,
    /// Faults of its batch that it has not handled yet.
    batch: VecDeque<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Asleep,
    /// An interrupt is on its way.
    Called,
    At(Work),
}

/// A piece of a thread's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// A fault of its batch, up to the command to the SSD.
    Fault(u32),
    /// Copies of data from the SSD.
    CopyIn(u32),
    /// Copies of data for the SSD, and the command.
    CopyOut(u32),
}

impl Paging {
    /// A fault enters the fault buffer.
    pub(super) fn report(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        self.buffer.push_back(job);
        self.call(cx);
    }

    /// Calls sleeping threads until there is one for each batch that the buffer holds.
    fn call(&mut self, cx: &mut impl Cx<Event, Out>) {
        while self.called * self.batch < self.buffer.len() {
            let asleep = self.threads.iter().position(|thread| thread.state == State::Asleep);
            let Some(thread) = asleep else { return };
            self.threads[thread].state = State::Called;
            self.called += 1;
            self.stats.interrupts += 1;
            cx.after(self.interrupt, Event::Woken(thread as u32));
        }
    }

    pub(super) fn woken(&mut self, thread: usize, cx: &mut impl Cx<Event, Out>) {
        self.called -= 1;
        self.next(thread, cx);
        // It may have found data to copy first.
        self.call(cx);
    }

    /// Data are to be copied: by a thread that sleeps, or by the first that is done.
    pub(super) fn copy(&mut self, work: Work, cx: &mut impl Cx<Event, Out>) {
        self.copying.push_back(work);
        let asleep = self.threads.iter().position(|thread| thread.state == State::Asleep);
        if let Some(thread) = asleep {
            self.next(thread, cx);
        }
    }

    /// A thread takes its next piece of work, or sleeps.
    fn next(&mut self, thread: usize, cx: &mut impl Cx<Event, Out>) {
        let mut extra = Time::ZERO;
        let work = self.copying.pop_front().or_else(|| {
            let own = &mut self.threads[thread].batch;
            if own.is_empty() && !self.buffer.is_empty() {
                let taken = self.buffer.len().min(self.batch);
                own.extend(self.buffer.drain(..taken));
                self.stats.batches += 1;
                extra = self.batch_time;
            }
            own.pop_front().map(Work::Fault)
        });
        let Some(work) = work else {
            self.threads[thread].state = State::Asleep;
            return;
        };
        let time = extra + self.time_of(work);
        let thread_state = &mut self.threads[thread];
        thread_state.state = State::At(work);
        let end = thread_state.cpu.grant(cx.now(), time);
        cx.after(end - cx.now(), Event::Worked(thread as u32));
    }

    fn time_of(&self, work: Work) -> Time {
        let copies = |job: u32| {
            let (_, bytes) = self.bytes_of(self.jobs[job].granule);
            Time::transfer(bytes, self.copy_rate).times(self.copies)
        };
        match work {
            Work::Fault(_) => self.fault_time,
            Work::CopyIn(job) => self.complete + copies(job),
            Work::CopyOut(job) => copies(job) + self.submit,
        }
    }

    pub(super) fn worked(&mut self, thread: usize, cx: &mut impl Cx<Event, Out>) {
        let State::At(work) = self.threads[thread].state else { unreachable!("a thread ends what it began") };
        match work {
            Work::Fault(job) => {
                self.jobs[job].phase = Phase::Reading;
                self.stats.reads += 1;
                self.command(job, IoOp::Read, cx);
            }
            Work::CopyIn(job) => self.move_in(job, cx),
            Work::CopyOut(job) => {
                self.stats.writes += 1;
                self.command(job, IoOp::Write, cx);
            }
        }
        self.next(thread, cx);
    }

    fn command(&mut self, job: u32, op: IoOp, cx: &mut impl Cx<Event, Out>) {
        let granule = self.jobs[job].granule;
        let (offset, bytes) = self.bytes_of(granule);
        let command = Command { flow: granule.app.into(), ..Command::new(job, op, offset, bytes) };
        cx.emit(Out::Submit(command));
    }
}
