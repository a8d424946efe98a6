//! No prefetching.

use super::{Prefetch, PrefetchStats, Reading};

/// Fetches the missed line alone.
pub struct NoPrefetch;

impl Prefetch for NoPrefetch {
    fn read(&mut self, _reading: &Reading, _stats: &mut PrefetchStats) {}
    fn chunk(&mut self, _reading: &Reading, _stats: &mut PrefetchStats) -> u32 {
        1
    }
    fn evicted(&mut self, _wasted: bool, _stats: &mut PrefetchStats) {}
}
