//! Messages between a directory and the first-level caches of cores.

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
