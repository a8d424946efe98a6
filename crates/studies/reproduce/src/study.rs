//! Studies: rows that share runs.
//!
//! A row of a paper is a ratio or a mean over many runs, and most runs serve several rows. So an entry names the points it
//! needs, every point is run once, side by side, and rows are worked out from what was found.

use super::reading::{Choice, sets};
use super::row::{Evidence, Row};
use config::Diagnostic;
use machine::Warmup;
use machine::result::Document;
use machine::run::{Outside, Plan, run};
use machine::state::States;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicBool;

/// One run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Point {
    pub(crate) system: String,
    pub(crate) set: Vec<String>,
    pub(crate) workloads: Vec<String>,
    pub(crate) seed: u64,
    /// Bytes that the programs must have between them, so that no buffer holds them: a run with less says nothing.
    pub(crate) least_footprint: u64,
    /// When the measured window begins.
    pub(crate) warmup: Option<Warmup>,
}

impl Point {
    /// Overrides a value of the spec.
    pub(crate) fn set(mut self, assignment: &str) -> Point {
        self.set.push(assignment.into());
        self
    }

    /// The point with the assignments of choices before its own, which override them.
    pub(crate) fn under(&self, choices: &[Choice]) -> Point {
        let read = sets(choices, &self.system).into_iter().map(str::to_owned);
        Point { set: read.chain(self.set.iter().cloned()).collect(), ..self.clone() }
    }

    /// What it runs.
    pub(crate) fn plan(&self) -> Plan {
        let Point { system, set, workloads, seed, least_footprint: _, warmup } = self.clone();
        Plan { set, workloads, seed, warmup, ..Plan::new(&system, "") }
    }

    /// Runs it, alone.
    ///
    /// # Errors
    /// As [`Point::run_with`].
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<Document, Diagnostic> {
        self.run_with(None, stop)
    }

    /// Runs it, with states that others keep.
    ///
    /// # Errors
    /// A plan that is unusable, or a run whose checks fail or that leaves work undone.
    pub(crate) fn run_with(
        &self,
        states: Option<&dyn States>,
        stop: &AtomicBool,
    ) -> Result<Document, Diagnostic> {
        let mut outside =
            Outside { cpu_s: &|| 0.0, wall_s: &|| 0.0, peak_rss: &|| 0, stop, watch: &mut |_| {}, states };
        let document = run(&self.plan(), &mut outside)?;
        self.check_footprint(&document)?;
        match document.checks.iter().find(|check| !check.ok) {
            Some(check) => Err(Diagnostic::new(format!("{self}: {}: {}", check.name, check.detail))),
            None => Ok(document),
        }
    }
}

impl Point {
    fn check_footprint(&self, document: &Document) -> Result<(), Diagnostic> {
        let apps = document.gpu.iter().flat_map(|gpu| &gpu.applications);
        let bytes: u64 = apps.map(|app| app.footprint_bytes).sum();
        if bytes < self.least_footprint {
            let least = self.least_footprint;
            let what =
                format!("{self}: the programs have {bytes} B, less than the {least} B that no buffer holds");
            return Err(Diagnostic::new(what));
        }
        Ok(())
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.workloads.join(" and "), self.system)?;
        self.set.iter().try_for_each(|set| write!(f, " {set}"))
    }
}

/// What the points have come to.
#[derive(Default)]
pub(crate) struct Found(pub(crate) BTreeMap<Point, Result<Document, String>>);

impl Found {
    /// The document of a point.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn get(&self, point: &Point) -> Result<&Document, Diagnostic> {
        match self.0.get(point) {
            Some(Ok(document)) => Ok(document),
            Some(Err(why)) => Err(Diagnostic::new(why.clone())),
            None => Err(Diagnostic::new(format!("{point} was not run"))),
        }
    }
}

type Compute = dyn Fn(&Found) -> Result<Row, Diagnostic> + Send + Sync;
type Further = dyn Fn(&Found) -> Result<Vec<Point>, Diagnostic> + Send + Sync;

/// A row, and the runs that it needs.
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) points: Vec<Point>,
    /// Runs whose parameters follow from what the points have come to.
    further: Option<Box<Further>>,
    compute: Box<Compute>,
}

impl Entry {
    /// A row that follows from runs known beforehand; from none, if there are no points.
    pub(crate) fn new(
        id: impl Into<String>,
        points: Vec<Point>,
        compute: impl Fn(&Found) -> Result<Row, Diagnostic> + Send + Sync + 'static,
    ) -> Entry {
        Entry { id: id.into(), points, further: None, compute: Box::new(compute) }
    }

    /// The same row, which needs further runs, known when the points are done.
    pub(crate) fn then(
        self,
        further: impl Fn(&Found) -> Result<Vec<Point>, Diagnostic> + Send + Sync + 'static,
    ) -> Entry {
        Entry { further: Some(Box::new(further)), ..self }
    }

    /// The same entry under another name, with its row changed.
    pub(crate) fn changed(
        self,
        id: impl Into<String>,
        change: impl Fn(Row) -> Row + Send + Sync + 'static,
    ) -> Entry {
        let compute = self.compute;
        Entry { id: id.into(), compute: Box::new(move |found| compute(found).map(&change)), ..self }
    }

    /// A row that had a part in choosing a parameter or a mechanism, or had been seen when one was chosen without a source: it
    /// does not count.
    pub(crate) fn fitted(self) -> Entry {
        self.with(Evidence::Fit)
    }

    /// A row that had been seen when something was corrected that has a source of its own.
    pub(crate) fn seen(self) -> Entry {
        self.with(Evidence::Seen)
    }

    fn with(self, evidence: Evidence) -> Entry {
        let id = self.id.clone();
        self.changed(id, move |row| Row { evidence, ..row })
    }

    /// The further runs; none if a point failed, which the row says.
    pub(crate) fn further(&self, found: &Found) -> Vec<Point> {
        self.further.as_ref().and_then(|further| further(found).ok()).unwrap_or_default()
    }

    /// Whether something that it needs was run.
    pub(crate) fn was_run(&self, found: &Found) -> bool {
        self.points.iter().any(|point| found.0.contains_key(point))
    }

    /// The row, or that it failed.
    pub(crate) fn row(&self, found: &Found) -> Row {
        let row = (self.compute)(found).unwrap_or_else(|why| Row::failed(&self.id, why.one_line()));
        Row { id: self.id.clone(), ..row }
    }
}
