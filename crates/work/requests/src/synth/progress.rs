//! How far a job has come, and what that ends.

use super::job::{Access, Direction, Job};

/// The counters of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Bytes that count against the limits, in this pass.
    pub(crate) pass_bytes: u64,
    /// The same in all passes.
    pub(crate) bytes: u64,
    /// Requests since the ramp ended.
    pub(crate) requests: u64,
    /// Requests since the start.
    pub(crate) issued: u64,
    /// Completions since the start, flushes not counted.
    pub(crate) completed: u64,
    /// Writes since the start.
    pub(crate) writes: u64,
    /// Passes ended.
    pub(crate) passes: u64,
}

/// What follows the end of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Pass,
    Done,
}

impl Progress {
    /// Counts a request.
    #[inline]
    pub(crate) fn count(&mut self, access: Access, d: Direction, bytes: u64) {
        // Trims of trim-write pairs do not count against byte limits: fio doubles the limits instead.
        if access != Access::TrimWrite || d == Direction::Write {
            self.bytes += bytes;
            self.pass_bytes += bytes;
        }
        self.requests += 1;
        self.issued += 1;
        self.writes += (d == Direction::Write) as u64;
    }

    /// Whether bytes or requests end the job or the pass. A time-based job ends by the clock alone, as in fio.
    pub(crate) fn limit_reached(&self, job: &Job) -> bool {
        let limits = &job.limits;
        let spent = self.bytes >= limits.bytes || limits.requests.is_some_and(|n| self.requests >= n);
        !limits.time_based && (spent || self.pass_bytes >= limits.pass_bytes)
    }

    /// How many requests cannot reach a limit, whatever their size.
    pub(crate) fn carefree_requests(&self, job: &Job) -> u64 {
        let limits = &job.limits;
        if limits.time_based {
            return u64::MAX;
        }
        let bytes = limits.bytes.saturating_sub(self.bytes);
        let pass_bytes = limits.pass_bytes.saturating_sub(self.pass_bytes);
        let requests = limits.requests.map_or(u64::MAX, |n| n.saturating_sub(self.requests));
        (bytes.min(pass_bytes) / job.largest().max(1)).min(requests)
    }

    /// Share of the work that bytes or requests limit, zero to one; zero for a job that only the clock ends.
    pub(crate) fn share(&self, job: &Job) -> f64 {
        let limits = &job.limits;
        if limits.time_based {
            return 0.0;
        }
        let of = |done: u64, all: u64| if all > 0 { done as f64 / all as f64 } else { 1.0 };
        // A first pass that runs out of blocks ends the job, unless more passes are asked for.
        let bytes = if limits.passes > 1 || limits.refill {
            limits.bytes
        } else {
            limits.bytes.min(limits.pass_bytes)
        };
        let requests = limits.requests.map_or(0.0, |n| of(self.requests, n));
        of(self.bytes, bytes).max(requests).min(1.0)
    }

    /// Whether a write flush is due after the last request.
    pub(crate) fn flush_due(&self, job: &Job) -> bool {
        let every = [job.flushes.fsync, job.flushes.fdatasync];
        every.into_iter().any(|every| every > 0 && self.writes.is_multiple_of(every))
    }

    /// What follows the pass that ends now: fio's `keep_running`. `exhausted` says that no block was left. A pass
    /// without a request is the last.
    pub(crate) fn end_pass(&mut self, job: &Job, exhausted: bool) -> Next {
        let limits = &job.limits;
        self.passes += 1;
        let spent = limits.requests.is_some_and(|n| self.requests >= n);
        let left = limits.bytes.saturating_sub(self.bytes);
        let more = !spent && left >= job.largest() && (!exhausted || limits.refill);
        if self.pass_bytes > 0 && (limits.time_based || self.passes < limits.passes || more) {
            Next::Pass
        } else {
            Next::Done
        }
    }
}
