//! Reads before everything else, without starvation.

use super::{Class, DieView, Scheduler};
use config::units::Duration;
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `read_first`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Maximum time that reads may overtake a different operation.
    pub max_wait: Duration,
}

impl Default for Params {
    fn default() -> Params {
        Params { max_wait: Duration::new(Time::from_ms(5)) }
    }
}

/// Takes reads with a waiter first, in order of arrival; once any other operation has waited for `max_wait`, the oldest
/// goes.
#[derive(Clone, Copy, Debug)]
pub struct ReadFirst {
    max_wait: Time,
}

impl ReadFirst {
    /// Builds the policy.
    pub fn new(params: &Params, _: &()) -> ReadFirst {
        ReadFirst { max_wait: params.max_wait.time() }
    }
}

impl Scheduler for ReadFirst {
    fn pick(&mut self, view: &DieView<'_>) -> Option<Class> {
        let oldest = view.first_come()?;
        if view.now.since(view.since(oldest)) >= self.max_wait {
            return Some(oldest);
        }
        let read = view.classes().filter(|c| c.is_waited_read()).min_by_key(|c| view.oldest(*c));
        read.or(Some(oldest))
    }
    fn prefers(&self, class: Class, other: Class) -> bool {
        class.is_waited_read() && !other.is_waited_read()
    }
}
