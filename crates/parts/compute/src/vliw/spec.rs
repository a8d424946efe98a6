//! Accelerators, and coprocessors behind a host, as a user writes them.

use super::sched::AcceleratorScheduling;
use crate::vliw::{
    GROUP,
    memory::{Caches, Misses},
};
use config::units::{Bandwidth, Bytes, Duration, Energy, Frequency, Power};
use config::{SpecError, StatePower};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

config::policies! {
    /// Source of a program's instruction count.
    #[derive(Copy, Eq)]
    pub family AcceleratorWork: choice {
        /// Counted from its loops and statements.
        default nest,
        /// From its table `paper`.
        ///
        /// The count of an instance is `input` (in 10^6 B) divided by `bki`, times a thousand, for any sizes; `ldst` of
        /// them are loads and stores (FlashAbacus, Table 2). The instructions are spread over the pieces in proportion
        /// to the nest's own operations. The rest comes from the nest: the instruction mix, the excess of a loop's
        /// dependences over its units, and misses per access.
        table,
    }
}

config::policies! {
    /// Place in which compiled code keeps an element that an innermost loop adds to.
    #[derive(Copy, Eq)]
    pub family AcceleratorSums: choice {
        /// Memory: every iteration loads and stores the element.
        default memory,
        /// Register, if the element's address is constant in the loop: loaded once before the loop, stored once after
        /// it.
        ///
        /// Scalar replacement (Callahan, Carr and Kennedy, 1990), as optimising compilers do it. Products and sums over
        /// rows lose half of their loads and stores, and the next iteration waits for an addition instead of a load, an
        /// addition and a store. Nothing changes where the loop of the sum is not the innermost, or in programs that
        /// are executed on their data.
        registers,
    }
}

impl AcceleratorSums {
    pub(super) fn is_default(&self) -> bool {
        *self == AcceleratorSums::default()
    }
}

/// Accelerator: cores, memory, and firmware that schedules them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceleratorSpec {
    /// Number of cores that execute kernels.
    #[schemars(range(min = 1, max = 64))]
    pub workers: u16,
    /// Properties of a core.
    pub core: CoreSpec,
    /// Memory shared by all cores.
    pub memory: AcceleratorMemory,
    /// Source of programs' instruction counts.
    #[serde(default)]
    pub work: AcceleratorWork,
    /// Place in which programs keep their sums.
    #[serde(default, skip_serializing_if = "AcceleratorSums::is_default")]
    pub sums: AcceleratorSums,
    /// Assignment of work to cores.
    pub scheduler: AcceleratorScheduling,
    /// Sections of a screen that are requested while one is computed.
    #[schemars(range(max = 16))]
    pub ahead: u32,
    /// Costs of firmware.
    pub costs: FirmwareSpec,
    /// Accesses of each loop that are measured where caches are sampled.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub sample: u64,
    /// Energy of the accelerator; without it, the accelerator reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<AcceleratorEnergySpec>,
}

impl AcceleratorSpec {
    /// Bytes of memory for each section that is present or under way.
    pub fn section_bytes(&self) -> u64 {
        let sections = u64::from(self.workers) * (u64::from(self.ahead) + 1);
        self.memory.size.get() / sections.max(1)
    }
}

/// Energy of an accelerator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceleratorEnergySpec {
    /// Power of a worker, by state.
    pub worker: WorkerPower,
    /// Power of each of the two cores that run firmware.
    pub firmware: StatePower,
    /// Energy of a byte that crosses memory.
    pub memory_transfer: Energy,
    /// Power of memory, independent of traffic: standby and refresh.
    pub memory_on: Power,
    /// Power of the rest of the chip: clocks, leakage and links shared by all cores.
    pub chip_on: Power,
}

/// Power of a core with its caches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerPower {
    /// Power without work.
    pub idle: Power,
    /// Power with work, while it waits for data or for other cores, boots, or has its caches written back.
    pub waits: Power,
    /// Power while it computes, stalls included.
    pub computes: Power,
}

impl AcceleratorEnergySpec {
    /// # Errors
    /// A core that takes less power at work than without.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let StatePower { idle, busy } = self.firmware;
        if busy < idle {
            let what = format!("the power at work {busy} is below the idle power {idle}");
            return Err(SpecError::new("firmware.busy", what));
        }
        Ok(())
    }
}

/// Memory shared by all cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceleratorMemory {
    /// Size of the memory.
    pub size: Bytes,
    /// Bandwidth shared by cores, links and flash.
    pub bandwidth: Bandwidth,
}

/// Times of firmware.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FirmwareSpec {
    /// Cycles of a core to send or to receive a message.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub message: u32,
    /// Cycles of Flashvisor to choose the next work of a worker.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub schedule: u32,
    /// Cycles of a core per entry of the map.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub entry: u32,
    /// Time from Flashvisor's decision to a worker's first instruction of a kernel: power-up and boot.
    pub boot: Duration,
}

