//! A memory management unit as a user writes it.

use super::table::PageTable;
use config::SpecError;
use config::units::Frequency;
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The memory management unit that all multiprocessors share: Power, Hill and Wood, HPCA 2014.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MmuSpec {
    /// Clock of the unit: its latencies are cycles of it.
    pub clock: Frequency,
    /// The shared TLB behind those of the multiprocessors.
    pub tlb: SharedTlbSpec,
    /// Page walks under way at the same time: threads of the walker.
    #[schemars(range(min = 1, max = 65_536))]
    pub walkers: u32,
    /// The page table: its form, and where it lies.
    pub table: PageTable,
}

/// The TLB that all multiprocessors share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedTlbSpec {
    /// Translations that it holds; least recently used out first.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub entries: u32,
    /// Ways a set; as many as entries for a fully associative one.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub ways: u32,
    /// Cycles of a look-up. One look-up can begin in every cycle.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub latency: u32,
}

impl MmuSpec {
    /// Whether a unit can be built.
    ///
    /// # Errors
    /// The first value that cannot be; its key is relative to the table `mmu`.
    pub fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("clock", self.clock.hz())?;
        SpecError::positive("walkers", self.walkers.into())?;
        sets("tlb", self.tlb.entries, self.tlb.ways)?;
        self.table.check()
    }

    /// The time of `cycles`.
    pub(crate) fn cycles(&self, cycles: u32) -> Time {
        Time::period(self.clock.hz()).times(cycles.into())
    }
}

/// Whether `entries` can be arranged in sets of `ways`.
pub(super) fn sets(table: &str, entries: u32, ways: u32) -> Result<(), SpecError> {
    SpecError::positive(&format!("{table}.entries"), entries.into())?;
    SpecError::positive(&format!("{table}.ways"), ways.into())?;
    if !entries.is_multiple_of(ways) {
        let what = format!("{entries} entries cannot be arranged in sets of {ways}");
        return Err(SpecError::new(&format!("{table}.ways"), what).help(
            "give a divisor of the entries, or as many ways as entries for a fully associative buffer",
        ));
    }
    Ok(())
}
