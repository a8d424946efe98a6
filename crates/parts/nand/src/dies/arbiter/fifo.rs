//! First come, first served.

use super::{Arbiter, Heads, Want, first_come};

/// Grants the channel in order of arrival, whatever the request.
#[derive(Clone, Copy, Debug)]
pub struct Fifo;

impl Fifo {
    /// Builds the policy.
    pub fn new(_: &()) -> Fifo {
        Fifo
    }
}

impl Arbiter for Fifo {
    fn pick(&mut self, heads: &Heads) -> Want {
        first_come(heads, &Want::ALL).unwrap_or(Want::Command)
    }
}
