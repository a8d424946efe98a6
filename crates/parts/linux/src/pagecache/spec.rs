//! What a user writes about the page cache.

use super::readahead::ReadAheadPolicy;
use super::reclaim::ReclaimPolicy;
use config::SpecError;
use config::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The page cache, by the names that Linux has for what can be turned. What is left out is as Linux 6.1 has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PageCacheSpec {
    /// The most that is read ahead at once (`/sys/block/*/queue/read_ahead_kb`): whole pages. Zero reads single pages, as they are asked for.
    #[schemars(extend("x-maximum" = "1GiB"))]
    pub read_ahead_kb: Bytes,
    /// How it is decided what is read ahead.
    pub readahead: ReadAheadPolicy,
    /// Which pages leave when memory is short.
    pub reclaim: ReclaimPolicy,
    /// Whether a page that was reclaimed leaves a shadow entry, so that its return is noticed (`mm/workingset.c`).
    pub workingset: bool,
    /// Memory below which tasks reclaim themselves (`vm.min_free_kbytes`); without it, what `calculate_min_free_kbytes` makes of the size of
    /// memory.
    #[schemars(extend("x-minimum" = "128KiB"))]
    pub min_free_kbytes: Option<Bytes>,
    /// How far the watermarks are apart, in ten thousandths of memory (`vm.watermark_scale_factor`).
    #[schemars(range(min = 1, max = 3000))]
    pub watermark_scale_factor: u32,
}

impl Default for PageCacheSpec {
    fn default() -> PageCacheSpec {
        PageCacheSpec {
            // `VM_READAHEAD_PAGES`.
            read_ahead_kb: Bytes::from_kib(128),
            readahead: ReadAheadPolicy::default(),
            reclaim: ReclaimPolicy::default(),
            workingset: true,
            min_free_kbytes: None,
            watermark_scale_factor: 10,
        }
    }
}

impl PageCacheSpec {
    /// Checks everything for a memory of `pages`.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
    pub fn check(&self, pages: u64) -> Result<(), SpecError> {
        if !self.read_ahead_kb.get().is_multiple_of(crate::PAGE) {
            let what = format!("{} is no whole number of pages of 4KiB", self.read_ahead_kb);
            return Err(SpecError::new("read_ahead_kb", what));
        }
        SpecError::positive("watermark_scale_factor", self.watermark_scale_factor.into())?;
        let high = super::Watermarks::new(self, pages).high;
        if high >= pages {
            let what = format!("{high} pages are kept free of {pages}: none is left for files");
            let key =
                if self.min_free_kbytes.is_some() { "min_free_kbytes" } else { "watermark_scale_factor" };
            return Err(SpecError::new(key, what).help("keep less free, or give the host more memory"));
        }
        Ok(())
    }

    /// Pages of [`read_ahead_kb`](PageCacheSpec::read_ahead_kb).
    pub fn ra_pages(&self) -> u32 {
        (self.read_ahead_kb.get() / crate::PAGE) as u32
    }
}
