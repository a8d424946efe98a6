//! A chunk of varying size where the predictor says so.

use super::monitor::Monitor;
use super::predictor::{self, Predictor};
use super::{Prefetch, PrefetchContext, PrefetchStats, Reading, check_chunk};
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
    /// The count of an entry, 0 to 15, must be above this to prefetch.
    #[schemars(range(max = 14))]
    pub cutoff: u8,
    /// The granularity is halved when a larger share of evicted lines than this was prefetched and never read.
    pub high: Share,
    /// The granularity grows when a smaller share than this was never read.
    pub low: Share,
    /// What it grows by.
    #[schemars(extend("x-maximum" = "4KiB"))]
    pub step: Bytes,
    /// Evicted lines from one look at that share to the next.
    #[schemars(range(min = 1))]
    pub window: u32,
    /// Least granularity: two lines or more, because one line prefetches nothing from which to learn.
    #[schemars(extend("x-maximum" = "4KiB"))]
    pub least: Bytes,
    /// Greatest granularity, with which it begins: a page at most.
    #[schemars(extend("x-maximum" = "4KiB"))]
    pub most: Bytes,
}

impl Default for Params {
    fn default() -> Params {
        // ZnG, sections IV-B and V-D; window, least and most are not stated.
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
        predictor::check("dynamic", self.entries, self.cutoff)?;
        SpecError::positive(&key("window"), self.window.into())?;
        check_chunk(&key("step"), self.step, 1, line)?;
        check_chunk(&key("least"), self.least, 2, line)?;
        check_chunk(&key("most"), self.most, 2, line)?;
        if self.least > self.most {
            let what = format!("the least granularity {} is above the greatest, {}", self.least, self.most);
            return Err(SpecError::new(&key("least"), what));
        }
        if self.low > self.high {
            let what = format!("the low threshold {} is above the high one, {}", self.low, self.high);
            return Err(SpecError::new(&key("low"), what));
        }
        Ok(())
    }
}

/// Fetches what the access monitor says around a missed line, if the predictor says that its page will be read further.
pub struct Dynamic {
    predictor: Predictor,
    monitor: Monitor,
}

impl Dynamic {
    /// From its parameters.
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
