//! What a DRAM cache has counted.

use engine::Time;

/// Counters of one measured window, over all controllers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DramCacheStats {
    /// Accesses to page tables in rows of their own.
    pub flat: u64,
    /// Accesses to data in the cache, those included that had waited for their page.
    pub hits: u64,
    /// Accesses to data that had waited for a page that was not put into the cache.
    pub passes: u64,
    /// Accesses that did not find their page.
    pub misses: u64,
    /// Of them, answered without data.
    pub signalled: u64,
    /// Accesses that did not find their page and were answered without data; no page was asked for.
    pub probes: u64,
    /// Of the misses, those that waited for their page.
    pub waits: u64,
    /// Misses that the backside controller dropped because their page was on its way already, or there by then.
    pub merged: u64,
    /// Pages asked from flash.
    pub fetches: u64,
    /// Pages taken back from the evict buffer.
    pub reclaims: u64,
    /// Pages written to flash.
    pub write_backs: u64,
    /// Unchanged pages that made room.
    pub clean_evictions: u64,
    /// Changed pages that made room.
    pub dirty_evictions: u64,
    /// Pages of tables that left because they had been read.
    pub drops: u64,
    /// Pages put into the cache.
    pub installs: u64,
    /// Pages that were read and not put into the cache.
    pub bypasses: u64,
    /// Misses that waited for an entry of the miss status row.
    pub full_misses: u64,
    /// Misses that found no room in the queue of the backside controller, and held up its frontside controller.
    pub stalls: u64,
    /// Pages whose victim waited for room in the evict buffer.
    pub buffer_waits: u64,
    /// Pages that waited for a way because none of their set might go.
    pub way_waits: u64,
    /// Pages that have come from flash.
    pub responses: u64,
    /// Time from the request for a page to the page, summed over them.
    pub response: Time,
    /// Commands that flash has failed: pages that could not be read or written.
    pub errors: u64,
}
