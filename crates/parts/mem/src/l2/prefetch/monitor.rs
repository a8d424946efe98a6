//! The access monitor, which sets the granularity of prefetching (ZnG, section IV-B).

use super::PrefetchStats;
use config::units::Share;

/// Counts lines that are evicted, and how many of them a prefetch had brought for nobody. After every `window` of them
/// the share of the wasted, the waste ratio, is compared with two thresholds, and the counts begin anew.
pub(super) struct Monitor {
    pub(super) high: Share,
    pub(super) low: Share,
    pub(super) window: u32,
    /// Bounds of the granularity, and what it grows by, in lines.
    pub(super) least: u32,
    pub(super) most: u32,
    pub(super) step: u32,
    /// Lines that a prefetch fetches.
    pub(super) granularity: u32,
    pub(super) evicted: u32,
    pub(super) wasted: u32,
}

impl Monitor {
    /// A line has been evicted.
    pub(super) fn evicted(&mut self, wasted: bool, stats: &mut PrefetchStats) {
        self.evicted += 1;
        self.wasted += u32::from(wasted);
        if self.evicted < self.window {
            return;
        }
        let waste = f64::from(self.wasted) / f64::from(self.evicted);
        (self.evicted, self.wasted) = (0, 0);
        stats.evaluations += 1;
        if waste > self.high.get() {
            stats.halvings += 1;
            self.granularity = (self.granularity / 2).max(self.least);
        } else if waste < self.low.get() {
            stats.raises += 1;
            self.granularity = (self.granularity + self.step).min(self.most);
        }
    }
}
