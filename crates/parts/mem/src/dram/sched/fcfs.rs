//! First come, first served.

use super::Scheduler;
use engine::Time;

/// First come, first served: a controller's data move in the order in which the accesses came. Banks prepare their rows
/// at the same time, each for the oldest access that waits for it.
#[derive(Clone, Copy, Debug)]
pub struct Fcfs;

impl Scheduler for Fcfs {
    fn row_hit_passes(&self, _: Time) -> bool {
        false
    }
    fn direction_passes(&self, _: u64) -> bool {
        false
    }
    fn banks_pass(&self) -> bool {
        false
    }
}
