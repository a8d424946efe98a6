//! A coprocessor as a user writes it.

use crate::vliw::GROUP;
use crate::vliw::spec::{AcceleratorMemory, AcceleratorSums, AcceleratorWork, CoreSpec, WorkerPower};
use config::SpecError;
use config::units::{Bandwidth, Duration, Energy, Power};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    #[serde(default = "one", skip_serializing_if = "is_one")]
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

fn one() -> u16 {
    1
}

fn is_one(buffers: &u16) -> bool {
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
