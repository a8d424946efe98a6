//! Strict priority between classes.

use super::{Class, DieView, Scheduler};

/// Takes the most urgent class first, in the order of [`Class`]; lower classes may starve.
#[derive(Clone, Copy, Debug)]
pub struct Priority;

impl Priority {
    /// Builds the policy.
    pub fn new(_: &()) -> Priority {
        Priority
    }
}

impl Scheduler for Priority {
    fn pick(&mut self, view: &DieView<'_>) -> Option<Class> {
        view.classes().next()
    }
    fn prefers(&self, class: Class, other: Class) -> bool {
        class < other
    }
}
