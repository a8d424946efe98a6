//! Drive that a fit starts from.

use super::job::{Job, Measure};
use config::Diagnostic;
use engine::Time;
use machine::Warmup;
use machine::result::Document;
use machine::run::{Outside, Plan, run};
use machine::state::States;
use spec::Loaded;
use ssd::spec::{ControllerSpec, UpkeepSpec};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Properties of the initial drive that a fit needs.
#[derive(Clone, Debug)]
pub(super) struct Base {
    /// Table of the drive, and that of the host.
    pub(super) flash: String,
    pub(super) host: String,
    /// Read times by page type, in microseconds.
    pub(super) read: Vec<f64>,
    /// Program times by page or pass, in microseconds.
    pub(super) program: Vec<f64>,
    pub(super) erase: Time,
    pub(super) pages: u32,
    pub(super) controller: ControllerSpec,
    pub(super) thread: f64,
    /// True for a SATA drive; NVMe drives have queues.
    pub(super) is_sata: bool,
    /// Time from the end of a command to running software, in microseconds.
    pub(super) interrupt: f64,
    /// Exit latencies of its link and of the host's cores, in microseconds; zero where they do not sleep.
    pub(super) link_exit: f64,
    pub(super) core_exit: f64,
    /// Maximum number of commands in flight at the host.
    pub(super) queue: u64,
    pub(super) capacity: u64,
}

/// Converts a time to microseconds.
pub(super) fn us(time: Time) -> f64 {
    time.ps() as f64 / 1e6
}

impl Base {
    /// Work on writes after their acknowledgement.
    pub(super) fn upkeep(&self) -> Option<&UpkeepSpec> {
        self.controller.write.as_ref()?.upkeep.as_ref()
    }

    /// Reads the properties of a system's first drive.
    ///
    /// # Errors
    /// The system has no drive, its drive has no queues, or the drive cannot be built.
    pub(super) fn of(loaded: &Loaded, like: &str) -> Result<Base, Diagnostic> {
        const HELP: &str = "a fit starts from a system of one drive with queues, such as pm9a3 or 860-pro";
        let drive = loaded.drive().map_err(|fault| fault.help(HELP))?;
        let flash = drive.flash;
        let (is_sata, interrupt, queue) = match (&flash.host.nvme, &flash.host.ahci) {
            (_, Some(ahci)) => (true, ahci.interrupt, u64::from(ahci.slots)),
            (Some(nvme), None) => (false, nvme.interrupt, u64::MAX),
            (None, None) => {
                return Err(Diagnostic::new(format!("the drive of `{like}` has no host queues")).help(HELP));
            }
        };
        let times = |times: &[config::units::Duration]| times.iter().map(|time| us(time.time())).collect();
        Ok(Base {
            flash: loaded.spec.flash[0].table().to_owned(),
            host: loaded.spec.host[0].table().to_owned(),
            read: times(&flash.cell.read),
            program: times(&flash.cell.program),
            erase: flash.cell.erase.time(),
            pages: flash.geometry.pages,
            controller: flash.host.controller.clone(),
            thread: drive.host.thread.map_or(0.0, |thread| us(thread.time())),
            is_sata,
            interrupt: us(interrupt.time()),
            link_exit: flash.host.sleep.map_or(0.0, |sleep| us(sleep.exit.time())),
            core_exit: drive.host.sleep.map_or(0.0, |sleep| us(sleep.exit.time())),
            queue,
            capacity: loaded.device(1)?.capacity(),
        })
    }
}

// Runs of jobs on the drive being fitted.

/// Factor by which the blocks of a worn drive are reduced to reach its steady state soon: free space, dies and planes
/// stay.
const SMALLER: u32 = 16;

/// Bench that runs jobs.
pub(super) struct Bench<'a> {
    pub(super) like: &'a str,
    /// Overrides of the user.
    pub(super) set: &'a [String],
    pub(super) base: &'a Base,
    pub(super) seed: u64,
    pub(super) stop: &'a AtomicBool,
    pub(super) states: Option<&'a (dyn States + Sync)>,
    /// Runs so far, the expected total, and the callback after each.
    pub(super) runs: AtomicU64,
    pub(super) about: u64,
    pub(super) progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl Bench<'_> {
    /// Plan of a job on the drive with these overrides.
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
        // A span larger than this drive covers all of it.
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
    /// The drive cannot take the job, a check of the run fails, or the run is interrupted.
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
            return Err(Diagnostic::new("interrupted before the fit was done"));
        }
        if let Some(check) = document.checks.iter().find(|check| !check.ok) {
            return Err(Diagnostic::new(format!("{job}: {}: {}", check.name, check.detail)));
        }
        let done = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        (self.progress)(done, self.about.max(done));
        Ok(document)
    }

    /// Metric of a job.
    ///
    /// # Errors
    /// The errors of [`Bench::run`].
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
