//! Prefetching: the lines fetched with a line that a read misses, and the predictor of page locality used by policies.

pub mod dynamic;
pub mod fixed;
pub mod none;
pub mod predicted;

use config::SpecError;
use config::units::Bytes;
use proto::memory::PAGE;
use rustc_hash::FxHashMap;

/// Context of a prefetcher: its cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefetchContext {
    /// Size of a line in bytes.
    pub line: u64,
}

config::policies! {
    /// Prefetching policy: lines fetched with a line that a read misses. Page walks, writes and atomics fetch only
    /// their line.
    pub family Prefetching: dyn Prefetch, context PrefetchContext {
        /// Only the missed line.
        default none => |_: &PrefetchContext| none::NoPrefetch,
        /// Chunk of the page around the line, always.
        ///
        /// ZnG's `1KBpref` and `4KBpref` (Fig. 16b).
        fixed(fixed::Params) => fixed::Fixed::new,
        /// Chunk around the line, if the instruction's warps have continued to read the page they read last.
        ///
        /// ZnG's `predict-4KBpref`: the predictor of section IV-B.
        predicted(predicted::Params) => predicted::Predicted::new,
        /// Same as `predicted`, with a chunk that shrinks when prefetched lines are evicted unread and grows when they
        /// are read.
        ///
        /// ZnG's `dyn-pref`: predictor and access monitor of section IV-B.
        dynamic(dynamic::Params) => dynamic::Dynamic::new,
    }
}

/// Read as seen by the prefetcher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Address of the instruction.
    pub pc: u32,
    /// Application of the read.
    pub app: u8,
    /// Number of the warp over the whole machine.
    pub warp: u16,
    /// Number of the page.
    pub page: u64,
    /// Line number within the page.
    pub line: u32,
}

/// Decides on the amount to fetch. The cache fetches those of the lines that are neither here nor in flight.
///
/// Contract: a chunk has at least one line, and at most a page. No call allocates.
pub trait Prefetch {
    /// Notes a read, before the cache looks for its line.
    fn read(&mut self, reading: &Reading, stats: &mut PrefetchStats);
    /// Returns the lines of the chunk to fetch for a read that missed and begins a fetch. The page is divided into
    /// chunks of that size from its beginning; the last one may be shorter.
    fn chunk(&mut self, reading: &Reading, stats: &mut PrefetchStats) -> u32;
    /// Notes an evicted line; `wasted` if it was prefetched and never read.
    fn evicted(&mut self, wasted: bool, stats: &mut PrefetchStats);
}

/// Statistics of a prefetcher.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrefetchStats {
    /// Decisions to fetch more than one line.
    pub prefetches: u64,
    /// Lines of these decisions: divided by [`PrefetchStats::prefetches`], the mean granularity.
    pub chunk_lines: u64,
    /// Cutoff tests: reads that missed, for which the predictor judged whether their page would be read further.
    pub tests: u64,
    /// Tests with a known outcome: the warp has read once more with the instruction.
    pub judged: u64,
    /// Correct tests: the predictor said yes and the next read was in the same page, or no and it was in a different
    /// one.
    pub right: u64,
    /// Judged tests in which the predictor had said yes.
    pub judged_yes: u64,
    /// Number of waste ratios computed.
    pub evaluations: u64,
    /// Waste ratios above the high threshold.
    pub halvings: u64,
    /// Waste ratios below the low threshold.
    pub raises: u64,
}

impl PrefetchStats {
    /// Counts a decision to fetch `lines` lines, and returns it.
    fn decide(&mut self, lines: u32) -> u32 {
        if lines > 1 {
            self.prefetches += 1;
            self.chunk_lines += u64::from(lines);
        }
        lines
    }

    /// Share of judged tests that were correct: ZnG's prediction accuracy (Fig. 15b).
    pub fn accuracy(&self) -> Option<f64> {
        (self.judged > 0).then(|| self.right as f64 / self.judged as f64)
    }

    /// Mean chunk size of a prefetch in bytes, with lines of `line` bytes.
    pub fn granularity(&self, line: u64) -> Option<f64> {
        (self.prefetches > 0).then(|| (self.chunk_lines * line) as f64 / self.prefetches as f64)
    }
}

/// Lines of the chunk of `lines` around `line` of a page of `page` lines, as bits.
pub(super) fn chunk_around(line: u32, lines: u32, page: u32) -> u64 {
    debug_assert!((1..=page).contains(&lines) && line < page, "{lines} lines around {line} of {page}");
    let first = line / lines * lines;
    let count = lines.min(page - first);
    (u64::MAX >> (u64::BITS - count)) << first
}

impl PrefetchContext {
    /// Lines in `bytes` bytes.
    fn lines(&self, bytes: Bytes) -> u32 {
        (bytes.get() / self.line) as u32
    }
}

