//! What a user writes about a file system.

use super::layout::{BLOCK, blocks_of};
use config::SpecError;
use config::units::{Bytes, Duration};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

config::policies! {
    /// What the journal of a file system holds (mount option `data` of ext4).
    #[derive(Copy, Eq)]
    pub family JournalMode: choice {
        /// Metadata; data that a transaction makes visible are on the drive before it commits.
        default ordered,
        /// Metadata; data reach the drive in any order, so that after a cut of power a file may show what was in its blocks before.
        writeback,
        /// Metadata and data. There is no delayed allocation then.
        journal,
        /// Nothing: there is no journal, and a check of the whole file system after a cut of power.
        none,
    }
}

/// A file system: ext4 as Linux 6.1 mounts what `mke2fs` has made, with the names and defaults of its mount options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FsSpec {
    /// What its journal holds.
    pub data: JournalMode,
    /// Whether blocks are allocated when pages are written back, and not when they are written to the page cache.
    pub delalloc: bool,
    /// Whether new blocks are marked as unwritten until their data are on the drive. Without delayed allocation they never are.
    pub dioread_nolock: bool,
    /// Whether a file that was cut to nothing and written anew is written back when it is closed.
    pub auto_da_alloc: bool,
    /// A transaction commits after so long at the latest.
    #[schemars(extend("x-minimum" = "1ms", "x-maximum" = "900s"))]
    pub commit: Duration,
    /// Whether commits and `fsync` flush the drive's cache.
    pub barrier: bool,
    /// Size of the journal; without it, that of `mke2fs` for a file system of this size.
    #[schemars(extend("x-minimum" = "4MiB", "x-maximum" = "40GiB"))]
    pub journal_size: Option<Bytes>,
}

impl Default for FsSpec {
    fn default() -> FsSpec {
        FsSpec {
            data: JournalMode::ordered,
            delalloc: true,
            dioread_nolock: true,
            auto_da_alloc: true,
            commit: Duration::new(Time::from_s(5)),
            barrier: true,
            journal_size: None,
        }
    }
}

/// The fewest blocks of a journal (`JBD2_MIN_JOURNAL_BLOCKS`).
const LEAST_JOURNAL: u64 = 1024;

impl FsSpec {
    /// Blocks of the journal on a drive of so many blocks, if there is one.
    ///
    /// # Errors
    /// A journal that is too small, or larger than half of the drive.
    pub(super) fn journal_blocks(&self, blocks: u64) -> Result<u64, SpecError> {
        if self.data == JournalMode::none {
            return Ok(0);
        }
        let wanted = self.journal_size.map_or(default_journal_blocks(blocks), |size| blocks_of(size.get()));
        if wanted < LEAST_JOURNAL {
            let what = format!("a journal of {wanted} blocks of 4 KiB is smaller than {LEAST_JOURNAL}");
            return Err(SpecError::new("journal_size", what).help("give it 4MiB or more"));
        }
        // `mke2fs` refuses a journal of more than half of the file system.
        if wanted > blocks / 2 {
            let what = format!("a journal of {wanted} blocks takes more than half of {blocks}");
            return Err(
                SpecError::new("journal_size", what).help("make the journal smaller or the drive larger")
            );
        }
        u32::try_from(wanted).map_err(|_| {
            SpecError::new("journal_size", format!("{wanted} blocks of {BLOCK} B are too many"))
        })?;
        Ok(wanted)
    }
}

/// Blocks of a journal by default (`ext2fs_default_journal_size` of e2fsprogs).
fn default_journal_blocks(blocks: u64) -> u64 {
    const STEPS: [(u64, u64); 8] = [
        (32 << 10, 1 << 10),
        (256 << 10, 4 << 10),
        (512 << 10, 8 << 10),
        (4 << 20, 16 << 10),
        (8 << 20, 32 << 10),
        (16 << 20, 64 << 10),
        (32 << 20, 128 << 10),
        (u64::MAX, 256 << 10),
    ];
    STEPS.iter().find(|(below, _)| blocks < *below).map_or(256 << 10, |(_, journal)| *journal)
}
