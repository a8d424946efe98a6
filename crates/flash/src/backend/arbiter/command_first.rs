//! Commands before data.

use super::{Arbiter, Heads, Want, first_come};

/// Short commands go first, so that no array idles behind a data transfer; then data, in order of arrival.
#[derive(Clone, Copy, Debug)]
pub struct CommandFirst;

impl CommandFirst {
    /// Builds the policy.
    pub fn new(_: &()) -> CommandFirst {
        CommandFirst
    }
}

impl Arbiter for CommandFirst {
    fn pick(&mut self, heads: &Heads) -> Want {
        if heads[Want::Command as usize].is_some() {
            return Want::Command;
        }
        first_come(heads, &[Want::DataOut, Want::DataIn]).unwrap_or(Want::Command)
    }
}
