//! What a fit has found.

use super::base::Base;
use super::choose::{Chosen, Solved};
use super::job::{Job, Measure};
use super::knob::Knob;
use super::point::Point;
use machine::result::Document;
use serde::Serialize;

/// A fitted drive beside what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    /// The system that it begins with.
    pub like: String,
    /// The user's changes of it.
    pub set: Vec<String>,
    /// What was fitted.
    pub values: Vec<Value>,
    /// Every figure that was measured beside that of the fitted drive.
    pub points: Vec<Row>,
    /// Other drives that have the figures too, or were found not to.
    #[serde(rename = "other_readings")]
    pub readings: Vec<Other>,
    /// What the drive does beyond what was measured, and how far the readings are apart in it.
    pub predictions: Vec<Prediction>,
    /// What a reader must know of how points were used.
    pub notes: Vec<String>,
    /// Runs that it took.
    pub runs: u64,
}

/// A fitted value.
#[derive(Clone, Debug, Serialize)]
pub struct Value {
    /// The key.
    pub key: String,
    /// What the system that the fit begins with has, as TOML.
    pub before: String,
    /// What was found, as TOML.
    pub value: String,
    /// The job whose figure chose it.
    pub job: String,
    /// The figure: `iops`, `mean` or `p99`, the time `between` requests, or the time that a core `waits`.
    pub measure: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// As measured.
    pub measured: f64,
    /// As the drive has it at that value.
    pub reached: f64,
    /// Whether they are within 1 % of each other, percentiles 5 %.
    pub met: bool,
    /// Why this figure.
    pub why: &'static str,
}

/// A figure that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The job.
    pub job: String,
    /// The figure.
    pub measure: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// As measured.
    pub measured: f64,
    /// As simulated; none if the run has too few requests for it.
    pub simulated: Option<f64>,
    /// Least and most that the fit states for it; none of what it was fitted to, or cannot predict.
    pub low: Option<f64>,
    /// As `low`, the most.
    pub high: Option<f64>,
    /// Whether it chose a value: then it says nothing about the fit.
    pub fitted: bool,
    /// Whether these are writes.
    pub write: bool,
    /// Whether more is in flight than the drive takes at once: which of the others waits is the host's choice.
    pub beyond_queue: bool,
    /// Where it was measured.
    pub place: String,
}

/// Another reading of the same figures.
#[derive(Clone, Debug, Serialize)]
pub struct Other {
    /// What it says.
    pub name: String,
    /// Its changes of the system that the fit begins with.
    pub values: Vec<String>,
    /// Whether it has the figures; if not, it says nothing.
    pub is_met: bool,
    #[serde(skip)]
    pub(super) predicted: Vec<f64>,
    /// By point.
    #[serde(skip)]
    pub(super) seen: Vec<Seen>,
}

/// Figures of a job on a drive, in the order of [`Measure::ALL`].
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Seen([Option<f64>; 5]);

impl Seen {
    /// Those of a run, if there was one.
    pub(super) fn of(document: Option<&Document>, job: &Job) -> Seen {
        Seen(Measure::ALL.map(|measure| measure.simulated(document?, job)))
    }
}

/// Figure of a job that no point measured.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// The job.
    pub job: String,
    /// The figure.
    pub measure: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Of the fitted drive.
    pub value: f64,
    /// The least of all readings that have the figures, less what fits of other drives were off.
    pub low: f64,
    /// The most of them, and as much more.
    pub high: f64,
}

/// The block of small requests, where points do not say another.
pub(super) const BLOCK: u64 = 4096;
/// The block of large ones.
const LARGE: u64 = 128 << 10;

/// A job whose figure is asked for.
pub(super) struct Asked {
    pub(super) job: Job,
    pub(super) measure: Measure,
}

/// Jobs that a user of a drive asks for first.
pub(super) fn grid(base: &Base, block: u64) -> Vec<Asked> {
    let small = |write, depth, jobs| Job { write, random: true, block, depth, jobs, span: None };
    let large = |write| Job { write, random: false, block: LARGE, depth: 16, jobs: 1, span: None };
    let depths = [1, 4, 16, 64].map(|depth| small(false, depth, 1));
    let many = (base.queue == u64::MAX).then(|| small(false, 64, 8));
    let jobs = depths.into_iter().chain(many).chain([
        large(false),
        small(true, 1, 1),
        small(true, 64, 1),
        large(true),
    ]);
    let measure = |job: &Job| if job.in_flight() == 1 { Measure::Mean } else { Measure::Iops };
    jobs.map(|job| Asked { measure: measure(&job), job }).collect()
}

