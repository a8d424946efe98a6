//! Configuration: units in values, policy families, layered TOML that remembers the place of each value, and
//! diagnostics that suggest a remedy.
//!
//! * Knows the syntax of specs, `policies!`, JSON schemas with limits, inheritance, the catalogue of keys.
//! * Does not know any key. Types of keys are defined by their components.
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

// Power keys that the specs of several components share.

/// Power of a component that is either busy or idle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatePower {
    /// Power while idle.
    pub idle: Power,
    /// Power while busy, the idle power included.
    pub busy: Power,
}

// Sleep between uses, shared by the specs of several components.

/// Low-power state between uses. It is entered after an idle time, and the next use waits for the exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SleepSpec {
    /// Idle time after which the state is entered; if left out, the state is entered at once.
    #[serde(default = "at_once", skip_serializing_if = "is_at_once")]
    #[schemars(extend("default" = "0us"))]
    pub after: Duration,
    /// Exit latency: the delay of the first use after the state was entered.
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
    /// Returns the wait of a use at `now` if the previous one ended at `since`.
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
