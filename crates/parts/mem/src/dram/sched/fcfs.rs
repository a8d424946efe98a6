//! First come, first served.

use super::Scheduler;
use engine::Time;

/// First come, first served: a controller's data move in order of arrival. Banks prepare their rows concurrently, each
/// for its oldest waiting access.
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
