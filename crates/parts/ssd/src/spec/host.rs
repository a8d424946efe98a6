//! Spec of the host interface.

use super::{FlashEnergySpec, HostLink, HostLinkSpec, LinkSpec, SpecError};
use crate::port::ahci::{AhciParams, AhciPort, SLOTS_MAX};
use crate::port::cores::{CoreParams, Varied, WriterParams};
use crate::port::host::{Entrance, HostParams, LinkSleep};
use crate::port::interface::Interface;
use crate::port::memory_port::MemoryPort;
use crate::port::nvme::{Arbitration, NvmeParams, NvmePort};
use crate::port::upkeep::Upkeep;
use config::SleepSpec;
use config::units::Duration;
use engine::{Rng, Time};
use net::pcie::Link;
use proto::INNER;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Host interface of the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Link between host and device.
    pub link: HostLinkSpec,
    /// Low-power state of the link while no command is outstanding (SATA's Partial and Slumber, L1 of PCI Express): the
    /// next command waits for its exit. If omitted, the link never sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep: Option<SleepSpec>,
    /// Processors of the controller.
    pub controller: ControllerSpec,
    /// NVMe queues. If both this and `ahci` are omitted, the device is a memory port: requests arrive after the link's
    /// latency, without queues.
    pub nvme: Option<NvmeSpec>,
    /// Queue of a SATA drive, in place of `nvme`; replaces an inherited `nvme`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahci: Option<AhciSpec>,
}

/// Interface of a processor inside the drive, beside the host. The controller's cores serve both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InnerSpec {
    /// Link between that processor and the controller.
    pub link: LinkSpec,
    /// Core time of each command.
    pub command: Duration,
    /// NVMe queues in the drive's memory; if omitted, commands are direct requests: they arrive after the link's
    /// latency, without queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvme: Option<NvmeSpec>,
}

/// Processors of the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// Number of cores that process commands.
    #[schemars(range(min = 1, max = 65_536))]
    pub cores: u32,
    /// Core time of each command.
    pub command: Duration,
    /// Additional core time of each map unit of a command.
    pub unit: Duration,
    /// Spread of core times of commands: standard deviation as a multiple of the mean, which is the value above. Times
    /// follow a gamma distribution. Constant if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub spread: Option<f64>,
    /// Dedicated cores for writes, which allocate and change the map; if omitted, writes share the other cores and take
    /// as long as reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<WriterSpec>,
    /// Core time of each map unit moved by garbage collection; zero if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Duration>,
}

/// Cores that only process writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriterSpec {
    /// Number of cores.
    #[schemars(range(min = 1, max = 65_536))]
    pub cores: u32,
    /// Core time of each write.
    pub command: Duration,
    /// Additional core time of each map unit of a write.
    pub unit: Duration,
    /// Spread of core times of writes: standard deviation as a multiple of the mean, which is the value above. Times
    /// follow a gamma distribution. Constant if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub spread: Option<f64>,
    /// Work on acknowledged writes; none if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upkeep: Option<UpkeepSpec>,
}

/// Work on acknowledged writes (their places, the map), on a dedicated core, in batches: one batch is processed while
/// the next one fills. When that is full too, writes wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpkeepSpec {
    /// Core time of each write.
    pub write: Duration,
    /// Number of writes in a batch.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub batch: u32,
    /// Spread of batch times: standard deviation as a multiple of the mean. Times follow a gamma distribution. Constant
    /// if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub spread: Option<f64>,
}

/// NVMe queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NvmeSpec {
    /// Number of submission queues; flows of the workload are assigned to them round-robin.
    #[schemars(range(min = 1, max = 32_768))]
    pub queues: u16,
    /// Queue depth: outstanding commands of a submission queue; more wait at the host.
    #[schemars(range(min = 1))]
    pub depth: u32,
    /// Commands that the controller holds at once, over all queues.
    #[schemars(range(min = 1))]
    pub in_controller: u32,
    /// Arbitration: the submission queue that is fetched from next.
    pub arbitration: NvmeArbitration,
    /// Time from doorbell write to fetch request, beyond the link's latency.
    pub doorbell: Duration,
    /// Time from fetch request to command in the controller, beyond the link's round trip.
    pub fetch: Duration,
    /// Time from writing the completion entry until host software runs.
    pub interrupt: Duration,
}

