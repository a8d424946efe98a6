//! A whole machine as a user writes it.

use crate::precondition::Precondition;
use crate::warmup::WarmupPolicy;
use compute::ooo::CpuSpec;
use compute::simt::GpuSpec;
use config::SpecError;
use config::units::Duration;
use config::{Diagnostic, Layers, Place, Resolved};
use flash::direct::DirectSpec;
use flash::engine::EngineSpec;
use flash::initiator::InitiatorSpec;
use flash::spec::{Built, FlashSpec};
use flash::{Device, spec};
use host::paging::PagingSpec;
use host::swap::SwapSpec;
use mem::directory::DirectorySpec;
use mem::dram::DramSpec;
use mem::dram_cache::DramCacheSpec;
use mem::l2::L2Spec;
use mem::mmu::MmuSpec;
use net::CrossbarSpec;
use net::fabric::FabricSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::inject::Queues;

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// What the machine is, in one line.
    pub description: String,
    /// The flash device: a drive, the flash behind an SSD engine, or what a GPU reaches by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashSpec>,
    /// The GPU's multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuSpec>,
    /// The processors of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpus>,
    /// The memory management unit: one that a GPU's multiprocessors share, or that of each core of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mmu: Option<MmuSpec>,
    /// The network between multiprocessors, cache banks and controllers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<CrossbarSpec>,
    /// The network between cores, cache banks and controllers: a core and a bank at each router of a mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fabric: Option<FabricSpec>,
    /// The directory that keeps the first-level caches of cores coherent: a slice at each cache bank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectorySpec>,
    /// The cache that all multiprocessors or cores share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2: Option<L2Spec>,
    /// What stands behind the shared cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemorySpec>,
    /// The host that brings missing pages from the flash device into the GPU's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paging: Option<PagingSpec>,
    /// The operating system of a server that brings missing pages from the flash device into DRAM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapSpec>,
    /// The host's software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostSoftware>,
    /// The state that the flash device is brought into before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<Precondition>,
    /// The simulation itself.
    pub sim: Sim,
}

/// The processors of a server, by number. There is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cpus {
    /// Jobs that are executed before the run without time, at most, to fill a DRAM cache or what `swap` pages into. They end once
    /// it has taken as many missing pages as it has room for, or the latter half of them has brought less than a hundredth of its
    /// pages.
    #[schemars(range(max = 1_099_511_627_776_u64))]
    pub fill_jobs: u64,
    /// Which of the first jobs of the run count in no figure; `--warmup` says something else.
    pub warmup: WarmupPolicy,
    /// The first processor: its cores, their threads, and their load.
    #[serde(rename = "0")]
    pub first: CpuSpec,
}

/// What stands behind the shared cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MemorySpec {
    /// DRAM, or persistent memory, its controllers beside the cache banks.
    Dram(DramSpec),
    /// Flash whose controllers are on the network.
    Direct(DirectSpec),
    /// An SSD engine on the network, and the flash device behind it.
    Engine(EngineSpec),
    /// A flash device to which the GPU sends block commands by itself, over the network.
    Initiator(InitiatorSpec),
    /// DRAM as a cache over flash, its controllers on the mesh.
    DramCache(DramCacheSpec),
}

/// The host's software: time that a request spends outside the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSoftware {
    /// From arrival to submission.
    pub submit: Duration,
    /// From the completion's interrupt until the application knows.
    pub complete: Duration,
}

/// The simulation itself. Nothing here changes what the host sees, but when the run ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sim {
    /// Whether stages without contention are folded into one event.
    pub fold: bool,
    /// Whether a shadow follows every unit's data and checks every read. Costs memory and time.
    pub shadow: bool,
    /// Interval at which the instructions that each application has issued are recorded, as `gpu.series` of the result; left
    /// out, they are not. It doubles as often as it must for 4,096 intervals to hold the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "1ps"))]
    pub series: Option<Duration>,
    /// Simulated time after which the run ends, whether or not its work is done; left out, it is done to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "1ps"))]
    pub until: Option<Duration>,
}

/// The name of the drive in random streams.
pub(crate) const DEVICE: &str = "flash0";

/// A flash device and what is in front of it.
#[derive(Clone, Copy, Debug)]
pub struct Drive<'a> {
    /// The flash device.
    pub flash: &'a FlashSpec,
    /// The host's software.
    pub host: &'a HostSoftware,
    /// The state that the device is brought into.
    pub precondition: &'a Precondition,
}

