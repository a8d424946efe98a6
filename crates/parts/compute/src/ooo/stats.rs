//! What cores have counted.

use super::window::Spent;
use stats::Batched;

/// Counters of all cores together.
#[derive(Clone, Debug, Default)]
pub struct CoresStats {
    /// Jobs that have ended.
    pub jobs: u64,
    /// Instructions that have retired, those that were executed again included.
    pub instructions: u64,
    /// Of them, instructions that had retired behind a store whose page was in flash, and were executed again.
    pub repeated: u64,
    /// Instructions in the window that were thrown away because the page of an older one was in flash.
    pub squashed: u64,
    /// Loads, stores and atomics that have looked into the first-level data cache.
    pub data_accesses: u64,
    /// Of them, those that found what they needed.
    pub data_hits: u64,
    /// Loads that took their value from the store buffer because their line was missing.
    pub forwarded: u64,
    /// Lines of instructions looked up.
    pub fetches: u64,
    /// Of them, found.
    pub fetch_hits: u64,
    /// Requests for lines sent.
    pub requests: u64,
    /// Lines sent back changed.
    pub write_backs: u64,
    /// Lines taken away by other cores.
    pub probed: u64,
    /// Translations asked of the second-level TLBs.
    pub translations: u64,
    /// Answers that said that a page is in flash.
    pub signals: u64,
    /// Jobs halted because a page was in flash.
    pub halts: u64,
    /// Of them, because of a store that had retired.
    pub store_halts: u64,
    /// Halted jobs resumed because there were as many as there may be.
    pub crowded: u64,
    /// From the begin of a job to its end, picoseconds.
    pub service: Batched,
    /// From the arrival of a job to its end, picoseconds.
    pub latency: Batched,
    /// Picoseconds from requests to answers, summed over requests for lines and translations: what the stages of all parts tile.
    pub waited: u128,
    /// Slots (a cycle has as many as the width) of all cores by what they were spent for.
    pub spent: [u64; Spent::COUNT],
}
