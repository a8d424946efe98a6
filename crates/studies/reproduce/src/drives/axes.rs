//! The mean error of predictions along an axis.

use super::super::study::{Entry, Found};
use super::measured::{Measured, State};
use super::{
    super::{
        Effort,
        row::{Evidence, Row, Rule},
        study,
    },
    stand,
};
use super::{STANDS, Stand};
use config::Diagnostic;
use fit::{Measure, factor};
use machine::Warmup;
use std::collections::BTreeMap;

/// Predictions beyond this share need a cause.
const LARGE: f64 = 0.5;
/// Share of predictions that the range of a fit must hold, per cent.
const INSIDE: f64 = 80.0;

/// Points of an axis.
struct Axis {
    name: &'static str,
    /// Bound of the mean error.
    bound: f64,
    holds: fn(&Point) -> bool,
    /// True to take points with more in flight than the drive takes, where the host chooses which request waits; false
    /// to take the others.
    beyond: bool,
}

const fn axis(name: &'static str, bound: f64) -> Axis {
    Axis { name, bound, holds: |_| true, beyond: false }
}

fn is_mean(point: &Point) -> bool {
    point.measure == Measure::Mean
}

fn is_rate(point: &Point) -> bool {
    point.measure == Measure::Iops
}

fn is_p99(point: &Point) -> bool {
    point.measure == Measure::P99
}

fn writes(point: &Point) -> bool {
    point.measured.job.write
}

fn is_worn(point: &Point) -> bool {
    point.measured.state == State::Worn
}

const AXES: &[Axis] = &[
    Axis { holds: |p| is_mean(p) && !writes(p), ..axis("read.latency", BOUNDS[0]) },
    Axis { holds: |p| is_rate(p) && !writes(p), ..axis("read.throughput", BOUNDS[0]) },
    Axis { holds: |p| is_mean(p) && writes(p), ..axis("write.latency", BOUNDS[1]) },
    Axis { holds: |p| is_rate(p) && writes(p), ..axis("write.throughput", BOUNDS[1]) },
    Axis { holds: |p| is_p99(p) && !writes(p), ..axis("read.p99", BOUNDS[2]) },
    Axis { holds: |p| is_p99(p) && writes(p), ..axis("write.p99", BOUNDS[2]) },
    Axis { holds: |p| p.measure.is_tail() && !is_p99(p), ..axis("beyond_p99", BOUNDS[2]) },
    Axis { holds: |p| !p.measure.is_tail() && p.measured.job.random, ..axis("random", BOUNDS[1]) },
    Axis { holds: |p| !p.measure.is_tail() && !p.measured.job.random, ..axis("sequential", BOUNDS[1]) },
    Axis { holds: |p| !p.measure.is_tail() && !is_worn(p), ..axis("fresh", BOUNDS[1]) },
    Axis { holds: |p| !p.measure.is_tail() && is_worn(p), ..axis("worn", BOUNDS[1]) },
    Axis { holds: |p| !p.measure.is_tail(), beyond: true, ..axis("beyond_queue", BOUNDS[1]) },
    Axis { holds: is_p99, beyond: true, ..axis("beyond_queue_p99", BOUNDS[2]) },
];

/// A row for each axis of all drives and of each, and one for how many predictions are far off.
pub(super) fn entries(points: &[Point]) -> Vec<Entry> {
    let predictions: Vec<&Point> = points.iter().filter(|point| !point.fitted).collect();
    let of = |drive: Option<&'static str>, axis: &Axis| {
        let chosen = predictions.iter().filter(|p| drive.is_none_or(|name| p.stand.name == name));
        let is_of = |p: &&&Point| (axis.holds)(p) && p.beyond_queue() == axis.beyond;
        let chosen: Vec<Point> = chosen.filter(is_of).map(|p| (*p).clone()).collect();
        let id = match drive {
            None => format!("drives.error.{}", axis.name),
            Some(drive) => format!("drives.{drive}.error.{}", axis.name),
        };
        (!chosen.is_empty()).then(|| mean(id, axis.bound, chosen, drive.is_some()))
    };
    let drives = STANDS.iter().map(|stand| Some(stand.name));
    let each = drives.flat_map(|drive| AXES.iter().filter_map(move |axis| of(drive, axis)));
    let large =
        (!predictions.is_empty()).then(|| large(predictions.iter().map(|point| (*point).clone()).collect()));
    let within: Vec<Point> = predictions.iter().filter(|p| !p.beyond_queue()).map(|p| (*p).clone()).collect();
    let inside = (!within.is_empty()).then(|| inside(within));
    each.chain(AXES.iter().filter_map(|axis| of(None, axis))).chain(large).chain(inside).collect()
}

