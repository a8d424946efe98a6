//! Options that end a job of fio when the device is too slow. They do not steer a run here: once it is over, the result says which would have ended it.

use engine::Time;

use super::floor::Floors;
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
    /// `rate_cycle`: length of the cycles over each of which a rate is judged.
    pub rate_cycle: Time,
}

/// Names of the directions, as a result has them.
pub(super) const KINDS: Each<&str> = ["read", "write", "trim"];

impl Guards {
    /// None of them.
    pub(super) const NONE: Guards = Guards {
        max_latency: [None; 3],
        rate_min: [0; 3],
        rate_iops_min: [0; 3],
        rate_cycle: Time::from_ms(1000),
    };

    /// Whether a rate has a floor.
    pub(super) fn has_floors(&self) -> bool {
        self.rate_min.iter().chain(&self.rate_iops_min).any(|&least| least > 0)
    }

    /// Guards that would have ended the job, of what was measured of its flow and of its rates by cycle.
    pub(crate) fn tripped(&self, flow: &FlowStats, floors: Option<&Floors>) -> Vec<String> {
        let mut said = Vec::new();
        for (at, of) in [&flow.read, &flow.write, &flow.trim].into_iter().enumerate() {
            let longest = Time::from_ps(of.latency.max().unwrap_or(0));
            if let Some(most) = self.max_latency[at].filter(|most| longest > *most) {
                said.push(format!("{ENDED}max_latency={most}: a {} took {longest}", KINDS[at]));
            }
        }
        said.extend(floors.into_iter().flat_map(Floors::missed));
        said.into_iter().map(|what| format!("job `{}`: {what}", flow.name)).collect()
    }
}

/// Start of what is said of a guard at which fio ends the job.
pub(super) const ENDED: &str = "fio would have ended it with an error: ";

impl JobSpec {
    /// Guards of the job, if it has any.
    pub fn guards(&self) -> Option<Guards> {
        let any = Guards { rate_cycle: self.guards.rate_cycle, ..Guards::NONE } != self.guards;
        any.then_some(self.guards)
    }
}
