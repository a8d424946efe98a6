//! Reads before everything else, but nothing starves.

use super::{Class, DieView, Scheduler};
use kernel::Time;

/// Reads that somebody waits for go first, in order of arrival; once any other operation has waited for `max_wait`,
/// the oldest goes.
#[derive(Clone, Copy, Debug)]
pub struct ReadFirst {
    /// Longest time that reads may overtake another operation.
    pub max_wait: Time,
}

impl Scheduler for ReadFirst {
    fn pick(&mut self, view: &DieView<'_>) -> Option<Class> {
        let oldest = view.first_come()?;
        if view.now.since(view.oldest(oldest).0) >= self.max_wait {
            return Some(oldest);
        }
        let read = view.classes().filter(|c| c.is_waited_read()).min_by_key(|c| view.oldest(*c).1);
        read.or(Some(oldest))
    }
}
