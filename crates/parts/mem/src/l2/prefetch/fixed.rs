//! Chunk of fixed size.

use super::{Prefetch, PrefetchContext, PrefetchStats, Reading, check_chunk};
use config::SpecError;
use config::units::Bytes;
use proto::memory::PAGE;

/// Parameters of `fixed`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Chunk that a read miss fetches: whole lines, at most a page.
    #[schemars(extend("x-maximum" = "4KiB"))]
    pub chunk: Bytes,
}

impl Default for Params {
    fn default() -> Params {
        Params { chunk: Bytes::new(PAGE) }
    }
}

impl Params {
    pub(super) fn check(&self, line: u64) -> Result<(), SpecError> {
        check_chunk("prefetch.fixed.chunk", self.chunk, 1, line)
    }
}

/// Fetches the chunk around every missed line.
pub struct Fixed {
    lines: u32,
}

impl Fixed {
    /// Creates the policy from its parameters.
    pub fn new(params: &Params, context: &PrefetchContext) -> Fixed {
        Fixed { lines: context.lines(params.chunk) }
    }
}

impl Prefetch for Fixed {
    fn read(&mut self, _reading: &Reading, _stats: &mut PrefetchStats) {}
    fn chunk(&mut self, _reading: &Reading, stats: &mut PrefetchStats) -> u32 {
        stats.decide(self.lines)
    }
    fn evicted(&mut self, _wasted: bool, _stats: &mut PrefetchStats) {}
}
