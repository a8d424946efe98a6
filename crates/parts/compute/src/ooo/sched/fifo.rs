//! New jobs first, whatever waits.

use super::{Choice, Moment, ThreadScheduler, ThreadView};

/// Scheduler that considers halted jobs only at a miss.
pub struct Fifo;

impl Fifo {
    /// Creates the scheduler, which is stateless.
    pub fn new(_: &()) -> Fifo {
        Fifo
    }
}

impl ThreadScheduler for Fifo {
    fn choose(&mut self, view: &ThreadView<'_>) -> Choice {
        let looks = view.moment == Moment::Missed || !view.new;
        if looks && view.is_due() {
            Choice::Resume(0)
        } else if view.new {
            Choice::New
        } else {
            Choice::Sleep(view.due())
        }
    }
}