/// Host adapter with native command queuing: one queue for all flows of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AhciSpec {
    /// Slots: outstanding commands; more wait at the host.
    #[schemars(range(min = 1, max = 32))]
    pub slots: u32,
    /// Time from the driver's register writes until the adapter sends the command: it reads the command's header and
    /// table.
    pub command: Duration,
    /// Time from the drive's completion message until host software runs.
    pub interrupt: Duration,
}

/// Arbitration between submission queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum NvmeArbitration {
    /// Queues take turns.
    RoundRobin {
        /// Commands per turn.
        #[schemars(range(min = 1))]
        burst: u32,
    },
    /// An urgent class with strict priority, then high, medium and low by weight.
    Weighted {
        /// Commands per turn.
        #[schemars(range(min = 1))]
        burst: u32,
        /// Commands of the high class per round.
        #[schemars(range(min = 1))]
        high: u32,
        /// Commands of the medium class per round.
        #[schemars(range(min = 1))]
        medium: u32,
        /// Commands of the low class per round.
        #[schemars(range(min = 1))]
        low: u32,
        /// Class of each queue, in order: 0 urgent, 1 high, 2 medium, 3 low. Queues beyond the list are medium.
        classes: Vec<u8>,
    },
}

impl HostSpec {
    pub(crate) fn build(
        &self,
        inner: Option<&InnerSpec>,
        energy: Option<&FlashEnergySpec>,
        seed: u64,
        device: &str,
        fold: bool,
    ) -> Result<HostParams, SpecError> {
        let command_cost = self.controller.command.time();
        Ok(HostParams {
            outer: Entrance { interface: self.interface(energy, fold)?, command_cost },
            sleep: self.sleep.map(LinkSleep::new),
            inner: inner.map(|inner| inner.build(fold)).transpose()?,
            cores: self.controller.build(Source { seed, device })?,
        })
    }

    /// Builds the host's link with its queues.
    fn interface(&self, energy: Option<&FlashEnergySpec>, fold: bool) -> Result<Interface, SpecError> {
        let energy = energy.map(|energy| &energy.link);
        match (self.link.build("host")?, &self.nvme, &self.ahci) {
            (HostLink::Both(link), nvme, None) => {
                let link = match energy {
                    Some(energy) => link.with_energy(energy),
                    None => link,
                };
                behind(link, nvme.as_ref(), "host", fold)
            }
            (HostLink::Sata(link), None, Some(ahci)) => {
                let link = match energy {
                    Some(energy) => link.with_energy(energy),
                    None => link,
                };
                Ok(Interface::Ahci(AhciPort::new(link, ahci.build("host")?)))
            }
            (_, Some(_), Some(_)) => {
                Err(SpecError::new("host.ahci", "a drive cannot have both `nvme` and `ahci`").help(PAIRS))
            }
            (HostLink::Sata(_), Some(_), None) => {
                Err(SpecError::new("host.nvme", "a `sata` link does not carry NVMe queues").help(PAIRS))
            }
            (HostLink::Sata(_), None, None) => {
                Err(SpecError::new("host.ahci", "a `sata` link needs `ahci`").help(PAIRS))
            }
            (HostLink::Both(_), None, Some(_)) => {
                Err(SpecError::new("host.ahci", "`ahci` needs a `sata` link").help(PAIRS))
            }
        }
    }

    /// Number of submission queues and their depth; `None` without queues.
    pub fn queues(&self) -> Option<(u16, u32)> {
        let nvme = self.nvme.as_ref().map(NvmeSpec::queues);
        nvme.or_else(|| self.ahci.as_ref().map(|ahci| (1, ahci.slots)))
    }
}

/// Valid pairs of link and queues.
const PAIRS: &str = "`ahci` goes with a `sata` link; a `pcie` or `plain` link has `nvme` or no queues";

/// Builds a link with NVMe queues, or a memory port.
fn behind(link: Link, nvme: Option<&NvmeSpec>, table: &str, fold: bool) -> Result<Interface, SpecError> {
    Ok(match nvme {
        Some(nvme) => Interface::Nvme(NvmePort::new(link, nvme.build(table)?, fold)),
        None => Interface::Memory(MemoryPort::new(link)),
    })
}

/// Largest spread. Beyond it, very few commands take nearly all of the time.
const SPREAD_MAX: f64 = 10.0;
/// Longest time of a batch of writes.
const BATCH_MAX: Time = Time::from_s(3_600);

