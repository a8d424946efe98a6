//! First ready, first come, first served.

use super::Scheduler;
use config::units::Duration;
use kernel::Time;

/// Parameters of `fr_fcfs`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time after which an access is not overtaken any more by younger ones to an open row or in the bus's direction.
    pub age_cap: Duration,
}

impl Default for Params {
    /// Some twenty row cycles of DRAM: long enough for batches, short beside what a GPU hides. Chosen.
    fn default() -> Params {
        Params { age_cap: Duration::new(Time::from_us(1)) }
    }
}

/// First ready, first come, first served: an access to an open row goes before an older one to another row of the same
/// bank, one whose bank is ready before an older one whose bank is not, one in the bus's present direction before an
/// older one in the other direction. Past `age_cap` nothing overtakes on purpose any more.
///
/// Source: Rixner, Dally, Kapasi, Mattson and Owens, "Memory access scheduling", ISCA 2000; the cap is Kaseridis,
/// Stuecheli and John's (MICRO 2011) in time instead of counts.
#[derive(Clone, Copy, Debug)]
pub struct FrFcfs {
    age_cap: Time,
}

impl FrFcfs {
    /// The policy.
    pub fn new(params: &Params) -> FrFcfs {
        FrFcfs { age_cap: params.age_cap.time() }
    }
}

impl Scheduler for FrFcfs {
    fn row_hit_passes(&self, waited: Time) -> bool {
        waited < self.age_cap
    }
    fn direction_passes(&self, waited: Time) -> bool {
        waited < self.age_cap
    }
    fn banks_pass(&self) -> bool {
        true
    }
}
