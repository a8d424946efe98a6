//! Memory hierarchy: caches, translation, DRAM, the placement of pages over several memories, and the levels behind
//! them: page faults, swap, stripes of drives.
//!
//! * Knows tag arrays, MSHRs, directories, page walks, DRAM banks and their schedulers, DRAM caches, migration policies,
//!   paging from drives.
//! * Does not know processors, nor the media behind a DRAM cache.
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

/// Lines of a page, each of `line` bytes, for a memory to be built. The spec of a memory does not give the size: the
/// caches in front do.
///
/// # Errors
/// Returns an error for an unsupported size; its key is `line`.
pub fn lines_of(line: u64) -> Result<Lines, SpecError> {
    Lines::of(line).map_err(|error| SpecError::new("line", error.to_string()))
}
