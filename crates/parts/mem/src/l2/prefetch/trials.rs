//! Whether the predictor was right.

use super::{PrefetchStats, Reading};
use rustc_hash::FxHashMap;

/// A verdict whose truth is open.
#[derive(Clone, Copy)]
struct Trial {
    page: u64,
    yes: bool,
}

/// Verdicts that wait for the truth: the next read of the same warp with the same instruction. [`PrefetchStats::right`] says what is
/// right. There are at most as many as warps times instructions.
#[derive(Default)]
pub(super) struct Trials {
    open: FxHashMap<(u32, u8, u16), Trial>,
}

impl Trials {
    /// A read has come, before its own test if it misses.
    #[inline]
    pub(super) fn read(&mut self, reading: &Reading, stats: &mut PrefetchStats) {
        let Some(trial) = self.open.remove(&key(reading)) else { return };
        stats.judged += 1;
        stats.judged_yes += u64::from(trial.yes);
        stats.right += u64::from(trial.yes == (trial.page == reading.page));
    }

    /// A verdict on the page of a read that has missed.
    pub(super) fn open(&mut self, reading: &Reading, yes: bool) {
        self.open.insert(key(reading), Trial { page: reading.page, yes });
    }
}

#[inline]
fn key(reading: &Reading) -> (u32, u8, u16) {
    (reading.pc, reading.app, reading.warp)
}
