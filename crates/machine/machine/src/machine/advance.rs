//! Whether work advances while time does.

use engine::Time;

/// Simulated time after which work that has not advanced is stuck.
pub(crate) const PATIENCE: Time = Time::from_s(3_600);

/// When the work of a machine was last seen to advance.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Advance {
    done: u64,
    since: Time,
}

impl Advance {
    /// Whether something has been under way for longer than [`PATIENCE`], with as much done as before.
    pub(crate) fn is_stuck(&mut self, done: u64, is_under_way: bool, now: Time) -> bool {
        if done != self.done || !is_under_way {
            *self = Advance { done, since: now };
        }
        now.since(self.since) > PATIENCE
    }

    /// Since when nothing has been done.
    pub(crate) fn since(&self) -> Time {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_without_anything_done_is_stuck() {
        let (mut advance, s) = (Advance::default(), Time::from_s);
        assert!(!advance.is_stuck(1, true, s(10)));
        assert!(!advance.is_stuck(1, true, s(3_610)), "an hour, and not more");
        assert!(!advance.is_stuck(2, true, s(9_000)), "something was done");
        assert!(!advance.is_stuck(2, false, s(90_000)), "nothing is under way");
        assert!(!advance.is_stuck(2, true, s(93_600)));
        assert!(advance.is_stuck(2, true, s(93_601)));
        assert_eq!(advance.since(), s(90_000));
    }
}
