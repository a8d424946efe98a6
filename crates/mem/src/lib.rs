//! The memory hierarchy: caches, translation, DRAM.

pub mod cache;
pub mod directory;
pub mod dram;
pub mod dram_cache;
pub mod l2;
pub mod mmu;
