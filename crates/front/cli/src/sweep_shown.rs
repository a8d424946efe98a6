//! Two tables of a sweep for people. One grows on standard error while the sweep runs, if that is a terminal; elsewhere
//! a line every ten seconds says how many runs have ended. The other has all runs.

use crate::progress::Counter;
use serde_json::Value;
use sweep::{Answer, Outcome, Point, Progress, RunEnded, Sweep, answered, columns, text};

/// Columns of the table for people: the keys that vary, and the metrics that exist. Several workloads are numbered.
struct View {
    /// Column of the workload.
    workload: usize,
    workloads: Vec<String>,
    labels: Vec<usize>,
    metrics: Vec<(usize, String)>,
    header: Vec<String>,
}

impl View {
    /// Chooses the columns for a sweep with these outcomes.
    fn new<'o>(sweep: &Sweep, points: &[Point], outcomes: impl Iterator<Item = &'o Outcome> + Clone) -> View {
        let columns = columns(sweep);
        let workload = usize::from(sweep.has_systems);
        let mut workloads: Vec<String> = Vec::new();
        for name in points.iter().map(|point| text(&point.labels[workload])) {
            if !workloads.contains(&name) {
                workloads.push(name);
            }
        }
        let varies = |at: &usize| points.iter().any(|p| p.labels[*at] != points[0].labels[*at]);
        let labels: Vec<usize> = (0..columns.len()).filter(varies).collect();
        let is_there = |at: &usize| outcomes.clone().any(|outcome| !outcome.metric(*at).is_null());
        let metrics: Vec<(usize, String)> =
            (0..sweep.metrics.len()).filter(is_there).map(|at| (at, sweep.metrics[at].clone())).collect();
        let mut header = vec!["run".to_owned()];
        header.extend(labels.iter().map(|at| short(&columns[*at])));
        header.extend(metrics.iter().map(|(_, name)| short_metric(name)));
        View { workload, workloads, labels, metrics, header }
    }

    /// Column headings.
    fn header(&self) -> &[String] {
        &self.header
    }

    /// Legend of workload numbers; empty for a single workload.
    fn legend(&self) -> String {
        if self.workloads.len() < 2 {
            return String::new();
        }
        let lines = self.workloads.iter().enumerate();
        lines.map(|(number, workload)| format!("workload {number}: {workload}\n")).collect::<String>() + "\n"
    }

    /// Values that distinguish a run.
    fn labels(&self, number: usize, point: &Point) -> Vec<String> {
        let label = |at: &usize| {
            let name = text(&point.labels[*at]);
            if *at != self.workload {
                return name;
            }
            self.workloads.iter().position(|w| *w == name).unwrap_or_default().to_string()
        };
        std::iter::once(number.to_string()).chain(self.labels.iter().map(label)).collect()
    }

    /// Row of a run; a message follows the metrics, or replaces them.
    fn row(&self, number: usize, point: &Point, outcome: &Outcome) -> Vec<String> {
        let mut row = self.labels(number, point);
        match outcome {
            Outcome::Done(run) => {
                let shown = |(at, name): &(usize, String)| match outcome.metric(*at) {
                    Value::Null => "-".into(),
                    value => figure(name, value),
                };
                row.extend(self.metrics.iter().map(shown));
                row.extend((!run.well).then(|| "A CHECK FAILED".to_owned()));
            }
            Outcome::Failed(diagnostic) => row.push(format!("FAILED: {}", diagnostic.what)),
            Outcome::NotRun => row.push("not run".into()),
        }
        row
    }
}

/// Formats the table of all runs.
pub(crate) fn human(sweep: &Sweep, points: &[Point], outcomes: &[Outcome]) -> String {
    let view = View::new(sweep, points, outcomes.iter());
    let mut rows = vec![view.header().to_vec()];
    rows.extend(points.iter().zip(outcomes).enumerate().map(|(number, (p, o))| view.row(number, p, o)));
    let widths = widths(&rows, view.header().len());
    let lines: Vec<String> = rows.iter().map(|row| aligned(row, &widths)).collect();
    view.legend() + &lines.join("\n")
}

/// Formats the answer of a search.
pub(crate) fn found(sweep: &Sweep, points: &[Point], answer: &Answer) -> String {
    let (heads, rows) = answered(sweep, answer);
    let columns = columns(sweep);
    let varies = |at: &usize| {
        let label = columns.iter().position(|name| *name == heads[*at]);
        let label = label.filter(|_| *at < heads.len() - answer.heads.len());
        label.is_none_or(|label| points.iter().any(|point| point.labels[label] != points[0].labels[label]))
    };
    let shown: Vec<usize> = (0..heads.len()).filter(varies).collect();
    let cell = |at: usize, value: &Value| {
        figure(heads[at].trim_end_matches(" before").trim_end_matches(" after"), value)
    };
    let mut lines = vec![shown.iter().map(|at| short_metric(&heads[*at])).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| shown.iter().map(|at| cell(*at, &row[*at])).collect()));
    let widths = widths(&lines, shown.len());
    let lines: Vec<String> = lines.iter().map(|row| aligned(row, &widths)).collect();
    format!("{}:\n{}", answer.what, lines.join("\n"))
}

/// Column widths needed by some rows.
fn widths(rows: &[Vec<String>], columns: usize) -> Vec<usize> {
    // A message after the last column, or in its place, does not widen it.
    let is_whole = |row: &&Vec<String>| row.len() >= columns;
    let width = |at: usize| rows.iter().filter(is_whole).map(|row| row[at].chars().count()).max();
    (0..columns).map(|at| width(at).unwrap_or(0)).collect()
}

