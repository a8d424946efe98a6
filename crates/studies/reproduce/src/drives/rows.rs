//! A measured figure beside the simulated one.

use super::super::Effort;
use super::super::row::{Evidence, Row, Rule};
use super::super::study::{self, Entry, Found};
use super::measured::{Measured, State};
use super::stand;
use super::stands::Stand;
use config::Diagnostic;
use fit::Measure;
use machine::warmup::Warmup;

/// Bounds of one point's error: reads, writes, percentiles.
pub(super) const BOUNDS: [f64; 3] = [0.12, 0.25, 0.35];
/// The least requests of which the last hundred-thousandth is something.
const TAIL: u64 = 1_200_000;
/// Requests before and in the window of a job whose threads have the drive by turns of a tenth of a second; of a quick look.
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
    // Of all parts together.
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
    /// Its row's name.
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

    /// Whether more is in flight than the drive takes.
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

    /// Its error as a share.
    pub(super) fn error(&self, found: &Found) -> Result<f64, Diagnostic> {
        Ok((self.simulated(found)? / self.figure - 1.0).abs())
    }

    /// Its row.
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
