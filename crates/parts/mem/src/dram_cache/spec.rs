//! Spec of a DRAM cache.

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

/// Size of a column in bytes, the unit of one access to the DRAM (AstriFlash's line). A line of the caches in front has
/// one or several columns.
pub(super) const COLUMN: u64 = 64;
/// Size of the tags of a set in bytes: one column.
pub(super) const TAGS: u64 = COLUMN;
/// Ways, or entries of the miss status row, that fit in a column: 8 B each.
const ENTRIES: u32 = 8;

/// DRAM cache of pages over flash. A row of DRAM holds a set: its pages, and a column with their tags.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [
    product(1 << 28, "pages of a DRAM cache", &["dram.controllers", "sets", "ways"]),
]))]
pub struct DramCacheSpec {
    /// Sets of each controller.
    #[schemars(range(min = 1))]
    pub sets: u32,
    /// Associativity: ways per set, at most 8; a way holds a page of 4 KiB.
    #[schemars(range(min = 1, max = 8))]
    pub ways: u32,
    /// Replacement policy: the page of a set that is evicted.
    pub replacement: ReplacementPolicy,
    /// Admission policy for missing pages.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "always"))]
    pub admission: PageAdmission,
    /// Controllers that serve accesses.
    pub frontside: FrontsideSpec,
    /// Controllers that serve misses.
    pub backside: BacksideSpec,
    /// Miss status row of each controller.
    pub misses: MissSpec,
    /// Evict buffer: pages of each controller under eviction, being copied or written to flash.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub evict_buffer: u32,
    /// Location of page tables.
    pub partition: Partition,
    /// Backing store of the cache.
    pub backing: Backing,
    /// DRAM of the cache. A row has the bytes of the ways of a set plus 64 B, and controllers change with every row.
    pub dram: DramSpec,
}

/// Returns true if a spec may omit the admission policy.
fn is_default(admission: &PageAdmission) -> bool {
    *admission == PageAdmission::default()
}

/// Frontside controller: looks up tags and serves hits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrontsideSpec {
    /// Clock of the controller.
    pub clock: Frequency,
    /// Cycles of each operation: opening a row, accessing a column, sending an answer, forwarding a miss.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "cycles"))]
    pub command: u32,
    /// Misses that may wait for the backside controller. One more blocks all accesses behind it.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub queue: u32,
}

/// Backside controller: brings pages from flash and takes others back. It is programmable, and does one thing at a
/// time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BacksideSpec {
    /// Clock of the controller.
    pub clock: Frequency,
    /// Cycles of each command to DRAM or to flash.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "cycles"))]
    pub command: u32,
    /// Columns of 64 B that one DRAM command copies into or out of a page. Accesses wait until it is complete.
    #[schemars(range(min = 1, max = 64))]
    pub burst: u32,
}

/// Miss status row: a table, in DRAM, of the pages in flight from flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MissSpec {
    /// Number of sets; each is a column of 64 B of the row.
    #[schemars(range(min = 1, max = 1_024))]
    pub sets: u32,
    /// Entries per set, 8 B each: at most 8.
    #[schemars(range(min = 1, max = 8))]
    pub ways: u32,
}

config::policies! {
    /// Location of page tables.
    #[derive(Copy, Eq)]
    pub family Partition: choice {
        /// In separate rows without tags: page tables never miss.
        default flat,
        /// In the cache, like data: AstriFlash-noDP.
        none,
        /// In flash, and in the cache only until they have been read: the cost of AstriFlash-noDP if its tables find no
        /// room among the data.
        uncached,
    }
}

config::policies! {
    /// Backing store of a DRAM cache.
    pub family Backing: choice {
        /// A flash device.
        default device,
        /// Fixed times; any number of pages move concurrently.
        fixed(Fixed),
        /// A memory: whole pages, by commands for all their lines. Chosen: AstriFlash has a drive there; flash that is
        /// memory, such as ZnG's, can replace it.
        memory,
    }
}

/// Parameters of `fixed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Fixed {
    /// Time from the request for a page until its arrival.
    pub read: Duration,
    /// Time to write a page.
    pub write: Duration,
}

impl Default for Fixed {
    /// Returns the times of AstriFlash, Table I.
    fn default() -> Fixed {
        Fixed { read: Duration::new(Time::from_us(50)), write: Duration::new(Time::from_us(100)) }
    }
}

impl DramCacheSpec {
    /// Capacity of all controllers, in bytes.
    pub fn capacity(&self) -> u64 {
        self.pages() * PAGE
    }

    /// Capacity of all controllers, in pages.
    pub fn pages(&self) -> u64 {
        u64::from(self.dram.controllers) * u64::from(self.sets) * u64::from(self.ways)
    }

