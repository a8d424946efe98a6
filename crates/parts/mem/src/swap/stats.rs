//! What paging by the operating system counts.

use super::Swap;
use engine::Time;
use proto::memory::Tally;

/// Counters of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwapStats {
    /// Translations whose page was there.
    pub present: u64,
    /// Faults for a page that nobody had asked for.
    pub faults: u64,
    /// Faults for a page that was coming or leaving.
    pub merged: u64,
    /// Faults whose page has come, of both kinds: what [`Swap::tally`] has waited for.
    pub served: u64,
    /// Pages mapped.
    pub mapped: u64,
    /// Pages that left.
    pub evictions: u64,
    /// Pages that left and were written to flash.
    pub write_backs: u64,
    /// TLB shoot-downs.
    pub shootdowns: u64,
    /// Faults that found no free frame.
    pub starved: u64,
    /// Commands that the flash device could not do.
    pub failed: u64,
    /// Core time of the kernel, all cores together.
    pub kernel: Time,
    /// Of it, spinning for the lock of the page table.
    pub spinning: Time,
    /// Of it, shoot-downs, on both sides.
    pub shooting: Time,
}

/// What has been counted since the beginning, for the check.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    pub(super) missing: u64,
    pub(super) served: u64,
    /// Changed pages that flash has taken.
    pub(super) stored: u64,
}

impl Swap {
    /// Starts the measured window: what happened before is forgotten.
    pub fn reset_stats(&mut self, _now: Time) {
        self.stats = SwapStats::default();
        self.tally = Tally::default();
    }

    /// Holds the accounts against each other; they hold between any two events.
    ///
    /// # Errors
    /// What does not hold, in numbers.
    pub fn check(&self) -> Result<(), String> {
        let (ledger, waiting) = (self.ledger, self.waiting.len() as u64);
        if ledger.missing != ledger.served + waiting {
            return Err(format!("{} faults, {} served, {waiting} waiting", ledger.missing, ledger.served));
        }
        let without = self.jobs.live().filter(|(_, job)| job.frame.is_none()).count();
        let (jobs, held) = (self.jobs.len(), self.frames.held());
        if jobs != held + without {
            return Err(format!(
                "{jobs} pages on their way, {held} frames held, {without} pages without a frame"
            ));
        }
        let (dirtied, late, dirty) = (self.frames.dirtied, self.frames.late, self.frames.dirty());
        if dirtied != ledger.stored + late + dirty {
            return Err(format!(
                "{dirtied} pages changed, {} stored, {late} late, {dirty} changed and here",
                ledger.stored
            ));
        }
        let places = self.at.len();
        if places != jobs + self.frames.mapped() {
            return Err(format!(
                "{places} pages known, {jobs} on their way, {} mapped",
                self.frames.mapped()
            ));
        }
        Ok(())
    }
}
