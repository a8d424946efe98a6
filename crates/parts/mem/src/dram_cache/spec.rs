//! A DRAM cache as a user writes it.

use super::admit::PageAdmission;
use crate::cache::replace::ReplacementPolicy;
use crate::dram::DramSpec;
use config::SpecError;
use config::schema::product;
use config::units::{Duration, Frequency};
use engine::Time;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a column: what one access to the DRAM moves (AstriFlash's line). The lines of the caches in front are one or
/// several.
pub(super) const COLUMN: u64 = 64;
/// Bytes of the tags of a set: one column.
pub(super) const TAGS: u64 = COLUMN;
/// Ways, or entries of the miss status row, that a column has room for: 8 B each.
const ENTRIES: u32 = 8;

/// DRAM that is a cache of pages over flash. A row of DRAM holds a set: its pages, and a column with their tags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [
    product(1 << 28, "pages of a DRAM cache", &["dram.controllers", "sets", "ways"]),
]))]
pub struct DramCacheSpec {
    /// Sets behind each controller.
    #[schemars(range(min = 1))]
    pub sets: u32,
    /// Ways of a set, at most 8; a way holds a page of 4 KiB.
    #[schemars(range(min = 1, max = 8))]
    pub ways: u32,
    /// Which page of a set makes room.
    pub replacement: ReplacementPolicy,
    /// Which missing pages are put into the cache.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "always"))]
    pub admission: PageAdmission,
    /// The controllers that serve accesses.
    pub frontside: FrontsideSpec,
    /// The controllers that serve misses.
    pub backside: BacksideSpec,
    /// The miss status row of each controller.
    pub misses: MissSpec,
    /// Pages of each controller that may be on their way out: copied, or being written to flash.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub evict_buffer: u32,
    /// Where page tables lie.
    pub partition: Partition,
    /// What is behind the cache.
    pub backing: Backing,
    /// The DRAM. A row has the bytes of the ways of a set and 64 B, and controllers change with every row.
    pub dram: DramSpec,
}

/// Whether a spec need not say it.
fn is_default(admission: &PageAdmission) -> bool {
    *admission == PageAdmission::default()
}

/// A controller that looks up tags and serves hits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrontsideSpec {
    /// Its clock.
    pub clock: Frequency,
    /// Cycles of each thing it does: opening a row, accessing a column, sending an answer, sending a miss on.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "cycles"))]
    pub command: u32,
    /// Misses that may wait for the backside controller. One more holds up all accesses behind it.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub queue: u32,
}

/// A controller that brings pages from flash and takes others back. It is programmable: it does one thing after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BacksideSpec {
    /// Its clock.
    pub clock: Frequency,
    /// Cycles of each command to DRAM or to flash.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "cycles"))]
    pub command: u32,
    /// Columns of 64 B that one command to DRAM copies into a page or out of it. Accesses wait until it is through.
    #[schemars(range(min = 1, max = 64))]
    pub burst: u32,
}

/// A miss status row: a table, in DRAM, of the pages that are on their way from flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MissSpec {
    /// Sets; each is a column of 64 B of the row.
    #[schemars(range(min = 1, max = 1_024))]
    pub sets: u32,
    /// Entries of a set, 8 B each: at most 8.
    #[schemars(range(min = 1, max = 8))]
    pub ways: u32,
}

config::policies! {
    /// Where page tables lie.
    #[derive(Copy, Eq)]
    pub family Partition: choice {
        /// In rows of their own, which have no tags: they never miss.
        default flat,
        /// In the cache, like data: AstriFlash-noDP.
        none,
        /// In flash, and in the cache only until they have been read: what AstriFlash-noDP costs if its tables find no room among the data.
        uncached,
    }
}

config::policies! {
    /// What is behind a DRAM cache.
    pub family Backing: choice {
        /// A flash device.
        default device,
        /// Fixed times; any number of pages move at the same time.
        fixed(Fixed),
        /// Another memory: whole pages, by commands for all their lines. Chosen: AstriFlash has a drive there; flash that is
        /// memory, as ZnG's, can stand in its place.
        memory,
    }
}

/// Parameters of `fixed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Fixed {
    /// From the request for a page to the page.
    pub read: Duration,
    /// Time to take a page.
    pub write: Duration,
}

impl Default for Fixed {
    /// AstriFlash, Table I.
    fn default() -> Fixed {
        Fixed { read: Duration::new(Time::from_us(50)), write: Duration::new(Time::from_us(100)) }
    }
}

impl DramCacheSpec {
    /// Bytes of pages behind all controllers.
    pub fn capacity(&self) -> u64 {
        self.pages() * PAGE
    }

    /// Pages behind all controllers.
    pub fn pages(&self) -> u64 {
        u64::from(self.dram.controllers) * u64::from(self.sets) * u64::from(self.ways)
    }

    /// Whether it can be built.
    ///
    /// # Errors
    /// The first value that does not fit; its key is relative to this table.
    pub fn check(&self) -> Result<(), SpecError> {
        let counts = [
            ("sets", u64::from(self.sets)),
            ("ways", self.ways.into()),
            ("frontside.clock", self.frontside.clock.hz()),
            ("frontside.command", self.frontside.command.into()),
            ("frontside.queue", self.frontside.queue.into()),
            ("backside.clock", self.backside.clock.hz()),
            ("backside.command", self.backside.command.into()),
            ("backside.burst", self.backside.burst.into()),
            ("misses.sets", self.misses.sets.into()),
            ("misses.ways", self.misses.ways.into()),
            ("evict_buffer", self.evict_buffer.into()),
        ];
        for (key, value) in counts {
            SpecError::positive(key, value)?;
        }
        for (key, ways) in [("ways", self.ways), ("misses.ways", self.misses.ways)] {
            if ways > ENTRIES {
                let what =
                    format!("{ways} ways of 8 B are more than a column of {COLUMN} B, which has {ENTRIES}");
                return Err(SpecError::new(key, what));
            }
        }
        if u64::from(self.sets) * u64::from(self.ways) > 1 << 28 {
            let what =
                format!("{} sets of {} ways are more than 2^28 pages a controller", self.sets, self.ways);
            return Err(SpecError::new("sets", what));
        }
        if u64::from(self.backside.burst) > PAGE / COLUMN {
            let what = format!("{} columns are more than a page of {}", self.backside.burst, PAGE / COLUMN);
            return Err(SpecError::new("backside.burst", what));
        }
        self.dram.check(COLUMN).map_err(|error| error.within("dram"))?;
        self.check_rows()
    }

    /// Whether the DRAM has the rows that sets need.
    fn check_rows(&self) -> Result<(), SpecError> {
        let (row, need) = (self.dram.banks.row, u64::from(self.ways) * PAGE + TAGS);
        if row.get() != need {
            let what = format!(
                "a row of {row} does not hold one set: {} pages of {PAGE} B and {TAGS} B of tags are {need} B",
                self.ways
            );
            return Err(SpecError::new("dram.banks.row", what).help(format!("give `row = \"{need}B\"`")));
        }
        if self.dram.interleave != row {
            let what = format!(
                "controllers change every {}, but a set lies in one row of {need} B behind one controller",
                self.dram.interleave
            );
            return Err(
                SpecError::new("dram.interleave", what).help(format!("give `interleave = \"{need}B\"`"))
            );
        }
        let columns = need / COLUMN;
        if u64::from(self.misses.sets) > columns {
            let what = format!(
                "{} sets are more than the {columns} columns of {COLUMN} B of one row",
                self.misses.sets
            );
            return Err(SpecError::new("misses.sets", what));
        }
        Ok(())
    }
}
