//! Registers that gather writes, as a user writes them.

use config::SpecError;
use config::units::{Bytes, Share, TransferRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl DirectRegisters {
    /// Whether it can be built; keys relative to the part's table.
    pub fn check(&self) -> Result<(), SpecError> {
        self.network.check(self.count)
    }
}

impl RegisterNetwork {
    /// Whether it can be built with so many registers a plane; keys relative to the part's table.
    pub fn check(&self, count: u32) -> Result<(), SpecError> {
        if count < 2 {
            let what = format!("{count} registers a plane; the data register and one for writes are 2");
            return Err(SpecError::new("registers.count", what));
        }
        if count > 1 << 10 {
            let what = format!("{count} registers a plane; at most 1,024 are modelled");
            return Err(SpecError::new("registers.count", what));
        }
        if let RegisterNetwork::nif(nif) = self {
            SpecError::positive("registers.network.nif.width", nif.width.get())?;
            SpecError::positive("registers.network.nif.rate", nif.rate.per_s())?;
        }
        Ok(())
    }
}