/// Source of random times: the run's seed and the device's name.
#[derive(Clone, Copy)]
struct Source<'a> {
    seed: u64,
    device: &'a str,
}

impl Source<'_> {
    /// Returns the times of the spread at a key.
    fn varied(self, key: &str, spread: Option<f64>) -> Result<Option<Varied>, SpecError> {
        let spread = spread.unwrap_or(0.0);
        if !(0.0..=SPREAD_MAX).contains(&spread) {
            let what = format!("`{key}` is {spread}; allowed are 0 to {SPREAD_MAX}");
            return Err(SpecError::new(key, what));
        }
        Ok(Varied::new(spread, Rng::stream(self.seed, &format!("{}/{key}", self.device))))
    }
}

impl ControllerSpec {
    fn build(&self, source: Source<'_>) -> Result<CoreParams, SpecError> {
        SpecError::positive("host.controller.cores", self.cores.into())?;
        Ok(CoreParams {
            cores: self.cores,
            unit: self.unit.time(),
            varied: source.varied("host.controller.spread", self.spread)?,
            writers: self.write.as_ref().map(|write| write.build(source)).transpose()?,
            moved: self.moved.map_or(Time::ZERO, |moved| moved.time()),
        })
    }
}

impl WriterSpec {
    fn build(&self, source: Source<'_>) -> Result<WriterParams, SpecError> {
        SpecError::positive("host.controller.write.cores", self.cores.into())?;
        Ok(WriterParams {
            cores: self.cores,
            command: self.command.time(),
            unit: self.unit.time(),
            varied: source.varied("host.controller.write.spread", self.spread)?,
            upkeep: self.upkeep.as_ref().map(|upkeep| upkeep.build(source)).transpose()?,
        })
    }
}

impl UpkeepSpec {
    fn build(&self, source: Source<'_>) -> Result<Upkeep, SpecError> {
        let (key, batch) = ("host.controller.write.upkeep.batch", self.batch);
        SpecError::positive(key, batch.into())?;
        let most = BATCH_MAX.ps() / self.write.time().ps().max(1);
        if u64::from(batch) > most {
            let what = format!("`{key}` is {batch}, more than an hour of work; allowed are 1 to {most}");
            return Err(SpecError::new(key, what));
        }
        let varied = source.varied("host.controller.write.upkeep.spread", self.spread)?;
        Ok(Upkeep::new(self.write.time(), batch, varied))
    }
}

impl InnerSpec {
    fn build(&self, fold: bool) -> Result<Entrance, SpecError> {
        let interface = behind(self.link.build("inner")?, self.nvme.as_ref(), "inner", fold)?;
        Ok(Entrance { interface, command_cost: self.command.time() })
    }
}

impl AhciSpec {
    /// Builds the slots; `table` is the spec table that holds them.
    fn build(&self, table: &str) -> Result<AhciParams, SpecError> {
        let AhciSpec { slots, command, interrupt } = self;
        if !(1..=SLOTS_MAX).contains(slots) {
            let what = format!("{slots} slots; allowed are 1 to {SLOTS_MAX}");
            return Err(SpecError::new(&format!("{table}.ahci.slots"), what));
        }
        Ok(AhciParams { slots: *slots, command: command.time(), interrupt: interrupt.time() })
    }
}

impl NvmeSpec {
    /// Number of submission queues and their depth.
    pub fn queues(&self) -> (u16, u32) {
        (self.queues, self.depth)
    }

    /// Builds the queues; `table` is the spec table that holds them.
    fn build(&self, table: &str) -> Result<NvmeParams, SpecError> {
        let key = |name: &str| format!("{table}.nvme.{name}");
        SpecError::positive(&key("queues"), self.queues.into())?;
        if self.queues > INNER {
            let what = format!("{} submission queues; allowed are at most {INNER}", self.queues);
            return Err(SpecError::new(&key("queues"), what));
        }
        SpecError::positive(&key("depth"), self.depth.into())?;
        SpecError::positive(&key("in_controller"), self.in_controller.into())?;
        let arbitration = match &self.arbitration {
            NvmeArbitration::RoundRobin { burst } => Arbitration::RoundRobin { burst: *burst },
            NvmeArbitration::Weighted { burst, high, medium, low, classes } => {
                if let Some(class) = classes.iter().find(|c| **c > 3) {
                    let what = format!("queue class {class}; allowed are 0 urgent, 1 high, 2 medium, 3 low");
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
