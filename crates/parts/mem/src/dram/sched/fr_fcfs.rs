//! First ready, first come, first served.

use super::Scheduler;
use config::units::Duration;
use engine::Time;

/// Parameters of `fr_fcfs`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time after which an access is not overtaken any more by younger ones to the open row of its bank.
    pub age_cap: Duration,
    /// Lines that the bus carries in one direction before older accesses in the other direction come first.
    pub batch: u32,
}

impl Default for Params {
    /// Chosen: longer than a saturated queue of 64 pages takes, for a cap below that turns row hits into conflicts
    /// just when they are needed; batches like those of write queues with 32 entries.
    fn default() -> Params {
        Params { age_cap: Duration::new(Time::from_us(10)), batch: 32 }
    }
}

/// First ready, first come, first served: an access to an open row goes before an older one to another row of the same
/// bank, one whose bank is ready before an older one whose bank is not, one in the bus's present direction before an
/// older one in the other direction. `age_cap` and `batch` bound the first and the last of these.
///
/// Source: Rixner, Dally, Kapasi, Mattson and Owens, "Memory access scheduling", ISCA 2000; the cap is Kaseridis,
/// Stuecheli and John's (MICRO 2011) in time instead of counts.
#[derive(Clone, Copy, Debug)]
pub struct FrFcfs {
    age_cap: Time,
    batch: u64,
}

impl FrFcfs {
    /// The policy.
    pub fn new(params: &Params) -> FrFcfs {
        FrFcfs { age_cap: params.age_cap.time(), batch: params.batch.into() }
    }
}

impl Scheduler for FrFcfs {
    fn row_hit_passes(&self, waited: Time) -> bool {
        waited < self.age_cap
    }
    fn direction_passes(&self, lines: u64) -> bool {
        lines < self.batch
    }
    fn banks_pass(&self) -> bool {
        true
    }
}
