//! Flash as memory, as a user writes it.

use super::stats::DirectEnergySpec;
use config::SpecError;
use config::schema::product;
use config::units::{Bytes, Duration, Share};
use ftl::log::mapping::DirectMapping;
use nand::planes::spec::{DirectArray, DirectGeometry, FlashNetwork};
use nand::registers::DirectRegisters;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flash that cores address as memory, behind flash controllers on their network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [
    product(1 << 18, "planes", &["geometry.channels", "geometry.packages", "geometry.dies", "geometry.planes"]),
    product(1 << 18, "ports", &["geometry.channels", "geometry.packages", "geometry.ports"]),
    product(1 << 28, "blocks", &["geometry.channels", "geometry.packages", "geometry.dies", "geometry.planes", "geometry.blocks"]),
    product(1 << 32, "pages", &["geometry.channels", "geometry.packages", "geometry.dies", "geometry.planes", "geometry.blocks", "geometry.pages"]),
    product(1 << 22, "registers", &["geometry.channels", "geometry.packages", "geometry.dies", "geometry.planes", "registers.count"]),
]))]
pub struct DirectSpec {
    /// How many of everything. Pages are of 4 KiB.
    pub geometry: DirectGeometry,
    /// How addresses become flash pages.
    pub mapping: DirectMapping,
    /// The arrays of the planes.
    pub array: DirectArray,
    /// The registers, which gather writes.
    pub registers: DirectRegisters,
    /// The flash controllers.
    pub controller: DirectController,
    /// What connects controllers and packages.
    pub network: FlashNetwork,
    /// Bytes that name a command on the network: a read sends them alone, a write in front of its lines.
    #[schemars(extend("x-maximum" = "1MiB"))]
    pub command: Bytes,
    /// How much of a page that has been read from the array goes to the controller.
    pub transfer: Transfer,
    /// Dirty pages that the registers have no room for go to the shared cache; left out, all are programmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<DirectRedirect>,
    /// The helper thread that merges log blocks; left out, what it executes costs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helper: Option<DirectHelper>,
    /// What it spends; left out, it reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<DirectEnergySpec>,
}

/// The flash controllers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectController {
    /// How many there are. Each serves the packages that it is nearest to.
    #[schemars(range(min = 1, max = 1_024))]
    pub count: u32,
    /// Time between two requests that a controller's dispatcher takes.
    pub dispatch: Duration,
    /// Time that the controller works on a request, others alongside.
    pub latency: Duration,
}

/// The helper thread that merges log blocks, one a merge (ZnG, section IV-A). The multiprocessors of the GPU in front execute
/// threads in turn; the cores of a server do so without cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectHelper {
    /// Instructions of the helper thread before each page that a merge moves; zero: the page is moved at once.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "instructions"))]
    pub page: u32,
    /// Instructions of the helper thread before each block that a merge erases; zero: the block is erased at once.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "instructions"))]
    pub block: u32,
}

/// When pages are redirected to the shared cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectRedirect {
    /// Writes of a package after each of which the checker judges it anew.
    #[schemars(range(min = 1))]
    pub window: u32,
    /// Share of these writes above which, if they evict a page from the registers, the registers thrash.
    pub threshold: Share,
}

config::policies! {
    /// How much of a page that has been read from the array goes to the controller.
    #[derive(Copy, Eq)]
    pub family Transfer: choice {
        /// The whole page.
        default page,
        /// The lines that were asked for.
        lines,
    }
}

impl DirectSpec {
    /// Whether it can be built; keys relative to the part's table.
    ///
    /// # Errors
    /// Counts of zero or beyond what is modelled, counts that do not divide, too few blocks for the log blocks and a merge,
    /// more controllers than packages, a mesh with another number of routers than packages.
    pub fn check(&self) -> Result<(), SpecError> {
        self.geometry.check()?;
        self.mapping.check(&self.geometry)?;
        self.array.check()?;
        self.registers.check()?;
        self.energy.as_ref().map_or(Ok(()), DirectEnergySpec::check)?;
        if let Some(redirect) = &self.redirect {
            SpecError::positive("redirect.window", redirect.window.into())?;
        }
        self.check_network()
    }

    fn check_network(&self) -> Result<(), SpecError> {
        let (count, packages) = (self.controller.count, self.geometry.all_packages());
        SpecError::positive("controller.count", count.into())?;
        let places = match &self.network {
            FlashNetwork::mesh(mesh) => {
                let below = |mut fault: SpecError| {
                    fault.key = format!("network.mesh.{}", fault.key);
                    fault
                };
                mesh.check().map_err(below)?;
                if mesh.routers() != packages {
                    let what = format!(
                        "{} rows of {} routers for {packages} packages; a mesh has a router for each",
                        mesh.rows, mesh.columns
                    );
                    return Err(SpecError::new("network.mesh.rows", what));
                }
                packages
            }
            FlashNetwork::bus(bus) => {
                SpecError::positive("network.bus.width", bus.width.get())?;
                SpecError::positive("network.bus.rate", bus.rate.per_s())?;
                if self.geometry.ports != 1 {
                    let what = format!("{} ports a package on a bus, which reaches one", self.geometry.ports);
                    return Err(SpecError::new("geometry.ports", what));
                }
                self.geometry.channels
            }
        };
        if count > places {
            let what = format!("{count} controllers, but only {places} places for them on the flash network");
            return Err(SpecError::new("controller.count", what));
        }
        Ok(())
    }

    /// Bytes of the address space that one entry of the block table covers.
    pub fn reach(&self) -> u64 {
        u64::from(self.mapping.group) * u64::from(self.geometry.pages) * PAGE
    }

    /// Pages of an application's log blocks that are free at the start.
    pub fn log_room(&self, app: u8) -> u32 {
        let filled = &self.mapping.log_filled;
        let share = filled.get(usize::from(app)).or(filled.last()).copied().unwrap_or_default();
        self.geometry.pages - share.of(self.geometry.pages.into()) as u32
    }

    /// Bytes of the address space.
    pub fn capacity(&self) -> u64 {
        u64::from(self.geometry.all_planes() / self.mapping.group)
            * u64::from(self.mapping.data_blocks)
            * self.reach()
    }
}
