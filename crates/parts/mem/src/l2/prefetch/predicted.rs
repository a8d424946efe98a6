//! Chunk of fixed size, fetched if the predictor agrees.

use super::{Predictor, Prefetch, PrefetchContext, PrefetchStats, Reading, check_chunk};
use config::SpecError;
use config::units::Bytes;
use proto::memory::PAGE;

/// Parameters of `predicted`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Entries of the predictor table: a power of two from 8.
    #[schemars(range(min = 8, max = 1_048_576), extend("x-power-of-two" = true))]
    pub entries: u32,
    /// Cutoff: the count of an entry, 0 to 15, must be above this to prefetch.
    #[schemars(range(max = 14))]
    pub cutoff: u8,
    /// Chunk to fetch then: whole lines, at most a page.
    #[schemars(extend("x-maximum" = "4KiB"))]
    pub chunk: Bytes,
}

impl Default for Params {
    fn default() -> Params {
        // Values of ZnG, sections IV-B and V-D.
        Params { entries: 512, cutoff: 12, chunk: Bytes::new(PAGE) }
    }
}

impl Params {
    pub(super) fn check(&self, line: u64) -> Result<(), SpecError> {
        super::check_predictor("predicted", self.entries, self.cutoff)?;
        check_chunk("prefetch.predicted.chunk", self.chunk, 1, line)
    }
}

/// Fetches the chunk around a missed line if the predictor expects further reads of its page.
pub struct Predicted {
    predictor: Predictor,
    lines: u32,
}

impl Predicted {
    /// Creates the policy from its parameters.
    pub fn new(params: &Params, context: &PrefetchContext) -> Predicted {
        Predicted {
            predictor: Predictor::new(params.entries, params.cutoff),
            lines: context.lines(params.chunk),
        }
    }
}

impl Prefetch for Predicted {
    fn read(&mut self, reading: &Reading, stats: &mut PrefetchStats) {
        self.predictor.read(reading, stats);
    }
    fn chunk(&mut self, reading: &Reading, stats: &mut PrefetchStats) -> u32 {
        let yes = self.predictor.test(reading, stats);
        stats.decide(if yes { self.lines } else { 1 })
    }
    fn evicted(&mut self, _wasted: bool, _stats: &mut PrefetchStats) {}
}
