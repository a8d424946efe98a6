//! Counters of paging.

use super::{Paging, Phase};
use engine::Time;
use stats::EnergyReport;

/// Counters of one measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagingStats {
    /// Faults that went to the driver, each for another granule.
    pub faults: u64,
    /// Faults that joined a granule under way.
    pub merged: u64,
    /// Faults for a granule that is in the GPU's memory.
    pub present: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Batches.
    pub batches: u64,
    /// Granules read from the SSD.
    pub reads: u64,
    /// Granules written to the SSD.
    pub writes: u64,
    /// Granules mapped.
    pub mapped: u64,
    /// Bytes moved to the GPU.
    pub moved_bytes: u64,
    /// Granules that made room in the GPU's memory.
    pub evictions: u64,
    /// Commands that the SSD could not do.
    pub failed: u64,
    origin: PagingBusy,
}

/// Time that the parts have been busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagingBusy {
    /// The driver's threads, summed.
    pub threads: Time,
    /// The link to the GPU.
    pub to_gpu: Time,
    /// The link to the host.
    pub to_host: Time,
}

/// What paging has counted since the beginning, for the check.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    pub(super) entered: u64,
    pub(super) resolved: u64,
    /// Granules that made room and have to be written, and those that the SSD has taken.
    pub(super) evicted: u64,
    pub(super) stored: u64,
}

impl Paging {
    fn busy_since_start(&self, now: Time) -> PagingBusy {
        let (to_host, to_gpu) = self.link.busy(now);
        let threads = self.threads.iter().fold(Time::ZERO, |sum, thread| sum + thread.cpu.busy(now));
        PagingBusy { threads, to_gpu, to_host }
    }

    /// Time that the parts have been busy since the window began.
    pub fn busy(&self, now: Time) -> PagingBusy {
        let (all, before) = (self.busy_since_start(now), self.stats.origin);
        PagingBusy {
            threads: all.threads.since(before.threads),
            to_gpu: all.to_gpu.since(before.to_gpu),
            to_host: all.to_host.since(before.to_host),
        }
    }

    /// Energy of the link since the window began; `None` if the spec does not say what it costs.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.link.energy(now)
    }

    /// Bytes over the link since the window began, by the time for which it was booked: at least and at most.
    pub fn carried(&self) -> Option<[u64; 2]> {
        self.link.carried()
    }

    /// Starts the measured window: what happened before is forgotten.
    pub fn reset_stats(&mut self, now: Time) {
        self.link.reset_energy(now);
        self.stats = PagingStats { origin: self.busy_since_start(now), ..PagingStats::default() };
        self.tally = proto::memory::Tally::default();
    }

    /// Holds the accounts against each other; they hold between any two events.
    ///
    /// # Errors
    /// What does not hold, in numbers.
    pub fn check(&self) -> Result<(), String> {
        let (ledger, inside) = (&self.ledger, self.waiting.len() as u64);
        if ledger.entered != ledger.resolved + inside {
            return Err(format!("{} faults, {} resolved, {inside} waiting", ledger.entered, ledger.resolved));
        }
        let leaving = self.jobs.live().filter(|(_, job)| job.phase == Phase::Leaving).count() as u64;
        if ledger.evicted != ledger.stored + leaving {
            return Err(format!(
                "{} granules evicted, {} stored, {leaving} leaving",
                ledger.evicted, ledger.stored
            ));
        }
        let mapped = self.mapped.len() as u64;
        if mapped > self.taken || self.taken > self.capacity {
            return Err(format!(
                "{mapped} granules mapped, {} places taken of {}",
                self.taken, self.capacity
            ));
        }
        Ok(())
    }
}
