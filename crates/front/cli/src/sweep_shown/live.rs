//! The table that grows while a sweep runs: a line for each run that has ended, above a bar with the time that is left. On
//! standard error, if that is a terminal; elsewhere a line every ten seconds says how many runs have ended.

use super::human::{View, aligned};
use crate::progress::Counter;
use sweep::{Outcome, Point, Progress, RunEnded, Sweep};

/// The least width of a metric's column: what comes later may be wider than what came first.
const METRIC: usize = 9;

/// A sweep that is shown while it runs.
pub(crate) struct Shown<'s>(pub(crate) &'s Sweep);

impl Progress for Shown<'_> {
    fn round<'p>(&'p self, points: &'p [Point], before: usize) -> RunEnded<'p> {
        let mut live = Live::new(self.0, points, before);
        Box::new(move |number, outcome, made| live.ended(number, outcome, made))
    }
}

/// The growing table and its bar, which goes away with it; what was printed stays.
struct Live<'s> {
    sweep: &'s Sweep,
    points: &'s [Point],
    /// Runs of earlier rounds.
    before: usize,
    counter: Counter,
    /// Runs that have ended, and those of them that were taken from the store.
    ended: usize,
    taken: usize,
    /// The columns, known from the first run that has metrics.
    view: Option<(View, Vec<usize>)>,
    /// Whether it was told what the first run lacks.
    told: bool,
}

impl<'s> Live<'s> {
    /// An empty table of a round's runs, behind those of `before`.
    fn new(sweep: &'s Sweep, points: &'s [Point], before: usize) -> Live<'s> {
        Live { sweep, points, before, counter: Counter::new(), ended: 0, taken: 0, view: None, told: false }
    }

    /// A run has ended; `made` unless it was taken from the store.
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
            // What costs nothing says nothing about the rest.
            self.counter.bar().reset_eta();
        }
        self.counter.show(self.ended, self.points.len(), self.taken);
    }

    /// A metric that the first run lacks may be misspelt, and others may lack it as well: who waits for them should know.
    fn tell_what_lacks(&self, number: usize, outcome: &Outcome) {
        for (at, name) in self.sweep.named().iter().enumerate() {
            if !outcome.has(at) {
                self.counter
                    .bar()
                    .suspend(|| tell!("note: run {} has no metric `{name}`", self.before + number));
            }
        }
    }

    /// The lines that a run adds.
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

    /// Widths for all labels, and for metrics as they usually are.
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
