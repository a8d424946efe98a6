//! What the shared cache has counted.

use super::prefetch::PrefetchStats;
use engine::Time;

/// Counters of one measured window, over all banks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct L2Stats {
    /// Reads served.
    pub reads: u64,
    /// Writes served.
    pub writes: u64,
    /// Atomic operations served.
    pub atomics: u64,
    /// Reads and atomics that found their line.
    pub hits: u64,
    /// Reads and atomics that began a fetch.
    pub misses: u64,
    /// Reads and atomics that waited for a fetch under way. Reads and atomics are hits, misses and merges.
    pub merges: u64,
    /// Reads and atomics that were answered without data.
    pub signalled: u64,
    /// Writes that found their line.
    pub write_hits: u64,
    /// Copies dropped because their line was written through.
    pub invalidations: u64,
    /// Writes and atomics that a parked page took.
    pub absorbed: u64,
    /// Fetches sent to memory.
    pub fetches: u64,
    /// Lines fetched.
    pub fetched_lines: u64,
    /// Of them, lines that no access had asked for.
    pub prefetched_lines: u64,
    /// Prefetched lines that were read, or waited for, at least once while they were here or on their way.
    pub used_prefetched_lines: u64,
    /// Fetched lines that were passed on to those who waited and not kept, because no line of the set could make room.
    pub unkept_lines: u64,
    /// Lines that made room for others.
    pub evictions: u64,
    /// Of them, prefetched lines that nobody had read.
    pub unused_evictions: u64,
    /// Writes sent to memory that nobody waited for.
    pub write_backs: u64,
    /// Writes sent to memory that an access waited for.
    pub write_throughs: u64,
    /// Lines sent to memory.
    pub written_lines: u64,
    /// Dirty pages taken from flash registers.
    pub parked_pages: u64,
    /// Dirty pages of flash registers that were refused.
    pub refused_pages: u64,
    /// Parked pages written to memory.
    pub unparked_pages: u64,
    /// Lines that left because their application was purged.
    pub purged_lines: u64,
    /// Times that a bank waited with an access that it could not place: no miss register, no room among those that wait
    /// for the fetch, no write slot, or no line that could make room.
    pub stalls: u64,
    /// Time that banks waited so, summed over banks.
    pub stalled: Time,
    /// The prefetcher's counters.
    pub prefetch: PrefetchStats,
}
