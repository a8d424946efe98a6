//! Figures of a job, measured or simulated.

use super::job::Job;
use machine::result::{Document, OpResult};

/// What was measured of a job, microseconds but for the first.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Figures {
    /// Requests a second, of all threads.
    pub iops: Option<f64>,
    /// Mean latency, as fio's clat: from submission until the thread sees the completion.
    pub mean: Option<f64>,
    /// 99th percentile of it.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p99_9: Option<f64>,
    /// 99.999th percentile.
    pub p99_999: Option<f64>,
}

/// Which of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Requests a second.
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
    /// Every measure.
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

    /// IOPS or us.
    pub fn unit(self) -> &'static str {
        if self == Measure::Iops { "IOPS" } else { "us" }
    }

    /// Whether the measure is a percentile.
    pub fn is_tail(self) -> bool {
        matches!(self, Measure::P99 | Measure::P999 | Measure::P99999)
    }

    /// The measured figure.
    pub fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Measure::Iops => figures.iops,
            Measure::Mean => figures.mean,
            Measure::P99 => figures.p99,
            Measure::P999 => figures.p99_9,
            Measure::P99999 => figures.p99_999,
        }
    }

    /// The simulated figure; none if the run has too few requests for it.
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
