//! An accelerator, and a coprocessor behind a host, as a user writes them.

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
    /// How many instructions a program is taken to execute.
    #[derive(Copy, Eq)]
    pub family AcceleratorWork: choice {
        /// As many as its loops and statements count.
        default nest,
        /// As many as its table `paper` says.
        ///
        /// `input` (in 10^6 B) over `bki` times a thousand for an instance, whatever sizes it is read with, `ldst` of them loads and stores (FlashAbacus, Table 2). They are spread over its
        /// pieces as the nest's own operations are; the rest of the mix, how much longer than units dependences make a loop, and misses an access stay the nest's.
        table,
    }
}

config::policies! {
    /// Where the compiled code of a program keeps an element that an innermost loop adds to.
    #[derive(Copy, Eq)]
    pub family AcceleratorSums: choice {
        /// In memory: every iteration loads and stores it.
        default memory,
        /// In a register, if the loop leaves its address alone: loaded once before the loop, stored once behind it.
        ///
        /// Scalar replacement (Callahan, Carr and Kennedy, 1990), as optimising compilers do it. Products and sums over rows lose half of their loads and stores, and the next
        /// iteration waits for an addition instead of a load, an addition and a store. Nothing changes where another loop than that of the sum is innermost, or in programs that are executed
        /// on their data.
        registers,
    }
}

impl AcceleratorSums {
    pub(super) fn is_default(&self) -> bool {
        *self == AcceleratorSums::default()
    }
}

/// An accelerator: cores, memory, and who tells them what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceleratorSpec {
    /// Cores that execute kernels.
    #[schemars(range(min = 1, max = 64))]
    pub workers: u16,
    /// What a core is.
    pub core: CoreSpec,
    /// The memory that all cores share.
    pub memory: AcceleratorMemory,
    /// How many instructions programs execute.
    #[serde(default)]
    pub work: AcceleratorWork,
    /// Where programs keep their sums.
    #[serde(default, skip_serializing_if = "AcceleratorSums::is_default")]
    pub sums: AcceleratorSums,
    /// Which core executes what.
    pub scheduler: AcceleratorScheduling,
    /// Sections of a screen that are asked for while one is computed.
    #[schemars(range(max = 16))]
    pub ahead: u32,
    /// What firmware costs.
    pub costs: FirmwareSpec,
    /// Accesses of each loop that are measured where caches are sampled.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub sample: u64,
    /// What it spends; left out, it reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<AcceleratorEnergySpec>,
}

impl AcceleratorSpec {
    /// Bytes of memory for each section that is there or on its way.
    pub fn section_bytes(&self) -> u64 {
        let sections = u64::from(self.workers) * (u64::from(self.ahead) + 1);
        self.memory.size.get() / sections.max(1)
    }
}

/// What an accelerator spends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceleratorEnergySpec {
    /// Power of a worker, by what it does.
    pub worker: WorkerPower,
    /// Power of each of the two cores that run firmware.
    pub firmware: StatePower,
    /// Energy of a byte that crosses memory.
    pub memory_transfer: Energy,
    /// Power of memory, whatever crosses it: standby and refresh.
    pub memory_on: Power,
    /// Power of the rest of the chip: clocks, leakage and links that belong to no core.
    pub chip_on: Power,
}

/// Power of a core with its caches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerPower {
    /// Without work.
    pub idle: Power,
    /// With work, while it waits for data or for other cores, boots, or has its caches written back.
    pub waits: Power,
    /// While it computes, stalls included.
    pub computes: Power,
}

impl AcceleratorEnergySpec {
    /// # Errors
    /// A core that takes less at work than without.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let StatePower { idle, busy } = self.firmware;
        if busy < idle {
            let what = format!("{busy} at work are less than {idle} without");
            return Err(SpecError::new("firmware.busy", what));
        }
        Ok(())
    }
}

/// The memory that all cores share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceleratorMemory {
    /// All of it.
    pub size: Bytes,
    /// What cores, links and flash share.
    pub bandwidth: Bandwidth,
}

/// Times of firmware.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FirmwareSpec {
    /// Cycles of a core that sends a message or takes one.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub message: u32,
    /// Cycles of Flashvisor to choose what a worker does next.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub schedule: u32,
    /// Cycles of a core for an entry of the map.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub entry: u32,
    /// From Flashvisor's decision to a worker's first instruction of a kernel: power-up and boot.
    pub boot: Duration,
}

// A core, whatever it is a part of.

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

/// A coprocessor: cores and the memory that they share, behind a host that brings whatever they work on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoprocessorSpec {
    /// Cores, all of which execute a step together.
    #[schemars(range(min = 1, max = 64))]
    pub cores: u16,
    /// What a core is.
    pub core: CoreSpec,
    /// The memory that all cores share.
    pub memory: AcceleratorMemory,
    /// How many instructions programs execute.
    #[serde(default)]
    pub work: AcceleratorWork,
    /// Where programs keep their sums.
    #[serde(default, skip_serializing_if = "AcceleratorSums::is_default")]
    pub sums: AcceleratorSums,
    /// Accesses of each loop that are measured where caches are sampled.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub sample: u64,
    /// What a parallel loop costs.
    pub parallel: ParallelSpec,
    /// Buffers that steps take turns in: with two, the host's program fills one while cores work on the other (double buffering), and a step has half of memory.
    #[serde(default = "one_buffer", skip_serializing_if = "is_one_buffer")]
    #[schemars(range(min = 1, max = 2))]
    pub buffers: u16,
    /// From the host's call until the first core executes a step.
    pub launch: Duration,
    /// What lies between the host and the memory.
    pub link: BulkLinkSpec,
    /// What it spends; left out, it reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<CoprocessorEnergySpec>,
}

fn one_buffer() -> u16 {
    1
}

fn is_one_buffer(buffers: &u16) -> bool {
    *buffers == 1
}

/// What a loop costs that is dealt out to all cores: to begin it on them, and to wait until all have ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParallelSpec {
    /// Cycles if there is one core.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub one: u32,
    /// Cycles more for each further core.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub further: u32,
}

/// A link that carries much at once, by what was measured of it: packets and descriptors are in its bandwidths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkLinkSpec {
    /// From the host's memory.
    pub send: Bandwidth,
    /// Back to it.
    pub receive: Bandwidth,
    /// One way: of data, and of the interrupt at the end of an order.
    pub latency: Duration,
}

/// What a coprocessor spends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoprocessorEnergySpec {
    /// Power of a core, by what it does.
    pub worker: WorkerPower,
    /// Energy of a byte that crosses memory.
    pub memory_transfer: Energy,
    /// Power of memory, whatever crosses it: standby and refresh.
    pub memory_on: Power,
    /// Energy of a byte that crosses the link, of this end.
    pub link_transfer: Energy,
    /// Power of the link's controller.
    pub link_on: Power,
    /// Power of the rest of the chip: clocks and leakage that belong to no core.
    pub chip_on: Power,
}

impl CoprocessorSpec {
    /// Page groups that its memory holds.
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
            let what = format!("{} of memory are {frames} parts of {} KiB", self.memory.size, GROUP >> 10);
            return Err(
                SpecError::new("memory.size", what).help("at least one a buffer, and at most 2^32 - 1")
            );
        }
        self.core.check().map_err(|fault| fault.within("core"))
    }
}
