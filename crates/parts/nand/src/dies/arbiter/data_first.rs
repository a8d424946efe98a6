//! Data out before commands.

use super::{Arbiter, Heads, Want, first_come};

/// Grants dies with read data first, so that they become free; then commands and programs in order of arrival. This is
/// what MQSim's ONFI back end does.
#[derive(Clone, Copy, Debug)]
pub struct DataFirst;

impl DataFirst {
    /// Builds the policy.
    pub fn new(_: &()) -> DataFirst {
        DataFirst
    }
}

impl Arbiter for DataFirst {
    fn pick(&mut self, heads: &Heads) -> Want {
        if heads[Want::DataOut as usize].is_some() {
            return Want::DataOut;
        }
        first_come(heads, &Want::ALL).unwrap_or(Want::Command)
    }
}
