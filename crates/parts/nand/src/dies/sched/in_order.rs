//! Strict order of arrival on each channel.

use super::{Class, DieView, Scheduler};

/// Starts operations in order of arrival on their channel: one whose die is busy blocks those behind it.
#[derive(Clone, Copy, Debug)]
pub struct InOrder;

impl InOrder {
    /// Builds the policy.
    pub fn new(_: &()) -> InOrder {
        InOrder
    }
}

impl Scheduler for InOrder {
    fn pick(&mut self, view: &DieView<'_>) -> Option<Class> {
        view.first_come()
    }
    fn holds_line(&self) -> bool {
        true
    }
}
