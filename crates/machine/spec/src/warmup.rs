//! When the measured window begins, as a spec says it and as a run decides it.

use compute::ooo::Cores;
use config::units::{Duration, Share};
use config::{Diagnostic, SpecError};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

config::policies! {
    /// Which of a server's first jobs count in no figure.
    pub family WarmupPolicy: choice {
        /// Those before the times of jobs, from arrival to end, are steady.
        ///
        /// Means of batches of jobs in the order of their ends are looked at by MSER-5 whenever a batch is complete (K. P. White,
        /// Simulation 69(6), 1997): the jobs are steady when its truncation point has been in the former half of all that
        /// have ended, at every look while they became more by a fourth.
        default detected(Detected),
        /// A number of them.
        fixed(Fixed),
    }
}

/// Parameters of `detected`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Detected {
    /// Share of the jobs of the run that is cut in any case. A transient shows against the scatter of jobs only when there are enough.
    pub from: Share,
    /// Share of the jobs after which the window begins though they are not steady, which the result says.
    pub until: Share,
}

/// Parameters of `fixed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Fixed {
    /// Jobs, over all cores.
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
    /// Whether something is left to be measured of a run of so many jobs.
    ///
    /// # Errors
    /// Shares that leave nothing, or the wrong way round; as many jobs as there are. The key is relative to the table `cpu`.
    pub fn check(&self, all: u64) -> Result<(), SpecError> {
        let (from, until) = match self {
            WarmupPolicy::detected(Detected { from, until }) => (from, until),
            WarmupPolicy::fixed(Fixed { jobs }) if *jobs > 0 && *jobs >= all => {
                let what =
                    format!("a warm-up of {jobs} jobs leaves none of the {all} of the run to be measured");
                return Err(SpecError::new("warmup.fixed.jobs", what)
                    .help(format!("give fewer, or more jobs to the run (`cpu.load.jobs`, now {all})")));
            }
            WarmupPolicy::fixed(_) => return Ok(()),
        };
        if *until >= Share::ONE {
            let what = format!("a warm-up of up to {until} of the jobs leaves none to be measured");
            return Err(SpecError::new("warmup.detected.until", what).help("give `50%`"));
        }
        if from > until {
            let what = format!("a warm-up of {from} of the jobs at least and {until} at most");
            return Err(SpecError::new("warmup.detected.from", what).help("give at most as much as `until`"));
        }
        Ok(())
    }

    /// For a run of so many jobs; none if no job is cut.
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

/// When the measured window begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Warmup {
    /// With the completion of the last of this many requests, in the order of their completions: exactly these are left out. On a
    /// server, requests and jobs together; jobs that end in one event are left out together.
    Requests(u64),
    /// At this time, exactly: what completes before it is left out.
    Until(Time),
    /// When a server's jobs are steady.
    Steady {
        /// Jobs that must have ended.
        from: u64,
        /// Jobs after which it begins anyway.
        until: u64,
    },
}

/// How the measured window began.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cut {
    /// By what.
    pub by: Warmup,
    /// Completions of requests and ends of jobs before it.
    pub jobs: u64,
    /// Whether jobs were steady, if that was looked for.
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
    /// Whether it leaves nothing out.
    pub fn is_none(self) -> bool {
        matches!(self, Warmup::Requests(0) | Warmup::Until(Time::ZERO))
    }

    /// Begins to look, where something must be looked at.
    pub fn watch(self, server: Option<&mut Cores>) {
        if let (Warmup::Steady { .. }, Some(server)) = (self, server) {
            server.watch();
        }
    }

    /// How the window begins, if it does so now.
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
