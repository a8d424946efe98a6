//! Chunk of varying size, fetched if the predictor agrees: the access monitor sets the size.

use super::{Predictor, Prefetch, PrefetchContext, PrefetchStats, Reading, check_chunk};
use config::SpecError;
use config::units::{Bytes, Share};
use proto::memory::PAGE;

/// Parameters of `dynamic`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Entries of the predictor table: a power of two from 8.
    #[schemars(range(min = 8, max = 1_048_576), extend("x-power-of-two" = true))]
    pub entries: u32,
    /// Cutoff: the count of an entry, 0 to 15, must be above this to prefetch.
    #[schemars(range(max = 14))]
    pub cutoff: u8,
    /// Share of evicted lines, prefetched and never read, above which the granularity is halved.
    pub high: Share,
    /// Share of evicted lines, prefetched and never read, below which the granularity grows.
    pub low: Share,
    /// Growth step of the granularity.
    #[schemars(extend("x-maximum" = "4KiB"))]
    pub step: Bytes,
    /// Window: evicted lines between two evaluations of that share.
    #[schemars(range(min = 1))]
    pub window: u32,
    /// Minimum granularity: at least two lines, because one line prefetches nothing to learn from.
    #[schemars(extend("x-maximum" = "4KiB"))]
    pub least: Bytes,
    /// Maximum and initial granularity: at most a page.
    #[schemars(extend("x-maximum" = "4KiB"))]
    pub most: Bytes,
}

impl Default for Params {
    fn default() -> Params {
        // Values of ZnG, sections IV-B and V-D; window, least and most are not stated there.
        Params {
            entries: 512,
            cutoff: 12,
            high: Share::percent(30),
            low: Share::percent(5),
            step: Bytes::from_kib(1),
            window: 256,
            least: Bytes::new(256),
            most: Bytes::new(PAGE),
        }
    }
}

impl Params {
    pub(super) fn check(&self, line: u64) -> Result<(), SpecError> {
        let key = |name: &str| format!("prefetch.dynamic.{name}");
        super::check_predictor("dynamic", self.entries, self.cutoff)?;
        SpecError::positive(&key("window"), self.window.into())?;
        check_chunk(&key("step"), self.step, 1, line)?;
        check_chunk(&key("least"), self.least, 2, line)?;
        check_chunk(&key("most"), self.most, 2, line)?;
        if self.least > self.most {
            let what = format!("the minimum granularity {} is above the maximum, {}", self.least, self.most);
            return Err(SpecError::new(&key("least"), what));
        }
        if self.low > self.high {
            let what = format!("the low threshold {} is above the high one, {}", self.low, self.high);
            return Err(SpecError::new(&key("low"), what));
        }
        Ok(())
    }
}

/// Fetches the access monitor's chunk around a missed line, if the predictor expects further reads of its page.
pub struct Dynamic {
    predictor: Predictor,
    monitor: Monitor,
}

impl Dynamic {
    /// Creates the policy from its parameters.
    pub fn new(params: &Params, context: &PrefetchContext) -> Dynamic {
        let monitor = Monitor {
            high: params.high,
            low: params.low,
            window: params.window,
            least: context.lines(params.least),
            most: context.lines(params.most),
            step: context.lines(params.step),
            granularity: context.lines(params.most),
            evicted: 0,
            wasted: 0,
        };
        Dynamic { predictor: Predictor::new(params.entries, params.cutoff), monitor }
    }
}

impl Prefetch for Dynamic {
    fn read(&mut self, reading: &Reading, stats: &mut PrefetchStats) {
        self.predictor.read(reading, stats);
    }
    fn chunk(&mut self, reading: &Reading, stats: &mut PrefetchStats) -> u32 {
        let yes = self.predictor.test(reading, stats);
        stats.decide(if yes { self.monitor.granularity } else { 1 })
    }
    fn evicted(&mut self, wasted: bool, stats: &mut PrefetchStats) {
        self.monitor.evicted(wasted, stats);
    }
}

// Access monitor, which sets the granularity of prefetching (ZnG, section IV-B).

/// Counts evicted lines, and those among them prefetched without use. After every `window` lines, the share of the
/// wasted ones, the waste ratio, is compared with two thresholds, and the counts are reset.
struct Monitor {
    high: Share,
    low: Share,
    window: u32,
    /// Bounds and growth step of the granularity, in lines.
    least: u32,
    most: u32,
    step: u32,
    /// Lines per prefetch.
    granularity: u32,
    evicted: u32,
    wasted: u32,
}

impl Monitor {
    /// Counts an evicted line.
    fn evicted(&mut self, wasted: bool, stats: &mut PrefetchStats) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proto::memory::LINE;

    fn reading(page: u64) -> Reading {
        Reading { pc: 0, app: 0, warp: 0, page, line: 0 }
    }

    fn monitor() -> Monitor {
        let (high, low) = (Share::percent(30), Share::percent(5));
        Monitor { high, low, window: 20, least: 2, most: 32, step: 8, granularity: 32, evicted: 0, wasted: 0 }
    }

    /// Granularity in bytes after 20 evicted lines, `wasted` of them prefetched without use.
    fn after(monitor: &mut Monitor, wasted: u32) -> u64 {
        let mut stats = PrefetchStats::default();
        for n in 0..20 {
            monitor.evicted(n < wasted, &mut stats);
        }
        assert_eq!(stats.evaluations, 1);
        u64::from(monitor.granularity) * LINE
    }

    #[test]
    fn the_monitor_halves_and_adds_a_kib() {
        // Section IV-B: above 0.3 the granularity is halved, below 0.05 it grows by 1 KB; the bounds themselves change
        // nothing.
        let mut monitor = monitor();
        assert_eq!(after(&mut monitor, 7), 2048);
        assert_eq!(after(&mut monitor, 20), 1024);
        assert_eq!(after(&mut monitor, 6), 1024);
        assert_eq!(after(&mut monitor, 1), 1024);
        assert_eq!(after(&mut monitor, 0), 2048);
        assert_eq!(after(&mut monitor, 0), 3072);
        assert_eq!(after(&mut monitor, 0), 4096);
        assert_eq!(after(&mut monitor, 0), 4096);
        let down: Vec<u64> = (0..5).map(|_| after(&mut monitor, 20)).collect();
        assert_eq!(down, [2048, 1024, 512, 256, 256]);
        // 1.25 KiB is a multiple of lines too.
        assert_eq!(after(&mut monitor, 0), 1280);
    }

    #[test]
    fn a_dynamic_prefetcher_follows_its_monitor() {
        let params = Params { cutoff: 0, window: 1, ..Params::default() };
        let mut dynamic = Dynamic::new(&params, &PrefetchContext { line: LINE });
        let mut stats = PrefetchStats::default();
        let mut chunk = |dynamic: &mut Dynamic, wasted: Option<bool>| {
            if let Some(wasted) = wasted {
                dynamic.evicted(wasted, &mut stats);
            }
            dynamic.read(&reading(1), &mut stats);
            dynamic.chunk(&reading(1), &mut stats)
        };
        assert_eq!(chunk(&mut dynamic, None), 1, "the first read only records its page");
        assert_eq!(chunk(&mut dynamic, None), 32);
        assert_eq!(chunk(&mut dynamic, Some(true)), 16);
        assert_eq!(chunk(&mut dynamic, Some(false)), 24);
        assert_eq!((stats.prefetches, stats.chunk_lines), (3, 32 + 16 + 24));
        assert_eq!((stats.halvings, stats.raises, stats.evaluations), (1, 1, 2));
    }
}