/// A spec with the memory of where each value stands.
pub struct Loaded {
    /// Its name: a shipped system's, or the file's.
    pub name: String,
    /// The spec.
    pub spec: Spec,
    resolved: Resolved,
}

impl Loaded {
    /// Reads a shipped system or a file, with overrides (`key.path=value`).
    ///
    /// # Errors
    /// Everything that is wrong with it, with places.
    pub fn load(name: &str, overrides: &[String]) -> Result<Loaded, Diagnostic> {
        let mut resolved = Layers::load(name, &crate::systems::Shipped)?;
        for assignment in overrides {
            resolved.set(assignment)?;
        }
        let spec: Spec =
            resolved.parse_whole(crate::validate::needed).map_err(|fault| remedied(&resolved, fault))?;
        let loaded = Loaded { name: name.to_owned(), spec, resolved };
        loaded.check().map_err(|fault| {
            let check = |resolved: &Resolved, spec: &Spec| {
                Loaded { name: name.to_owned(), spec: spec.clone(), resolved: resolved.clone() }.check()
            };
            loaded.resolved.blame(fault, check)
        })?;
        Ok(loaded)
    }

    /// Refuses what a parser cannot: limits, tables that need each other, parts that cannot be built.
    fn check(&self) -> Result<(), Diagnostic> {
        crate::validate::check(&self.resolved)?;
        crate::validate::tables(self)?;
        crate::build::gpu::check(self)?;
        crate::build::server::check(self)?;
        // Building geometry and thresholds checks what a parser cannot.
        if self.spec.flash.is_some() {
            self.device(0)?;
        }
        Ok(())
    }

    /// The resolved spec as TOML.
    pub fn to_toml(&self) -> String {
        self.resolved.to_toml_string()
    }

    /// Where a value stands, for errors about it.
    pub fn diagnose(&self, key: &str, what: &str) -> Diagnostic {
        self.resolved.diagnose(key, what)
    }

    /// The drive.
    ///
    /// # Errors
    /// A system without one.
    pub fn drive(&self) -> Result<Drive<'_>, Diagnostic> {
        let Spec { flash, host, precondition, .. } = &self.spec;
        match (flash, host, precondition) {
            (Some(flash), Some(host), Some(precondition)) => Ok(Drive { flash, host, precondition }),
            _ => Err(Diagnostic::new(format!(
                "the system `{}` has no flash device that a host reaches",
                self.name
            ))
            .help("block requests need the tables `flash`, `host` and `precondition`")),
        }
    }

    /// Builds the flash device, empty and idle.
    ///
    /// # Errors
    /// What cannot be built.
    pub fn device(&self, seed: u64) -> Result<Device, Diagnostic> {
        let context = Built { seed, name: DEVICE.into(), fold: self.spec.sim.fold };
        self.drive()?.flash.build(&context).map_err(|error| self.explain("flash", error))
    }

    /// A fault that workloads meet: where no value of the user's is wrong, it is the workloads that do not fit.
    pub(crate) fn at_workloads(&self, workloads: &[String], mut fault: Diagnostic) -> Diagnostic {
        if fault.place.as_ref().is_none_or(|place| self.resolved.is_own(place)) {
            return fault;
        }
        fault.beside = fault.place.take();
        let text = workloads.join(" ");
        fault.at(Place { source: "--workload".to_owned(), text, ..Place::default() })
    }

    /// The configuration that the spec was read from.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    pub(crate) fn explain(&self, table: &str, error: SpecError) -> Diagnostic {
        let diagnostic = self.resolved.diagnose(&format!("{table}.{}", error.key), error.what);
        match error.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

/// A list of missing keys, with the way to have them all.
fn remedied(resolved: &Resolved, mut fault: Diagnostic) -> Diagnostic {
    let remedy = crate::validate::remedy(&resolved.table());
    for one in std::iter::once(&mut fault.help).chain(fault.also.iter_mut().map(|also| &mut also.help)) {
        if one.as_ref().is_some_and(|help| help.starts_with("set ")) {
            *one = Some(remedy.clone());
        }
    }
    fault
}

/// The host interface's queues, as the injector needs to know.
pub fn queues(spec: &spec::FlashSpec) -> Queues {
    spec.host.nvme.as_ref().map_or(Queues::UNBOUNDED, |n| Queues { count: n.queues, depth: n.depth })
}