/// Checks that `bytes` can be fetched at once and are at least `least` lines of `line` bytes.
fn check_chunk(key: &str, bytes: Bytes, least: u64, line: u64) -> Result<(), SpecError> {
    let size = bytes.get();
    if !size.is_multiple_of(line) || size < least * line || size > PAGE {
        let what = format!(
            "{bytes} is invalid; allowed are multiples of the line size, {line} B, from {} to {}",
            Bytes::new(least * line),
            Bytes::new(PAGE)
        );
        return Err(SpecError::new(key, what));
    }
    Ok(())
}

impl Prefetching {
    /// Checks that the policy can be built, for lines of `line` bytes. Limits of single values are at the parameters'
    /// fields; this function checks relations between values.
    pub(super) fn check(&self, line: u64) -> Result<(), SpecError> {
        match self {
            Prefetching::fixed(p) => p.check(line),
            Prefetching::predicted(p) => p.check(line),
            Prefetching::dynamic(p) => p.check(line),
            _ => Ok(()),
        }
    }
}

// Predictor of page locality (ZnG, section IV-B).

/// Number of warps tracked by an entry: "five representative warps".
const WARPS: usize = 5;

/// Highest count of four bits.
const HIGHEST_COUNT: u8 = 15;

/// Number of applications whose programs are apart in the table before two overlap.
const PROGRAMS: u32 = 8;

/// Page of a warp that has not read yet.
const NOWHERE: u64 = u64::MAX;

/// Reads of the warps at one instruction.
#[derive(Clone, Copy)]
struct Entry {
    /// Tracked warps, in order of arrival, with the page that each read last.
    pages: [(u16, u64); WARPS],
    /// Reads of the page read before, minus reads of a different page.
    count: u8,
}

/// Predictor table, and the evaluation of its verdicts.
///
/// An entry tracks the first five distinct warps that read through it; others have no effect. A read of a page recorded
/// in the entry, by any warp, counts up; a read of a different page counts down, unless it is the warp's first. So
/// warps that each read a page to its end are seen as continuous, and so are warps that read a page together, a line
/// each. A warp is a place on a multiprocessor: its successor there inherits the tracking. Entries have no tag:
/// instructions that share an entry share its warps and its count. Programs of different applications are an eighth of
/// the table apart.
struct Predictor {
    entries: Vec<Entry>,
    cutoff: u8,
    trials: Trials,
}

impl Predictor {
    /// Creates a table of `entries`, a power of two; a count above `cutoff` means yes.
    fn new(entries: u32, cutoff: u8) -> Predictor {
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

    /// Notes a read.
    fn read(&mut self, reading: &Reading, stats: &mut PrefetchStats) {
        self.trials.read(reading, stats);
        let place = self.place(reading);
        let entry = &mut self.entries[place];
        let recorded = entry.pages.iter().any(|(_, page)| *page == reading.page);
        let followed = entry.pages.iter_mut().find(|(warp, page)| *page == NOWHERE || *warp == reading.warp);
        let Some((warp, page)) = followed else {
            return;
        };
        if recorded {
            entry.count = (entry.count + 1).min(HIGHEST_COUNT);
        } else if *page != NOWHERE {
            entry.count = entry.count.saturating_sub(1);
        }
        (*warp, *page) = (reading.warp, reading.page);
    }

    /// Performs the cutoff test of a read that has missed.
    fn test(&mut self, reading: &Reading, stats: &mut PrefetchStats) -> bool {
        let yes = self.count(reading) > self.cutoff;
        stats.tests += 1;
        self.trials.open(reading, yes);
        yes
    }

    /// Count of a reading's instruction.
    fn count(&self, reading: &Reading) -> u8 {
        self.entries[self.place(reading)].count
    }
}

/// Checks that a table can be built.
fn check_predictor(family: &str, entries: u32, cutoff: u8) -> Result<(), SpecError> {
    if !entries.is_power_of_two() || !(PROGRAMS..=1 << 20).contains(&entries) {
        let what = format!("{entries} entries of the predictor; allowed are powers of two from 8 to 2^20");
        return Err(SpecError::new(&format!("prefetch.{family}.entries"), what));
    }
    if cutoff >= HIGHEST_COUNT {
        let what = format!("the 4-bit count, at most {HIGHEST_COUNT}, never exceeds a cutoff of {cutoff}");
        return Err(SpecError::new(&format!("prefetch.{family}.cutoff"), what));
    }
    Ok(())
}

// Correctness of the predictor's verdicts.

/// Verdict with an open outcome.
#[derive(Clone, Copy)]
struct Trial {
    page: u64,
    yes: bool,
}

/// Verdicts that wait for their outcome: the next read of the same warp with the same instruction.
/// [`PrefetchStats::right`] defines correctness. At most one exists per warp and instruction.
#[derive(Default)]
struct Trials {
    open: FxHashMap<(u32, u8, u16), Trial>,
}

impl Trials {
    /// Notes a read, before its own test if it misses.
    #[inline]
    fn read(&mut self, reading: &Reading, stats: &mut PrefetchStats) {
        let Some(trial) = self.open.remove(&trial_key(reading)) else { return };
        stats.judged += 1;
        stats.judged_yes += u64::from(trial.yes);
        stats.right += u64::from(trial.yes == (trial.page == reading.page));
    }

