//! What the page cache counts.

/// Counters of the measured window, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCacheStats {
    /// Look-ups that found the page, with its data.
    pub hits: u64,
    /// Look-ups that found the page while its data were still being read.
    pub hits_under_read: u64,
    /// Look-ups that did not find the page.
    pub misses: u64,
    /// Pages that came by read-ahead without having been asked for.
    pub read_ahead: u64,
    /// Of those that came so, in this window or before, accessed since for the first time.
    pub read_ahead_used: u64,
    /// Of those that came so, gone without ever having been accessed.
    pub read_ahead_wasted: u64,
    /// Pages made dirty (`nr_dirtied`).
    pub dirtied: u64,
    /// Pages whose write-back ended (`nr_written`).
    pub written: u64,
    /// Pages that reclaim took off lists to look at (`pgscan_file`).
    pub scanned: u64,
    /// Of them, by direct reclaim (`pgscan_direct`).
    pub scanned_direct: u64,
    /// Pages that were reclaimed, all of them clean (`pgsteal_file`).
    pub evicted: u64,
    /// Of them, by direct reclaim (`pgsteal_direct`).
    pub evicted_direct: u64,
    /// Pages that came to the active list, or were protected (`pgactivate`).
    pub activated: u64,
    /// Pages that left the active list for the inactive one (`pgdeactivate`).
    pub deactivated: u64,
    /// Pages sent to the tail, since their write-back ended (`pgrotated`).
    pub rotated: u64,
    /// Pages that came back while their shadow entry was there (`workingset_refault_file`).
    pub refaults: u64,
    /// Of them, activated at once (`workingset_activate_file`).
    pub refaults_activated: u64,
    /// Of them, active when they were reclaimed, or hot (`workingset_restore_file`).
    pub refaults_restored: u64,
    /// Dirty pages that reclaim marked, so that they go when they are written (`nr_vmscan_immediate_reclaim`).
    pub marked_for_reclaim: u64,
    /// Dirty pages that `kswapd` chose to write itself.
    pub pageouts: u64,
    /// Pages that a truncation, an advice or an unlink removed.
    pub removed: u64,
}