fn mean(id: String, bound: f64, points: Vec<Point>, part: bool) -> Entry {
    let runs = points.iter().map(|point| point.run.clone()).collect();
    let name = id.clone();
    let compute = move |found: &Found| {
        let errors: Vec<f64> = points.iter().map(|p| p.error(found)).collect::<Result<_, _>>()?;
        let mean = 100.0 * errors.iter().sum::<f64>() / errors.len() as f64;
        let worst = points.iter().zip(&errors).max_by(|a, b| a.1.total_cmp(b.1));
        let worst =
            worst.map_or(String::new(), |(p, e)| format!("; the worst {:.0} %: {}", 100.0 * e, p.id()));
        let row = Row::new(&name, "%", 100.0 * bound, mean, Rule::AtMost)
            .place("mean error of predictions, and its bound")
            .note(format!("{} predictions{worst}", errors.len()));
        let row = if part { row.swept() } else { row };
        Ok(Row { evidence: Evidence::Seen, ..row })
    };
    Entry::new(id, runs, compute)
}

fn large(points: Vec<Point>) -> Entry {
    const ID: &str = "drives.error.above_half";
    let runs = points.iter().map(|point| point.run.clone()).collect();
    let compute = move |found: &Found| {
        let mut far = Vec::new();
        for point in &points {
            if point.error(found)? > LARGE {
                far.push(point.id());
            }
        }
        let row = Row::new(ID, "rows", 0.0, far.len() as f64, Rule::AtMost)
            .place("predictions more than 50 % off: each needs a cause")
            .note(format!("of {} predictions: {}", points.len(), far.join(", ")));
        Ok(Row { evidence: Evidence::Seen, ..row })
    };
    Entry::new(ID, runs, compute)
}

/// Number of predictions within the factor of a fit's ranges, where its readings agree.
fn inside(points: Vec<Point>) -> Entry {
    const ID: &str = "drives.spread.inside";
    let runs = points.iter().map(|point| point.run.clone()).collect();
    let compute = move |found: &Found| {
        let mut inside = 0;
        let mut by_drive: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for point in &points {
            let ratio = point.simulated(found)? / point.figure;
            let factor = factor(writes(point), point.measure, point.stand.saturates(writes(point)));
            let is_inside = u32::from(ratio.max(1.0 / ratio) <= factor);
            inside += is_inside;
            let of = by_drive.entry(point.stand.name).or_default();
            *of = (of.0 + is_inside, of.1 + 1);
        }
        let share = 100.0 * f64::from(inside) / points.len() as f64;
        let each: Vec<String> =
            by_drive.iter().map(|(drive, (inside, all))| format!("{drive} {inside} of {all}")).collect();
        let row = Row::new(ID, "%", INSIDE, share, Rule::AtLeast)
            .place("predictions within the factors of `fit`'s ranges, up to what a drive takes at once")
            .note(format!("of {} predictions: {}", points.len(), each.join(", ")));
        Ok(Row { evidence: Evidence::Seen, ..row })
    };
    Entry::new(ID, runs, compute)
}

// A measured figure beside the simulated one.

/// Bounds of one point's error: reads, writes, percentiles.
pub(super) const BOUNDS: [f64; 3] = [0.12, 0.25, 0.35];

/// The least requests of which the last hundred-thousandth is something.
const TAIL: u64 = 1_200_000;

/// Requests before and in the window of a job whose threads have the drive by turns of a tenth of a second; of a quick
/// look.
const TURNS: (u64, u64) = (40_000, 240_000);

