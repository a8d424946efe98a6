//! What the two cores did: their time is charged by these.

/// Work of Flashvisor and Storengine since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupCounters {
    /// Entries of the map looked up.
    pub lookups: u64,
    /// Entries of the map changed.
    pub updates: u64,
    /// Groups handed out to kernels' writes.
    pub writes: u64,
    /// Writes whose logical group had been written anew before they were done.
    pub overtaken: u64,
    /// Entries of victims looked at, to find their valid groups.
    pub examined: u64,
    /// Counts of valid groups that the choice of victims looked at.
    pub weighed: u64,
    /// Groups that reclaim has written to new numbers.
    pub moves: u64,
    /// Moves that were given up, or whose copy is not used, because a kernel has written the group meanwhile.
    pub overwritten: u64,
    /// Metadata groups programmed.
    pub metadata: u64,
    /// Groups of the map programmed by dumps.
    pub dumped: u64,
    /// Dumps that have ended.
    pub dumps: u64,
    /// Blocks erased.
    pub erases: u64,
}
