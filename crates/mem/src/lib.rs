//! The memory hierarchy: caches, translation, DRAM.

pub mod cache;
pub mod directory;
pub mod dram;
pub mod dram_cache;
pub mod l2;
mod lines;
pub mod mmu;

pub use lines::lines_of;
