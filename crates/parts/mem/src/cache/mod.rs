//! Caches: tag arrays, replacement, miss status.

pub mod replace;
pub mod tags;
