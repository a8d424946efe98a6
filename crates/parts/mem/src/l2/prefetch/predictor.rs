//! The predictor of page locality (ZnG, section IV-B).

use super::trials::Trials;
use super::{PrefetchStats, Reading};
use config::SpecError;

/// Warps that an entry follows: "five representative warps".
const WARPS: usize = 5;
/// Highest count of four bits.
pub(super) const HIGHEST: u8 = 15;
/// Applications whose programs stand side by side in the table before two meet in one place.
const PROGRAMS: u32 = 8;
/// Page of a warp that has not come yet.
const NOWHERE: u64 = u64::MAX;

/// What the warps at one instruction have read.
#[derive(Clone, Copy)]
struct Entry {
    /// The warps followed, in the order in which they came, with the page that each read last.
    pages: [(u16, u64); WARPS],
    /// Reads of the page read before, less reads of another.
    count: u8,
}

/// The table, and the judgement of its verdicts.
///
/// An entry follows the first five distinct warps that read through it; others pass without effect. A read of a page that
/// is recorded in the entry, by whichever warp, counts up; a read of another page counts down, unless it is the warp's
/// first. So warps that each read a page to its end are seen as continuous, and warps that read a page side by side, a line each,
/// as well. A warp is a place on a multiprocessor: the warp that takes the place of one that has ended is followed further.
/// Entries have no tag: instructions that share an entry share its warps and its count. Programs of different applications
/// lie at different addresses, an eighth of the table apart.
pub(super) struct Predictor {
    entries: Vec<Entry>,
    cutoff: u8,
    trials: Trials,
}

impl Predictor {
    /// A table of `entries`, a power of two; a count above `cutoff` says yes.
    pub(super) fn new(entries: u32, cutoff: u8) -> Predictor {
        let empty = Entry { pages: [(0, NOWHERE); WARPS], count: 0 };
        Predictor { entries: vec![empty; entries as usize], cutoff, trials: Trials::default() }
    }

    fn place(&self, reading: &Reading) -> usize {
        let entries = self.entries.len() as u32;
        let program = u32::from(reading.app) * (entries / PROGRAMS);
        // Folded, so that instructions a power of two apart do not share few entries.
        let folded = reading.pc ^ reading.pc >> entries.trailing_zeros();
        (folded.wrapping_add(program) & (entries - 1)) as usize
    }

    /// A read has come.
    pub(super) fn read(&mut self, reading: &Reading, stats: &mut PrefetchStats) {
        self.trials.read(reading, stats);
        let place = self.place(reading);
        let entry = &mut self.entries[place];
        let recorded = entry.pages.iter().any(|(_, page)| *page == reading.page);
        let followed = entry.pages.iter_mut().find(|(warp, page)| *page == NOWHERE || *warp == reading.warp);
        let Some((warp, page)) = followed else {
            return;
        };
        if recorded {
            entry.count = (entry.count + 1).min(HIGHEST);
        } else if *page != NOWHERE {
            entry.count = entry.count.saturating_sub(1);
        }
        (*warp, *page) = (reading.warp, reading.page);
    }

    /// The cutoff test of a read that has missed.
    pub(super) fn test(&mut self, reading: &Reading, stats: &mut PrefetchStats) -> bool {
        let yes = self.count(reading) > self.cutoff;
        stats.tests += 1;
        self.trials.open(reading, yes);
        yes
    }

    /// The count that a reading's instruction has.
    pub(super) fn count(&self, reading: &Reading) -> u8 {
        self.entries[self.place(reading)].count
    }
}

/// Whether a table can be built.
pub(super) fn check(family: &str, entries: u32, cutoff: u8) -> Result<(), SpecError> {
    if !entries.is_power_of_two() || !(PROGRAMS..=1 << 20).contains(&entries) {
        let what = format!("a predictor table of {entries} entries is not a power of two from 8 to 2^20");
        return Err(SpecError::new(&format!("prefetch.{family}.entries"), what));
    }
    if cutoff >= HIGHEST {
        let what = format!("a count of four bits is at most {HIGHEST}, never above a cutoff of {cutoff}");
        return Err(SpecError::new(&format!("prefetch.{family}.cutoff"), what));
    }
    Ok(())
}
