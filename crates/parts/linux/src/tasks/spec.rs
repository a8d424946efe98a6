//! What a user writes about the cores of a host.

use super::energy::HostEnergySpec;
use config::units::Duration;
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cores of a host and the scheduler of their threads: Linux's fair one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoresSpec {
    /// Cores.
    #[schemars(range(min = 1, max = 1024))]
    pub count: u16,
    /// In this time every thread of a core gets its turn, on a machine of one core (`sysctl_sched_latency`); 1 + log2 of the cores times as much on
    /// others.
    pub sched_latency: Duration,
    /// The least slice, scaled likewise (`sysctl_sched_min_granularity`).
    pub sched_min_granularity: Duration,
    /// By how much longer the thread of a core must have run for one that wakes to go before it, scaled likewise
    /// (`sysctl_sched_wakeup_granularity`).
    pub sched_wakeup_granularity: Duration,
    /// Core time of a change from one thread to another.
    pub context_switch: Duration,
    /// More of it where the core was idle.
    pub idle_exit: Duration,
    /// What the processor and its memory spend; left out, the host reports no energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<HostEnergySpec>,
}

impl Default for CoresSpec {
    /// The scheduler's are Linux's (`kernel/sched/fair.c`).
    fn default() -> CoresSpec {
        let us = |us| Duration::new(Time::from_us(us));
        CoresSpec {
            // Chosen.
            count: 8,
            sched_latency: us(6000),
            sched_min_granularity: us(750),
            sched_wakeup_granularity: us(1000),
            // Lee et al., Asynchronous I/O Stack, USENIX ATC 2019.
            context_switch: Duration::new(Time::from_ns(950)),
            // Chosen: what a core needs to leave a shallow idle state (C1).
            idle_exit: us(2),
            energy: None,
        }
    }
}
