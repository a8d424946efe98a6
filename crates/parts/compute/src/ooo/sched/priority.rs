//! New jobs first, old halted jobs before them.

use super::{Choice, ThreadScheduler, ThreadView};

/// Priority scheduling with ageing.
pub struct Priority;

impl Priority {
    /// Creates the scheduler, which is stateless.
    pub fn new(_: &()) -> Priority {
        Priority
    }
}

impl ThreadScheduler for Priority {
    fn choose(&mut self, view: &ThreadView<'_>) -> Choice {
        if view.is_due() {
            Choice::Resume(0)
        } else if view.new {
            Choice::New
        } else {
            Choice::Sleep(view.due())
        }
    }
}
