//! Messages between components of a machine, and the address types in them.
//!
//! * Knows commands, completions, loads, stores, system calls and page groups as plain data, each with its units.
//! * Does not know any component. A component crate depends on this crate in place of another component.
//! * Read first: `block.rs`, the commands of a drive; then `memory.rs`.

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

/// A directory asks a core's first-level data cache for a line that another core wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// The directory's own name for it.
    pub tag: u32,
    /// The core that is asked.
    pub core: u16,
    /// The tile of the directory.
    pub tile: u16,
    /// First byte of the line, physical.
    pub address: u64,
    /// Whether the core must give the line up; else it may keep a shared copy.
    pub invalidate: bool,
}

/// The answer to a [`Probe`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probed {
    /// The probe.
    pub probe: Probe,
    /// Whether the line was there.
    pub found: bool,
    /// Whether it was changed there: the answer carries the line.
    pub dirty: bool,
}
