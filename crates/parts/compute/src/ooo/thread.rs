//! A thread: its job, and the operations of it that may still be executed.

use engine::Time;
use proto::cpu::Op;

/// A user-level thread. Its operations are numbered from one; a need of zero is none.
#[derive(Debug, Default)]
pub(super) struct Thread {
    tape: Vec<Op>,
    /// Number of the tape's first operation.
    first: u64,
    /// The operation that is dispatched next.
    pub(super) next: u64,
    /// The job has no more operations than the tape holds.
    pub(super) ended: bool,
    /// The operation with which the thread went on when it was halted last: its accesses are completed, whatever it takes. Zero
    /// if there is none.
    pub(super) must: u64,
    /// When the job came.
    pub(super) arrived: Time,
    /// When it began to run.
    pub(super) begun: Time,
}

impl Thread {
    /// Begins a job.
    pub(super) fn begin(&mut self, arrived: Time, begun: Time) {
        self.tape.clear();
        *self = Thread {
            tape: std::mem::take(&mut self.tape),
            first: 1,
            next: 1,
            arrived,
            begun,
            ..Thread::default()
        };
    }

    /// The number behind that of the last operation that is known.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.first + self.tape.len() as u64
    }

    /// An operation of the tape.
    #[inline]
    pub(super) fn op(&self, number: u64) -> &Op {
        &self.tape[(number - self.first) as usize]
    }

    /// The tape, to be continued; operations before `keep` are not needed any more.
    pub(super) fn tape(&mut self, keep: u64) -> &mut Vec<Op> {
        let old = (keep - self.first) as usize;
        // Moving what is kept costs more than the memory: only when most of it is old.
        if old > 1024.max(self.tape.len() / 2) {
            self.tape.drain(..old);
            self.first = keep;
        }
        &mut self.tape
    }

    /// Instructions of the operations in a range of numbers.
    pub(super) fn instructions(&self, numbers: std::ops::Range<u64>) -> u64 {
        numbers.map(|number| u64::from(self.op(number).count)).sum()
    }
}
