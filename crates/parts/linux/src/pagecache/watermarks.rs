//! How much memory is kept free, and who reclaims when.

use super::PageCacheSpec;
use crate::PAGE;

/// The watermarks of a zone, in pages. An allocation succeeds at once while more than `low` are free, wakes `kswapd` otherwise, and still succeeds while
/// more than `min` are free; beneath, the task reclaims itself. `kswapd` works until more than `high` are free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watermarks {
    /// `WMARK_MIN`.
    pub min: u64,
    /// `WMARK_LOW`.
    pub low: u64,
    /// `WMARK_HIGH`.
    pub high: u64,
}

impl Watermarks {
    /// Of a memory that is one zone (`calculate_min_free_kbytes`, `__setup_per_zone_wmarks`).
    ///
    /// The kernel counts all of its memory here. Where `khugepaged` runs it raises `min_free_kbytes` further
    /// (`set_recommended_min_free_kbytes`): then give the spec what `/proc/sys/vm/min_free_kbytes` says.
    pub fn new(spec: &PageCacheSpec, pages: u64) -> Watermarks {
        let min = match spec.min_free_kbytes {
            Some(bytes) => bytes.get() / PAGE,
            None => {
                let lowmem_kbytes = pages * (PAGE >> 10);
                (lowmem_kbytes * 16).isqrt().clamp(128, 262_144) / (PAGE >> 10)
            }
        };
        let apart = (min / 4).max(pages * u64::from(spec.watermark_scale_factor) / 10_000);
        Watermarks { min, low: min + apart, high: min + 2 * apart }
    }
}
