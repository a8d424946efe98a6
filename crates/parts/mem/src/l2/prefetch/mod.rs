//! Prefetching: what is fetched with a line that a read misses.

pub mod dynamic;
pub mod fixed;
mod monitor;
pub mod none;
pub mod predicted;
mod predictor;
#[cfg(test)]
mod tests;
mod trials;

use config::SpecError;
use config::units::Bytes;
use proto::memory::PAGE;

/// What a prefetcher knows of its cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefetchContext {
    /// Bytes of a line.
    pub line: u64,
}

config::policies! {
    /// What the shared cache fetches with a line that a read misses. Page walks, writes and atomics fetch their line alone.
    pub family Prefetching: dyn Prefetch, context PrefetchContext {
        /// The line alone.
        default none => |_: &PrefetchContext| none::NoPrefetch,
        /// The chunk of the page around the line, always.
        ///
        /// ZnG's `1KBpref` and `4KBpref` (Fig. 16b).
        fixed(fixed::Params) => fixed::Fixed::new,
        /// The chunk around the line, if the instruction's warps have gone on reading the page they read last.
        ///
        /// ZnG's `predict-4KBpref`: the predictor of section IV-B.
        predicted(predicted::Params) => predicted::Predicted::new,
        /// As `predicted`, with a chunk that shrinks when prefetched lines leave unread and grows when they are read.
        ///
        /// ZnG's `dyn-pref`: predictor and access monitor of section IV-B.
        dynamic(dynamic::Params) => dynamic::Dynamic::new,
    }
}

/// A read as the prefetcher sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Address of the instruction.
    pub pc: u32,
    /// The application.
    pub app: u8,
    /// The warp, numbered over the whole machine.
    pub warp: u16,
    /// Number of the page.
    pub page: u64,
    /// Line of the page.
    pub line: u32,
}

/// Decides how much is fetched. The cache fetches what of it is not here nor on its way.
///
/// Contract: a chunk has at least one line, and at most as many as a page. No call allocates.
pub trait Prefetch {
    /// A read has come to the cache; it is told before the cache looks for the line.
    fn read(&mut self, reading: &Reading, stats: &mut PrefetchStats);
    /// The read has missed, and a fetch begins: lines of the chunk to fetch. The page is cut into chunks of that size
    /// from its beginning; the last may be shorter.
    fn chunk(&mut self, reading: &Reading, stats: &mut PrefetchStats) -> u32;
    /// A line has made room; `wasted` if a prefetch had brought it and nobody had read it.
    fn evicted(&mut self, wasted: bool, stats: &mut PrefetchStats);
}

/// A prefetcher's counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PrefetchStats {
    /// Fetches of more than a line, as decided.
    pub prefetches: u64,
    /// Their lines, as decided: with [`PrefetchStats::prefetches`], the mean granularity.
    pub chunk_lines: u64,
    /// Cutoff tests: a read missed and the predictor said whether its page would be read further.
    pub tests: u64,
    /// Tests of which it is known whether they were right: the warp has read once more with the instruction.
    pub judged: u64,
    /// Of them, right ones: the predictor said yes and that read was in the same page, or it said no and it was in another.
    pub right: u64,
    /// Judged tests in which the predictor had said yes.
    pub judged_yes: u64,
    /// Waste ratios computed.
    pub evaluations: u64,
    /// Of them, above the high threshold.
    pub halvings: u64,
    /// Of them, below the low threshold.
    pub raises: u64,
}

impl PrefetchStats {
    /// Counts a decision to fetch so many lines, and hands it on.
    fn decide(&mut self, lines: u32) -> u32 {
        if lines > 1 {
            self.prefetches += 1;
            self.chunk_lines += u64::from(lines);
        }
        lines
    }

    /// Share of judged tests that were right: ZnG's prediction accuracy (Fig. 15b).
    pub fn accuracy(&self) -> Option<f64> {
        (self.judged > 0).then(|| self.right as f64 / self.judged as f64)
    }

    /// Mean bytes of a prefetch's chunk, with lines of `line` bytes.
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
    /// Lines of so many bytes.
    fn lines(&self, bytes: Bytes) -> u32 {
        (bytes.get() / self.line) as u32
    }
}

/// Whether `bytes` can be fetched at once and are at least `least` lines of `line` bytes.
fn check_chunk(key: &str, bytes: Bytes, least: u64, line: u64) -> Result<(), SpecError> {
    let size = bytes.get();
    if !size.is_multiple_of(line) || size < least * line || size > PAGE {
        let what = format!(
            "{bytes} are not a multiple of a line of {line} B from {} to {}",
            Bytes::new(least * line),
            Bytes::new(PAGE)
        );
        return Err(SpecError::new(key, what));
    }
    Ok(())
}

impl Prefetching {
    /// Whether it can be built, for lines of `line` bytes. Limits of single values stand at the fields of parameters; here is
    /// what holds between values.
    pub(super) fn check(&self, line: u64) -> Result<(), SpecError> {
        match self {
            Prefetching::fixed(p) => p.check(line),
            Prefetching::predicted(p) => p.check(line),
            Prefetching::dynamic(p) => p.check(line),
            _ => Ok(()),
        }
    }
}
