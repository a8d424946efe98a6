//! The memory hierarchy: caches, translation, DRAM, and the placement of pages over several memories.

pub mod cache;
pub mod directory;
pub mod dram;
pub mod dram_cache;
pub mod l2;
mod lines;
pub mod mmu;
pub mod placement;

pub use lines::lines_of;
