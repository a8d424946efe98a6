//! What a user writes about the cores of a host.

use config::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The cores of a host and the scheduler of their threads: Linux's fair one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoresSpec {
    /// Cores.
    #[schemars(range(min = 1, max = 1024))]
    pub count: u16,
    /// Ticks a second, at which slices end (`CONFIG_HZ`).
    #[schemars(range(min = 1, max = 10_000))]
    pub hz: u32,
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
}