/// Predictions of the fitted drive, with what other readings make of them.
pub(super) fn predictions(
    grid: &[Asked],
    values: &[f64],
    others: &[Other],
    chosen: &Chosen,
) -> Vec<Prediction> {
    let one = |(n, (asked, value)): (usize, (&Asked, &f64))| {
        let readings = others.iter().filter_map(|other| other.predicted.get(n)).copied();
        let write = asked.job.write;
        let factor = factor(write, asked.measure, chosen.saturates(write));
        let (low, high) = stated(readings.chain([*value]), factor).unwrap_or((*value, *value));
        Prediction {
            job: asked.job.to_string(),
            measure: asked.measure.name(),
            unit: asked.measure.unit(),
            value: *value,
            low,
            high,
        }
    };
    grid.iter().zip(values).enumerate().map(one).collect()
}

/// Every figure of every point.
pub(super) fn rows(
    points: &[Point],
    documents: &[Document],
    chosen: &Chosen,
    others: &[Other],
    base: &Base,
) -> Vec<Row> {
    let of = |(n, (point, document)): (usize, (&Point, &Document))| {
        let row = |(m, measure): (usize, Measure)| {
            let (fitted, beyond_queue) =
                (chosen.is_fitted(point, measure), point.job.in_flight() > base.queue);
            let simulated = measure.simulated(document, &point.job);
            let readings = others.iter().filter_map(|other| other.seen.get(n)?.0[m]);
            let factor = factor(point.job.write, measure, chosen.saturates(point.job.write));
            let range = simulated.filter(|_| !fitted && !beyond_queue);
            let range = range.and_then(|simulated| stated(readings.chain([simulated]), factor));
            Some(Row {
                job: name(&point.job, point.worn),
                measure: measure.name(),
                unit: measure.unit(),
                measured: measure.of(&point.figures)?,
                simulated,
                low: range.map(|(low, _)| low),
                high: range.map(|(_, high)| high),
                fitted,
                write: point.job.write,
                beyond_queue,
                place: point.place.clone(),
            })
        };
        Measure::ALL.into_iter().enumerate().filter_map(row).collect::<Vec<_>>()
    };
    points.iter().zip(documents).enumerate().flat_map(of).collect()
}

fn name(job: &Job, worn: bool) -> String {
    format!("{job}{}", if worn { ".worn" } else { "" })
}

impl Value {
    /// Of all that was chosen.
    pub(super) fn all(chosen: &Chosen, found: &[Solved], base: &Base) -> Vec<Value> {
        let thread = chosen.thread.map(|(us, job)| Value {
            key: Knob::Thread.key(base),
            before: Knob::Thread.value(base, base.thread),
            value: Knob::Thread.value(base, us),
            job: name(&job, false),
            measure: "between",
            unit: "us",
            measured: us,
            reached: us,
            met: true,
            why: "what passes between a request's end and the next",
        });
        let after = chosen.after.map(|(us, job)| Value {
            key: Knob::CoreAfter.key(base),
            before: Knob::CoreAfter.value(base, 0.0),
            value: Knob::CoreAfter.value(base, us),
            job: name(&job, false),
            measure: "waits",
            unit: "us",
            measured: us,
            reached: us,
            met: true,
            why: "a core that waits for less is awake",
        });
        thread.into_iter().chain(after).chain(found.iter().map(|one| Value::of(one, base))).collect()
    }

    fn of(solved: &Solved, base: &Base) -> Value {
        let target = &solved.target;
        Value {
            key: target.knob.key(base),
            before: target.knob.value(base, target.knob.of(base)),
            value: target.knob.value(base, solved.at),
            job: name(&target.job, target.worn),
            measure: target.measure.name(),
            unit: target.measure.unit(),
            measured: target.figure,
            reached: solved.reached,
            met: solved.is_met(),
            why: target.why,
        }
    }
}

impl Row {
    /// How far the simulated figure is off, as a share.
    pub fn error(&self) -> Option<f64> {
        self.simulated.map(|simulated| simulated / self.measured - 1.0)
    }
}

impl Fit {
    /// Whether every figure that chose a value is met.
    pub fn is_met(&self) -> bool {
        self.values.iter().all(|value| value.met)
    }

    /// Figures that a fit stated a range for, and how many of them are inside.
    pub fn inside(&self) -> (usize, usize) {
        let ranges = self.points.iter().filter_map(|row| Some((row.low?, row.measured, row.high?)));
        ranges.fold((0, 0), |(inside, all), (low, measured, high)| {
            (inside + usize::from(low <= measured && measured <= high), all + 1)
        })
    }

