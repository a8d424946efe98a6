//! Planes behind a network, as a user writes them.

use crate::dies::sched::Scheduling;
use crate::numbers::Packages;
use config::SpecError;
use config::units::{Bytes, Duration, TransferRate};
use engine::Time;
use net::mesh::MeshSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// Which of the operations that wait for a plane goes next: reads are host reads, programs host programs. The page
    /// operations of a merge come after all others.
    pub scheduler: Scheduling,
    /// Whether a read of a page that another read is fetching shares that fetch.
    pub merge_reads: bool,
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
    pub fn all_packages(&self) -> u32 {
        self.channels * self.packages
    }

    /// Planes of a package.
    pub fn package_planes(&self) -> u32 {
        self.dies * self.planes
    }

    /// The packages.
    pub fn packages(&self) -> Packages {
        Packages::new(self.all_packages(), self.package_planes())
    }

    /// Planes of all packages.
    pub fn all_planes(&self) -> u32 {
        self.all_packages() * self.package_planes()
    }

    /// Whether it can be built; keys relative to the table of the part.
    ///
    /// # Errors
    /// The key at fault, with what is allowed.
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

impl DirectArray {
    /// Whether it can be built; keys relative to the table of the part.
    ///
    /// # Errors
    /// The key at fault, with what is allowed.
    pub fn check(&self) -> Result<(), SpecError> {
        for (key, time) in [("array.read", self.read), ("array.program", self.program)] {
            if time.time() == Time::ZERO {
                return Err(SpecError::new(key, format!("`{key}` is zero")));
            }
        }
        if self.scheduler.build(&()).holds_line() {
            let what = "planes behind a network share no channel on which operations could start in order of arrival";
            return Err(SpecError::new("array.scheduler", what)
                .help("`oldest` is the order of arrival at each plane"));
        }
        Ok(())
    }
}