    /// Opens a verdict on the page of a read that has missed.
    fn open(&mut self, reading: &Reading, yes: bool) {
        self.open.insert(trial_key(reading), Trial { page: reading.page, yes });
    }
}

#[inline]
fn trial_key(reading: &Reading) -> (u32, u8, u16) {
    (reading.pc, reading.app, reading.warp)
}

#[cfg(test)]
mod tests {
    // Worked examples: the predictor, chunks, the evaluation.

    use super::*;
    use config::units::Share;
    use proto::memory::LINE;

    const CONTEXT: PrefetchContext = PrefetchContext { line: LINE };

    fn reading(pc: u32, warp: u16, page: u64) -> Reading {
        Reading { pc, app: 0, warp, page, line: 0 }
    }

    /// Performs reads, and returns the count after each.
    fn counts(predictor: &mut Predictor, readings: &[Reading]) -> Vec<u8> {
        let mut stats = PrefetchStats::default();
        let mut count = |r: &Reading| {
            predictor.read(r, &mut stats);
            predictor.count(r)
        };
        readings.iter().map(&mut count).collect()
    }

    #[test]
    fn predictor_example_of_the_paper() {
        // Section IV-B: warp 0 at PC 0 reads the page it read before: plus one; a different page: minus one, and it is
        // recorded.
        let mut predictor = Predictor::new(512, 12);
        let at = |page| reading(0, 0, page);
        let got = counts(&mut predictor, &[at(7), at(7), at(7), at(9), at(9), at(7)]);
        assert_eq!(got, [0, 1, 2, 1, 2, 1]);
    }

    #[test]
    fn the_count_has_four_bits_and_is_tested_against_twelve() {
        let mut predictor = Predictor::new(512, 12);
        let mut stats = PrefetchStats::default();
        let mut yes = Vec::new();
        for _ in 0..20 {
            predictor.read(&reading(4, 1, 5), &mut stats);
            yes.push(predictor.test(&reading(4, 1, 5), &mut stats));
        }
        // The first read records, the n-th makes the count n - 1: the 14th is the first above 12.
        assert_eq!(yes.iter().position(|y| *y), Some(13));
        assert_eq!(predictor.count(&reading(4, 1, 5)), HIGHEST_COUNT);
        for n in 0..20 {
            predictor.read(&reading(4, 1, 100 + n), &mut stats);
        }
        assert_eq!(predictor.count(&reading(4, 1, 5)), 0);
    }

    #[test]
    fn an_entry_follows_the_first_five_warps() {
        let mut predictor = Predictor::new(512, 12);
        let first: Vec<Reading> = (0..6).map(|warp| reading(0, warp, u64::from(warp))).collect();
        assert_eq!(counts(&mut predictor, &first), [0; 6]);
        // Warps do not disturb each other; the sixth is not tracked.
        assert_eq!(counts(&mut predictor, &first), [1, 2, 3, 4, 5, 5]);
        // Warp 1 reads the page that warp 2 has read last, then one that no warp has.
        assert_eq!(counts(&mut predictor, &[reading(0, 1, 2), reading(0, 1, 9)]), [6, 5]);
    }

    #[test]
    fn warps_that_read_a_stream_side_by_side_are_continuous() {
        // 80 warps take turns at the lines of a stream, 32 to a page: each reads a different page every time.
        let mut predictor = Predictor::new(512, 12);
        let stream: Vec<Reading> = (0..400).map(|n| reading(0, n % 80, u64::from(n / 32))).collect();
        let counts = counts(&mut predictor, &stream);
        // Of the five tracked warps, the first begins a page, once without a count and then at a cost of one; the other
        // four find it recorded: 4, then 3 more a round, up to 15.
        let rounds: Vec<u8> = counts.iter().skip(4).step_by(80).copied().collect();
        assert_eq!(rounds, [4, 7, 10, 13, HIGHEST_COUNT]);
    }

