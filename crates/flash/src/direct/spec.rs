//! Flash as memory, as a user writes it.

use config::SpecError;
use config::schema::product;
use config::units::{Bytes, Duration, Share, TransferRate};
use kernel::Time;
use net::mesh::MeshSpec;
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
}

/// How many of everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectGeometry {
    /// Channels.
    #[schemars(range(min = 1))]
    pub channels: u32,
    /// Packages a channel.
    #[schemars(range(min = 1))]
    pub packages: u32,
    /// I/O ports a package. Planes take turns at them; with a bus there is one.
    #[schemars(range(min = 1))]
    pub ports: u32,
    /// Dies a package.
    #[schemars(range(min = 1))]
    pub dies: u32,
    /// Planes a die.
    #[schemars(range(min = 1))]
    pub planes: u32,
    /// Blocks a plane: data blocks, log blocks, and free ones that merges write to.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub blocks: u32,
    /// Pages a block.
    #[schemars(range(min = 1, max = 4_096))]
    pub pages: u32,
}

/// How addresses become flash pages: blocks are mapped by a table, pages written since by their log block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectMapping {
    /// Data blocks that one entry of the block table covers: one in each of as many planes, over which its pages are
    /// striped, channel first.
    #[schemars(range(min = 1))]
    pub group: u32,
    /// Data blocks a plane: what is addressed. The rest of the plane are log blocks and free blocks.
    #[schemars(range(min = 1))]
    pub data_blocks: u32,
    /// Data blocks of a plane that share a log block.
    #[schemars(range(min = 1, max = 16))]
    pub log_share: u32,
    /// What the search of the log's page table in the row decoder adds to an array read.
    pub search: Duration,
    /// Share of the pages of log blocks that are programmed at the start, to whole pages: one value for each application in
    /// turn, the last of them for all further ones. Log blocks hold copies of the application's pages, drawn at random.
    pub log_filled: Vec<Share>,
}

/// The arrays of the planes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectArray {
    /// Page read time (tR).
    pub read: Duration,
    /// Page program time (tPROG).
    pub program: Duration,
    /// Block erase time (tBERS).
    pub erase: Duration,
    /// Which of the operations that wait for a plane goes next.
    pub order: ArrayOrder,
    /// Whether a read of a page that another read is fetching shares that fetch.
    pub merge_reads: bool,
}

/// The registers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectRegisters {
    /// Registers of 4 KiB a plane: one is the data register of the array, the others gather writes.
    #[schemars(range(max = 1_024))]
    pub count: u32,
    /// Which registers a page may use.
    pub network: RegisterNetwork,
    /// Share of the registers that a page may use, rounded down, that is kept free by having the oldest pages leave before
    /// room is needed.
    pub reserve: Share,
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
    /// Which of the operations that wait for a plane goes next. The page operations of a merge come after all others.
    #[derive(Copy, Eq)]
    pub family ArrayOrder: choice {
        /// First come, first served.
        default fifo,
        /// Reads before programs, which take far longer.
        reads_first,
    }
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

config::policies! {
    /// Which registers a dirty page may use, and what it costs to program it from a register of another plane.
    ///
    /// With all but `private` the registers of a package are one fully associative cache with LRU replacement.
    #[derive(Eq)]
    pub family RegisterNetwork: choice {
        /// Those of its own plane.
        default private,
        /// All of its package. The controller copies a page to the data register of its plane over the flash network.
        ///
        /// SWnet of ZnG: the page goes out through the package's port to the controller and back.
        swnet,
        /// All of its package; every register reaches every plane at once.
        ///
        /// FCnet of ZnG: a fully connected network.
        fcnet,
        /// All of its package. A network inside the package moves a page to the data register of its plane.
        ///
        /// NiF of ZnG: the registers of a plane share a bus to that network, so one page at a time leaves them; a plane's
        /// data register takes one page at a time; moves between different planes go on side by side.
        nif(NifSpec),
    }
}

/// The network inside a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NifSpec {
    /// Bytes that it moves in one transfer.
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "1MiB"))]
    pub width: Bytes,
    /// Transfers a second.
    pub rate: TransferRate,
}

impl Default for NifSpec {
    /// ZnG's Table I; the rate, which it does not give, is that of the interface.
    fn default() -> NifSpec {
        NifSpec { width: Bytes::new(8), rate: TransferRate::new(800_000_000) }
    }
}

config::policies! {
    /// What connects controllers and packages.
    pub family FlashNetwork: choice {
        /// A mesh with a router at each package; ports of packages and controllers are as wide as its links.
        ///
        /// As many controllers as packages stand at the routers of their packages. Fewer are spread evenly over the
        /// routers, and packages go to the nearest one.
        default mesh(MeshSpec),
        /// A bus for each channel, one transfer at a time in either direction.
        bus(BusSpec),
    }
}

/// Channels as buses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BusSpec {
    /// Bytes that a bus moves in one transfer.
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "1MiB"))]
    pub width: Bytes,
    /// Transfers a second.
    pub rate: TransferRate,
}

