//! Sleep between uses, as specs of several parts name it.

use crate::units::Duration;
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A low-power state between uses: it is entered after an idle time, and the next use pays for leaving it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SleepSpec {
    /// Idle time after which the state is entered; left out, at once.
    #[serde(default = "at_once", skip_serializing_if = "is_at_once")]
    #[schemars(extend("default" = "0us"))]
    pub after: Duration,
    /// Exit latency: what the first use after that waits.
    pub exit: Duration,
}

const fn at_once() -> Duration {
    Duration::new(Time::ZERO)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_at_once(after: &Duration) -> bool {
    after.time() == Time::ZERO
}

impl SleepSpec {
    /// Wait of a use that comes at `now`, where the last one ended at `since`.
    #[inline]
    pub fn wait(&self, since: Time, now: Time) -> Time {
        if now >= since + self.after.time() { self.exit.time() } else { Time::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_use_after_the_idle_time_waits() {
        let us = Time::from_us;
        let sleep = SleepSpec { after: Duration::new(us(10)), exit: Duration::new(us(43)) };
        let waits = [99, 109, 110, 500].map(|now| sleep.wait(us(100), us(now)));
        assert_eq!(waits, [us(0), us(0), us(43), us(43)]);
        let at_once = SleepSpec { after: at_once(), ..sleep };
        assert_eq!(at_once.wait(us(100), us(100)), us(43));
    }
}