    #[test]
    fn instructions_that_share_an_entry_share_its_count() {
        let mut predictor = Predictor::new(8, 12);
        counts(&mut predictor, &[reading(1, 0, 3), reading(1, 0, 3)]);
        assert_eq!(predictor.count(&reading(2, 0, 3)), 0);
        // 8 folds into 8 ^ 1 = 9, place 1.
        assert_eq!(predictor.count(&reading(8, 0, 3)), 1);
        // The program of a different application is an eighth of the table further on.
        assert_eq!(predictor.count(&Reading { app: 1, ..reading(1, 0, 3) }), 0);
        assert_eq!(predictor.count(&Reading { app: 1, ..reading(0, 0, 3) }), 1);
    }

    #[test]
    fn a_page_is_cut_into_chunks_from_its_beginning() {
        assert_eq!(chunk_around(5, 1, 32), 1 << 5);
        assert_eq!(chunk_around(5, 8, 32), 0xff);
        assert_eq!(chunk_around(31, 32, 32), u64::from(u32::MAX));
        assert_eq!(chunk_around(63, 64, 64), u64::MAX);
        assert_eq!(chunk_around(40, 8, 64), 0xff << 40);
        // 1.25 KiB: lines 0 to 9, ..., 30 and 31.
        assert_eq!(chunk_around(12, 10, 32), 0x3ff << 10);
        assert_eq!(chunk_around(30, 10, 32), 0b11 << 30);
    }

    #[test]
    fn verdicts_are_judged_by_what_the_warp_reads_next() {
        let params = predicted::Params { entries: 8, cutoff: 0, ..predicted::Params::default() };
        let mut predicted = predicted::Predicted::new(&params, &CONTEXT);
        let mut stats = PrefetchStats::default();
        let mut read = |warp: u16, page: u64, line: u32, miss: bool| {
            let reading = Reading { pc: 0, app: 0, warp, page, line };
            predicted.read(&reading, &mut stats);
            if miss {
                predicted.chunk(&reading, &mut stats);
            }
            stats
        };
        // No for page 1, in which the warp continues: wrong.
        assert_eq!(read(0, 1, 0, true).judged, 0);
        let stats = read(0, 1, 3, true);
        assert_eq!((stats.judged, stats.right, stats.judged_yes), (1, 0, 0));
        // That read counted up: yes for page 1; reads of other warps do not matter. The warp continues there: right.
        assert_eq!(read(1, 2, 0, false).judged, 1);
        let stats = read(0, 1, 4, false);
        assert_eq!((stats.judged, stats.right, stats.judged_yes), (2, 1, 1));
        // A hit: no test, and nothing to evaluate.
        assert_eq!(read(0, 1, 5, true).judged, 2);
        // Yes again, but the warp leaves the page: wrong.
        let stats = read(0, 7, 0, false);
        assert_eq!((stats.judged, stats.right, stats.judged_yes), (3, 1, 2));
        // It wanders until the count is zero: no, and it leaves again: right.
        (10..18).for_each(|page| {
            read(0, page, 0, false);
        });
        read(0, 20, 0, true);
        let stats = read(0, 21, 0, false);
        assert_eq!((stats.judged, stats.right, stats.tests), (4, 2, 4));
        assert_eq!(stats.accuracy(), Some(0.5));
    }

    #[test]
    fn parameters_that_do_not_fit_are_named() {
        let key = |policy: Prefetching| policy.check(LINE).map_err(|e| e.key);
        for policy in Prefetching::all_defaults() {
            assert_eq!(key(policy), Ok(()));
        }
        let dynamic = dynamic::Params::default();
        let with = |p| key(Prefetching::dynamic(p));
        let bytes = Bytes::new;
        assert_eq!(
            with(dynamic::Params { entries: 500, ..dynamic.clone() }),
            Err("prefetch.dynamic.entries".into())
        );
        assert_eq!(
            with(dynamic::Params { cutoff: 15, ..dynamic.clone() }),
            Err("prefetch.dynamic.cutoff".into())
        );
        assert_eq!(
            with(dynamic::Params { least: bytes(128), ..dynamic.clone() }),
            Err("prefetch.dynamic.least".into())
        );
        assert_eq!(
            with(dynamic::Params { most: bytes(8192), ..dynamic.clone() }),
            Err("prefetch.dynamic.most".into())
        );
        assert_eq!(
            with(dynamic::Params { most: bytes(256), least: bytes(512), ..dynamic.clone() }),
            Err("prefetch.dynamic.least".into())
        );
        assert_eq!(
            with(dynamic::Params { low: Share::percent(50), ..dynamic.clone() }),
            Err("prefetch.dynamic.low".into())
        );
        assert_eq!(with(dynamic::Params { window: 0, ..dynamic }), Err("prefetch.dynamic.window".into()));
        let predicted = predicted::Params { chunk: bytes(100), ..predicted::Params::default() };
        assert_eq!(key(Prefetching::predicted(predicted)), Err("prefetch.predicted.chunk".into()));
    }
}
