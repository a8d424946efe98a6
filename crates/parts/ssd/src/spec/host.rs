//! The host interface as a user writes it.

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

/// How the host reaches the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// The link.
    pub link: HostLinkSpec,
    /// Low-power state of the link while no command is outstanding (SATA's Partial and Slumber, L1 of PCI Express): the next command
    /// waits until it is left. Left out, the link never sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep: Option<SleepSpec>,
    /// The controller's processors.
    pub controller: ControllerSpec,
    /// NVMe queues; left out as well as `ahci`, the device is a memory port: requests arrive after the link's latency, without queues.
    pub nvme: Option<NvmeSpec>,
    /// The queue of a SATA drive, in place of `nvme`: it replaces one that is inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahci: Option<AhciSpec>,
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
    /// Standard deviation of the core times of commands, as a multiple of their mean, which is as above: each is drawn from a gamma
    /// distribution. Left out, each takes as long as the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub spread: Option<f64>,
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
    /// Standard deviation of the core times of writes, as a multiple of their mean, which is as above: each is drawn from a gamma
    /// distribution. Left out, each takes as long as the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub spread: Option<f64>,
    /// Work on writes that have been acknowledged; left out, there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upkeep: Option<UpkeepSpec>,
}

/// Work on writes that have been acknowledged (their places, the map), on a core of its own, a batch at a time: one batch is worked
/// on while the next one fills, and when that is full too, writes wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpkeepSpec {
    /// Core time a write.
    pub write: Duration,
    /// Writes of a batch.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub batch: u32,
    /// Standard deviation of the times of batches, as a multiple of their mean: each is drawn from a gamma distribution. Left out,
    /// each takes as long as the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub spread: Option<f64>,
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

/// A host adapter with native command queuing: one queue for all flows of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AhciSpec {
    /// Commands that are under way at once; more wait at the host.
    #[schemars(range(min = 1, max = 32))]
    pub slots: u32,
    /// From the driver's register writes until the adapter sends the command: it reads the command's header and table.
    pub command: Duration,
    /// From the drive's word that a command is done to host software running.
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

    /// The host's link with its queues.
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
                Err(SpecError::new("host.ahci", "a drive has `nvme` or `ahci`, not both").help(PAIRS))
            }
            (HostLink::Sata(_), Some(_), None) => {
                Err(SpecError::new("host.nvme", "there are no NVMe queues over SATA").help(PAIRS))
            }
            (HostLink::Sata(_), None, None) => {
                Err(SpecError::new("host.ahci", "a SATA link needs its queue").help(PAIRS))
            }
            (HostLink::Both(_), None, Some(_)) => {
                Err(SpecError::new("host.ahci", "this link is no SATA link").help(PAIRS))
            }
        }
    }

    /// Submission queues and how many commands may be outstanding in each; `None` without queues.
    pub fn queues(&self) -> Option<(u16, u32)> {
        let nvme = self.nvme.as_ref().map(NvmeSpec::queues);
        nvme.or_else(|| self.ahci.as_ref().map(|ahci| (1, ahci.slots)))
    }
}

/// What goes with what.
const PAIRS: &str = "`ahci` goes with a `sata` link; a `pcie` or `plain` link has `nvme` or no queues";

/// A link with NVMe queues, or a memory port.
fn behind(link: Link, nvme: Option<&NvmeSpec>, table: &str, fold: bool) -> Result<Interface, SpecError> {
    Ok(match nvme {
        Some(nvme) => Interface::Nvme(NvmePort::new(link, nvme.build(table)?, fold)),
        None => Interface::Memory(MemoryPort::new(link)),
    })
}

/// Beyond, nearly all of the time is that of very few commands.
const SPREAD_MAX: f64 = 10.0;
/// Nor is any batch of writes worked on for longer.
const BATCH_MAX: Time = Time::from_s(3_600);

/// Where random times come from: the run's seed, and the device's name.
#[derive(Clone, Copy)]
struct Source<'a> {
    seed: u64,
    device: &'a str,
}

impl Source<'_> {
    /// Times of the spread that stands at a key.
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
            let what = format!("`{key}` is {batch}, more than an hour of work: allowed are 1 to {most}");
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
    /// The slots; `table` is where they stand.
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
    /// Submission queues and how many commands may be outstanding in each.
    pub fn queues(&self) -> (u16, u32) {
        (self.queues, self.depth)
    }

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
