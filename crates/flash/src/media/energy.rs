//! What flash spends, as a user writes it.

use config::energy::StatePower;
use config::units::Energy;
use net::energy::LinkEnergySpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What flash spends.
///
/// An operation's energy is what its array takes beyond the power of a die at work. Where all is known of an operation is its
/// whole energy, as a current that was measured at the supply gives it, `die.busy` is zero: the operation has it already.
/// Commands, addresses and status reads cost nothing; a suspended operation costs what it costs without.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlashEnergySpec {
    /// Energy of a page that is read from its array, by page type, lowest bit first; one value for all types.
    pub read: Vec<Energy>,
    /// Energy of a page that is programmed, by page type, lowest bit first; one value for all. With one-shot and two-pass
    /// programming, one value: a word line, or one pass over it.
    pub program: Vec<Energy>,
    /// Energy of a block that is erased, in one plane.
    pub erase: Energy,
    /// Energies of pages that hold one bit a cell, where there is a cache of them (`ftl.slc_cache`); left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc: Option<SlcEnergySpec>,
    /// Energy of a byte of data on its way between a controller and a die, drivers at both ends.
    pub transfer: Energy,
    /// Power of each die, from a command to the end of its data or not.
    pub die: StatePower,
    /// Power of all controllers together, with the memory that they buffer in and whatever else is on: at work while there is a
    /// command inside or a die at work.
    pub controller: StatePower,
    /// The link to whoever uses the flash.
    pub link: LinkEnergySpec,
}

/// What pages spend that hold one bit a cell.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcEnergySpec {
    /// Energy of a page that is read from its array.
    pub read: Energy,
    /// Energy of a page that is programmed.
    pub program: Energy,
}
