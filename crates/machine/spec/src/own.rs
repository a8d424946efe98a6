//! Kinds whose tables hold more than their part's model knows.

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

/// A flash device and the state that it is brought into.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriveSpec {
    /// The device.
    #[serde(flatten)]
    pub flash: FlashSpec,
    /// The state that the device is brought into before the run.
    pub precondition: Precondition,
}

/// Keys of a drive's table that are no device's.
#[derive(JsonSchema)]
struct OfDrive {
    /// The state that the device is brought into before the run.
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

/// The processors of a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerSpec {
    /// Its cores, their threads, and their load.
    #[serde(flatten)]
    pub cores: CpuSpec,
    /// How memory is filled before the run, and when its figures begin.
    #[serde(flatten)]
    pub start: StartSpec,
}

/// How a server's memory is filled before the run, and when its figures begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartSpec {
    /// Jobs that are executed before the run without time, at most, to fill a DRAM cache or what `swap` pages into. They end once
    /// it has taken as many missing pages as it has room for, or the second half of them has brought less than a hundredth of its
    /// pages. If the program's pages fit or nearly fit (up to 5/4 of the room), all of them are brought after 4,096 jobs.
    #[schemars(range(max = 1_099_511_627_776_u64))]
    pub fill_jobs: u64,
    /// Which of the first jobs of the run count in no figure; `--warmup` says something else.
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

/// An accelerator, and how kernels come to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OffloadedSpec {
    /// Its cores and its memory.
    #[serde(flatten)]
    pub accelerator: AcceleratorSpec,
    /// How a host offloads kernels to it.
    pub offload: OffloadSpec,
}

/// How a host offloads kernels to an accelerator: each kernel's description table crosses the link into the accelerator's memory, one after
/// another; then the host interrupts Flashvisor (FlashAbacus, section 4, "Offload").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OffloadSpec {
    /// A kernel's description table: its code and what it says of its data sections.
    pub table: Bytes,
    /// From the last byte of a table until Flashvisor knows: the host's interrupt, and its way through the link's controller.
    pub interrupt: Duration,
    /// The link between the host and the accelerator.
    pub link: LinkSpec,
    /// What the link spends; left out, it reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<LinkEnergySpec>,
}

impl OffloadSpec {
    /// The link, with what it spends.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key below the accelerator's table.
    pub fn link(&self) -> Result<Link, SpecError> {
        let link = self.link.build("offload")?;
        Ok(match &self.energy {
            Some(energy) => link.with_energy(energy),
            None => link,
        })
    }
}

/// Keys of an accelerator's table that are no accelerator's.
#[derive(JsonSchema)]
struct OfAccelerator {
    /// How a host offloads kernels to it.
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

/// A coprocessor, and what a host's program does to work with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrivenSpec {
    /// Its cores and its memory.
    #[serde(flatten)]
    pub coprocessor: CoprocessorSpec,
    /// What the program that drives it does with data on their way.
    pub offload: OffloadCosts,
}

impl DrivenSpec {
    /// The coprocessor as an instance has it: with its share of memory.
    pub fn shared(&self) -> CoprocessorSpec {
        let mut coprocessor = self.coprocessor.clone();
        let share = coprocessor.memory.size.get() / u64::from(self.offload.threads.max(1));
        coprocessor.memory.size = Bytes::new(share);
        coprocessor
    }
}

/// Keys of a coprocessor's table that are no coprocessor's.
#[derive(JsonSchema)]
struct OfCoprocessor {
    /// What the program that drives it does with data on their way.
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
