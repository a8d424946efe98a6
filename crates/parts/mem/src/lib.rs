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
mod lines;
pub mod mmu;
pub mod paging;
pub mod placement;
pub mod stripe;
pub mod swap;

pub use lines::lines_of;