/// Formats a row with right-aligned cells.
fn aligned(row: &[String], widths: &[usize]) -> String {
    let cell = |(at, text): (usize, &String)| {
        let is_cell = row.len() >= widths.len() || at + 1 < row.len();
        let width = widths.get(at).filter(|_| is_cell).copied().unwrap_or(0);
        format!("{text:>width$}")
    };
    row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")
}

/// Formats a value in the unit that its key names.
fn figure(key: &str, value: &Value) -> String {
    value.as_f64().map_or_else(|| text(value), |number| report::shown_as(key, number))
}

/// Returns the last two components of a key.
fn short(key: &str) -> String {
    let parts: Vec<&str> = key.rsplitn(3, '.').collect();
    parts[..parts.len().min(2)].iter().rev().copied().collect::<Vec<_>>().join(".")
}

/// Removes the implied tables from a metric's name.
fn short_metric(name: &str) -> String {
    name.trim_start_matches("io.").trim_start_matches("flash.0.").to_owned()
}

/// Minimum width of a metric's column: later values may be wider than the first.
const METRIC: usize = 9;

/// Sweep that is shown while it runs.
pub(crate) struct Shown<'s>(pub(crate) &'s Sweep);

impl Progress for Shown<'_> {
    fn round<'p>(&'p self, points: &'p [Point], before: usize) -> RunEnded<'p> {
        let mut live = Live::new(self.0, points, before);
        Box::new(move |number, outcome, made| live.ended(number, outcome, made))
    }
}

/// Growing table and its progress bar. The bar disappears at the end; printed lines stay.
struct Live<'s> {
    sweep: &'s Sweep,
    points: &'s [Point],
    /// Number of runs in earlier rounds.
    before: usize,
    counter: Counter,
    /// Number of runs that have ended, and of those taken from the store.
    ended: usize,
    taken: usize,
    /// Columns, known from the first run with metrics.
    view: Option<(View, Vec<usize>)>,
    /// True if the metrics missing in the first run were reported.
    told: bool,
}

impl<'s> Live<'s> {
    /// Starts the empty table of a round, after `before` earlier runs.
    fn new(sweep: &'s Sweep, points: &'s [Point], before: usize) -> Live<'s> {
        Live { sweep, points, before, counter: Counter::new(), ended: 0, taken: 0, view: None, told: false }
    }

    /// Records the end of a run; `made` is false if it was taken from the store.
    fn ended(&mut self, number: usize, outcome: &Outcome, made: bool) {
        if !self.counter.bar().is_hidden() {
            self.lines(number, outcome).into_iter().for_each(|line| self.counter.bar().println(line));
        }
        if matches!(outcome, Outcome::Done(_)) && !std::mem::replace(&mut self.told, true) {
            self.tell_what_lacks(number, outcome);
        }
        self.ended += 1;
        self.taken += usize::from(!made);
        if !made {
            // A run from the store costs nothing and must not affect the estimate.
            self.counter.bar().reset_eta();
        }
        self.counter.show(self.ended, self.points.len(), self.taken);
    }

    /// Reports metrics that the first run lacks: they may be misspelt, and missing in all other runs.
    fn tell_what_lacks(&self, number: usize, outcome: &Outcome) {
        for (at, name) in self.sweep.named().iter().enumerate() {
            if !outcome.has(at) {
                self.counter
                    .bar()
                    .suspend(|| tell!("note: run {} has no metric `{name}`", self.before + number));
            }
        }
    }

    /// Lines that a run adds.
    fn lines(&mut self, number: usize, outcome: &Outcome) -> Vec<String> {
        let mut lines = Vec::new();
        if self.view.is_none() && matches!(outcome, Outcome::Done(_)) {
            let view = View::new(self.sweep, self.points, std::iter::once(outcome));
            let widths = self.widths(&view);
            lines.extend(view.legend().lines().map(str::to_owned));
            lines.push(aligned(view.header(), &widths));
            self.view = Some((view, widths));
        }
        lines.push(match &self.view {
            Some((view, widths)) => {
                aligned(&view.row(self.before + number, &self.points[number], outcome), widths)
            }
            None => format!("run {} failed", self.before + number),
        });
        lines
    }

    /// Widths for all labels, and for metrics of usual width.
    fn widths(&self, view: &View) -> Vec<usize> {
        let mut widths: Vec<usize> = view.header().iter().map(|head| head.chars().count()).collect();
        let mut labels = 0;
        for (number, point) in self.points.iter().enumerate() {
            let cells = view.labels(self.before + number, point);
            labels = cells.len();
            for (width, cell) in widths.iter_mut().zip(&cells) {
                *width = cell.chars().count().max(*width);
            }
        }
        widths[labels..].iter_mut().for_each(|width| *width = METRIC.max(*width));
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_have_the_unit_of_their_key() {
        for (key, value, shown) in [
            ("io.read.latency_ns.p99", json!(1_234_567.0), "1.235 ms"),
            ("io.all.iops", json!(29_395.38), "29.4 k/s"),
            ("flash.0.write_amplification", json!(3.176), "3.176"),
            ("flash.0.erases", json!(1_234_567), "1,234,567"),
            ("iodepth", json!(16), "16"),
            ("found", json!("crossing"), "crossing"),
        ] {
            assert_eq!(figure(key, &value), shown);
        }
    }

    #[test]
    fn columns_are_right_aligned_and_messages_do_not_widen_them() {
        let row = |cells: &[&str]| cells.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>();
        let rows = [row(&["run", "x", "iops"]), row(&["0", "10", "5"]), row(&["1", "FAILED: a long story"])];
        let widths = widths(&rows, 3);
        let shown: Vec<String> = rows.iter().map(|row| aligned(row, &widths)).collect();
        assert_eq!(shown, ["run   x  iops", "  0  10     5", "  1  FAILED: a long story"]);
    }
}
