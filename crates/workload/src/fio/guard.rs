//! Options that end a job of fio when the device is too slow. They do not steer a run here: once it is over, the result says which would have ended it.

use kernel::Time;

use super::spec::JobSpec;
use crate::inject::FlowStats;
use crate::synth::Each;

/// The guards of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guards {
    /// `max_latency`: the most that a request may take.
    pub max_latency: Each<Option<Time>>,
    /// `rate_min`: the least bytes per second; zero is none.
    pub rate_min: Each<u64>,
    /// `rate_iops_min`: the least requests per second; zero is none.
    pub rate_iops_min: Each<u64>,
    /// `rate_cycle`: how long a job must have run before its rate is looked at.
    pub rate_cycle: Time,
}

impl Guards {
    /// None of them.
    pub(super) const NONE: Guards = Guards {
        max_latency: [None; 3],
        rate_min: [0; 3],
        rate_iops_min: [0; 3],
        rate_cycle: Time::from_ms(1000),
    };

    /// What would have ended the job, of what was measured of its flow. A rate counts over all the time that the flow was at work.
    pub(crate) fn tripped(&self, flow: &FlowStats) -> Vec<String> {
        let kinds = [("read", &flow.read), ("write", &flow.write), ("trim", &flow.trim)];
        let active = flow.span.active(Time::ZERO);
        let mut said = Vec::new();
        for (at, (kind, of)) in kinds.into_iter().enumerate().filter(|(_, (_, of))| of.requests > 0) {
            let longest = Time::from_ps(of.latency.max().unwrap_or(0));
            if let Some(most) = self.max_latency[at].filter(|most| longest > *most) {
                said.push(format!("max_latency={most}: a {kind} took {longest}"));
            }
            if active <= self.rate_cycle {
                continue;
            }
            let mut floor = |option: &str, least: u64, unit: &str, done: u64| {
                let rate = done as f64 / active.as_s_f64();
                if rate < least as f64 {
                    said.push(format!("{option}={least}: {kind}s came to {rate:.0} {unit}"));
                }
            };
            floor("rate_min", self.rate_min[at], "B/s", of.bytes);
            floor("rate_iops_min", self.rate_iops_min[at], "IOPS", of.requests);
        }
        let line =
            |what: String| format!("job `{}`: fio would have ended it with an error: {what}", flow.name);
        said.into_iter().map(line).collect()
    }
}

impl JobSpec {
    /// Its guards, if it has any.
    pub fn guards(&self) -> Option<Guards> {
        let any = Guards { rate_cycle: self.guards.rate_cycle, ..Guards::NONE } != self.guards;
        any.then_some(self.guards)
    }
}
