//! Configuration: units in values, policy families, layered TOML that remembers the place of each value, and
//! diagnostics that name a remedy.
//!
//! * Knows the syntax of specs, `policies!`, JSON schemas with limits, inheritance, the catalogue of keys.
//! * Does not know any key. Types of keys stand with their components.
//! * Read first: `layer/mod.rs`, from files to one resolved spec; then `policy.rs`.

pub mod catalogue;
pub mod diag;
pub mod layer;
pub mod policy;
pub mod schema;
pub mod synonym;
pub mod units;

pub use diag::{Diagnostic, Place, plain, read_text};
pub use layer::{Layers, Pieces, Presets, Resolved};
pub use schema::SpecError;

use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Power};

// Powers that specs of several parts name alike.

/// What something takes that is at work or not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatePower {
    /// Power while there is nothing to do.
    pub idle: Power,
    /// Power at work, the idle power included.
    pub busy: Power,
}

// Sleep between uses, as specs of several parts name it.

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
