//! Studies: rows that share runs.
//!
//! A row of a paper is a ratio or a mean over many runs, and most runs serve several rows. So an entry names the points
//! it needs, every point is run once, in parallel, and rows are computed from the results.

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

/// Single run of a study.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Point {
    pub(crate) system: String,
    pub(crate) set: Vec<String>,
    pub(crate) workloads: Vec<String>,
    pub(crate) seed: u64,
    /// Minimum total size of the programs in bytes, so that they exceed every buffer: a smaller run is refused.
    pub(crate) least_footprint: u64,
    /// Start of the measured window.
    pub(crate) warmup: Option<Warmup>,
}

impl Point {
    /// Adds an override of the spec.
    pub(crate) fn set(mut self, assignment: &str) -> Point {
        self.set.push(assignment.into());
        self
    }

    /// Point with the assignments of choices before its own, which take precedence.
    pub(crate) fn under(&self, choices: &[Choice]) -> Point {
        let read = sets(choices, &self.system).into_iter().map(str::to_owned);
        Point { set: read.chain(self.set.iter().cloned()).collect(), ..self.clone() }
    }

    /// Plan of the point.
    pub(crate) fn plan(&self) -> Plan {
        let Point { system, set, workloads, seed, least_footprint: _, warmup } = self.clone();
        Plan { set, workloads, seed, warmup, ..Plan::new(&system, "") }
    }

    /// Runs the point with states of its own.
    ///
    /// # Errors
    /// The errors of [`Point::run_with`].
    pub(crate) fn run(&self, stop: &AtomicBool) -> Result<Document, Diagnostic> {
        self.run_with(None, stop)
    }

    /// Runs the point with shared states.
    ///
    /// # Errors
    /// The plan is unusable, a check of the run fails, or work is left undone.
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

/// Results of the points.
#[derive(Default)]
pub(crate) struct Found(pub(crate) BTreeMap<Point, Result<Document, String>>);

impl Found {
    /// Document of a point.
    ///
    /// # Errors
    /// The point failed or was not run.
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

/// Row with the runs that it needs.
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) points: Vec<Point>,
    /// Further runs, whose parameters follow from the results of the points.
    further: Option<Box<Further>>,
    compute: Box<Compute>,
}

impl Entry {
    /// Creates a row of runs known beforehand; an empty row without points.
    pub(crate) fn new(
        id: impl Into<String>,
        points: Vec<Point>,
        compute: impl Fn(&Found) -> Result<Row, Diagnostic> + Send + Sync + 'static,
    ) -> Entry {
        Entry { id: id.into(), points, further: None, compute: Box::new(compute) }
    }

    /// Adds further runs, determined once the points are done.
    pub(crate) fn then(
        self,
        further: impl Fn(&Found) -> Result<Vec<Point>, Diagnostic> + Send + Sync + 'static,
    ) -> Entry {
        Entry { further: Some(Box::new(further)), ..self }
    }

    /// Renames the entry and changes its row.
    pub(crate) fn changed(
        self,
        id: impl Into<String>,
        change: impl Fn(Row) -> Row + Send + Sync + 'static,
    ) -> Entry {
        let compute = self.compute;
        Entry { id: id.into(), compute: Box::new(move |found| compute(found).map(&change)), ..self }
    }

    /// Marks a row that was used to choose a parameter or a mechanism, or had been seen when one was chosen without a
    /// source: it does not count.
    pub(crate) fn fitted(self) -> Entry {
        self.with(Evidence::Fit)
    }

    /// Marks a row that had been seen when something was corrected that has a source of its own.
    pub(crate) fn seen(self) -> Entry {
        self.with(Evidence::Seen)
    }

    fn with(self, evidence: Evidence) -> Entry {
        let id = self.id.clone();
        self.changed(id, move |row| Row { evidence, ..row })
    }

    /// Further runs; none if a point failed, which the row reports.
    pub(crate) fn further(&self, found: &Found) -> Vec<Point> {
        self.further.as_ref().and_then(|further| further(found).ok()).unwrap_or_default()
    }

    /// Returns whether any of its runs was made.
    pub(crate) fn was_run(&self, found: &Found) -> bool {
        self.points.iter().any(|point| found.0.contains_key(point))
    }

    /// Computes the row, or a failed row.
    pub(crate) fn row(&self, found: &Found) -> Row {
        let row = (self.compute)(found).unwrap_or_else(|why| Row::failed(&self.id, why.one_line()));
        Row { id: self.id.clone(), ..row }
    }
}
