//! The host interface as a user writes it.

use super::SpecError;
use crate::device::{HostParams, NvmeParams};
use crate::hostif::nvme::Arbitration;
use config::units::{Bandwidth, Bytes, Duration};
use net::pcie::{Link, lane_bytes_per_s};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the host reaches the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// The link.
    pub link: LinkSpec,
    /// The controller's processors.
    pub controller: ControllerSpec,
    /// NVMe queues; left out, the device is a memory port: requests arrive after the link's latency, without queues.
    pub nvme: Option<NvmeSpec>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LinkSpec {
    /// PCI Express.
    Pcie {
        /// Generation, 1 to 6.
        generation: u32,
        /// Lanes.
        lanes: u32,
        /// Largest packet payload.
        max_payload: Bytes,
        /// One-way latency.
        latency: Duration,
    },
    /// A link of which only the payload rate is known.
    Plain {
        /// Payload bytes a second, each way.
        bandwidth: Bandwidth,
        /// One-way latency.
        latency: Duration,
    },
}

/// The controller's processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// Cores that process commands.
    pub cores: u32,
    /// Core time a command.
    pub command: Duration,
    /// Core time a map unit of a command, on top.
    pub unit: Duration,
}

/// NVMe queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NvmeSpec {
    /// Submission queues; the flows of the workload take them in turn.
    pub queues: u16,
    /// Commands that may be outstanding in a submission queue; more wait at the host.
    pub depth: u32,
    /// Commands that the controller holds at once, over all queues.
    pub in_controller: u32,
    /// Who is fetched next.
    pub arbitration: NvmeArbitration,
    /// Doorbell write to fetch request, beyond the link's latency.
    pub doorbell: Duration,
    /// Fetch request to command in the controller, beyond the link's round trip.
    pub fetch: Duration,
    /// Completion entry written to host software running.
    pub interrupt: Duration,
}

/// Which submission queue is fetched from next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum NvmeArbitration {
    /// Queues take turns.
    RoundRobin {
        /// Commands a turn.
        burst: u32,
    },
    /// An urgent class with strict priority, then high, medium and low by weights.
    Weighted {
        /// Commands a turn.
        burst: u32,
        /// Commands a round of the high class.
        high: u32,
        /// Commands a round of the medium class.
        medium: u32,
        /// Commands a round of the low class.
        low: u32,
        /// Class of each queue, in order: 0 urgent, 1 high, 2 medium, 3 low. Queues beyond the list are medium.
        classes: Vec<u8>,
    },
}

impl LinkSpec {
    fn build(&self) -> Result<Link, SpecError> {
        match self {
            LinkSpec::Plain { bandwidth, latency } => {
                Ok(Link::new(bandwidth.bytes_per_s(), 0, latency.time()))
            }
            LinkSpec::Pcie { generation, lanes, max_payload, latency } => {
                let key = "host.link.pcie.generation";
                let lane = lane_bytes_per_s(*generation).ok_or_else(|| {
                    SpecError::new(key, format!("PCIe generation {generation}; allowed are 1 to 6"))
                })?;
                if ![1, 2, 4, 8, 16].contains(lanes) {
                    let what = format!("{lanes} lanes; allowed are 1, 2, 4, 8, 16");
                    return Err(SpecError::new("host.link.pcie.lanes", what));
                }
                SpecError::positive("host.link.pcie.max_payload", max_payload.get())?;
                Ok(Link::new(lane * u64::from(*lanes), max_payload.get(), latency.time()))
            }
        }
    }
}

impl HostSpec {
    pub(crate) fn build(&self, fold: bool) -> Result<HostParams, SpecError> {
        SpecError::positive("host.controller.cores", self.controller.cores.into())?;
        let nvme = self.nvme.as_ref().map(NvmeSpec::build).transpose()?;
        Ok(HostParams {
            link: self.link.build()?,
            cores: self.controller.cores,
            command_cost: self.controller.command.time(),
            unit_cost: self.controller.unit.time(),
            nvme,
            fold,
        })
    }
}

impl NvmeSpec {
    fn build(&self) -> Result<NvmeParams, SpecError> {
        SpecError::positive("host.nvme.queues", self.queues.into())?;
        SpecError::positive("host.nvme.depth", self.depth.into())?;
        SpecError::positive("host.nvme.in_controller", self.in_controller.into())?;
        let arbitration = match &self.arbitration {
            NvmeArbitration::RoundRobin { burst } => Arbitration::RoundRobin { burst: *burst },
            NvmeArbitration::Weighted { burst, high, medium, low, classes } => {
                if let Some(class) = classes.iter().find(|c| **c > 3) {
                    let what = format!("class {class}; allowed are 0 urgent, 1 high, 2 medium, 3 low");
                    return Err(SpecError::new("host.nvme.arbitration.weighted.classes", what));
                }
                Arbitration::Weighted {
                    burst: *burst,
                    weights: [*high, *medium, *low],
                    classes: classes.clone(),
                }
            }
        };
        Ok(NvmeParams {
            queues: self.queues,
            depth: self.depth,
            in_controller: self.in_controller,
            arbitration,
            doorbell: self.doorbell.time(),
            fetch: self.fetch.time(),
            interrupt: self.interrupt.time(),
        })
    }
}
