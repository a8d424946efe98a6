//! What happened on a host that none of its floors knows alone.

/// Counts since the window began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathStats {
    /// Interrupts of drives.
    pub interrupts: u64,
    /// Orders that coprocessors have done, each with an interrupt of its own.
    pub orders: u64,
    /// Completions that threads have looked for themselves.
    pub polled: u64,
    /// Bios that ended with an error.
    pub errors: u64,
    /// Writes that found no space on a drive.
    pub no_space: u64,
    /// Dirty pages that found none when they were written back: their data are lost.
    pub lost: u64,
    /// Syncs that returned before the commit block of their transaction was on the drive.
    pub early_syncs: u64,
    /// Times a thread waited for a page that was being read.
    pub page_waits: u64,
    /// Pages that were announced to drives before they were written.
    pub announced: u64,
    /// Times the dirty ratios changed because a drive was full, or was so no more.
    pub ratio_changes: u64,
    /// Times a thread had to reclaim memory itself.
    pub direct_reclaims: u64,
}
