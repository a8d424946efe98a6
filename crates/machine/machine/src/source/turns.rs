//! Whose turn it is among many jobs, without a look at each: who may have something to issue, and when the others will.

use engine::{Flags, Time};

/// Jobs in a ring. Each is ready, or waits for a time, or waits for something else.
#[derive(Debug)]
pub(super) struct Turns {
    ready: Flags,
    /// A tournament: each node has the earliest time of the jobs below it, picoseconds, or the end of all time. The leaves, one a job, begin
    /// at `leaves`; the root is 1.
    earliest: Vec<u64>,
    leaves: usize,
    /// Jobs that wait for a time, which may be the end of all time.
    timed: usize,
    is_timed: Flags,
}

impl Turns {
    /// So many jobs, all ready.
    pub(super) fn new(jobs: usize) -> Turns {
        let leaves = jobs.next_power_of_two();
        let mut ready = Flags::new(jobs);
        (0..jobs).for_each(|job| ready.insert(job));
        Turns { ready, earliest: vec![u64::MAX; 2 * leaves], leaves, timed: 0, is_timed: Flags::new(jobs) }
    }

    /// The first job that is ready, from `from` on.
    #[inline]
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        self.ready.next(from)
    }

    /// A job is ready, whatever it waited for.
    #[inline]
    pub(super) fn wake(&mut self, job: usize) {
        self.forget(job);
        self.ready.insert(job);
    }

    /// A job that was ready waits until somebody wakes it.
    #[inline]
    pub(super) fn wait(&mut self, job: usize) {
        self.ready.remove(job);
    }

    /// A job that was ready waits until somebody wakes it, or for a time.
    #[inline]
    pub(super) fn wait_until(&mut self, job: usize, time: Time) {
        self.ready.remove(job);
        self.is_timed.insert(job);
        self.timed += 1;
        self.set(job, time.ps());
    }

    /// Those whose time has come are ready.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        while self.timed > 0 && self.earliest[1] <= now.ps() {
            let job = self.first();
            self.wake(job);
        }
    }

    /// When the next one is ready that waits for a time.
    pub(super) fn earliest(&self) -> Option<Time> {
        (self.timed > 0).then(|| Time::from_ps(self.earliest[1]))
    }

    /// The job that the root is of.
    fn first(&self) -> usize {
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            at += usize::from(self.earliest[at] != self.earliest[at / 2]);
        }
        at - self.leaves
    }

    #[inline]
    fn forget(&mut self, job: usize) {
        if self.timed > 0 && self.is_timed.next(job) == Some(job) {
            self.is_timed.remove(job);
            self.timed -= 1;
            self.set(job, u64::MAX);
        }
    }

    fn set(&mut self, job: usize, time: u64) {
        let mut at = self.leaves + job;
        self.earliest[at] = time;
        while at > 1 {
            at /= 2;
            let least = self.earliest[2 * at].min(self.earliest[2 * at + 1]);
            if self.earliest[at] == least {
                break;
            }
            self.earliest[at] = least;
        }
    }
}
