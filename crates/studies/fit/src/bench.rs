//! Runs of jobs on the drive that is fitted.

use super::base::Base;
use super::job::Job;
use super::measure::Measure;
use config::Diagnostic;
use machine::result::Document;
use machine::run::{Outside, Plan, run};
use machine::state::States;
use machine::warmup::Warmup;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How much smaller the blocks of a worn drive are, so that its steady state is soon there: free space, dies and planes stay.
const SMALLER: u32 = 16;

/// Where jobs run.
pub(super) struct Bench<'a> {
    pub(super) like: &'a str,
    /// The user's changes.
    pub(super) set: &'a [String],
    pub(super) base: &'a Base,
    pub(super) seed: u64,
    pub(super) stop: &'a AtomicBool,
    pub(super) states: Option<&'a (dyn States + Sync)>,
    /// Runs so far, those that there will be, and who is told of each.
    pub(super) runs: AtomicU64,
    pub(super) about: u64,
    pub(super) progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl Bench<'_> {
    /// What is run for a job on the drive with these changes.
    pub(super) fn plan(&self, values: &[String], job: &Job, worn: bool) -> Plan {
        let mut set = [self.set, values].concat();
        if worn {
            let (flash, base) = (&self.base.flash, self.base);
            set.push(format!("{flash}.precondition=steady"));
            if base.pages.is_multiple_of(SMALLER) {
                set.push(format!("{flash}.geometry.pages={}", base.pages / SMALLER));
                set.push(format!("{flash}.cell.erase={}ps", base.erase.ps() / u64::from(SMALLER)));
            }
        }
        // Of a larger drive than this one all is touched.
        let job = Job { span: job.span.filter(|span| *span <= self.base.capacity), ..*job };
        let (before, counted) = job.requests(worn, false);
        Plan {
            set,
            seed: self.seed,
            warmup: Some(Warmup::Requests(before)),
            ..Plan::new(self.like, &job.workload(before + counted))
        }
    }

    /// Runs a job.
    ///
    /// # Errors
    /// A job that the drive cannot take, a run whose checks fail, or an end before its time.
    pub(super) fn run(&self, values: &[String], job: &Job, worn: bool) -> Result<Document, Diagnostic> {
        let mut outside = Outside {
            cpu_s: &|| 0.0,
            wall_s: &|| 0.0,
            peak_rss: &|| 0,
            stop: self.stop,
            watch: &mut |_| {},
            states: self.states.map(|states| states as &dyn States),
        };
        let document = run(&self.plan(values, job, worn), &mut outside)?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(Diagnostic::new("interrupted: there is no fit"));
        }
        if let Some(check) = document.checks.iter().find(|check| !check.ok) {
            return Err(Diagnostic::new(format!("{job}: {}: {}", check.name, check.detail)));
        }
        let done = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        (self.progress)(done, self.about.max(done));
        Ok(document)
    }

    /// A figure of a job.
    ///
    /// # Errors
    /// As [`Bench::run`].
    pub(super) fn figure(
        &self,
        values: &[String],
        job: &Job,
        worn: bool,
        measure: Measure,
    ) -> Result<f64, Diagnostic> {
        let document = self.run(values, job, worn)?;
        let missing =
            || Diagnostic::new(format!("{job}: the run has too few requests for its {}", measure.name()));
        measure.simulated(&document, job).ok_or_else(missing)
    }
}
