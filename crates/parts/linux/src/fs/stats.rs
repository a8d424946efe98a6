//! What a file system counts.

/// Counters of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsStats {
    /// Commits that `fsync` or `sync` asked for.
    pub commits_sync: u64,
    /// Commits of transactions whose time was up.
    pub commits_interval: u64,
    /// Commits of transactions that were too large, or whose blocks a checkpoint needed.
    pub commits_space: u64,
    /// Descriptor blocks in the log.
    pub log_descriptors: u64,
    /// Copies of blocks of metadata in the log.
    pub log_metadata: u64,
    /// Copies of pages of files in the log.
    pub log_data: u64,
    /// Revoke blocks in the log, and what they revoke.
    pub log_revokes: u64,
    /// Blocks revoked.
    pub revoked: u64,
    /// Commit blocks in the log.
    pub log_commits: u64,
    /// Writes of the journal's superblock.
    pub superblocks: u64,
    /// Batches of blocks that were written home to make room in the log.
    pub checkpoints: u64,
    /// Their blocks.
    pub checkpoint_blocks: u64,
    /// Blocks of metadata, and of data that was journaled, written home, for whatever reason.
    pub home_blocks: u64,
    /// Blocks allocated for data.
    pub allocated: u64,
    /// Allocations that were made for that.
    pub allocations: u64,
    /// Blocks of data freed.
    pub freed: u64,
    /// Writes refused because there was no room.
    pub no_space: u64,
}
