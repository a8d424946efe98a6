//! The soak: small devices of all kinds under constant garbage collection, each with a shadow, driven by a host that
//! reads, writes, deallocates and flushes in ways that overlap as often as possible.

mod combination;
mod cover;
mod host;
mod variants;

pub use combination::{Combination, Fill, Map, Memory};
pub use cover::combinations;
pub use host::{End, Host};

use crate::check::Check;
use crate::device::AheadCounters;
use crate::spec::SpecError;
use serde::Serialize;

/// What became of one combination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Its policies and sizes.
    pub name: String,
    /// Commands completed.
    pub operations: u64,
    /// Map units that were read and compared.
    pub units_checked: u64,
    /// Units that garbage collection has moved.
    pub moves: u64,
    /// Of those, the ones that the host overtook.
    pub moves_dropped: u64,
    /// Units written in part that had to be merged again.
    pub merges_dropped: u64,
    /// Reads that found their page in a register.
    pub register_hits: u64,
    /// Reads that shared the sensing of another.
    pub joined_reads: u64,
    /// Reads that were repeated, and those that no step could correct.
    pub retried_reads: [u64; 2],
    /// Units read ahead, what became of them.
    pub ahead: AheadCounters,
    /// Units that left the buffer by a policy: evenly, in the foreground, in the background.
    pub evicted: [u64; 3],
    /// Pages that were skipped, in program units.
    pub skipped: u64,
    /// Digest of all completions with their times.
    pub digest: u64,
    /// How the run ended.
    pub end: End,
    /// Checks that failed.
    pub failed: Vec<Check>,
}

impl Outcome {
    /// Whether everything was as it should be.
    pub fn is_ok(&self) -> bool {
        self.end == End::Done && self.failed.is_empty()
    }
}

/// What became of all combinations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SoakReport {
    /// One a combination.
    pub outcomes: Vec<Outcome>,
}

impl SoakReport {
    /// Whether everything was as it should be.
    pub fn is_ok(&self) -> bool {
        self.outcomes.iter().all(Outcome::is_ok)
    }
    /// Commands completed, over all combinations.
    pub fn operations(&self) -> u64 {
        self.outcomes.iter().map(|o| o.operations).sum()
    }
    /// Map units compared, over all combinations.
    pub fn units_checked(&self) -> u64 {
        self.outcomes.iter().map(|o| o.units_checked).sum()
    }
}

/// Runs `operations` commands on each of the pairwise combinations of everything that a device can be built from.
///
/// # Panics
/// If a combination cannot be built: a fault of this module, which its tests exclude.
pub fn soak(operations: u64, seed: u64) -> SoakReport {
    let run = |c: &Combination| run(c, operations, seed, true).expect("every combination can be built");
    SoakReport { outcomes: combinations(seed).iter().map(run).collect() }
}

/// Runs one combination, with or without a shadow.
///
/// # Errors
/// If it cannot be built.
pub fn run(
    combination: &Combination,
    operations: u64,
    seed: u64,
    shadow: bool,
) -> Result<Outcome, SpecError> {
    let mut device = combination.build(seed)?;
    if shadow {
        device.attach_shadow();
    }
    let mut host = Host::new(device, seed, combination.depth);
    let end = host.drive(operations);
    let device = &host.device;
    let counters = device.ftl.counters;
    Ok(Outcome {
        name: combination.to_string(),
        operations: host.completed,
        units_checked: device.shadow().map_or(0, |s| s.units_checked),
        moves: counters.moves,
        moves_dropped: counters.moves_dropped,
        merges_dropped: counters.merges_dropped,
        register_hits: device.backend.counters.register_hits,
        joined_reads: device.backend.counters.joined_reads,
        retried_reads: [device.backend.counters.retried_reads, device.backend.counters.uncorrectable_reads],
        ahead: device.look_ahead_counters().unwrap_or_default(),
        evicted: device.stats.evictions.units,
        skipped: device.window_pages().map_or(0, |(counters, _)| counters.skipped),
        digest: host.digest(),
        end,
        failed: host.failed,
    })
}
