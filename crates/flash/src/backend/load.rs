//! How much the dies and channels have to do, and how long they have been busy.

use super::{Backend, Die, DieState};
use kernel::Time;

impl Backend {
    /// Whether a die has nothing to do and nothing waiting.
    pub fn is_idle(&self, die: u32) -> bool {
        self.dies[die as usize].state == DieState::Idle && self.queues.waiting(die) == 0
    }

    /// Operations at a die: waiting, and the one under way.
    pub fn load(&self, die: u32) -> u32 {
        self.queues.backlog(die) + u32::from(self.dies[die as usize].state != DieState::Idle)
    }

    /// Time that each channel has been busy up to `now`.
    pub fn channel_busy(&self, now: Time) -> Vec<Time> {
        self.channels.iter().map(|c| c.busy - c.busy_until.since(now)).collect()
    }

    /// Time that each die has been busy up to `now`.
    pub fn die_busy(&self, now: Time) -> Vec<Time> {
        let open = |d: &Die| {
            let working = !matches!(d.state, DieState::Idle | DieState::Asking) || d.suspended.is_some();
            if working { now - d.busy_since } else { Time::ZERO }
        };
        self.dies.iter().map(|d| d.busy + open(d)).collect()
    }

    /// When each operation that still waits at a die was queued: what Little's identity needs at the end.
    pub fn waiting_since(&self) -> Vec<Time> {
        self.queues.names(&self.ops).into_iter().map(|op| self.ops[op].queued).collect()
    }
}
