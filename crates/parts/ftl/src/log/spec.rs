//! A map of blocks with logs, as a user writes it.

use config::SpecError;
use config::units::{Duration, Share};
use nand::planes::spec::DirectGeometry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl DirectMapping {
    /// Blocks of a plane that have to be there: data, a log block for each share, and what a merge writes to.
    fn needed(&self) -> u64 {
        let (data, share) = (u64::from(self.data_blocks), u64::from(self.log_share));
        data + data / share + share
    }

    /// Whether it can be built; keys relative to the table of the part.
    ///
    /// # Errors
    /// The key at fault, with what is allowed.
    pub fn check(&self, geometry: &DirectGeometry) -> Result<(), SpecError> {
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
