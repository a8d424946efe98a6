//! A placement as a user writes it.

use super::policy::PlacementPolicy;
use super::targets::Targets;
use config::SpecError;
use config::units::{Bytes, Duration};
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Memories that a placement can have behind it.
const TARGETS: usize = 255;
/// Bytes of all of them: pages are counted in 31 bits.
const MOST: u64 = PAGE << 31;

/// Several memories behind one shared cache: which page lies in which of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacementSpec {
    /// Bytes of each memory, in the order in which they are named: whole pages of 4 KiB, and at most 8 TiB together. A memory may be
    /// larger than what is used of it.
    pub sizes: Vec<Bytes>,
    /// Look-up of a page in the table, for each command. Any number are looked up at the same time.
    pub latency: Duration,
    /// Which page lies where.
    pub policy: PlacementPolicy,
}

impl PlacementSpec {
    /// Whether it can be built.
    ///
    /// # Errors
    /// The first value that does not fit; its key is relative to this table.
    pub fn check(&self) -> Result<(), SpecError> {
        self.check_sizes()?;
        self.policy.build(&self.targets()).check()
    }

    fn check_sizes(&self) -> Result<(), SpecError> {
        let count = self.sizes.len();
        if count == 0 || count > TARGETS {
            let what = format!("{count} sizes; each memory has one, and there are 1 to {TARGETS} of them");
            return Err(SpecError::new("sizes", what));
        }
        if let Some(size) = self.sizes.iter().find(|size| size.get() == 0 || !size.get().is_multiple_of(PAGE))
        {
            let what = format!("{size} is not a number of whole pages of {PAGE} B");
            return Err(SpecError::new("sizes", what));
        }
        let sum = self.sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(size.get()));
        if sum > MOST {
            let what = format!("{} are more than a table of pages holds", Bytes::new(sum));
            return Err(
                SpecError::new("sizes", what).help(format!("give at most {} in all", Bytes::new(MOST)))
            );
        }
        Ok(())
    }

    /// Its memories, in pages.
    pub(super) fn targets(&self) -> Targets {
        Targets::new(self.sizes.iter().map(|size| (size.get() / PAGE) as u32))
    }
}