// Core, independent of its chip.

/// Core: in-order, several operations per cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoreSpec {
    /// Clock of the core.
    #[schemars(extend("x-minimum" = "1MHz"))]
    pub clock: Frequency,
    /// Functional units.
    pub units: UnitsSpec,
    /// Latencies of operations.
    pub latency: LatencySpec,
    /// Expansion of a division.
    pub divide: ExpansionSpec,
    /// Expansion of a square root.
    pub square_root: ExpansionSpec,
    /// First-level data cache: only loads allocate in it.
    pub l1: CacheSpec,
    /// Second-level cache.
    pub l2: CacheSpec,
    /// Stream prefetcher behind the second level; no prefetcher if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<PrefetchSpec>,
    /// Cycles per line of the second level that may have to be written back when a part of a program ends: the caches
    /// of cores are not coherent.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub write_back: u32,
}

impl CoreSpec {
    /// # Errors
    /// A cache that cannot be built, with its key.
    pub(in crate::vliw) fn check(&self) -> Result<(), SpecError> {
        self.build_caches().map(|_| ())
    }

    /// Returns both levels of caches, and the number of prefetched streams.
    pub(in crate::vliw) fn caches(&self) -> (&CacheSpec, &CacheSpec, u32) {
        (&self.l1, &self.l2, self.prefetch.as_ref().map_or(0, |prefetch| prefetch.streams))
    }

    /// Builds empty caches.
    pub(in crate::vliw) fn build_caches(&self) -> Result<Caches, SpecError> {
        let (first, second, streams) = self.caches();
        Ok(Caches::new(first, second)?.with_streams(streams))
    }

    /// Cycles for which a core stalls at misses.
    pub(in crate::vliw) fn stall(&self, misses: &Misses) -> u64 {
        let ahead = self.prefetch.as_ref().map_or(0, |prefetch| prefetch.miss);
        misses.first * u64::from(self.l1.miss)
            + misses.second * u64::from(self.l2.miss)
            + misses.ahead * u64::from(ahead)
    }

    /// Converts cycles to time.
    pub(in crate::vliw) fn time(&self, cycles: u64) -> Time {
        const SECOND: u64 = 1_000_000_000_000;
        let hz = self.clock.hz();
        // Few cycles need no 128-bit division, which costs as much as an event.
        let ps = cycles.checked_mul(SECOND).map(|ps| ps / hz);
        Time::from_ps(ps.unwrap_or_else(|| (u128::from(cycles) * u128::from(SECOND) / u128::from(hz)) as u64))
    }

    /// Cycles to write back caches that have seen `groups` page groups.
    pub(in crate::vliw) fn cycles_to_write_back(&self, groups: u64) -> u64 {
        let lines = (groups * GROUP).min(self.l2.size.get()) / self.l2.line.get();
        lines * u64::from(self.write_back)
    }
}

/// Functional units of a core: operations of each kind that begin per cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnitsSpec {
    /// Number of multiplications.
    #[schemars(range(min = 1, max = 64))]
    pub multiply: u32,
    /// Number of additions, comparisons, address operations and branches.
    #[schemars(range(min = 1, max = 64))]
    pub general: u32,
    /// Number of loads and stores.
    #[schemars(range(min = 1, max = 64))]
    pub memory: u32,
}

/// Cycles from the beginning of an operation until its result can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencySpec {
    /// Latency of a load that hits the first-level cache.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub load: u32,
    /// Latency of a store, until a load sees it.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub store: u32,
    /// Latency of an addition.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub add: u32,
    /// Latency of a multiplication.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub multiply: u32,
    /// Latency of a comparison or a choice.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub compare: u32,
    /// Latency of a division.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub divide: u32,
    /// Latency of a square root.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub square_root: u32,
}

/// Expansion of an operation without a unit: an estimate, and steps that refine it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpansionSpec {
    /// Number of multiplications.
    #[schemars(range(max = 4_096))]
    pub multiply: u32,
    /// Number of operations of general units.
    #[schemars(range(max = 4_096))]
    pub general: u32,
}

/// Level of a core's caches. Least recently used lines are evicted first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Size of the level.
    pub size: Bytes,
    /// Ways per set.
    #[schemars(range(min = 1, max = 64))]
    pub ways: u32,
    /// Line size: a power of two.
    pub line: Bytes,
    /// Cycles for which the core stalls at a miss, until the next level has answered.
    #[schemars(range(max = 65_536), extend("x-unit" = "cycles"))]
    pub miss: u32,
}

/// Prefetcher: for lines missed one behind the other, it requests the next from memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefetchSpec {
    /// Streams that it follows at once.
    #[schemars(range(min = 1, max = 64))]
    pub streams: u32,
    /// Cycles for which the core stalls at a line that the prefetcher has requested.
    #[schemars(range(max = 65_536), extend("x-unit" = "cycles"))]
    pub miss: u32,
}

