//! Report of a fit.

use super::base::Base;
use super::choose::{Chosen, Solved};
use super::job::{Job, Measure};
use super::knob::Knob;
use super::point::Point;
use machine::result::Document;
use serde::Serialize;

/// Fitted drive beside the measurements.
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    /// System that the fit started from.
    pub like: String,
    /// Overrides of the user.
    pub set: Vec<String>,
    /// Fitted values.
    pub values: Vec<Value>,
    /// Every measured metric beside that of the fitted drive.
    pub points: Vec<Row>,
    /// Alternative drives, and whether they have the same metrics.
    #[serde(rename = "other_readings")]
    pub readings: Vec<Other>,
    /// Predictions beyond the measurements, with the range over all readings.
    pub predictions: Vec<Prediction>,
    /// Notes on the use of points.
    pub notes: Vec<String>,
    /// Number of runs.
    pub runs: u64,
}

/// Fitted value.
#[derive(Clone, Debug, Serialize)]
pub struct Value {
    /// Spec key.
    pub key: String,
    /// Value in the initial system, as TOML.
    pub before: String,
    /// Fitted value, as TOML.
    pub value: String,
    /// Job whose metric chose it.
    pub job: String,
    /// Metric: `iops`, `mean` or `p99`, the time `between` requests, or the time that a core `waits`.
    pub measure: &'static str,
    /// Unit of the metric.
    pub unit: &'static str,
    /// Measured value of the metric.
    pub measured: f64,
    /// Simulated value of the metric with the fitted value.
    pub reached: f64,
    /// True if the two agree within 1 %, percentiles within 5 %.
    pub met: bool,
    /// Reason for this metric.
    pub why: &'static str,
}

/// Measured metric.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Job.
    pub job: String,
    /// Metric.
    pub measure: &'static str,
    /// Unit of the metric.
    pub unit: &'static str,
    /// Measured value.
    pub measured: f64,
    /// Simulated value; `None` if the run has too few requests for it.
    pub simulated: Option<f64>,
    /// Lower end of the stated range; `None` for a fitted or unpredictable metric.
    pub low: Option<f64>,
    /// Upper end of the stated range.
    pub high: Option<f64>,
    /// True if the metric chose a value: then it does not test the fit.
    pub fitted: bool,
    /// True if the job writes.
    pub write: bool,
    /// True if more is in flight than the drive takes at once: which request waits is then the host's choice.
    pub beyond_queue: bool,
    /// Source of the measurement.
    pub place: String,
}

/// Alternative reading of the same metrics.
#[derive(Clone, Debug, Serialize)]
pub struct Other {
    /// Description.
    pub name: String,
    /// Overrides of the initial system.
    pub values: Vec<String>,
    /// True if this reading has the same metrics; otherwise it is not used.
    pub is_met: bool,
    #[serde(skip)]
    pub(super) predicted: Vec<f64>,
    /// Metrics by point.
    #[serde(skip)]
    pub(super) seen: Vec<Seen>,
}

/// Metrics of a job on a drive, in the order of [`Measure::ALL`].
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Seen([Option<f64>; 5]);

impl Seen {
    /// Metrics of a run, if there was one.
    pub(super) fn of(document: Option<&Document>, job: &Job) -> Seen {
        Seen(Measure::ALL.map(|measure| measure.simulated(document?, job)))
    }
}

/// Predicted metric of a job without a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// Job.
    pub job: String,
    /// Metric.
    pub measure: &'static str,
    /// Unit of the metric.
    pub unit: &'static str,
    /// Prediction of the fitted drive.
    pub value: f64,
    /// Lowest prediction of all readings with the same metrics, reduced by the errors of fits of other drives.
    pub low: f64,
    /// Highest prediction, increased likewise.
    pub high: f64,
}

/// Block size of small requests, unless points have a different one.
pub(super) const BLOCK: u64 = 4096;
/// Block size of large requests.
const LARGE: u64 = 128 << 10;

/// Job and metric to predict.
pub(super) struct Asked {
    pub(super) job: Job,
    pub(super) measure: Measure,
}

/// Jobs of general interest.
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

/// Predictions of the fitted drive, with those of other readings.
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

/// Every metric of every point.
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
    /// All fitted values.
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
            why: "time between the end of a request and the next",
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
            why: "a core that waits for less stays awake",
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
    /// Relative error of the simulated metric.
    pub fn error(&self) -> Option<f64> {
        self.simulated.map(|simulated| simulated / self.measured - 1.0)
    }
}

impl Fit {
    /// Returns whether every metric that chose a value is met.
    pub fn is_met(&self) -> bool {
        self.values.iter().all(|value| value.met)
    }

    /// Number of metrics inside their stated range, and number with a range.
    pub fn inside(&self) -> (usize, usize) {
        let ranges = self.points.iter().filter_map(|row| Some((row.low?, row.measured, row.high?)));
        ranges.fold((0, 0), |(inside, all), (low, measured, high)| {
            (inside + usize::from(low <= measured && measured <= high), all + 1)
        })
    }

    /// Mean relative errors of metrics that were not fitted and not beyond the drive's queue: name, error, number of
    /// metrics, and the worst.
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

    /// Writes the fitted drive as a system file for `run`.
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

// Range of a prediction: the range over the readings, widened by the errors of fits of other drives.

/// Factors by metric: requests per second, mean, 99th percentile, and higher percentiles.
type Factors = [f64; 4];

/// Possible error of a prediction even if the readings agree, as a factor up and down. *Chosen*: the larger of two
/// drives' 90th percentiles, each fitted from the other by two points, rounded up; see `papers/drives/README.md`, "How
/// far a fit may be off", for what that omits and where it is thin.
struct Factor {
    /// Factors where a saturated metric of that direction chose a value.
    known: Factors,
    /// Factors where none did.
    open: Factors,
}

const READS: Factor = Factor { known: [1.15, 1.15, 1.25, 1.3], open: [1.5, 1.5, 1.6, 1.8] };

const WRITES: Factor = Factor { known: [1.4, 1.4, 2.0, 2.5], open: [1.6, 1.6, 12.0, 17.0] };

/// Factor of a metric; `is_known`: a saturated metric of that direction chose a value.
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

/// Range of a metric over these predictions of all readings.
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

    /// Factors of figures without a point exceed those of measured kinds, and factors of percentiles exceed those of
    /// means.
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
