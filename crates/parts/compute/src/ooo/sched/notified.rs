//! Halted jobs whose pages have arrived first.

use super::{Choice, ThreadScheduler, ThreadView};

/// Scheduler that resumes jobs whose core was notified, or old jobs whose notification will not come.
pub struct Notified;

impl Notified {
    /// Creates the scheduler, which is stateless.
    pub fn new(_: &()) -> Notified {
        Notified
    }
}

impl ThreadScheduler for Notified {
    fn choose(&mut self, view: &ThreadView<'_>) -> Choice {
        match view.halted.iter().position(|job| job.arrived) {
            Some(n) => Choice::Resume(n as u32),
            // Page tables in flash: their arrival is notified under the table's page, which jobs do not wait for by
            // name.
            None if view.is_due() => Choice::Resume(0),
            None if view.new => Choice::New,
            None => Choice::Sleep(view.due()),
        }
    }
}
