//! From a spec to a processor with its network, caches and memory.

pub(crate) mod gpu;
mod memory;
mod place;
pub(crate) mod server;
mod warm;
