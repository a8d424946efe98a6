//! What write-back counts.

use super::inodes::On;
use super::{Reason, Writeback};
use engine::Time;
use stats::Histogram;

/// Counters of the measured window: writers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WritebackStats {
    /// How often a writer was looked at.
    pub balances: u64,
    /// Pauses of writers, in picoseconds: their number, sum and longest.
    pub pauses: Histogram,
}

/// Counters of the measured window: the flusher of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlusherStats {
    /// How often it ran.
    pub runs: u64,
    /// Pages that it submitted, by reason in the order of [`Reason::ALL`].
    pub pages: [u64; Reason::ALL.len()],
}

/// Estimates of a device, in pages a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimates {
    /// What it writes (`avg_write_bandwidth`, `BdiWriteBandwidth` of debugfs).
    pub write_bandwidth: u64,
    /// What each writer may dirty (`dirty_ratelimit`).
    pub dirty_ratelimit: u64,
}

impl WritebackStats {
    pub(super) fn pause(&mut self, pause: Time) {
        self.pauses.record(pause.ps());
    }
}

impl FlusherStats {
    pub(super) fn count(&mut self, reason: Reason, pages: u64) {
        self.pages[reason as usize] += pages;
    }
}

impl Writeback {
    /// Starts the measured window: what was counted before is forgotten.
    pub fn reset_stats(&mut self) {
        self.stats.balances = 0;
        self.stats.pauses.clear();
        self.flushers.fill(FlusherStats::default());
    }

    /// What is known of a device's speed.
    pub fn estimates(&self, drive: u16) -> Estimates {
        let bandwidth = &self.wbs[usize::from(drive)].bandwidth;
        Estimates {
            write_bandwidth: bandwidth.avg_write_bandwidth,
            dirty_ratelimit: bandwidth.dirty_ratelimit,
        }
    }

    /// Holds the accounts against each other; they hold between any two calls.
    ///
    /// # Errors
    /// What does not hold, in numbers.
    pub fn check(&self) -> Result<(), String> {
        let mut of_inodes = vec![(0, 0, 0, 0); self.wbs.len()];
        for (inode, record) in self.inodes.all() {
            let (dirty, writeback, listed, queued) = &mut of_inodes[usize::from(record.drive)];
            *dirty += record.dirty;
            *writeback += record.writeback;
            *listed += u64::from(record.on != On::None);
            *queued += if matches!(record.on, On::Io | On::MoreIo) { record.dirty } else { 0 };
            if record.dirty > 0 && record.on == On::None {
                return Err(format!("{inode:?} has {} dirty pages and is on no list", record.dirty));
            }
        }
        for (drive, (wb, of_inodes)) in self.wbs.iter().zip(&of_inodes).enumerate() {
            let of_wb = (wb.reclaimable, wb.writeback, wb.lists.inodes(), wb.lists.queued_pages());
            if of_wb != *of_inodes {
                return Err(format!("drive {drive} has {of_wb:?}, its inodes {of_inodes:?}"));
            }
            let listed =
                [On::Dirty, On::Io, On::MoreIo].map(|on| self.inodes.list(&wb.lists, on).count() as u64);
            if listed.iter().sum::<u64>() != wb.lists.inodes() {
                return Err(format!("drive {drive}: {listed:?} inodes on lists of {}", wb.lists.inodes()));
            }
        }
        let sum = self.wbs.iter().fold((0, 0), |sum, wb| (sum.0 + wb.reclaimable, sum.1 + wb.writeback));
        if sum != (self.domain.dirty, self.domain.writeback) {
            return Err(format!("drives have {sum:?}, all {:?}", (self.domain.dirty, self.domain.writeback)));
        }
        Ok(())
    }
}
