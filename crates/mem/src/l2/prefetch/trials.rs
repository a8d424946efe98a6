//! Whether the predictor was right.

use super::{PrefetchStats, Reading};

/// No page.
const NONE: u64 = u64::MAX;

/// A verdict whose truth is open.
#[derive(Clone, Copy)]
struct Trial {
    page: u64,
    line: u32,
    yes: bool,
}

/// Verdicts that wait for the truth: a direct-mapped table over pages. [`PrefetchStats::right`] defines the truth.
pub(super) struct Trials {
    places: Vec<Trial>,
}

impl Trials {
    /// Places for as many verdicts as the cache holds pages.
    pub(super) fn new(pages: u32) -> Trials {
        let places = pages.next_power_of_two() as usize;
        Trials { places: vec![Trial { page: NONE, line: 0, yes: false }; places] }
    }

    #[inline]
    fn place(&self, page: u64) -> usize {
        kernel::mix(page) as usize & (self.places.len() - 1)
    }

    /// A line has been read.
    #[inline]
    pub(super) fn read(&mut self, reading: &Reading, stats: &mut PrefetchStats) {
        let place = self.place(reading.page);
        let trial = &mut self.places[place];
        if trial.page == reading.page && trial.line != reading.line {
            judge(trial, true, stats);
        }
    }

    /// A verdict on the page of a read that has missed.
    pub(super) fn open(&mut self, reading: &Reading, yes: bool, stats: &mut PrefetchStats) {
        let place = self.place(reading.page);
        let trial = &mut self.places[place];
        if trial.page == reading.page {
            return;
        }
        if trial.page != NONE {
            judge(trial, false, stats);
        }
        *trial = Trial { page: reading.page, line: reading.line, yes };
    }
}

/// Closes a trial: the page was read further, or not.
fn judge(trial: &mut Trial, further: bool, stats: &mut PrefetchStats) {
    stats.judged += 1;
    stats.judged_yes += u64::from(trial.yes);
    stats.right += u64::from(trial.yes == further);
    trial.page = NONE;
}
