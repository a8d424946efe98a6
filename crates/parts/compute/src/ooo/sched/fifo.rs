//! New jobs, whatever waits.

use super::{Choice, Moment, ThreadScheduler, ThreadView};

/// Halted jobs are looked at only at a miss.
pub struct Fifo;

impl Fifo {
    /// Remembers nothing.
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
