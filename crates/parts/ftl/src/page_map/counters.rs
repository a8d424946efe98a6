//! What the FTL has counted.

/// Counters of the FTL, in map units unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtlCounters {
    /// Units committed by the host.
    pub host_commits: u64,
    /// Translation pages committed.
    pub map_commits: u64,
    /// Units moved.
    pub moves: u64,
    /// Moves that lost the race against a host write or a trim.
    pub moves_dropped: u64,
    /// Units written in part whose old data was out of date when they had been programmed: they are merged again.
    pub merges_dropped: u64,
    /// Units deallocated.
    pub trims: u64,
    /// Reclaim units erased.
    pub erases: u64,
}

engine::snapshot!(FtlCounters {
    host_commits,
    map_commits,
    moves,
    moves_dropped,
    merges_dropped,
    trims,
    erases
});

impl FtlCounters {
    /// What was counted since `origin`.
    pub fn since(&self, origin: &FtlCounters) -> FtlCounters {
        FtlCounters {
            host_commits: self.host_commits - origin.host_commits,
            map_commits: self.map_commits - origin.map_commits,
            moves: self.moves - origin.moves,
            moves_dropped: self.moves_dropped - origin.moves_dropped,
            merges_dropped: self.merges_dropped - origin.merges_dropped,
            trims: self.trims - origin.trims,
            erases: self.erases - origin.erases,
        }
    }
}