    /// Mean errors of what was not fitted, and not beyond the drive's queue, as shares: each with its name, how many figures it is of, and the worst of them.
    pub fn errors(&self) -> Vec<(&'static str, f64, usize, &Row)> {
        let is = |row: &Row, write: bool, measure: &str| row.write == write && row.measure == measure;
        let axis = |(name, write, measure): (&'static str, bool, &str)| {
            let rows =
                self.points.iter().filter(|row| !row.fitted && !row.beyond_queue && is(row, write, measure));
            let errors: Vec<(f64, &Row)> = rows.filter_map(|row| Some((row.error()?.abs(), row))).collect();
            let worst = errors.iter().max_by(|a, b| a.0.total_cmp(&b.0))?.1;
            let mean = errors.iter().map(|(error, _)| error).sum::<f64>() / errors.len() as f64;
            Some((name, mean, errors.len(), worst))
        };
        let axes = [
            ("read latency", false, "mean"),
            ("read throughput", false, "iops"),
            ("write latency", true, "mean"),
            ("write throughput", true, "iops"),
            ("99th percentile of reads", false, "p99"),
            ("99th percentile of writes", true, "p99"),
        ];
        axes.into_iter().filter_map(axis).collect()
    }

    /// The fitted drive as a file that `run` takes.
    pub fn to_toml(&self) -> String {
        let quoted = |text: &str| toml::Value::String(text.to_owned());
        let mut text = format!(
            "inherits = {}\ndescription = \"A drive like {}, fitted\"\n",
            quoted(&self.like),
            self.like
        );
        if !self.set.is_empty() {
            text.push_str("\n# Given.\n");
        }
        for set in &self.set {
            let (key, value) = set.split_once('=').unwrap_or((set, "true"));
            let value = if value.parse::<toml::Value>().is_ok() {
                value.to_owned()
            } else {
                quoted(value).to_string()
            };
            text.push_str(&format!("{key} = {value}\n"));
        }
        for value in &self.values {
            let Value { key, value, job, measure, unit, measured, reached, why, .. } = value;
            text.push_str(&format!(
                "\n# Fit: {why}, {measure} of {job}: measured {measured:.1} {unit}, reached {reached:.1}.\n{key} = {value}\n"
            ));
        }
        text
    }
}

// Range of a prediction: what the readings leave open, widened by how far fits of other drives were off.

/// By figure: requests a second, mean, 99th percentile, and percentiles beyond.
type Factors = [f64; 4];

/// How far a prediction may be off though the readings agree, as a factor up and down. *Chosen*: the larger of two drives' 90th percentiles, each fitted
/// from the other by two points, rounded up; what that leaves out, and where it is thin, says `papers/drives/README.md`, "How far a fit may be off".
struct Factor {
    /// Where a saturated figure of that direction chose a value.
    known: Factors,
    /// Where none did.
    open: Factors,
}

const READS: Factor = Factor { known: [1.15, 1.15, 1.25, 1.3], open: [1.5, 1.5, 1.6, 1.8] };

const WRITES: Factor = Factor { known: [1.4, 1.4, 2.0, 2.5], open: [1.6, 1.6, 12.0, 17.0] };

/// The factor of a figure; `is_known`: a saturated figure of that direction chose a value.
pub fn factor(write: bool, measure: Measure, is_known: bool) -> f64 {
    let Factor { known, open } = if write { WRITES } else { READS };
    let factors = if is_known { known } else { open };
    factors[match measure {
        Measure::Iops => 0,
        Measure::Mean => 1,
        Measure::P99 => 2,
        Measure::P999 | Measure::P99999 => 3,
    }]
}

/// The range of a figure of which these are all readings.
pub(super) fn stated(readings: impl Iterator<Item = f64>, factor: f64) -> Option<(f64, f64)> {
    let widest = readings.fold(None, |range: Option<(f64, f64)>, value| {
        Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    });
    widest.map(|(low, high)| (low / factor, high * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_all_readings_and_what_fits_are_off() {
        assert_eq!(stated([100.0, 80.0, 120.0].into_iter(), 1.25), Some((64.0, 150.0)));
        assert_eq!(stated([100.0].into_iter(), 1.25), Some((80.0, 125.0)));
        assert_eq!(stated(std::iter::empty(), 1.25), None);
    }

    /// Factors of figures without a point exceed those of measured kinds, and factors of percentiles exceed those of means.
    #[test]
    fn factors_rise_with_what_is_open() {
        for write in [false, true] {
            for measure in Measure::ALL {
                assert!(factor(write, measure, true) > 1.0);
                assert!(factor(write, measure, true) <= factor(write, measure, false));
            }
            let late = [Measure::Mean, Measure::P99, Measure::P999].map(|of| factor(write, of, true));
            assert!(late[0] <= late[1] && late[1] <= late[2]);
        }
    }
}
