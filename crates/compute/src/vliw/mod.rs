//! Cores of an accelerator: in order, several operations a cycle, chosen by the compiler.

pub mod accelerator;
pub mod caches;
pub mod chain;
pub mod frames;
pub mod issue;
pub mod recorded;
pub mod sched;
mod spec;
pub mod stalls;

pub use spec::{
    AcceleratorMemory, AcceleratorSpec, AcceleratorWork, CacheSpec, ExpansionSpec, FirmwareSpec, LatencySpec,
    UnitsSpec,
};
