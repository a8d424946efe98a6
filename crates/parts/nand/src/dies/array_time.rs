//! Conservation of array time: what the arrays have worked is what the operations were to take, and what suspends cost.

use super::{Backend, DieState};
use engine::Time;

/// Both sides, counted where an operation begins and where the clock says that it has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrayTime {
    /// Array time of the commands that were given to dies.
    pub(super) due: Time,
    /// Time from when an array has begun until it has ended or was told to suspend.
    pub(super) worked: Time,
    /// Time from when a die was told to suspend until it took commands.
    pub(super) suspending: Time,
}

engine::snapshot!(ArrayTime { due, worked, suspending });

impl Backend {
    /// The most suspends that an operation has had, and may have.
    pub fn suspends(&self) -> (u64, u64) {
        (self.suspends_most, self.suspend.limit.into())
    }

    /// Time that arrays have worked and waited for suspends, with what is left of operations under way; and what it must
    /// be: the array times of all commands, with what each suspend costs.
    pub fn array_time(&self) -> (Time, Time) {
        let (mut worked, mut interrupted, mut on_their_way) = (self.array_time.worked, 0, 0);
        for die in &self.dies {
            if die.state == DieState::Working {
                worked += die.array_to - die.array_from;
            }
            if let Some((_, left)) = die.suspended {
                worked += left;
                interrupted += 1;
            }
            on_their_way += u64::from(die.state == DieState::Suspending);
        }
        let suspends = self.counters.suspends;
        let resumes = self.suspend.resume.times(suspends - interrupted);
        let latencies = self.suspend.latency.times(suspends - on_their_way);
        (worked + self.array_time.suspending, self.array_time.due + resumes + latencies)
    }
}
