//! Kinds whose tables hold more than the model of their part.

use super::kinds::Table;
use super::schema::require;
use crate::precondition::Precondition;
use crate::warmup::WarmupPolicy;
use compute::ooo::CpuSpec;
use compute::vliw::AcceleratorSpec;
use compute::vliw::coprocessor::CoprocessorSpec;
use config::units::{Bytes, Duration};
use config::{Pieces, SpecError};
use net::energy::LinkEnergySpec;
use net::pcie::Link;
use programs::host::offload::OffloadCosts;
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ssd::spec::{FlashSpec, LinkSpec};

/// Flash device, and the state that it is brought into.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriveSpec {
    /// Flash device.
    #[serde(flatten)]
    pub flash: FlashSpec,
    /// State that the device is brought into before the run.
    pub precondition: Precondition,
}

/// Keys of a drive's table that are not the device's.
#[derive(JsonSchema)]
struct OfDrive {
    /// State that the device is brought into before the run.
    #[expect(dead_code, reason = "its schema alone is asked for")]
    precondition: Precondition,
}

impl Table for DriveSpec {
    fn schema(generator: &mut SchemaGenerator) -> Value {
        let mut schema = FlashSpec::json_schema(generator).to_value();
        require(&mut schema, &OfDrive::json_schema(generator).to_value());
        schema
    }

    fn read(pieces: &mut Pieces<'_>, table: &str, apart: &[&str]) -> Option<DriveSpec> {
        let apart: Vec<&str> = apart.iter().copied().chain(["precondition"]).collect();
        let flash = pieces.read(&[table], &apart);
        let precondition = pieces.read(&[table, "precondition"], &[]);
        Some(DriveSpec { flash: flash?, precondition: precondition? })
    }
}

/// Processors of a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerSpec {
    /// Cores, their threads, and their load.
    #[serde(flatten)]
    pub cores: CpuSpec,
    /// Filling of memory before the run, and the start of measurement.
    #[serde(flatten)]
    pub start: StartSpec,
}

/// Filling of a server's memory before the run, and the start of measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartSpec {
    /// Most jobs executed before the run without time, to fill a DRAM cache or the memory that `swap` pages into.
    /// Filling ends once as many pages have missed as the memory has room for, or once its second half has brought less
    /// than a hundredth of the pages. If the program's pages fit or nearly fit (up to 5/4 of the room), all of them are
    /// brought after 4,096 jobs.
    #[schemars(range(max = 1_099_511_627_776_u64))]
    pub fill_jobs: u64,
    /// Jobs at the start of the run that count in no metric; `--warmup` overrides it.
    pub warmup: WarmupPolicy,
}

impl Table for ServerSpec {
    fn schema(generator: &mut SchemaGenerator) -> Value {
        let mut schema = CpuSpec::json_schema(generator).to_value();
        require(&mut schema, &StartSpec::json_schema(generator).to_value());
        schema
    }

    fn read(pieces: &mut Pieces<'_>, table: &str, apart: &[&str]) -> Option<ServerSpec> {
        let apart: Vec<&str> = apart.iter().copied().chain(["fill_jobs", "warmup"]).collect();
        let cores = pieces.read(&[table], &apart);
        let fill_jobs = pieces.read(&[table, "fill_jobs"], &[]);
        let warmup = pieces.read(&[table, "warmup"], &[]);
        Some(ServerSpec { cores: cores?, start: StartSpec { fill_jobs: fill_jobs?, warmup: warmup? } })
    }
}

/// Accelerator, and the offload of its kernels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OffloadedSpec {
    /// Cores and memory.
    #[serde(flatten)]
    pub accelerator: AcceleratorSpec,
    /// Offload of kernels by a host.
    pub offload: OffloadSpec,
}

/// Offload of kernels to an accelerator by a host: each kernel's description table crosses the link into the
/// accelerator's memory, one after another; then the host interrupts Flashvisor (FlashAbacus, section 4, "Offload").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OffloadSpec {
    /// Size of a kernel's description table: its code and the description of its data sections.
    pub table: Bytes,
    /// Time from the last byte of a table until Flashvisor is notified: the host's interrupt, and its path through the
    /// link's controller.
    pub interrupt: Duration,
    /// Link between the host and the accelerator.
    pub link: LinkSpec,
    /// Energy of the link; without it, the link reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<LinkEnergySpec>,
}

impl OffloadSpec {
    /// Builds the link, with its energy.
    ///
    /// # Errors
    /// The first invalid value, with its key below the accelerator's table.
    pub fn link(&self) -> Result<Link, SpecError> {
        let link = self.link.build("offload")?;
        Ok(match &self.energy {
            Some(energy) => link.with_energy(energy),
            None => link,
        })
    }
}

/// Keys of an accelerator's table that are not the accelerator's.
#[derive(JsonSchema)]
struct OfAccelerator {
    /// Offload of kernels by a host.
    #[expect(dead_code, reason = "its schema alone is asked for")]
    offload: OffloadSpec,
}

impl Table for OffloadedSpec {
    fn schema(generator: &mut SchemaGenerator) -> Value {
        let mut schema = AcceleratorSpec::json_schema(generator).to_value();
        require(&mut schema, &OfAccelerator::json_schema(generator).to_value());
        schema
    }

    fn read(pieces: &mut Pieces<'_>, table: &str, apart: &[&str]) -> Option<OffloadedSpec> {
        let apart: Vec<&str> = apart.iter().copied().chain(["offload"]).collect();
        let accelerator = pieces.read(&[table], &apart);
        let offload = pieces.read(&[table, "offload"], &[]);
        Some(OffloadedSpec { accelerator: accelerator?, offload: offload? })
    }
}

/// Coprocessor, and the costs of the host program that drives it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrivenSpec {
    /// Cores and memory.
    #[serde(flatten)]
    pub coprocessor: CoprocessorSpec,
    /// Costs of data handling in the program that drives it.
    pub offload: OffloadCosts,
}

impl DrivenSpec {
    /// Coprocessor as one instance sees it: with its share of memory.
    pub fn shared(&self) -> CoprocessorSpec {
        let mut coprocessor = self.coprocessor.clone();
        let share = coprocessor.memory.size.get() / u64::from(self.offload.threads.max(1));
        coprocessor.memory.size = Bytes::new(share);
        coprocessor
    }
}

/// Keys of a coprocessor's table that are not the coprocessor's.
#[derive(JsonSchema)]
struct OfCoprocessor {
    /// Costs of data handling in the program that drives it.
    #[expect(dead_code, reason = "its schema alone is asked for")]
    offload: OffloadCosts,
}

impl Table for DrivenSpec {
    fn schema(generator: &mut SchemaGenerator) -> Value {
        let mut schema = CoprocessorSpec::json_schema(generator).to_value();
        require(&mut schema, &OfCoprocessor::json_schema(generator).to_value());
        schema
    }

    fn read(pieces: &mut Pieces<'_>, table: &str, apart: &[&str]) -> Option<DrivenSpec> {
        let apart: Vec<&str> = apart.iter().copied().chain(["offload"]).collect();
        let coprocessor = pieces.read(&[table], &apart);
        let offload = pieces.read(&[table, "offload"], &[]);
        Some(DrivenSpec { coprocessor: coprocessor?, offload: offload? })
    }
}
