//! How the measured window of a machine begins.

use super::Machine;
use crate::warmup::Cut;
use engine::{Mutant, Time, planted};

/// A measured window that neither a count of requests nor a time begins.
pub(super) const NEVER: (u64, Time) = (u64::MAX, Time::MAX);

impl Machine {
    /// The measured window begins with the event in which the last job of the warm-up ends, or jobs become steady.
    pub(super) fn consider_warmup(&mut self) {
        let (completed, now) = (self.completed(), self.now());
        let server = self.server().map(|(_, ooo)| ooo);
        if let Some(cut) = self.warmup.and_then(|warmup| warmup.over(completed, now, server)) {
            self.begin_window(cut, now);
        }
    }

    /// The measured window begins, because of a count of requests or a time.
    #[cold]
    pub(super) fn begin_at(&mut self, at: Time) {
        if let Some(by) = self.warmup {
            self.begin_window(Cut { by, jobs: self.completed(), steady: None }, at);
        }
    }

    /// What was measured before `now`, the present or a time since the last event, is forgotten.
    fn begin_window(&mut self, cut: Cut, now: Time) {
        self.warmup = None;
        self.window = NEVER;
        self.counts_jobs = false;
        self.cut = Some(cut);
        self.measured_from = now;
        for drive in self.parts.drives.iter_mut().filter(|_| !planted(Mutant::OldWindow)) {
            drive.device.reset_stats(now);
        }
        self.parts.reset_stats(now);
        self.injector.reset(now);
        self.gauges.reset();
        self.read_gauges(now);
    }
}
