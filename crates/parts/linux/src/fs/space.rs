//! Free blocks of a file system as runs, and the search among them by group, as the buddies of `fs/ext4/mballoc.c` answer it.

use super::layout::{GROUP, group_of};
use std::collections::BTreeMap;

/// The largest buddy: 2^13 blocks (`MB_NUM_ORDERS` less one, with blocks of 4 KiB).
const LARGEST_ORDER: u32 = 13;
/// Free runs that a search looks at for the longest, where none is long enough (`MB_DEFAULT_MAX_TO_SCAN`).
const MOST_LOOKED_AT: usize = 200;

/// Free blocks. Runs may cross the bounds of groups, what a search returns never does.
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// Length by first block.
    runs: BTreeMap<u64, u64>,
    /// For each group, a bound on its longest free run from above.
    longest: Vec<u16>,
    free: u64,
}

impl Space {
    /// So many blocks, all of them free.
    pub(super) fn new(blocks: u64) -> Space {
        let runs = BTreeMap::from([(0, blocks)]);
        Space { runs, longest: vec![GROUP as u16; blocks.div_ceil(GROUP) as usize], free: blocks }
    }

    /// Free blocks.
    pub(super) fn free(&self) -> u64 {
        self.free
    }

    /// How many blocks are free from this one on.
    pub(super) fn free_from(&self, block: u64) -> u64 {
        let run = self.runs.range(..=block).next_back();
        run.map_or(0, |(start, len)| (start + len).saturating_sub(block))
    }

    /// The first free run that ends behind a block, cut to begin there at the earliest.
    pub(super) fn next(&self, block: u64) -> Option<(u64, u64)> {
        match self.free_from(block) {
            0 => self.runs.range(block..).next().map(|(start, len)| (*start, *len)),
            blocks => Some((block, blocks)),
        }
    }

    /// Takes blocks, all of which are free.
    pub(super) fn take(&mut self, block: u64, blocks: u64) {
        let (start, len) =
            self.runs.range(..=block).next_back().map(|(s, l)| (*s, *l)).expect("the blocks are free");
        debug_assert!(block + blocks <= start + len, "{blocks} blocks from {block} are not all free");
        if start == block {
            self.runs.remove(&start);
        } else {
            self.runs.insert(start, block - start);
        }
        let end = block + blocks;
        if start + len > end {
            self.runs.insert(end, start + len - end);
        }
        self.free -= blocks;
    }

    /// Takes what is free of a range.
    pub(super) fn take_what_is_free(&mut self, block: u64, blocks: u64) {
        let (mut at, end) = (block, block + blocks);
        while let Some((start, len)) = self.next(at).filter(|(start, _)| *start < end) {
            let len = len.min(end - start);
            self.take(start, len);
            at = start + len;
        }
    }

    /// Gives blocks back, none of which is free.
    pub(super) fn give(&mut self, block: u64, blocks: u64) {
        let (mut start, mut end) = (block, block + blocks);
        self.free += blocks;
        if let Some((left, len)) = self.runs.range(..block).next_back().map(|(s, l)| (*s, *l)) {
            debug_assert!(left + len <= block, "{block} is free already");
            if left + len == block {
                start = left;
            }
        }
        if let Some(len) = self.runs.remove(&end) {
            end += len;
        }
        self.runs.insert(start, end - start);
        for group in group_of(block)..=group_of(block + blocks - 1) {
            let longest = end.min((group + 1) * GROUP) - start.max(group * GROUP);
            let bound = &mut self.longest[group as usize];
            *bound = (*bound).max(longest as u16);
        }
    }

    /// The free runs of a group, cut at its bounds.
    fn runs_of(&self, group: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (from, to) = (group * GROUP, (group + 1) * GROUP);
        let first = self.free_from(from);
        let first = (first > 0).then(|| (from, first.min(GROUP)));
        let skip = u64::from(first.is_some());
        let rest = self.runs.range(from + skip..to).map(move |(start, len)| (*start, (*len).min(to - start)));
        first.into_iter().chain(rest)
    }

    /// The groups from one on, all around.
    fn around(&self, group: u64) -> impl Iterator<Item = u64> + use<> {
        let groups = self.longest.len() as u64;
        (group..groups).chain(0..group.min(groups))
    }

    /// Where to take blocks, from a group on: the first block, and how many there are, at most `wanted`. None if nothing is free.
    ///
    /// As `ext4_mb_regular_allocator`: a power of two from the smallest buddy that holds it (`cr` 0), anything else from the first
    /// run that does (`cr` 1 and 2), and if none does the longest of those looked at (`cr` 3).
    pub(super) fn find(&mut self, group: u64, wanted: u64) -> Option<(u64, u64)> {
        debug_assert!(wanted > 0 && wanted <= GROUP);
        if self.free == 0 {
            return None;
        }
        let order = wanted.ilog2();
        if wanted.is_power_of_two() && (1..=LARGEST_ORDER).contains(&order) {
            for group in self.around(group) {
                if let Some(block) = self.buddy(group, order) {
                    return Some((block, wanted));
                }
            }
        }
        for group in self.around(group) {
            if let Some(block) = self.first_fit(group, wanted) {
                return Some((block, wanted));
            }
        }
        self.longest_of_some(group)
    }

    /// A buddy of this order, out of the smallest one that there is in the group (`ext4_mb_simple_scan_group`).
    fn buddy(&mut self, group: u64, order: u32) -> Option<u64> {
        if u64::from(self.longest[group as usize]) < 1 << order {
            return None;
        }
        let mut best: Option<(u32, u64)> = None;
        let mut longest = 0;
        for (start, len) in self.runs_of(group) {
            longest = longest.max(len);
            let (mut at, end) = (start - group * GROUP, start - group * GROUP + len);
            while at < end {
                let size = at.trailing_zeros().min((end - at).ilog2()).min(LARGEST_ORDER);
                if size >= order && best.is_none_or(|(least, _)| size < least) {
                    best = Some((size, at));
                }
                at += 1 << size;
            }
            if best.is_some_and(|(size, _)| size == order) {
                return best.map(|(_, at)| group * GROUP + at);
            }
        }
        self.longest[group as usize] = longest as u16;
        best.map(|(_, at)| group * GROUP + at)
    }

    fn first_fit(&mut self, group: u64, wanted: u64) -> Option<u64> {
        if u64::from(self.longest[group as usize]) < wanted {
            return None;
        }
        let mut longest = 0;
        for (start, len) in self.runs_of(group) {
            if len >= wanted {
                return Some(start);
            }
            longest = longest.max(len);
        }
        self.longest[group as usize] = longest as u16;
        None
    }

    fn longest_of_some(&self, group: u64) -> Option<(u64, u64)> {
        let groups = self.around(group).filter(|group| self.longest[*group as usize] > 0);
        let runs = groups.flat_map(|group| self.runs_of(group)).take(MOST_LOOKED_AT);
        // The first of the longest.
        runs.fold(None, |best, run| if best.is_none_or(|(_, len)| run.1 > len) { Some(run) } else { best })
    }
}
