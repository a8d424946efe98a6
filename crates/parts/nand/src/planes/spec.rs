//! Planes behind a network, as specified by a user.

use crate::dies::sched::Scheduling;
use crate::numbers::Packages;
use config::SpecError;
use config::units::{Bytes, Duration, TransferRate};
use engine::Time;
use net::mesh::MeshSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts of channels, packages, dies, planes, blocks and pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectGeometry {
    /// Number of channels.
    #[schemars(range(min = 1))]
    pub channels: u32,
    /// Packages per channel.
    #[schemars(range(min = 1))]
    pub packages: u32,
    /// I/O ports per package. Planes take turns at them; with a bus there is one.
    #[schemars(range(min = 1))]
    pub ports: u32,
    /// Dies per package.
    #[schemars(range(min = 1))]
    pub dies: u32,
    /// Planes per die.
    #[schemars(range(min = 1))]
    pub planes: u32,
    /// Blocks per plane: data blocks, log blocks, and free ones that merges write to.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub blocks: u32,
    /// Pages per block.
    #[schemars(range(min = 1, max = 4_096))]
    pub pages: u32,
}

/// Array timing and scheduling of the planes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectArray {
    /// Page read time (tR).
    pub read: Duration,
    /// Page program time (tPROG).
    pub program: Duration,
    /// Block erase time (tBERS).
    pub erase: Duration,
    /// Which of the operations that wait for a plane goes next: reads are host reads, programs host programs. The page
    /// operations of a merge come after all others.
    pub scheduler: Scheduling,
    /// If true, a read of a page that is already being fetched shares that fetch.
    pub merge_reads: bool,
}

config::policies! {
    /// Network between controllers and packages.
    pub family FlashNetwork: choice {
        /// Mesh with a router at each package; ports of packages and controllers are as wide as its links.
        ///
        /// If there are as many controllers as packages, each is at the router of its package. Fewer are spread evenly
        /// over the routers, and each package uses the nearest one.
        default mesh(MeshSpec),
        /// Bus for each channel, one transfer at a time in either direction.
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
    /// Transfers per second.
    pub rate: TransferRate,
}

impl Default for BusSpec {
    /// ONFI channel of ZnG, section V-A.
    fn default() -> BusSpec {
        BusSpec { width: Bytes::new(1), rate: TransferRate::new(800_000_000) }
    }
}

impl DirectGeometry {
    /// Returns the number of packages of all channels.
    pub fn all_packages(&self) -> u32 {
        self.channels * self.packages
    }

    /// Returns the number of planes per package.
    pub fn package_planes(&self) -> u32 {
        self.dies * self.planes
    }

    /// Returns the packages.
    pub fn packages(&self) -> Packages {
        Packages::new(self.all_packages(), self.package_planes())
    }

    /// Returns the number of planes of all packages.
    pub fn all_planes(&self) -> u32 {
        self.all_packages() * self.package_planes()
    }

    /// Checks that the planes can be built; keys are relative to the component's table.
    ///
    /// # Errors
    /// The key at fault, with the allowed values.
    pub fn check(&self) -> Result<(), SpecError> {
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
            return Err(SpecError::new("geometry.packages", "more than 65,536 packages in total"));
        }
        let planes = product(&[self.channels, self.packages, self.dies, self.planes]);
        let Some(planes) = planes.filter(|n| *n <= 1 << 20) else {
            return Err(SpecError::new("geometry.planes", "more than 2^20 planes in total"));
        };
        if u64::from(planes) * u64::from(self.blocks) > 1 << 34 || self.blocks > 1 << 20 {
            return Err(SpecError::new(
                "geometry.blocks",
                "more than 2^34 blocks in total, or more than 2^20 in a plane",
            ));
        }
        if self.pages > 1 << 12 {
            let what = format!("{} pages per block; at most 4,096 are modelled", self.pages);
            return Err(SpecError::new("geometry.pages", what));
        }
        Ok(())
    }
}

impl DirectArray {
    /// Checks that the planes can be built; keys are relative to the component's table.
    ///
    /// # Errors
    /// The key at fault, with the allowed values.
    pub fn check(&self) -> Result<(), SpecError> {
        for (key, time) in [("array.read", self.read), ("array.program", self.program)] {
            if time.time() == Time::ZERO {
                return Err(SpecError::new(key, format!("`{key}` is zero")));
            }
        }
        if self.scheduler.build(&()).holds_line() {
            let what = "this scheduler needs a shared channel, but planes behind a network have none";
            return Err(SpecError::new("array.scheduler", what)
                .help("use `oldest` for the order of arrival at each plane"));
        }
        Ok(())
    }
}
