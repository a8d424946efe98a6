//! Translation from virtual to physical addresses.

pub mod tlb;