impl CacheSpec {
    /// Number of sets.
    pub(in crate::vliw) fn sets(&self) -> u32 {
        (self.size.get() / self.line.get() / u64::from(self.ways)) as u32
    }

    pub(in crate::vliw) fn check(&self) -> Result<(), SpecError> {
        let (size, line) = (self.size.get(), self.line.get());
        if !line.is_power_of_two() || !(4..=65_536).contains(&line) {
            let what = format!("a line of {}; it must be a power of two from 4B to 64KiB", self.line);
            return Err(SpecError::new("line", what));
        }
        let set = line * u64::from(self.ways);
        if size == 0 || size % set != 0 || size / line > 1 << 24 {
            let what = format!(
                "the size {} is not a multiple of a set of {} lines of {}",
                self.size, self.ways, self.line
            );
            return Err(SpecError::new("size", what).help("use whole sets, with at most 16,777,216 lines"));
        }
        Ok(())
    }
}

/// Coprocessor: cores and their shared memory, behind a host that sends all their data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoprocessorSpec {
    /// Number of cores, all of which execute a step together.
    #[schemars(range(min = 1, max = 64))]
    pub cores: u16,
    /// Properties of a core.
    pub core: CoreSpec,
    /// Memory shared by all cores.
    pub memory: AcceleratorMemory,
    /// Source of programs' instruction counts.
    #[serde(default)]
    pub work: AcceleratorWork,
    /// Place in which programs keep their sums.
    #[serde(default, skip_serializing_if = "AcceleratorSums::is_default")]
    pub sums: AcceleratorSums,
    /// Accesses of each loop that are measured where caches are sampled.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub sample: u64,
    /// Costs of a parallel loop.
    pub parallel: ParallelSpec,
    /// Buffers that steps use in turn: with two, the host's program fills one while cores work on the other (double
    /// buffering), and a step has half of the memory.
    #[serde(default = "one_buffer", skip_serializing_if = "is_one_buffer")]
    #[schemars(range(min = 1, max = 2))]
    pub buffers: u16,
    /// Time from the host's call until the first core executes a step.
    pub launch: Duration,
    /// Link between the host and the memory.
    pub link: BulkLinkSpec,
    /// Energy of the coprocessor; without it, the coprocessor reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<CoprocessorEnergySpec>,
}

fn one_buffer() -> u16 {
    1
}

fn is_one_buffer(buffers: &u16) -> bool {
    *buffers == 1
}

/// Costs of a loop that is dealt out to all cores: beginning it on them, and waiting until all have ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParallelSpec {
    /// Cycles with one core.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub one: u32,
    /// Additional cycles for each further core.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub further: u32,
}

/// Link for bulk transfers, with measured values: packets and descriptors are included in the bandwidths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkLinkSpec {
    /// Bandwidth from the host's memory.
    pub send: Bandwidth,
    /// Bandwidth back to the host's memory.
    pub receive: Bandwidth,
    /// One-way latency of data, and of the interrupt at the end of an order.
    pub latency: Duration,
}

/// Energy of a coprocessor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoprocessorEnergySpec {
    /// Power of a core, by state.
    pub worker: WorkerPower,
    /// Energy of a byte that crosses memory.
    pub memory_transfer: Energy,
    /// Power of memory, independent of traffic: standby and refresh.
    pub memory_on: Power,
    /// Energy of a byte that crosses the link, at this end.
    pub link_transfer: Energy,
    /// Power of the link's controller.
    pub link_on: Power,
    /// Power of the rest of the chip: clocks and leakage shared by all cores.
    pub chip_on: Power,
}

impl CoprocessorSpec {
    /// Page groups that the memory holds.
    pub(super) fn frames(&self) -> u64 {
        self.memory.size.get() / GROUP
    }

    /// Page groups that a step may need.
    pub(super) fn frames_of_a_step(&self) -> u64 {
        self.frames() / u64::from(self.buffers)
    }

    /// Bytes of page groups that a step may need.
    pub fn step_bytes(&self) -> u64 {
        self.frames_of_a_step() * GROUP
    }

    /// Cycles that a parallel loop costs.
    pub(super) fn parallel_cycles(&self) -> u64 {
        u64::from(self.parallel.one) + u64::from(self.parallel.further) * u64::from(self.cores - 1)
    }

    /// # Errors
    /// The first value that cannot be built, with its key.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let frames = self.frames();
        if self.frames_of_a_step() == 0 || frames > u64::from(u32::MAX) {
            let what =
                format!("{} of memory has {frames} page groups of {} KiB", self.memory.size, GROUP >> 10);
            return Err(SpecError::new("memory.size", what)
                .help("at least one per buffer and at most 2^32 - 1 are needed"));
        }
        self.core.check().map_err(|fault| fault.within("core"))
    }
}
