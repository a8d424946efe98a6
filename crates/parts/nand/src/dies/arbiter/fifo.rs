//! First come, first served.

use super::{Arbiter, Heads, Want, first_come};

/// Requests get the channel in order of arrival, whatever they are for.
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
