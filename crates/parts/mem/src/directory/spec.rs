//! A directory as a user writes it.

use config::SpecError;
use config::units::Frequency;
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The directory at the tiles of a shared cache: which first-level caches have which lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectorySpec {
    /// Clock of the directory.
    pub clock: Frequency,
    /// Cycles of a look-up. One can begin in every cycle; zero if it is done while the tags of the shared cache are read.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub latency: u32,
}

impl DirectorySpec {
    /// Whether it can be built for so many cores.
    ///
    /// # Errors
    /// A clock of zero; no core, or more cores than the bits of a line's entry. Keys are relative to this table.
    pub fn check(&self, cores: u16) -> Result<(), SpecError> {
        SpecError::positive("clock", self.clock.hz())?;
        if !(1..=64).contains(&cores) {
            let what = format!("{cores} cores; an entry of the directory has a bit for each of 1 to 64");
            return Err(SpecError::new("cores", what));
        }
        Ok(())
    }

    /// The time of a look-up.
    pub(super) fn look_up(&self) -> Time {
        Time::period(self.clock.hz()).times(self.latency.into())
    }
}
