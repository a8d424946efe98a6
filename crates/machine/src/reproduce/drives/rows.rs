//! A measured figure beside the simulated one.

use super::super::Effort;
use super::super::row::{Evidence, Row, Rule};
use super::super::study::{self, Entry, Found};
use super::measured::Measured;
use super::stand;
use super::stands::{Measure, Stand};
use crate::result::OpResult;
use crate::warmup::Warmup;
use config::Diagnostic;
use proto::IoOp;

/// Bounds of one point's error: reads, writes, percentiles.
pub(super) const BOUNDS: [f64; 3] = [0.12, 0.25, 0.35];
/// The least requests that are measured, and the most; between them so many times those in flight.
const REQUESTS: (u64, u64) = (12_000, 160_000);
const TIMES_IN_FLIGHT: u64 = 40;
/// Bytes written before writes are measured: a write buffer is full by then.
const FILL: u64 = 192 << 20;

/// A figure of a job.
#[derive(Clone)]
pub(super) struct Point {
    pub(super) measured: Measured,
    pub(super) stand: &'static Stand,
    pub(super) measure: Measure,
    pub(super) figure: f64,
    pub(super) fitted: bool,
    pub(super) run: study::Point,
}

/// The figures of a job that a stand can be held against.
pub(super) fn points(measured: Measured, effort: Effort) -> Vec<Point> {
    let Some(stand) = stand(measured.stand) else { return Vec::new() };
    let figures = measured.figures;
    let all = [
        (Measure::Iops, figures.iops),
        (Measure::Mean, figures.mean),
        (Measure::P99, figures.p99),
        (Measure::P999, figures.p99_9),
        (Measure::P99999, figures.p99_999),
    ];
    let run = run(&measured, stand, effort);
    let point = |(measure, figure): (Measure, Option<f64>)| {
        let fitted = stand.fitted.contains(&(measured.job, measure));
        Some(Point { measured: measured.clone(), stand, measure, figure: figure?, fitted, run: run.clone() })
    };
    all.into_iter().filter_map(point).collect()
}

/// The run that stands beside a measurement.
fn run(measured: &Measured, stand: &Stand, effort: Effort) -> study::Point {
    let job = measured.job;
    let (least, most) = if effort == Effort::Quick { (1_500, 12_000) } else { REQUESTS };
    let tail = if measured.figures.p99_999.is_some() { 1_200_000 } else { 0 };
    let counted = (TIMES_IN_FLIGHT * job.in_flight()).clamp(least, most).max(tail);
    let mut set: Vec<String> = stand.set.iter().map(|set| (*set).to_owned()).collect();
    let before = if measured.worn {
        // Blocks of few pages come to their steady state soon; free space, dies and planes stay.
        set.extend(stand.small.iter().map(|set| (*set).to_owned()));
        set.push("flash.precondition=steady".into());
        2_000_000
    } else if job.write {
        FILL / job.block
    } else {
        job.in_flight()
    };
    let counted = if measured.worn { 4_000_000 } else { counted };
    study::Point {
        system: stand.system.into(),
        set,
        workloads: vec![job.workload(before + counted)],
        seed: 1,
        warmup: Some(Warmup::Requests(before)),
        ..study::Point::default()
    }
}

impl Point {
    /// Its row's name.
    pub(super) fn id(&self) -> String {
        let worn = if self.measured.worn { ".worn" } else { "" };
        let measure = match self.measure {
            Measure::Iops => "iops",
            Measure::Mean => "mean",
            Measure::P99 => "p99",
            Measure::P999 => "p99_9",
            Measure::P99999 => "p99_999",
        };
        format!("drives.{}.{}{worn}.{measure}", self.stand.name, self.measured.job)
    }

    /// Whether more is in flight than the drive takes.
    pub(super) fn beyond_queue(&self) -> bool {
        self.measured.job.in_flight() > self.stand.queue
    }

    pub(super) fn is_tail(&self) -> bool {
        matches!(self.measure, Measure::P99 | Measure::P999 | Measure::P99999)
    }

    fn bound(&self) -> f64 {
        BOUNDS[if self.is_tail() { 2 } else { usize::from(self.measured.job.write) }]
    }

    /// The simulated figure.
    pub(super) fn simulated(&self, found: &Found) -> Result<f64, Diagnostic> {
        let kinds = &found.get(&self.run)?.io.kinds;
        let kind = if self.measured.job.op() == IoOp::Write { &kinds.write } else { &kinds.read };
        let of = |result: &OpResult| {
            let latency = &result.latency_ns;
            let us = |ns: Option<f64>| ns.map(|ns| ns / 1e3);
            match self.measure {
                Measure::Iops => Some(result.iops),
                Measure::Mean => us(latency.mean),
                Measure::P99 => us(latency.p99),
                Measure::P999 => us(latency.p99_9),
                Measure::P99999 => us(latency.p99_999),
            }
        };
        let missing = || Diagnostic::new(format!("{}: the run has too few requests for it", self.id()));
        kind.as_ref().and_then(of).ok_or_else(missing)
    }

    /// Its error as a share.
    pub(super) fn error(&self, found: &Found) -> Result<f64, Diagnostic> {
        Ok((self.simulated(found)? / self.figure - 1.0).abs())
    }

    /// Its row.
    pub(super) fn entry(&self) -> Entry {
        let point = self.clone();
        let compute = move |found: &Found| {
            let unit = if point.measure == Measure::Iops { "IOPS" } else { "us" };
            let rule = Rule::Share(point.bound());
            let row = Row::new(point.id(), unit, point.figure, point.simulated(found)?, rule)
                .place(point.measured.place.clone());
            let evidence = if point.fitted { Evidence::Fit } else { Evidence::Seen };
            Ok(Row { evidence, ..row })
        };
        Entry::new(self.id(), vec![self.run.clone()], compute)
    }
}
