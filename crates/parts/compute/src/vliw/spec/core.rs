//! A core, whatever it is a part of.

use crate::vliw::GROUP;
use crate::vliw::caches::{Caches, Misses};
use config::SpecError;
use config::units::{Bytes, Frequency};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A core: in order, several operations a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoreSpec {
    /// The clock.
    #[schemars(extend("x-minimum" = "1MHz"))]
    pub clock: Frequency,
    /// Functional units.
    pub units: UnitsSpec,
    /// Their latencies.
    pub latency: LatencySpec,
    /// What a division is made of.
    pub divide: ExpansionSpec,
    /// What a square root is made of.
    pub square_root: ExpansionSpec,
    /// The first level of caches: for data, which loads alone allocate in.
    pub l1: CacheSpec,
    /// The second.
    pub l2: CacheSpec,
    /// A prefetcher of streams behind the second level; left out, there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchSpec>,
    /// Cycles for each line of the second level that may have to be written back when a part of a program ends: nothing keeps the caches of cores coherent.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub write_back: u32,
}

impl CoreSpec {
    /// # Errors
    /// A cache that cannot be built, with its key.
    pub(in crate::vliw) fn check(&self) -> Result<(), SpecError> {
        self.build_caches().map(|_| ())
    }

    /// Both levels of caches, and how many streams are fetched ahead.
    pub(in crate::vliw) fn caches(&self) -> (&CacheSpec, &CacheSpec, u32) {
        (&self.l1, &self.l2, self.prefetch.as_ref().map_or(0, |prefetch| prefetch.streams))
    }

    /// Empty ones.
    pub(in crate::vliw) fn build_caches(&self) -> Result<Caches, SpecError> {
        let (first, second, streams) = self.caches();
        Ok(Caches::new(first, second)?.with_streams(streams))
    }

    /// Cycles for which a core stands still at misses.
    pub(in crate::vliw) fn stall(&self, misses: &Misses) -> u64 {
        let ahead = self.prefetch.as_ref().map_or(0, |prefetch| prefetch.miss);
        misses.first * u64::from(self.l1.miss)
            + misses.second * u64::from(self.l2.miss)
            + misses.ahead * u64::from(ahead)
    }

    /// Cycles as time.
    pub(in crate::vliw) fn time(&self, cycles: u64) -> Time {
        const SECOND: u64 = 1_000_000_000_000;
        let hz = self.clock.hz();
        // Of few cycles without a division of 128 bits, which costs as much as an event.
        let ps = cycles.checked_mul(SECOND).map(|ps| ps / hz);
        Time::from_ps(ps.unwrap_or_else(|| (u128::from(cycles) * u128::from(SECOND) / u128::from(hz)) as u64))
    }

    /// Cycles until caches are written back that have seen so many page groups.
    pub(in crate::vliw) fn cycles_to_write_back(&self, groups: u64) -> u64 {
        let lines = (groups * GROUP).min(self.l2.size.get()) / self.l2.line.get();
        lines * u64::from(self.write_back)
    }
}

/// Functional units of a core: operations of each kind that begin in a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnitsSpec {
    /// Multiplications.
    #[schemars(range(min = 1, max = 64))]
    pub multiply: u32,
    /// Additions, comparisons, address operations and branches.
    #[schemars(range(min = 1, max = 64))]
    pub general: u32,
    /// Loads and stores.
    #[schemars(range(min = 1, max = 64))]
    pub memory: u32,
}

/// Cycles from the beginning of an operation until its result can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencySpec {
    /// Of a load that the first-level cache has.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub load: u32,
    /// Of a store, until a load sees it.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub store: u32,
    /// Of an addition.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub add: u32,
    /// Of a multiplication.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub multiply: u32,
    /// Of a comparison or a choice.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub compare: u32,
    /// Of a division.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub divide: u32,
    /// Of a square root.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub square_root: u32,
}

/// What an operation is made of for which there is no unit: an estimate, and steps that make it better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpansionSpec {
    /// Multiplications.
    #[schemars(range(max = 4_096))]
    pub multiply: u32,
    /// Operations of general units.
    #[schemars(range(max = 4_096))]
    pub general: u32,
}

/// A level of a core's caches. Least recently used lines go first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// All of it.
    pub size: Bytes,
    /// Lines that may have the same place.
    #[schemars(range(min = 1, max = 64))]
    pub ways: u32,
    /// A line: a power of two.
    pub line: Bytes,
    /// Cycles for which the core stands still if it misses, until the level behind has answered.
    #[schemars(range(max = 65_536), extend("x-unit" = "cycles"))]
    pub miss: u32,
}

/// A prefetcher: of lines that are missed one behind the other, it asks memory for the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefetchSpec {
    /// Streams that it follows at once.
    #[schemars(range(min = 1, max = 64))]
    pub streams: u32,
    /// Cycles for which the core stands still at a line that it has asked for.
    #[schemars(range(max = 65_536), extend("x-unit" = "cycles"))]
    pub miss: u32,
}

impl CacheSpec {
    /// Sets.
    pub(in crate::vliw) fn sets(&self) -> u32 {
        (self.size.get() / self.line.get() / u64::from(self.ways)) as u32
    }

    pub(in crate::vliw) fn check(&self) -> Result<(), SpecError> {
        let (size, line) = (self.size.get(), self.line.get());
        if !line.is_power_of_two() || !(4..=65_536).contains(&line) {
            let what = format!("a line of {} is not a power of two from 4B to 64KiB", self.line);
            return Err(SpecError::new("line", what));
        }
        let set = line * u64::from(self.ways);
        if size == 0 || size % set != 0 || size / line > 1 << 24 {
            let what = format!("{} are not whole sets of {} lines of {}", self.size, self.ways, self.line);
            return Err(SpecError::new("size", what).help("at most 16,777,216 lines"));
        }
        Ok(())
    }
}
