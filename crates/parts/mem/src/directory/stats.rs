//! What a directory counts.

/// What a directory has counted in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryStats {
    /// Transactions begun for a copy that may be shared.
    pub reads: u64,
    /// Transactions begun for the only copy.
    pub owns: u64,
    /// Answers to the latter without data: the core had a shared copy.
    pub upgrades: u64,
    /// Changed lines that cores have written back.
    pub write_backs: u64,
    /// Probes that leave a shared copy.
    pub downgrades: u64,
    /// Probes that leave nothing.
    pub invalidations: u64,
    /// Probes that have brought the line for the requester.
    pub forwarded: u64,
    /// Accesses of page walks, which go past the directory.
    pub walks: u64,
    /// Requests that found another transaction of their line under way.
    pub conflicts: u64,
}
