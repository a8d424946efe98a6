//! Order of arrival on each die.

use super::{Class, DieView, Scheduler};

/// Takes each die's oldest operation; dies overtake each other freely (out of order on the channel).
#[derive(Clone, Copy, Debug)]
pub struct Oldest;

impl Oldest {
    /// Builds the policy.
    pub fn new(_: &()) -> Oldest {
        Oldest
    }
}

impl Scheduler for Oldest {
    fn pick(&mut self, view: &DieView<'_>) -> Option<Class> {
        view.first_come()
    }
}
