//! The memory hierarchy: caches, translation, DRAM, and the placement of pages over several memories.
//!
//! * Knows tag arrays, MSHRs, directories, page walks, DRAM banks and their schedulers, DRAM caches, migration policies.
//! * Does not know processors, and the media behind a DRAM cache.
//! * Read first: `l2/mod.rs`, the shared cache; then `mmu/mod.rs`.

pub mod cache;
pub mod directory;
pub mod dram;
pub mod dram_cache;
pub mod l2;
mod lines;
pub mod mmu;
pub mod placement;

pub use lines::lines_of;
