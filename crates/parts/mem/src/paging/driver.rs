//! Threads of the driver: their next work, and its duration.

use super::{Event, Out, Paging, Phase};
use engine::resource::Serial;
use engine::{Cx, Time};
use proto::{Command, IoOp};
use stats::EnergyReport;
use std::collections::VecDeque;

/// Thread of the driver.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub(super) cpu: Serial,
    state: State,
    /// Faults of the batch not handled yet.
    batch: VecDeque<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Asleep,
    /// An interrupt is under way.
    Called,
    At(Work),
}

/// Piece of a thread's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// A fault of the batch, up to the command to the SSD.
    Fault(u32),
    /// Copies of data from the SSD.
    CopyIn(u32),
    /// Copies of data for the SSD, and the command.
    CopyOut(u32),
}

impl Paging {
    /// Adds a fault to the fault buffer.
    pub(super) fn report(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        self.buffer.push_back(job);
        self.call(cx);
    }

    /// Wakes sleeping threads until there is one for each batch in the buffer.
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
        // The thread may have found data to copy first.
        self.call(cx);
    }

    /// Queues a data copy: for a sleeping thread, or for the first that is done.
    pub(super) fn copy(&mut self, work: Work, cx: &mut impl Cx<Event, Out>) {
        self.copying.push_back(work);
        let asleep = self.threads.iter().position(|thread| thread.state == State::Asleep);
        if let Some(thread) = asleep {
            self.next(thread, cx);
        }
    }

    /// Gives a thread its next piece of work, or lets it sleep.
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

// Statistics of paging.

/// Statistics of one measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagingStats {
    /// Faults that went to the driver, each for a different granule.
    pub faults: u64,
    /// Faults that joined a granule under way.
    pub merged: u64,
    /// Faults for a granule that is already in the GPU's memory.
    pub present: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Batches.
    pub batches: u64,
    /// Granules read from the SSD.
    pub reads: u64,
    /// Granules written to the SSD.
    pub writes: u64,
    /// Granules mapped.
    pub mapped: u64,
    /// Bytes moved to the GPU.
    pub moved_bytes: u64,
    /// Granules evicted from the GPU's memory.
    pub evictions: u64,
    /// Commands that the SSD failed.
    pub failed: u64,
    origin: PagingBusy,
}

/// Busy times of the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagingBusy {
    /// Busy time of the driver's threads, summed.
    pub threads: Time,
    /// Busy time of the link to the GPU.
    pub to_gpu: Time,
    /// Busy time of the link to the host.
    pub to_host: Time,
}

/// Counts of paging since the beginning, for the check.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    pub(super) entered: u64,
    pub(super) resolved: u64,
    /// Evicted granules that must be written, and those that the SSD has taken.
    pub(super) evicted: u64,
    pub(super) stored: u64,
}

impl Paging {
    fn busy_since_start(&self, now: Time) -> PagingBusy {
        let (to_host, to_gpu) = self.link.busy(now);
        let threads = self.threads.iter().fold(Time::ZERO, |sum, thread| sum + thread.cpu.busy(now));
        PagingBusy { threads, to_gpu, to_host }
    }

    /// Busy times of the parts since the window began.
    pub fn busy(&self, now: Time) -> PagingBusy {
        let (all, before) = (self.busy_since_start(now), self.stats.origin);
        PagingBusy {
            threads: all.threads.since(before.threads),
            to_gpu: all.to_gpu.since(before.to_gpu),
            to_host: all.to_host.since(before.to_host),
        }
    }

    /// Energy of the link since the window began; `None` without energies in the spec.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.link.energy(now)
    }

    /// Bytes over the link since the window began, minimum and maximum consistent with its busy time.
    pub fn carried(&self) -> Option<[u64; 2]> {
        self.link.carried()
    }

    /// Starts the measured window and clears the statistics.
    pub fn reset_stats(&mut self, now: Time) {
        self.link.reset_energy(now);
        self.stats = PagingStats { origin: self.busy_since_start(now), ..PagingStats::default() };
        self.tally = proto::memory::Tally::default();
    }

    /// Checks the accounts against each other; they hold between any two events.
    ///
    /// # Errors
    /// Returns the violated equation, in numbers.
    pub fn check(&self) -> Result<(), String> {
        let (ledger, inside) = (&self.ledger, self.waiting.len() as u64);
        if ledger.entered != ledger.resolved + inside {
            return Err(format!("{} faults, {} resolved, {inside} waiting", ledger.entered, ledger.resolved));
        }
        let leaving = self.jobs.live().filter(|(_, job)| job.phase == Phase::Leaving).count() as u64;
        if ledger.evicted != ledger.stored + leaving {
            return Err(format!(
                "{} granules evicted, {} stored, {leaving} leaving",
                ledger.evicted, ledger.stored
            ));
        }
        let mapped = self.mapped.len() as u64;
        if mapped > self.taken || self.taken > self.capacity {
            return Err(format!(
                "{mapped} granules mapped, {} of {} places taken",
                self.taken, self.capacity
            ));
        }
        Ok(())
    }
}
