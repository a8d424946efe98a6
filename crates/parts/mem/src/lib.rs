//! The memory hierarchy: caches, translation, DRAM, the placement of pages over several memories, and what lies behind them:
//! page faults, swap, stripes of drives.
//!
//! * Knows tag arrays, MSHRs, directories, page walks, DRAM banks and their schedulers, DRAM caches, migration policies,
//!   pages that faults bring from drives.
//! * Does not know processors, and the media behind a DRAM cache.
//! * Read first: `l2/mod.rs`, the shared cache; then `mmu/mod.rs`.

pub mod cache;
pub mod directory;
pub mod dram;
pub mod dram_cache;
pub mod l2;
pub mod mmu;
pub mod paging;
pub mod placement;
pub mod stripe;
pub mod swap;

use config::SpecError;
use proto::memory::Lines;

/// The lines of a page, each of `line` bytes, for a memory that is built. Its spec does not say the size: the caches in front
/// of it have it.
///
/// # Errors
/// A size that memories do not have; its key is `line`.
pub fn lines_of(line: u64) -> Result<Lines, SpecError> {
    Lines::of(line).map_err(|error| SpecError::new("line", error.to_string()))
}
