//! Where things lie in the DRAM.
//!
//! The rows behind a controller are, in this order: one for each set, the miss status row, rows of page tables. Pages go
//! to the controllers in turn. The last column of a set's row holds its tags.

use super::spec::{COLUMN, DramCacheSpec, Partition, TAGS};
use proto::memory::{Lines, PAGE};
use std::ops::Range;

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
