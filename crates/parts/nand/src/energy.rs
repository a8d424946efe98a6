//! What flash spends, as a user writes it.

use config::StatePower;
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

/// What is spent by flash of which some pages hold one bit a cell: energies by page type, and of those pages.
#[derive(Clone, Debug)]
pub struct FlashCosts {
    /// Of all but those pages.
    pub spec: FlashEnergySpec,
    /// Energies of a page that holds one bit a cell: read, programmed. `None` if there is none.
    pub slc: Option<[Energy; 2]>,
}

impl From<FlashEnergySpec> for FlashCosts {
    fn from(spec: FlashEnergySpec) -> FlashCosts {
        FlashCosts { spec, slc: None }
    }
}
