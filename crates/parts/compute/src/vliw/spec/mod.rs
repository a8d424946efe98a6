//! An accelerator as a user writes it.

mod core;

pub use self::core::{CacheSpec, CoreSpec, ExpansionSpec, LatencySpec, PrefetchSpec, UnitsSpec};

use super::sched::AcceleratorScheduling;
use config::SpecError;
use config::StatePower;
use config::units::{Bandwidth, Bytes, Duration, Energy, Power};
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
