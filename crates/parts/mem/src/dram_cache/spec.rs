//! A DRAM cache as a user writes it.

use super::admit::PageAdmission;
use crate::cache::replace::ReplacementPolicy;
use crate::dram::DramSpec;
use config::SpecError;
use config::schema::product;
use config::units::{Duration, Frequency};
use engine::Time;
use proto::memory::{Lines, PAGE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

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

// Where things lie in the DRAM.
//
// The rows behind a controller are, in this order: one for each set, the miss status row, rows of page tables. Pages go
// to the controllers in turn. The last column of a set's row holds its tags.

/// Addresses of the DRAM.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    controllers: u64,
    sets: u64,
    ways: u64,
    miss_sets: u64,
    row: u64,
    /// Columns of a line.
    line: u32,
    partition: Partition,
    /// Pages of page tables.
    tables: Range<u64>,
}

impl Layout {
    /// The layout of a cache that passes its check.
    pub(super) fn new(spec: &DramCacheSpec, lines: Lines) -> Layout {
        Layout {
            controllers: spec.dram.controllers.into(),
            sets: spec.sets.into(),
            ways: spec.ways.into(),
            miss_sets: spec.misses.sets.into(),
            row: u64::from(spec.ways) * PAGE + TAGS,
            line: (lines.bytes() / COLUMN) as u32,
            partition: spec.partition,
            tables: 0..0,
        }
    }

    /// Where page tables lie.
    pub(super) fn partition(&self) -> Partition {
        self.partition
    }

    /// These physical addresses are page tables.
    pub(super) fn set_tables(&mut self, addresses: Range<u64>) {
        self.tables = addresses.start / PAGE..addresses.end.div_ceil(PAGE);
    }

    #[inline]
    fn is_table(&self, page: u64) -> bool {
        self.tables.contains(&(page / PAGE))
    }

    /// Whether a page leaves the cache as soon as it has been read.
    #[inline]
    pub(super) fn is_read_once(&self, page: u64) -> bool {
        self.partition == Partition::uncached && self.is_table(page)
    }

    /// The columns of a page that some of its lines are.
    #[inline]
    pub(super) fn columns(&self, lines: u64) -> u64 {
        if self.line == 1 {
            return lines;
        }
        let (mut left, mut columns) = (lines, 0);
        while left != 0 {
            columns |= ((1 << self.line) - 1) << (left.trailing_zeros() * self.line);
            left &= left - 1;
        }
        columns
    }

    /// The controller of a physical address.
    #[inline]
    pub(super) fn controller_of(&self, address: u64) -> u16 {
        (address / PAGE % self.controllers) as u16
    }

    /// Number of a page among those of its controller: the line that the tags know it as.
    #[inline]
    pub(super) fn line_of(&self, page: u64) -> u64 {
        page / PAGE / self.controllers
    }

    /// The page with a number among those of a controller.
    #[inline]
    pub(super) fn page_of(&self, controller: u16, line: u64) -> u64 {
        (line * self.controllers + u64::from(controller)) * PAGE
    }

    #[inline]
    fn row(&self, controller: u16, row: u64) -> u64 {
        (row * self.controllers + u64::from(controller)) * self.row
    }

    /// The page in a place of the tags.
    #[inline]
    pub(super) fn way(&self, controller: u16, place: u32) -> u64 {
        let place = u64::from(place);
        self.row(controller, place / self.ways) + place % self.ways * PAGE
    }

    /// The tags of the set of a page.
    #[inline]
    pub(super) fn tags(&self, controller: u16, page: u64) -> u64 {
        self.row(controller, self.line_of(page) % self.sets) + self.ways * PAGE
    }

    /// The set of the miss status row that a page belongs to.
    #[inline]
    pub(super) fn miss_set(&self, page: u64) -> u64 {
        self.line_of(page) % self.miss_sets
    }

    /// That set's column.
    #[inline]
    pub(super) fn misses(&self, controller: u16, page: u64) -> u64 {
        self.row(controller, self.sets) + self.miss_set(page) * COLUMN
    }

    /// Where a page lies that is no data, if it is one.
    #[inline]
    pub(super) fn flat(&self, page: u64) -> Option<u64> {
        (self.partition == Partition::flat && self.is_table(page)).then(|| {
            let number = self.line_of(page) - self.tables.start / self.controllers;
            let row = self.sets + 1 + number / self.ways;
            self.row(self.controller_of(page), row) + number % self.ways * PAGE
        })
    }
}
