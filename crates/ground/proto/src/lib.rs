//! Messages between components of a machine, and the address types in them.
//!
//! * Defines commands, completions, loads, stores, system calls and page groups as plain data, each with units.
//! * Does not depend on any component. Component crates depend on this crate instead of on each other.
//! * Start with `block.rs`, the commands of a drive; then `memory.rs`.

mod block;
pub mod cpu;
pub mod file;
pub mod groups;
pub mod memory;
pub mod offload;
pub mod simt;

pub use block::{
    ANNOUNCED_PAGE, Account, Batches, BufferState, ByHolder, Command, Completion, Holder, INNER, IoOp,
    IoRequest, Lpn, MILESTONES, Place, Port, Slot, Status,
};

// Messages between a directory and the first-level caches of cores.

/// Request of a directory to a core's first-level data cache, for a line that another core wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Directory's own tag.
    pub tag: u32,
    /// Core whose cache is probed.
    pub core: u16,
    /// Tile of the directory.
    pub tile: u16,
    /// First byte of the line, physical.
    pub address: u64,
    /// True if the core must give up the line; otherwise it may keep a shared copy.
    pub invalidate: bool,
}

/// Answer to a [`Probe`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probed {
    /// Probe.
    pub probe: Probe,
    /// True if the line was present.
    pub found: bool,
    /// True if the line was dirty: the answer carries the line.
    pub dirty: bool,
}
