//! The host interface as a user writes it.

use super::{FlashEnergySpec, SpecError};
use crate::port::cores::{CoreParams, WriterParams};
use crate::port::host::{EntranceParams, HostParams, NvmeParams};
use crate::port::nvme::Arbitration;
use config::units::{Bandwidth, Bytes, Duration};
use kernel::Time;
use net::pcie::{Link, lane_bytes_per_s};
use proto::INNER;
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

/// How a processor inside the drive reaches the device, beside the host. The controller's cores serve both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InnerSpec {
    /// The link between that processor and the controller.
    pub link: LinkSpec,
    /// Core time a command.
    pub command: Duration,
    /// NVMe queues in the drive's memory; left out, commands are direct requests: they arrive after the link's latency,
    /// without queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme: Option<NvmeSpec>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LinkSpec {
    /// PCI Express.
    Pcie {
        /// Generation, 1 to 6.
        #[schemars(range(min = 1, max = 6))]
        generation: u32,
        /// Lanes.
        #[schemars(extend("enum" = [1, 2, 4, 8, 16]))]
        lanes: u32,
        /// Largest packet payload.
        #[schemars(extend("x-minimum" = "1B"))]
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
    #[schemars(range(min = 1, max = 65_536))]
    pub cores: u32,
    /// Core time a command.
    pub command: Duration,
    /// Core time a map unit of a command, on top.
    pub unit: Duration,
    /// Cores of their own for writes, which allocate and change the map; left out, writes take the others, as long as reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<WriterSpec>,
    /// Core time that collection needs for each map unit that it moves; left out, none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Duration>,
}

/// Cores that take writes alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriterSpec {
    /// How many.
    #[schemars(range(min = 1, max = 65_536))]
    pub cores: u32,
    /// Core time a write.
    pub command: Duration,
    /// Core time a map unit of a write, on top.
    pub unit: Duration,
}

/// NVMe queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NvmeSpec {
    /// Submission queues; the flows of the workload take them in turn.
    #[schemars(range(min = 1, max = 32_768))]
    pub queues: u16,
    /// Commands that may be outstanding in a submission queue; more wait at the host.
    #[schemars(range(min = 1))]
    pub depth: u32,
    /// Commands that the controller holds at once, over all queues.
    #[schemars(range(min = 1))]
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
        #[schemars(range(min = 1))]
        burst: u32,
    },
    /// An urgent class with strict priority, then high, medium and low by weights.
    Weighted {
        /// Commands a turn.
        #[schemars(range(min = 1))]
        burst: u32,
        /// Commands a round of the high class.
        #[schemars(range(min = 1))]
        high: u32,
        /// Commands a round of the medium class.
        #[schemars(range(min = 1))]
        medium: u32,
        /// Commands a round of the low class.
        #[schemars(range(min = 1))]
        low: u32,
        /// Class of each queue, in order: 0 urgent, 1 high, 2 medium, 3 low. Queues beyond the list are medium.
        classes: Vec<u8>,
    },
}

impl LinkSpec {
    /// The link; `table` is where it stands.
    ///
    /// # Errors
    /// A generation, lanes or packets that there are not.
    pub fn build(&self, table: &str) -> Result<Link, SpecError> {
        match self {
            LinkSpec::Plain { bandwidth, latency } => {
                Ok(Link::new(bandwidth.bytes_per_s(), 0, latency.time()))
            }
            LinkSpec::Pcie { generation, lanes, max_payload, latency } => {
                let key = |name: &str| format!("{table}.link.pcie.{name}");
                let lane = lane_bytes_per_s(*generation).ok_or_else(|| {
                    let what = format!("PCIe generation {generation}; allowed are 1 to 6");
                    SpecError::new(&key("generation"), what)
                })?;
                if ![1, 2, 4, 8, 16].contains(lanes) {
                    let what = format!("{lanes} lanes; allowed are 1, 2, 4, 8, 16");
                    return Err(SpecError::new(&key("lanes"), what));
                }
                SpecError::positive(&key("max_payload"), max_payload.get())?;
                Ok(Link::new(lane * u64::from(*lanes), max_payload.get(), latency.time()))
            }
        }
    }
}

impl HostSpec {
    pub(crate) fn build(
        &self,
        inner: Option<&InnerSpec>,
        energy: Option<&FlashEnergySpec>,
        fold: bool,
    ) -> Result<HostParams, SpecError> {
        Ok(HostParams {
            outer: EntranceParams {
                link: match energy {
                    Some(energy) => self.link.build("host")?.with_energy(&energy.link),
                    None => self.link.build("host")?,
                },
                command_cost: self.controller.command.time(),
                nvme: self.nvme.as_ref().map(|nvme| nvme.build("host")).transpose()?,
                fold,
            },
            inner: inner.map(|inner| inner.build(fold)).transpose()?,
            cores: self.controller.build()?,
        })
    }
}

impl ControllerSpec {
    fn build(&self) -> Result<CoreParams, SpecError> {
        SpecError::positive("host.controller.cores", self.cores.into())?;
        let writers = |writers: &WriterSpec| {
            SpecError::positive("host.controller.write.cores", writers.cores.into())?;
            let (command, unit) = (writers.command.time(), writers.unit.time());
            Ok(WriterParams { cores: writers.cores, command, unit })
        };
        Ok(CoreParams {
            cores: self.cores,
            unit: self.unit.time(),
            writers: self.write.as_ref().map(writers).transpose()?,
            moved: self.moved.map_or(Time::ZERO, |moved| moved.time()),
        })
    }
}

impl InnerSpec {
    fn build(&self, fold: bool) -> Result<EntranceParams, SpecError> {
        Ok(EntranceParams {
            link: self.link.build("inner")?,
            command_cost: self.command.time(),
            nvme: self.nvme.as_ref().map(|nvme| nvme.build("inner")).transpose()?,
            fold,
        })
    }
}

impl NvmeSpec {
    /// The queues; `table` is where they stand.
    fn build(&self, table: &str) -> Result<NvmeParams, SpecError> {
        let key = |name: &str| format!("{table}.nvme.{name}");
        SpecError::positive(&key("queues"), self.queues.into())?;
        if self.queues > INNER {
            let what = format!("{} submission queues; at most {INNER} have a number", self.queues);
            return Err(SpecError::new(&key("queues"), what));
        }
        SpecError::positive(&key("depth"), self.depth.into())?;
        SpecError::positive(&key("in_controller"), self.in_controller.into())?;
        let arbitration = match &self.arbitration {
            NvmeArbitration::RoundRobin { burst } => Arbitration::RoundRobin { burst: *burst },
            NvmeArbitration::Weighted { burst, high, medium, low, classes } => {
                if let Some(class) = classes.iter().find(|c| **c > 3) {
                    let what = format!("class {class}; allowed are 0 urgent, 1 high, 2 medium, 3 low");
                    return Err(SpecError::new(&key("arbitration.weighted.classes"), what));
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