impl Default for BusSpec {
    /// An ONFI channel as ZnG has it in section V-A.
    fn default() -> BusSpec {
        BusSpec { width: Bytes::new(1), rate: TransferRate::new(800_000_000) }
    }
}

impl DirectGeometry {
    /// Packages of all channels.
    pub(super) fn all_packages(&self) -> u32 {
        self.channels * self.packages
    }

    /// Planes of a package.
    pub(super) fn package_planes(&self) -> u32 {
        self.dies * self.planes
    }

    /// Planes of all packages.
    pub(super) fn all_planes(&self) -> u32 {
        self.all_packages() * self.package_planes()
    }

    fn check(&self) -> Result<(), SpecError> {
        let counts = [
            ("geometry.channels", self.channels),
            ("geometry.packages", self.packages),
            ("geometry.ports", self.ports),
            ("geometry.dies", self.dies),
            ("geometry.planes", self.planes),
            ("geometry.blocks", self.blocks),
            ("geometry.pages", self.pages),
        ];
        for (key, count) in counts {
            SpecError::positive(key, count.into())?;
        }
        let product = |counts: &[u32]| counts.iter().try_fold(1u32, |n, x| n.checked_mul(*x));
        if product(&[self.channels, self.packages]).is_none_or(|n| n > 1 << 16) {
            return Err(SpecError::new("geometry.packages", "more than 65,536 packages"));
        }
        let planes = product(&[self.channels, self.packages, self.dies, self.planes]);
        let Some(planes) = planes.filter(|n| *n <= 1 << 20) else {
            return Err(SpecError::new("geometry.planes", "more than 2^20 planes in all"));
        };
        if u64::from(planes) * u64::from(self.blocks) > 1 << 34 || self.blocks > 1 << 20 {
            return Err(SpecError::new(
                "geometry.blocks",
                "more than 2^34 blocks in all, or 2^20 in a plane",
            ));
        }
        if self.pages > 1 << 12 {
            let what = format!("{} pages a block; at most 4,096 are modelled", self.pages);
            return Err(SpecError::new("geometry.pages", what));
        }
        Ok(())
    }
}

impl DirectMapping {
    /// Blocks of a plane that have to be there: data, a log block for each share, and what a merge writes to.
    fn needed(&self) -> u64 {
        let (data, share) = (u64::from(self.data_blocks), u64::from(self.log_share));
        data + data / share + share
    }

    fn check(&self, geometry: &DirectGeometry) -> Result<(), SpecError> {
        SpecError::positive("mapping.group", self.group.into())?;
        SpecError::positive("mapping.data_blocks", self.data_blocks.into())?;
        SpecError::positive("mapping.log_share", self.log_share.into())?;
        let planes = geometry.all_planes();
        if !planes.is_multiple_of(self.group) {
            let what = format!(
                "{planes} planes are no whole number of groups of {}: a group has one block in each of its planes",
                self.group
            );
            return Err(SpecError::new("mapping.group", what));
        }
        if !self.data_blocks.is_multiple_of(self.log_share) {
            let what = format!(
                "{} data blocks a plane are no whole number of shares of {}",
                self.data_blocks, self.log_share
            );
            return Err(SpecError::new("mapping.data_blocks", what));
        }
        if self.log_filled.is_empty() {
            return Err(SpecError::new("mapping.log_filled", "no share; one holds for all applications"));
        }
        if self.log_share > 16 {
            let what = format!("{} data blocks share a log block; at most 16 are modelled", self.log_share);
            return Err(SpecError::new("mapping.log_share", what));
        }
        if self.needed() > geometry.blocks.into() {
            let share = u64::from(self.log_share);
            let most = u64::from(geometry.blocks).saturating_sub(share) / (share + 1) * share;
            let what = format!(
                "{} data blocks need {} log blocks and {share} free ones for a merge: {} of {} blocks",
                self.data_blocks,
                self.data_blocks / self.log_share,
                self.needed(),
                geometry.blocks
            );
            return Err(
                SpecError::new("mapping.data_blocks", what).help(format!("at most {most} data blocks fit"))
            );
        }
        Ok(())
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
        if self.registers.count < 2 {
            let what = format!(
                "{} registers a plane; the data register and one for writes are 2",
                self.registers.count
            );
            return Err(SpecError::new("registers.count", what));
        }
        if self.registers.count > 1 << 10 {
            let what = format!("{} registers a plane; at most 1,024 are modelled", self.registers.count);
            return Err(SpecError::new("registers.count", what));
        }
        if let RegisterNetwork::nif(nif) = &self.registers.network {
            SpecError::positive("registers.network.nif.width", nif.width.get())?;
            SpecError::positive("registers.network.nif.rate", nif.rate.per_s())?;
        }
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

impl DirectArray {
    fn check(&self) -> Result<(), SpecError> {
        for (key, time) in [("array.read", self.read), ("array.program", self.program)] {
            if time.time() == Time::ZERO {
                return Err(SpecError::new(key, format!("`{key}` is zero")));
            }
        }
        Ok(())
    }
}
