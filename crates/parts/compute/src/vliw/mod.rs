//! Cores of an accelerator: in order, several operations a cycle, chosen by the compiler.

pub mod accelerator;
pub mod caches;
pub mod chain;
pub mod coprocessor;
pub mod frames;
pub mod issue;
mod meter;
pub mod observe;
mod program;
pub mod recorded;
pub mod sched;
mod sharing;
mod spec;
pub mod stalls;
mod streams;
#[cfg(test)]
mod testing;

pub use spec::{
    AcceleratorMemory, AcceleratorSpec, AcceleratorSums, AcceleratorWork, CacheSpec, CoreSpec, ExpansionSpec,
    FirmwareSpec, LatencySpec, PrefetchSpec, UnitsSpec,
};

/// Bytes of a page group: in these, programs are told what of their arrays is in memory.
pub const GROUP: u64 = 64 << 10;
