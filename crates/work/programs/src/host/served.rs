//! What a program measures of itself.

use engine::Time;
use proto::file::{Call, CallError};
use stats::{OpStats, Series};

/// Length of a bin of the series, to begin with.
const BIN: Time = Time::from_ms(100);
/// Bins before two of them are joined: 27 minutes.
const BINS: usize = 1 << 14;

/// Requests of one kind.
#[derive(Clone, Debug)]
pub struct Kind {
    /// What they are called: `fetch`.
    pub name: &'static str,
    /// Their number, their bytes, and their response times: submission is the time before a worker took the request, device
    /// the time after it.
    pub ops: OpStats,
}

/// What a program has asked of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// System calls.
    pub calls: u64,
    /// Bytes that were to be read.
    pub read_bytes: u64,
    /// Bytes that were to be written.
    pub written_bytes: u64,
    /// `fsync` and `fdatasync`.
    pub syncs: u64,
    /// Calls that have failed.
    pub failed: Failed,
}

/// System calls that have failed, by error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failed {
    /// `ENOSPC`.
    pub no_space: u64,
    /// `EIO`.
    pub io: u64,
    /// `EROFS`.
    pub read_only: u64,
}

/// Requests and system calls of a program since its counts were reset.
#[derive(Clone, Debug)]
pub struct Served {
    kinds: Vec<Kind>,
    series: Series,
    asked: Asked,
    since: Time,
}

impl Served {
    pub(crate) fn new(kinds: &[&'static str]) -> Served {
        Served {
            kinds: kinds.iter().map(|name| Kind { name, ops: OpStats::default() }).collect(),
            series: Series::new(Time::ZERO, BIN, BINS),
            asked: Asked::default(),
            since: Time::ZERO,
        }
    }

    /// Requests by kind.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Requests of all kinds by the time at which they were answered, in bins of 100 ms.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// What was asked of the kernel.
    pub fn asked(&self) -> Asked {
        self.asked
    }

    /// Since when.
    pub fn since(&self) -> Time {
        self.since
    }

    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.ops.requests).sum()
    }

    /// The largest of the bins' mean response times, in nanoseconds; none if nothing was answered.
    pub fn worst_bin_ns(&self) -> Option<f64> {
        self.series.windows().filter_map(|bin| bin.latency_ns_mean).max_by(f64::total_cmp)
    }

    /// A request that came at `arrived`, was taken by a worker at `taken`, and is answered now.
    pub(crate) fn answered(&mut self, kind: usize, bytes: u64, arrived: Time, taken: Time, now: Time) {
        let (latency, waited) = (now.since(arrived), taken.since(arrived));
        self.kinds[kind].ops.record(bytes, waited, latency - waited, latency);
        self.series.record(now, bytes, latency);
    }

    /// A system call is made.
    pub(crate) fn ask(&mut self, call: &Call) {
        self.asked.calls += 1;
        match *call {
            Call::Read { bytes, .. } => self.asked.read_bytes += bytes,
            Call::Write { bytes, .. } => self.asked.written_bytes += bytes,
            Call::Sync { .. } => self.asked.syncs += 1,
            _ => {}
        }
    }

    /// The last one has failed.
    pub(crate) fn fail(&mut self, error: CallError) {
        let failed = &mut self.asked.failed;
        *match error {
            CallError::NoSpace => &mut failed.no_space,
            CallError::Io => &mut failed.io,
            CallError::ReadOnly => &mut failed.read_only,
        } += 1;
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self, now: Time) {
        self.kinds.iter_mut().for_each(|kind| kind.ops = OpStats::default());
        self.series.reset(now);
        self.asked = Asked::default();
        self.since = now;
    }
}
