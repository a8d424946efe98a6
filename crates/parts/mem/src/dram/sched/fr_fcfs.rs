//! First ready, first come, first served.

use super::Scheduler;
use config::units::Duration;
use engine::Time;

/// Parameters of `fr_fcfs`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Age cap: time after which younger accesses to the open row of the bank no longer overtake an access.
    pub age_cap: Duration,
    /// Batch: lines that the bus carries in one direction before older accesses in the other direction come first.
    pub batch: u32,
}

impl Default for Params {
    /// Chosen: longer than the service time of a saturated queue of 64 pages, because a lower cap turns row hits into
    /// conflicts just when they are needed; batches like those of write queues with 32 entries.
    fn default() -> Params {
        Params { age_cap: Duration::new(Time::from_us(10)), batch: 32 }
    }
}

/// First ready, first come, first served. An access to an open row overtakes an older one to a different row of the
/// bank. An access whose bank is ready overtakes an older one whose bank is not. An access in the bus's present
/// direction overtakes an older one in the other direction. `age_cap` bounds the first case, `batch` the last.
///
/// Source: Rixner, Dally, Kapasi, Mattson and Owens, "Memory access scheduling", ISCA 2000; the cap is that of
/// Kaseridis, Stuecheli and John (MICRO 2011), in time instead of counts.
#[derive(Clone, Copy, Debug)]
pub struct FrFcfs {
    age_cap: Time,
    batch: u64,
}

impl FrFcfs {
    /// Creates the policy.
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
