//! The predictor of page locality (ZnG, section IV-B).

use super::trials::Trials;
use super::{PrefetchContext, PrefetchStats, Reading};
use config::SpecError;

/// Fields of an entry: "five representative warps".
const FIELDS: usize = 5;
/// Highest count of four bits.
pub(super) const HIGHEST: u8 = 15;
/// Applications whose programs stand side by side in the table before two meet in one place.
const PROGRAMS: u32 = 8;
/// Page of a field that nobody has read through yet.
const NOWHERE: u64 = u64::MAX;

/// What the warps at one instruction have read.
#[derive(Clone, Copy)]
struct Entry {
    /// The page that was last read through each field.
    pages: [u64; FIELDS],
    /// Reads of the page read before, less reads of another.
    count: u8,
}

/// The table, and the judgement of its verdicts.
///
/// A warp reads through the field that is its number, within its multiprocessor, modulo five; the first read through a field only
/// records the page. So warps that run side by side share fields: what they read one line each, together in order, is seen as
/// continuous, and a field never follows a warp that has ended. Entries have no tag: instructions that share an entry share
/// its fields and its count. Programs of different applications lie at different addresses, an eighth of the table apart.
pub(super) struct Predictor {
    entries: Vec<Entry>,
    cutoff: u8,
    trials: Trials,
}

impl Predictor {
    /// A table of `entries`, a power of two; a count above `cutoff` says yes.
    pub(super) fn new(entries: u32, cutoff: u8, context: &PrefetchContext) -> Predictor {
        let empty = Entry { pages: [NOWHERE; FIELDS], count: 0 };
        Predictor { entries: vec![empty; entries as usize], cutoff, trials: Trials::new(context.pages) }
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
        let page = &mut entry.pages[usize::from(reading.warp) % FIELDS];
        if *page == reading.page {
            entry.count = (entry.count + 1).min(HIGHEST);
        } else if *page != NOWHERE {
            entry.count = entry.count.saturating_sub(1);
        }
        *page = reading.page;
    }

    /// The cutoff test of a read that has missed.
    pub(super) fn test(&mut self, reading: &Reading, stats: &mut PrefetchStats) -> bool {
        let yes = self.count(reading) > self.cutoff;
        stats.tests += 1;
        self.trials.open(reading, yes, stats);
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