    /// Checks that the spec can be built.
    ///
    /// # Errors
    /// Returns the first invalid value; its key is relative to this table.
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
                    format!("{ways} ways of 8 B do not fit in a column of {COLUMN} B, which holds {ENTRIES}");
                return Err(SpecError::new(key, what));
            }
        }
        if u64::from(self.sets) * u64::from(self.ways) > 1 << 28 {
            let what = format!("{} sets of {} ways are above 2^28 pages a controller", self.sets, self.ways);
            return Err(SpecError::new("sets", what));
        }
        if u64::from(self.backside.burst) > PAGE / COLUMN {
            let what = format!("{} columns are more than a page has, {}", self.backside.burst, PAGE / COLUMN);
            return Err(SpecError::new("backside.burst", what));
        }
        self.dram.check(COLUMN).map_err(|error| error.within("dram"))?;
        self.check_rows()
    }

    /// Checks that the DRAM has the rows that sets need.
    fn check_rows(&self) -> Result<(), SpecError> {
        let (row, need) = (self.dram.banks.row, u64::from(self.ways) * PAGE + TAGS);
        if row.get() != need {
            let what = format!(
                "a row of {row} does not hold one set: {} pages of {PAGE} B and {TAGS} B of tags are {need} B",
                self.ways
            );
            return Err(SpecError::new("dram.banks.row", what).help(format!("set `row = \"{need}B\"`")));
        }
        if self.dram.interleave != row {
            let what = format!(
                "the interleave is {}, but a set is one row of {need} B behind one controller",
                self.dram.interleave
            );
            return Err(
                SpecError::new("dram.interleave", what).help(format!("set `interleave = \"{need}B\"`"))
            );
        }
        let columns = need / COLUMN;
        if u64::from(self.misses.sets) > columns {
            let what = format!(
                "{} sets do not fit in one row, which has {columns} columns of {COLUMN} B",
                self.misses.sets
            );
            return Err(SpecError::new("misses.sets", what));
        }
        Ok(())
    }
}

// Layout of the DRAM.
//
// The rows of a controller are, in this order: one for each set, the miss status row, rows of page tables. Pages are
// assigned to controllers round-robin. The last column of a set's row holds its tags.

/// Address layout of the DRAM.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    controllers: u64,
    sets: u64,
    ways: u64,
    miss_sets: u64,
    row: u64,
    /// Columns per line.
    line: u32,
    partition: Partition,
    /// Pages that hold page tables.
    tables: Range<u64>,
}

impl Layout {
    /// Creates the layout of a cache that passes its check.
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

    /// Location of page tables.
    pub(super) fn partition(&self) -> Partition {
        self.partition
    }

    /// Marks these physical addresses as page tables.
    pub(super) fn set_tables(&mut self, addresses: Range<u64>) {
        self.tables = addresses.start / PAGE..addresses.end.div_ceil(PAGE);
    }

    #[inline]
    fn is_table(&self, page: u64) -> bool {
        self.tables.contains(&(page / PAGE))
    }

    /// Returns true if a page leaves the cache as soon as it has been read.
    #[inline]
    pub(super) fn is_read_once(&self, page: u64) -> bool {
        self.partition == Partition::uncached && self.is_table(page)
    }

    /// Columns of a page that some of its lines occupy.
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

    /// Controller of a physical address.
    #[inline]
    pub(super) fn controller_of(&self, address: u64) -> u16 {
        (address / PAGE % self.controllers) as u16
    }

    /// Number of a page within its controller: its line number in the tags.
    #[inline]
    pub(super) fn line_of(&self, page: u64) -> u64 {
        page / PAGE / self.controllers
    }

    /// Page with a number within a controller.
    #[inline]
    pub(super) fn page_of(&self, controller: u16, line: u64) -> u64 {
        (line * self.controllers + u64::from(controller)) * PAGE
    }

    #[inline]
    fn row(&self, controller: u16, row: u64) -> u64 {
        (row * self.controllers + u64::from(controller)) * self.row
    }

    /// Address of the page in a place of the tags.
    #[inline]
    pub(super) fn way(&self, controller: u16, place: u32) -> u64 {
        let place = u64::from(place);
        self.row(controller, place / self.ways) + place % self.ways * PAGE
    }

    /// Address of the tags of a page's set.
    #[inline]
    pub(super) fn tags(&self, controller: u16, page: u64) -> u64 {
        self.row(controller, self.line_of(page) % self.sets) + self.ways * PAGE
    }

    /// Set of the miss status row that a page belongs to.
    #[inline]
    pub(super) fn miss_set(&self, page: u64) -> u64 {
        self.line_of(page) % self.miss_sets
    }

    /// Address of that set's column.
    #[inline]
    pub(super) fn misses(&self, controller: u16, page: u64) -> u64 {
        self.row(controller, self.sets) + self.miss_set(page) * COLUMN
    }

    /// Address of a page of page tables in its separate row; `None` for other pages.
    #[inline]
    pub(super) fn flat(&self, page: u64) -> Option<u64> {
        (self.partition == Partition::flat && self.is_table(page)).then(|| {
            let number = self.line_of(page) - self.tables.start / self.controllers;
            let row = self.sets + 1 + number / self.ways;
            self.row(self.controller_of(page), row) + number % self.ways * PAGE
        })
    }
}
