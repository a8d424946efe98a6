//! What dies and channels say of themselves.

use super::op::NO_OP;
use super::{Backend, Die, DieState};
use engine::Time;

impl Backend {
    /// Whether a die has nothing to do and nothing waiting.
    pub fn is_idle(&self, die: u32) -> bool {
        let d = &self.dies[die as usize];
        d.state == DieState::Idle && d.reading == 0 && self.queues.waiting(die) == 0
    }

    /// Operations at a die: waiting, and those under way.
    pub fn load(&self, die: u32) -> u32 {
        let d = &self.dies[die as usize];
        self.queues.backlog(die) + u32::from(d.state != DieState::Idle) + u32::from(d.reading)
    }

    /// Time that each channel has been busy up to `now`.
    pub fn channel_busy(&self, now: Time) -> Vec<Time> {
        self.busy_channels(now).collect()
    }

    /// Time that each die has been busy up to `now`.
    pub fn die_busy(&self, now: Time) -> Vec<Time> {
        self.busy_dies(now).collect()
    }

    /// Time that all channels and all dies have been busy up to `now`, each sum by itself, picoseconds.
    pub fn total_busy_ps(&self, now: Time) -> (u128, u128) {
        let sum = |total: u128, busy: Time| total + u128::from(busy.ps());
        (self.busy_channels(now).fold(0, sum), self.busy_dies(now).fold(0, sum))
    }

    fn busy_channels(&self, now: Time) -> impl Iterator<Item = Time> + '_ {
        self.channels.iter().map(move |c| c.busy - c.busy_until.since(now))
    }

    fn busy_dies(&self, now: Time) -> impl Iterator<Item = Time> + '_ {
        let open = move |d: &Die| {
            let working = !matches!(d.state, DieState::Idle | DieState::Asking) || d.suspended.is_some();
            if working || d.reading > 0 { now - d.busy_since } else { Time::ZERO }
        };
        self.dies.iter().take(self.die_count as usize).map(move |d| d.busy + open(d))
    }

    /// When each operation that still waits at a die was queued: what Little's identity needs at the end.
    pub fn waiting_since(&self) -> Vec<Time> {
        let mut times = Vec::new();
        for mut at in self.queues.names(&self.ops) {
            while at != NO_OP {
                times.push(self.ops[at].queued);
                at = self.ops[at].joined;
            }
        }
        times
    }
}
