//! The halted job whose page has come first.

use super::{Choice, ThreadScheduler, ThreadView};

/// Whoever the core has been told about; a job that it will not be told about once it is old.
pub struct Notified;

impl Notified {
    /// Remembers nothing.
    pub fn new(_: &()) -> Notified {
        Notified
    }
}

impl ThreadScheduler for Notified {
    fn choose(&mut self, view: &ThreadView<'_>) -> Choice {
        match view.halted.iter().position(|job| job.arrived) {
            Some(n) => Choice::Resume(n as u32),
            // Page tables in flash: their arrival is told under the table's page, which no job waits for by name.
            None if view.is_due() => Choice::Resume(0),
            None if view.new => Choice::New,
            None => Choice::Sleep(view.due()),
        }
    }
}
