//! Spec of flash as memory.

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
    /// Geometry of the flash array. Pages are 4 KiB.
    pub geometry: DirectGeometry,
    /// Mapping of addresses to flash pages.
    pub mapping: DirectMapping,
    /// Arrays of the planes.
    pub array: DirectArray,
    /// Registers that gather writes.
    pub registers: DirectRegisters,
    /// Flash controllers.
    pub controller: DirectController,
    /// Network between controllers and packages.
    pub network: FlashNetwork,
    /// Size of a command on the network: a read sends only this, a write sends it in front of its lines.
    #[schemars(extend("x-maximum" = "1MiB"))]
    pub command: Bytes,
    /// Part of a page read from the array that goes to the controller.
    pub transfer: Transfer,
    /// Redirection of dirty pages that do not fit in the registers to the shared cache; if omitted, all are programmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<DirectRedirect>,
    /// Helper thread that merges log blocks; if omitted, its execution costs nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helper: Option<DirectHelper>,
    /// Energy of operations; if omitted, the device reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<DirectEnergySpec>,
}

/// Flash controllers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectController {
    /// Number of controllers. Each serves the packages nearest to it.
    #[schemars(range(min = 1, max = 1_024))]
    pub count: u32,
    /// Time between two requests taken by a controller's dispatcher.
    pub dispatch: Duration,
    /// Latency of a request in the controller; requests overlap.
    pub latency: Duration,
}

/// Helper thread that merges log blocks, one per merge (ZnG, section IV-A). The GPU's multiprocessors execute such
/// threads in turn; a server's cores do so without cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectHelper {
    /// Instructions of the helper thread before each page that a merge moves; if zero, the page is moved at once.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "instructions"))]
    pub page: u32,
    /// Instructions of the helper thread before each block that a merge erases; if zero, the block is erased at once.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "instructions"))]
    pub block: u32,
}

/// Redirection of pages to the shared cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectRedirect {
    /// Writes of a package between two evaluations by the thrashing checker.
    #[schemars(range(min = 1))]
    pub window: u32,
    /// Share of these writes that evict a page from the registers, above which the registers thrash.
    pub threshold: Share,
}

config::policies! {
    /// Part of a page read from the array that goes to the controller.
    #[derive(Copy, Eq)]
    pub family Transfer: choice {
        /// The whole page.
        default page,
        /// The requested lines.
        lines,
    }
}

impl DirectSpec {
    /// Checks that the spec can be built; keys are relative to the part's table.
    ///
    /// # Errors
    /// Counts of zero or above the limits, counts that do not divide, too few blocks for the log blocks and a merge,
    /// more controllers than packages, or a mesh whose number of routers differs from the number of packages.
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
                        "{} rows of {} routers for {packages} packages; a mesh needs one router per package",
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
                    let what = format!("{} ports a package; a bus reaches one port", self.geometry.ports);
                    return Err(SpecError::new("geometry.ports", what));
                }
                self.geometry.channels
            }
        };
        if count > places {
            let what = format!("{count} controllers; the flash network has room for at most {places}");
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
