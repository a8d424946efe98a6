//! Start of the measured window: in a spec and in a run.

use compute::ooo::Cores;
use config::units::{Duration, Share};
use config::{Diagnostic, SpecError};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

config::policies! {
    /// Jobs at the start of a server's run that count in no metric.
    pub family WarmupPolicy: choice {
        /// Jobs before job latencies, from arrival to end, are steady.
        ///
        /// MSER-5 examines means of batches of jobs, in the order of their ends, whenever a batch is complete (K. P.
        /// White, Simulation 69(6), 1997). The jobs are steady once its truncation point has stayed in the first half
        /// of all ended jobs, at every check, while their number grew by a fourth.
        default detected(Detected),
        /// A fixed number of jobs.
        fixed(Fixed),
    }
}

/// Parameters of `detected`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Detected {
    /// Share of the run's jobs that is excluded in any case. A transient is visible against the scatter of jobs only
    /// with enough of them.
    pub from: Share,
    /// Share of the jobs after which the window begins even if they are not steady; the result then says so.
    pub until: Share,
}

/// Parameters of `fixed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Fixed {
    /// Number of jobs, over all cores.
    pub jobs: u64,
}

impl Default for Detected {
    fn default() -> Detected {
        Detected { from: Share::percent(10), until: Share::percent(50) }
    }
}

impl Default for Fixed {
    fn default() -> Fixed {
        Fixed { jobs: 3_200 }
    }
}

impl WarmupPolicy {
    /// Checks that a run of `all` jobs leaves something to measure.
    ///
    /// # Errors
    /// Shares that leave nothing, or in the wrong order; as many jobs as the run has. The key is relative to the table
    /// `cpu`.
    pub fn check(&self, all: u64) -> Result<(), SpecError> {
        let (from, until) = match self {
            WarmupPolicy::detected(Detected { from, until }) => (from, until),
            WarmupPolicy::fixed(Fixed { jobs }) if *jobs > 0 && *jobs >= all => {
                let what = format!("a warm-up of {jobs} jobs leaves none of the run's {all} jobs to measure");
                return Err(SpecError::new("warmup.fixed.jobs", what)
                    .help(format!("use fewer, or give the run more jobs (`cpu.load.jobs`, now {all})")));
            }
            WarmupPolicy::fixed(_) => return Ok(()),
        };
        if *until >= Share::ONE {
            let what = format!("a warm-up of up to {until} of the jobs leaves none to measure");
            return Err(SpecError::new("warmup.detected.until", what).help("give `50%`"));
        }
        if from > until {
            let what = format!("the warm-up takes at least {from} of the jobs, but at most {until}");
            return Err(SpecError::new("warmup.detected.from", what).help("set it to at most `until`"));
        }
        Ok(())
    }

    /// Warm-up of a run with `jobs` jobs; `None` if no job is excluded.
    pub fn of(&self, jobs: u64) -> Option<Warmup> {
        match self {
            WarmupPolicy::detected(Detected { from, until }) => {
                Some(Warmup::Steady { from: from.of(jobs), until: until.of(jobs).max(1) })
            }
            WarmupPolicy::fixed(Fixed { jobs: 0 }) => None,
            WarmupPolicy::fixed(Fixed { jobs }) => Some(Warmup::Requests(*jobs)),
        }
    }
}

/// Start of the measured window.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Warmup {
    /// At the completion of this many requests, in the order of completion: exactly these are excluded. On a server,
    /// requests and jobs count together; jobs that end in one event are excluded together.
    Requests(u64),
    /// At this time, exactly: earlier completions are excluded.
    Until(Time),
    /// At the time when a server's jobs are steady.
    Steady {
        /// Jobs that must have ended.
        from: u64,
        /// Jobs after which the window begins in any case.
        until: u64,
    },
}

/// Actual start of the measured window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cut {
    /// Rule that started it.
    pub by: Warmup,
    /// Completions of requests and ends of jobs before it.
    pub jobs: u64,
    /// True if jobs were steady; `None` without detection.
    pub steady: Option<bool>,
}

impl FromStr for Warmup {
    type Err = Diagnostic;
    /// `5000` requests, or `10ms` of simulated time.
    fn from_str(text: &str) -> Result<Warmup, Diagnostic> {
        if let Ok(requests) = text.parse() {
            return Ok(Warmup::Requests(requests));
        }
        text.parse::<Duration>().map(|until| Warmup::Until(until.time()))
    }
}

impl std::fmt::Display for Warmup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Warmup::Requests(n) => write!(f, "{n} requests"),
            Warmup::Until(time) => write!(f, "{time}"),
            Warmup::Steady { until, .. } => write!(f, "up to {until} jobs"),
        }
    }
}

impl Warmup {
    /// Returns whether nothing is excluded.
    pub fn is_none(self) -> bool {
        matches!(self, Warmup::Requests(0) | Warmup::Until(Time::ZERO))
    }

    /// Starts detection, if needed.
    pub fn watch(self, server: Option<&mut Cores>) {
        if let (Warmup::Steady { .. }, Some(server)) = (self, server) {
            server.watch();
        }
    }

    /// Start of the window, if it is now.
    pub fn over(self, completed: u64, now: Time, server: Option<&Cores>) -> Option<Cut> {
        let steady = match self {
            Warmup::Steady { .. } => Some(server.is_some_and(|server| server.is_steady())),
            _ => None,
        };
        let over = match self {
            Warmup::Requests(n) => completed >= n,
            Warmup::Until(time) => now >= time,
            Warmup::Steady { from, until } => completed >= until || completed >= from && steady == Some(true),
        };
        over.then_some(Cut { by: self, jobs: completed, steady })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<WarmupPolicy>().expect("the list is whole");
    }

    #[test]
    fn shares_are_of_the_run_s_jobs() {
        let detected = WarmupPolicy::default();
        assert_eq!(detected.of(19_200), Some(Warmup::Steady { from: 1_920, until: 9_600 }));
        assert_eq!(detected.of(1), Some(Warmup::Steady { from: 0, until: 1 }));
        assert_eq!(WarmupPolicy::fixed(Fixed { jobs: 7 }).of(100), Some(Warmup::Requests(7)));
        assert_eq!(WarmupPolicy::fixed(Fixed { jobs: 0 }).of(100), None);
    }

    #[test]
    fn what_leaves_nothing_is_refused() {
        let fault = |from, until| {
            let shares = Detected { from: Share::percent(from), until: Share::percent(until) };
            WarmupPolicy::detected(shares).check(100).err().map(|error| error.key)
        };
        assert_eq!(fault(0, 50), None);
        assert_eq!(fault(50, 50), None);
        assert_eq!(fault(60, 50).as_deref(), Some("warmup.detected.from"));
        assert_eq!(fault(0, 100).as_deref(), Some("warmup.detected.until"));
        let fixed = |jobs, all| WarmupPolicy::fixed(Fixed { jobs }).check(all).err().map(|error| error.key);
        assert_eq!((fixed(0, 0), fixed(99, 100)), (None, None));
        assert_eq!(fixed(100, 100).as_deref(), Some("warmup.fixed.jobs"));
    }
}
