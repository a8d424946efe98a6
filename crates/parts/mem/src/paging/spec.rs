//! What a user writes about paging.

use config::SpecError;
use config::units::{Bandwidth, Bytes, Duration};
use net::energy::LinkEnergySpec;
use net::pcie::{Link, lane_bytes_per_s};
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Paging of a discrete GPU: the host brings pages from an SSD when the GPU faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PagingSpec {
    /// What a fault brings, aligned: a multiple of 4 KiB.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "1GiB", "x-multiple-of" = "4KiB"))]
    pub granule: Bytes,
    /// GPU memory that the data of programs may take; what was brought first makes room.
    pub memory: Bytes,
    /// Whether data that makes room is copied back to the SSD. The host does not know what has been written: all of it or
    /// nothing.
    pub write_back: bool,
    /// The driver that handles faults.
    pub driver: DriverSpec,
    /// Host time of a command to the SSD before it is submitted: system call, file system, block layer, driver.
    pub submit: Duration,
    /// Host time of a command to the SSD after it is done: interrupt handler, waking the thread, return to user mode.
    pub complete: Duration,
    /// Copies of the data in host memory, on its way between the SSD and the GPU.
    #[schemars(range(max = 64))]
    pub copies: u32,
    /// Bytes a second of one such copy.
    pub copy_bandwidth: Bandwidth,
    /// The link between host and GPU.
    pub link: GpuLinkSpec,
}

/// The driver that handles faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriverSpec {
    /// From a fault in the GPU to a thread of the driver that runs, if one sleeps: fault buffer, interrupt, wake-up.
    pub interrupt: Duration,
    /// Threads. They handle faults and copy data.
    #[schemars(range(min = 1, max = 65_536))]
    pub handlers: u32,
    /// Faults that a thread takes from the fault buffer at once, at most.
    #[schemars(range(min = 1))]
    pub batch: u32,
    /// Thread time of a batch, beyond its faults: reading and sorting the fault buffer, locks, replay.
    pub batch_time: Duration,
    /// Thread time of a fault.
    pub fault_time: Duration,
    /// From data in the GPU's memory to the translation in the GPU: page table, invalidation, replay.
    pub resume: Duration,
}

/// A PCI Express link between host and GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuLinkSpec {
    /// Generation, 1 to 6.
    #[schemars(range(min = 1, max = 6))]
    pub generation: u32,
    /// Lanes.
    #[schemars(extend("enum" = [1, 2, 4, 8, 16]))]
    pub lanes: u32,
    /// Largest packet payload.
    #[schemars(extend("x-minimum" = "1B"))]
    pub max_payload: Bytes,
    /// One-way latency.
    pub latency: Duration,
    /// What it spends; left out, it reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<LinkEnergySpec>,
}

impl PagingSpec {
    /// Checks everything.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
    pub fn check(&self) -> Result<(), SpecError> {
        let granule = self.granule.get();
        if granule == 0 || !granule.is_multiple_of(PAGE) {
            let what = format!("a granule of {} is no multiple of a page of {PAGE} B", self.granule);
            return Err(SpecError::new("granule", what).help("4KiB is a page, 64KiB a block of the driver's"));
        }
        if self.memory.get() < granule {
            let what = format!("{} of GPU memory hold no granule of {}", self.memory, self.granule);
            return Err(SpecError::new("memory", what));
        }
        SpecError::positive("driver.handlers", self.driver.handlers.into())?;
        SpecError::positive("driver.batch", self.driver.batch.into())?;
        SpecError::positive("copy_bandwidth", self.copy_bandwidth.bytes_per_s())?;
        self.link.build().map(|_| ())
    }
}

impl GpuLinkSpec {
    pub(super) fn build(&self) -> Result<Link, SpecError> {
        let lane = lane_bytes_per_s(self.generation).ok_or_else(|| {
            let what = format!("PCIe generation {}; allowed are 1 to 6", self.generation);
            SpecError::new("link.generation", what)
        })?;
        if ![1, 2, 4, 8, 16].contains(&self.lanes) {
            let what = format!("{} lanes; allowed are 1, 2, 4, 8, 16", self.lanes);
            return Err(SpecError::new("link.lanes", what));
        }
        SpecError::positive("link.max_payload", self.max_payload.get())?;
        let link = Link::new(lane * u64::from(self.lanes), self.max_payload.get(), self.latency.time());
        Ok(match &self.energy {
            Some(energy) => link.with_energy(energy),
            None => link,
        })
    }
}
