//! Sets of pages as ranges.

use std::collections::BTreeMap;

/// A set of pages.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// End by begin; neither overlapping nor adjacent.
    ends: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Whether there is no page.
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The first range that ends behind a page, cut to begin there at the earliest: begin and end.
    pub(super) fn next(&self, page: u64) -> Option<(u64, u64)> {
        let covering = self.ends.range(..=page).next_back().filter(|(_, end)| **end > page);
        covering
            .map(|(_, end)| (page, *end))
            .or_else(|| self.ends.range(page..).next().map(|(b, e)| (*b, *e)))
    }

    /// Adds pages, none of which is in the set.
    pub(super) fn insert(&mut self, begin: u64, end: u64) {
        let end = self.ends.remove(&end).unwrap_or(end);
        match self.ends.range_mut(..begin).next_back() {
            Some((_, left)) if *left == begin => *left = end,
            _ => _ = self.ends.insert(begin, end),
        }
    }

    /// Removes what there is of a range; how many pages that was.
    pub(super) fn remove(&mut self, begin: u64, end: u64) -> u64 {
        let mut removed = 0;
        while let Some((from, to)) = self.next(begin).filter(|(from, _)| *from < end) {
            let start = *self.ends.range(..=from).next_back().expect("a range covers it").0;
            self.ends.remove(&start);
            if start < from {
                self.ends.insert(start, from);
            }
            if to > end {
                self.ends.insert(end, to);
            }
            removed += to.min(end) - from;
        }
        removed
    }
}
