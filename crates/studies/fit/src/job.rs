//! fio job of a measurement, and its metrics, measured or simulated.

use machine::result::{Document, OpResult};
use std::fmt;

/// Job definition. Each of `jobs` threads keeps `depth` requests in flight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Job {
    /// True for writes; otherwise reads.
    pub write: bool,
    /// True for random blocks; otherwise sequential.
    pub random: bool,
    /// Bytes per request.
    pub block: u64,
    /// Requests in flight per thread.
    pub depth: u32,
    /// Number of threads.
    pub jobs: u32,
    /// Bytes of the drive that it touches; `None` for all.
    pub span: Option<u64>,
}

/// Minimum and maximum number of measured requests; in between, a multiple of those in flight.
const REQUESTS: (u64, u64) = (12_000, 160_000);
/// Minimum for writes: a drive works on them in batches, and stalls are rare.
const WRITES: u64 = 96_000;
/// Minimum and maximum for a quick run.
const QUICK: (u64, u64) = (1_500, 12_000);
const TIMES_IN_FLIGHT: u64 = 40;
/// Bytes written before writes are measured: a write buffer is full by then.
const FILL: u64 = 192 << 20;
/// Requests before and in the measured window of a worn drive.
const WORN: (u64, u64) = (2_000_000, 4_000_000);

impl Job {
    /// Job of random 4 KiB reads over the whole drive.
    pub const fn random_reads(depth: u32) -> Job {
        Job { write: false, random: true, block: 4096, depth, jobs: 1, span: None }
    }

    /// Total number of requests in flight.
    pub fn in_flight(&self) -> u64 {
        u64::from(self.depth) * u64::from(self.jobs)
    }

    /// fio's name of the pattern.
    fn pattern(&self) -> &'static str {
        match (self.random, self.write) {
            (false, false) => "read",
            (false, true) => "write",
            (true, false) => "randread",
            (true, true) => "randwrite",
        }
    }

    /// Number of requests before the measured window, and in it.
    pub fn requests(&self, worn: bool, quick: bool) -> (u64, u64) {
        if worn {
            return WORN;
        }
        let (least, most) = match (quick, self.write) {
            (true, _) => QUICK,
            (false, true) => (WRITES, REQUESTS.1),
            (false, false) => REQUESTS,
        };
        let before = if self.write { FILL / self.block } else { self.in_flight() };
        (before, (TIMES_IN_FLIGHT * self.in_flight()).clamp(least, most))
    }

    /// Workload of this many requests, of all threads together.
    pub fn workload(&self, requests: u64) -> String {
        let Job { block, depth, jobs, .. } = self;
        let each = requests.div_ceil(u64::from(*jobs));
        // Loops repeat the span as often as needed.
        let size = self.span.map_or(String::new(), |span| {
            let loops = (each * block).div_ceil(span);
            format!(",size={span},loops={loops}")
        });
        let rw = self.pattern();
        format!("fio:rw={rw},bs={block},iodepth={depth},numjobs={jobs},norandommap=1,number_ios={each}{size}")
    }
}

/// Formats the job as part of a row's id.
impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rw, kib) = (self.pattern(), self.block / 1024);
        write!(f, "{rw}.{kib}k.depth{}", self.depth)?;
        if self.jobs > 1 { write!(f, ".jobs{}", self.jobs) } else { Ok(()) }
    }
}

/// Measured metrics of a job, in microseconds except for the first.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Figures {
    /// Requests per second, of all threads.
    pub iops: Option<f64>,
    /// Mean latency, as fio's clat: from submission until the thread sees the completion.
    pub mean: Option<f64>,
    /// 99th percentile of latency.
    pub p99: Option<f64>,
    /// 99.9th percentile of latency.
    pub p99_9: Option<f64>,
    /// 99.999th percentile of latency.
    pub p99_999: Option<f64>,
}

/// Metric of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Requests per second.
    Iops,
    /// Mean latency.
    Mean,
    /// 99th percentile of latency.
    P99,
    /// 99.9th percentile of latency.
    P999,
    /// 99.999th percentile of latency.
    P99999,
}

impl Measure {
    /// All measures.
    pub const ALL: [Measure; 5] =
        [Measure::Iops, Measure::Mean, Measure::P99, Measure::P999, Measure::P99999];

    /// Name in a row's id.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Iops => "iops",
            Measure::Mean => "mean",
            Measure::P99 => "p99",
            Measure::P999 => "p99_9",
            Measure::P99999 => "p99_999",
        }
    }

    /// Unit: IOPS or us.
    pub fn unit(self) -> &'static str {
        if self == Measure::Iops { "IOPS" } else { "us" }
    }

    /// Returns whether the measure is a percentile.
    pub fn is_tail(self) -> bool {
        matches!(self, Measure::P99 | Measure::P999 | Measure::P99999)
    }

    /// Measured value.
    pub fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Measure::Iops => figures.iops,
            Measure::Mean => figures.mean,
            Measure::P99 => figures.p99,
            Measure::P999 => figures.p99_9,
            Measure::P99999 => figures.p99_999,
        }
    }

    /// Simulated value; `None` if the run has too few requests for it.
    pub fn simulated(self, document: &Document, job: &Job) -> Option<f64> {
        let kinds = &document.io.kinds;
        let kind = if job.write { &kinds.write } else { &kinds.read };
        let OpResult { iops, latency_ns: latency, .. } = kind.as_ref()?;
        let us = |ns: Option<f64>| ns.map(|ns| ns / 1e3);
        match self {
            Measure::Iops => Some(*iops),
            Measure::Mean => us(latency.mean),
            Measure::P99 => us(latency.p99),
            Measure::P999 => us(latency.p99_9),
            Measure::P99999 => us(latency.p99_999),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_what_fio_would_be_told() {
        let job = Job { write: true, jobs: 4, span: Some(1 << 30), ..Job::random_reads(16) };
        assert_eq!(
            job.workload(1_001),
            "fio:rw=randwrite,bs=4096,iodepth=16,numjobs=4,norandommap=1,number_ios=251,size=1073741824,loops=1"
        );
        assert_eq!((job.to_string(), job.in_flight()), ("randwrite.4k.depth16.jobs4".into(), 64));
        assert_eq!(Job::random_reads(1).to_string(), "randread.4k.depth1");
    }
}