const QUICK_TURNS: u64 = 40_000;

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
    let run = run(&measured, stand, effort);
    let point = |measure: Measure| {
        let figure = measure.of(&measured.figures)?;
        let fitted = stand.fitted.contains(&(measured.job, measure));
        Some(Point { measured: measured.clone(), stand, measure, figure, fitted, run: run.clone() })
    };
    Measure::ALL.into_iter().filter_map(point).collect()
}

/// The run that stands beside a measurement.
fn run(measured: &Measured, stand: &Stand, effort: Effort) -> study::Point {
    let job = measured.job;
    let (before, counted) = match measured.first {
        Some(bytes) => (0, bytes / job.block),
        None => job.requests(measured.state == State::Worn, effort == Effort::Quick),
    };
    let counted = if measured.figures.p99_999.is_some() { counted.max(TAIL) } else { counted };
    // A thread alone has no other to take turns with.
    let takes_turns = job.jobs > 1 && job.in_flight() > stand.queue && !stand.block.is_empty();
    let turns = (TURNS.0, if effort == Effort::Quick { QUICK_TURNS } else { TURNS.1 });
    let (before, counted) =
        if takes_turns { (before.max(turns.0), counted.max(turns.1)) } else { (before, counted) };
    let mut set: Vec<String> = stand.set.iter().map(|set| (*set).to_owned()).collect();
    match measured.state {
        State::Empty => set.push("flash.precondition=none".into()),
        State::Filled => {}
        State::Worn => {
            // Blocks of few pages come to their steady state soon; free space, dies and planes stay.
            set.extend(stand.small.iter().map(|set| (*set).to_owned()));
            set.push("flash.precondition=steady".into());
        }
    }
    let mut workload = job.workload(before + counted);
    if takes_turns {
        set.extend(stand.block.iter().map(|set| (*set).to_owned()));
        workload.push_str(",direct=1,ioengine=libaio");
    }
    let parts = stand.parts.iter().map(|part| format!("{part}={workload}"));
    let workloads = if stand.parts.is_empty() { vec![workload] } else { parts.collect() };
    // Total of all parts.
    let before = before * workloads.len() as u64;
    study::Point {
        system: stand.system.into(),
        set,
        workloads,
        seed: 1,
        warmup: Some(Warmup::Requests(before)),
        ..study::Point::default()
    }
}

impl Point {
    /// Name of the row.
    pub(super) fn id(&self) -> String {
        let state = match (self.measured.state, self.measured.first) {
            (State::Filled, _) => String::new(),
            (State::Worn, _) => ".worn".into(),
            (State::Empty, None) => ".empty".into(),
            (State::Empty, Some(bytes)) => format!(".empty.{}GB", bytes / 1_000_000_000),
        };
        let measure = self.measure.name();
        format!("drives.{}.{}{state}.{measure}", self.stand.name, self.measured.job)
    }

    /// Returns whether more is in flight than the drive takes.
    pub(super) fn beyond_queue(&self) -> bool {
        self.measured.job.in_flight() > self.stand.queue
    }

    fn bound(&self) -> f64 {
        BOUNDS[if self.measure.is_tail() { 2 } else { usize::from(self.measured.job.write) }]
    }

    /// The simulated figure.
    pub(super) fn simulated(&self, found: &Found) -> Result<f64, Diagnostic> {
        let missing = || Diagnostic::new(format!("{}: the run has too few requests for it", self.id()));
        self.measure.simulated(found.get(&self.run)?, &self.measured.job).ok_or_else(missing)
    }

    /// Relative error.
    pub(super) fn error(&self, found: &Found) -> Result<f64, Diagnostic> {
        Ok((self.simulated(found)? / self.figure - 1.0).abs())
    }

    /// Row of the point.
    pub(super) fn entry(&self) -> Entry {
        let point = self.clone();
        let compute = move |found: &Found| {
            let rule = Rule::Share(point.bound());
            let row = Row::new(point.id(), point.measure.unit(), point.figure, point.simulated(found)?, rule)
                .place(point.measured.place.clone());
            let evidence = if point.fitted { Evidence::Fit } else { Evidence::Seen };
            Ok(Row { evidence, ..row })
        };
        Entry::new(self.id(), vec![self.run.clone()], compute)
    }
}
