//! What an inline job or a job file holds.

use config::Diagnostic;
use proto::file::{Advice, Way};
use serde::Serialize;

use super::layout::Layout;
use super::spec::{JobSpec, Pattern, Scheduler};
use crate::synth::Job;

/// The jobs of one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Jobs {
    /// The job sections, in order.
    pub jobs: Vec<JobSpec>,
    /// What the result should say about the text.
    pub notes: Notes,
}

/// Remarks for the result document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Notes {
    /// Options given that change nothing here.
    pub inert: Vec<InertOption>,
    /// What is likely not meant.
    pub warnings: Vec<String>,
}

/// An option that was given and changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InertOption {
    /// The job, or `global`.
    pub job: String,
    /// The option.
    pub option: String,
    /// Its value; empty for a bare flag.
    pub value: String,
    /// Why it changes nothing.
    pub reason: String,
}

/// Jobs that run at the same time. A group starts when every job of the group before it has ended and its requests
/// have completed.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The jobs, each clone on its own.
    pub jobs: Vec<Job>,
}

impl Jobs {
    /// The sections between stonewalls.
    pub fn groups(&self) -> Vec<&[JobSpec]> {
        let starts = (0..self.jobs.len()).filter(|&i| i == 0 || self.jobs[i].stonewall);
        let mut starts: Vec<usize> = starts.collect();
        starts.push(self.jobs.len());
        starts.windows(2).map(|pair| &self.jobs[pair[0]..pair[1]]).collect()
    }

    /// How the requests of each flow get to a file through the kernel of a host, and what it is told of them, in the order of flows; none if they go straight to the
    /// drive. `direct` says whether the host has one that direct requests pass.
    ///
    /// # Errors
    /// Some go through it and some do not, or one cannot.
    pub fn ways(&self, direct: bool) -> Result<Option<Vec<(Way, Advice)>>, Diagnostic> {
        let Some(job) = self.jobs.iter().find(|job| job.takes_a_file(direct)) else { return Ok(None) };
        if let Some(other) = self.jobs.iter().find(|job| !job.takes_a_file(direct)) {
            let how = if job.is_cached() { "the page cache" } else { "the kernel (`direct=1`)" };
            let what = format!(
                "job `{}` goes through {how} and job `{}` does not: the jobs of one workload go one way",
                job.name, other.name
            );
            return Err(Diagnostic::new(what)
                .at(job.place_of("direct"))
                .help("give each way a --workload of its own; they run side by side"));
        }
        let trims = |job: &&JobSpec| matches!(job.rw.pattern, Pattern::Trim | Pattern::TrimWrite);
        if let Some(job) = self.jobs.iter().find(trims) {
            let (how, help) = if job.is_cached() {
                ("the page cache", "trims are for direct=1")
            } else {
                ("the kernel of a host", "leave `direct` out: the job goes straight to the drive")
            };
            let what = format!("job `{}` trims through {how}; that is not modelled", job.name);
            return Err(Diagnostic::new(what).at(job.place_of("rw")).help(help));
        }
        if let Some(job) = self.jobs.iter().find(|job| job.drives().is_some()) {
            let help = "leave `direct` out: the job goes straight to the drives";
            return Err(job.refuse_drives("the kernel of the host has one", help));
        }
        let mut ways = Vec::new();
        for job in &self.jobs {
            let way = (job.way()?, job.advice());
            ways.extend(std::iter::repeat_n(way, usize::from(job.numjobs)));
        }
        Ok(Some(ways))
    }

    /// The scheduler that the drive shall have in the block layer of a host, if a job says so.
    ///
    /// # Errors
    /// Two jobs say different ones.
    pub fn scheduler(&self) -> Result<Option<Scheduler>, Diagnostic> {
        let mut saying = self.jobs.iter().filter(|job| job.scheduler.is_some());
        let Some(first) = saying.next() else { return Ok(None) };
        match saying.find(|job| job.scheduler != first.scheduler) {
            None => Ok(first.scheduler),
            Some(other) => {
                let what = format!(
                    "jobs `{}` and `{}` set different schedulers: a drive has one during a run",
                    first.name, other.name
                );
                Err(Diagnostic::new(what).at(other.place_of("ioscheduler")))
            }
        }
    }

    /// What is likely not meant of `ioscheduler`, if the requests pass no block layer of a host.
    pub fn unscheduled(&self) -> impl Iterator<Item = String> {
        self.jobs.iter().filter_map(JobSpec::unscheduled)
    }

    /// What is likely not meant of the ways of jobs, on a host whose drives have so many queues without interrupts.
    pub fn polling(&self, poll_queues: u16) -> Vec<String> {
        let jobs = self.jobs.iter().filter(|job| job.hipri);
        jobs.filter_map(|job| job.polling(poll_queues)).collect()
    }

    /// Settles every job against a device of `capacity` bytes that is theirs alone, and numbers the flows.
    ///
    /// # Errors
    /// A job that does not fit.
    pub fn resolve(&self, capacity: u64) -> Result<Vec<Group>, Diagnostic> {
        self.resolve_on(&Layout::of([self], capacity)?, capacity)
    }

    /// The same on a device on which their files are laid out.
    ///
    /// # Errors
    /// A job that does not fit.
    pub fn resolve_on(&self, layout: &Layout, capacity: u64) -> Result<Vec<Group>, Diagnostic> {
        let clones: u64 = self.jobs.iter().map(|job| job.numjobs as u64).sum();
        if clones > 65_536 {
            let what =
                format!("{clones} jobs, clones included; flows are numbered in 16 bits: at most 65536");
            return Err(Diagnostic::new(what));
        }
        let mut flow = 0u32;
        let mut resolve_group = |specs: &[JobSpec]| {
            let mut jobs = Vec::new();
            for spec in specs {
                for clone in 0..spec.numjobs {
                    let files = layout.regions(spec, clone);
                    jobs.push(Job { flow: flow as u16, ..spec.resolve_over(capacity, clone, files)? });
                    flow += 1;
                }
            }
            Ok(Group { jobs })
        };
        self.groups().into_iter().map(&mut resolve_group).collect()
    }
}
