//! Block allocation, as in `fs/ext4/mballoc.c`: the goal after the file's last block, enlarged requests
//! (`ext4_mb_normalize_request`), and preallocation of the excess for the file, or for small files together.
//!
//! Left out: `mb_optimize_scan` (groups are tried in order, as it does for the first four), stripe alignment, a
//! locality group for each core (there is one, as a drive has one flusher), and `bigalloc`.

use super::extents::Extent;
use super::layout::{BLOCK, GROUP, Layout, group_of};
use std::collections::BTreeMap;

/// Blocks up to which a file shares a preallocation with others (`s_mb_stream_request`).
const STREAM_REQUEST: u64 = 16;
/// Blocks of a shared preallocation (`s_mb_group_prealloc`, `MB_DEFAULT_GROUP_PREALLOC`).
const GROUP_PREALLOC: u64 = 512;
/// Maximum number of shared preallocations; above it the oldest five are dropped (`ext4_mb_add_n_trim`).
const GROUP_PREALLOCS: usize = 8;
const TRIMMED: usize = 5;
/// Maximum number of blocks withheld from delayed allocation (`ext4_calculate_resv_clusters`).
const MOST_RESERVED: u64 = 4096;

/// Blocks reserved for pages of a file (an inode's `ext4_prealloc_space`). Partial use splits it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prealloc {
    pub(super) page: u64,
    pub(super) block: u64,
    pub(super) pages: u64,
}

impl Prealloc {
    fn end(&self) -> u64 {
        self.page + self.pages
    }
}

/// Allocation request (`ext4_allocation_request`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// First page.
    pub(super) page: u64,
    /// Number of pages.
    pub(super) pages: u64,
    /// Pages of the file.
    pub(super) size: u64,
    /// Preferred block of the first page.
    pub(super) goal: u64,
    /// Extents before and after.
    pub(super) left: Option<Extent>,
    pub(super) right: Option<Extent>,
}

/// Allocated blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grant {
    pub(super) block: u64,
    /// Number of blocks: at least one, at most the requested number.
    pub(super) blocks: u64,
}

/// Block allocator of a file system.
#[derive(Clone, Debug)]
pub(super) struct Allocator {
    /// Blocks in neither a file nor a preallocation.
    space: Space,
    /// Blocks in no file.
    free: u64,
    /// Blocks promised to delayed pages.
    promised: u64,
    reserved: u64,
    /// Group of the last large request (`s_mb_last_group`).
    last: u64,
    /// First block and length of preallocations for small files, oldest first.
    small: Vec<(u64, u64)>,
}

impl Allocator {
    /// Creates an allocator in which all blocks outside the layout are free.
    pub(super) fn new(layout: &Layout) -> Allocator {
        let mut space = Space::new(layout.blocks);
        layout.fixed().for_each(|(block, blocks)| space.take_what_is_free(block, blocks));
        if layout.journal_blocks > 0 {
            space.take(layout.journal, layout.journal_blocks);
        }
        let free = space.free();
        let reserved = (layout.blocks / 50).min(MOST_RESERVED);
        Allocator { space, free, promised: 0, reserved, last: 0, small: Vec::new() }
    }

    /// Blocks neither in a file nor promised.
    pub(super) fn available(&self) -> u64 {
        self.free - self.promised
    }

    /// Promises blocks to delayed pages (`ext4_da_reserve_space`); returns whether enough are free
    /// (`ext4_has_free_clusters`).
    pub(super) fn promise(&mut self, blocks: u64) -> bool {
        let has = self.available() >= blocks + self.reserved;
        self.promised += if has { blocks } else { 0 };
        has
    }

    /// Takes back a promise, for pages that are gone or are being allocated.
    pub(super) fn unpromise(&mut self, blocks: u64) {
        self.promised -= blocks;
    }

    /// Allocates blocks for data of a file. `None` if nothing is free besides other files' preallocations.
    pub(super) fn data(&mut self, request: &Request, preallocs: &mut Vec<Prealloc>) -> Option<Grant> {
        let grant = self.preallocated(request, preallocs).or_else(|| {
            if is_small(request) { self.for_small(request) } else { self.for_large(request, preallocs) }
        })?;
        self.free -= grant.blocks;
        Some(grant)
    }

    /// Allocates a block for metadata, in the goal's group or a later one.
    pub(super) fn metadata(&mut self, goal: u64) -> Option<u64> {
        let (block, _) = self.space.find(group_of(goal), 1)?;
        self.space.take(block, 1);
        self.free -= 1;
        Some(block)
    }

    /// Allocates the next free run from a block on, wrapping at the end of the drive, of at most `most` blocks, for a
    /// file that existed before the run: in one piece what consecutive requests of 8 MiB get.
    pub(super) fn run(&mut self, goal: u64, most: u64) -> Option<Grant> {
        let (block, blocks) = self.space.next(goal).or_else(|| self.space.next(0))?;
        let blocks = blocks.min(most);
        self.space.take(block, blocks);
        self.free -= blocks;
        self.last = group_of(block + blocks - 1);
        Some(Grant { block, blocks })
    }

    /// Frees blocks.
    pub(super) fn free(&mut self, block: u64, blocks: u64) {
        self.space.give(block, blocks);
        self.free += blocks;
    }

    /// Frees a file's preallocated blocks.
    pub(super) fn discard(&mut self, preallocs: &mut Vec<Prealloc>) {
        preallocs.drain(..).for_each(|kept| self.space.give(kept.block, kept.pages));
    }

    /// Frees the preallocations for small files.
    pub(super) fn discard_small(&mut self) {
        self.small.drain(..).for_each(|(block, blocks)| self.space.give(block, blocks));
    }

    /// Runs of blocks in neither a file nor a preallocation.
    #[cfg(test)]
    pub(super) fn free_runs(&self) -> Vec<(u64, u64)> {
        let next = |run: &(u64, u64)| self.space.next(run.0 + run.1);
        std::iter::successors(self.space.next(0), next).collect()
    }

    /// `ext4_mb_use_preallocated`: a preallocation for these pages, or for small files, nearest to the goal.
    fn preallocated(&mut self, request: &Request, preallocs: &mut Vec<Prealloc>) -> Option<Grant> {
        let holds = |kept: &Prealloc| kept.page <= request.page && request.page < kept.end();
        if let Some(at) = preallocs.iter().position(holds) {
            let kept = preallocs.swap_remove(at);
            let before = request.page - kept.page;
            let blocks = request.pages.min(kept.pages - before);
            let grant = Grant { block: kept.block + before, blocks };
            keep(preallocs, Prealloc { pages: before, ..kept });
            let used = before + blocks;
            keep(
                preallocs,
                Prealloc { page: kept.page + used, block: kept.block + used, pages: kept.pages - used },
            );
            return Some(grant);
        }
        if !is_small(request) {
            return None;
        }
        let enough = self.small.iter().enumerate().filter(|(_, (_, blocks))| *blocks >= request.pages);
        let (at, _) = enough.min_by_key(|(_, (block, _))| block.abs_diff(request.goal))?;
        Some(self.use_small(at, request.pages))
    }

    fn use_small(&mut self, at: usize, pages: u64) -> Grant {
        let (block, left) = &mut self.small[at];
        let grant = Grant { block: *block, blocks: pages.min(*left) };
        *block += grant.blocks;
        *left -= grant.blocks;
        if *left == 0 {
            self.small.remove(at);
        }
        grant
    }

    /// Allocates for a small file (`ext4_mb_normalize_group_request` and the search).
    fn for_small(&mut self, request: &Request) -> Option<Grant> {
        let (block, blocks) = self.space.find(group_of(request.goal), GROUP_PREALLOC)?;
        self.space.take(block, blocks);
        if self.small.len() >= GROUP_PREALLOCS {
            for (block, blocks) in self.small.drain(..TRIMMED) {
                self.space.give(block, blocks);
            }
        }
        self.small.push((block, blocks));
        Some(self.use_small(self.small.len() - 1, request.pages))
    }

    fn for_large(&mut self, request: &Request, preallocs: &mut Vec<Prealloc>) -> Option<Grant> {
        let (page, pages) = normalize(request, preallocs);
        let (block, found) = match self.at_goal(request, page, pages) {
            Some(block) => (block, pages),
            None => {
                // Large files continue where the last large request ended, whichever file that was for.
                let (block, found) = self.space.find(self.last, pages)?;
                self.last = group_of(block);
                (block, found)
            }
        };
        self.space.take(block, found);
        if found <= request.pages {
            return Some(Grant { block, blocks: found });
        }
        let first = if found < pages { window(request, page, found) } else { page };
        let before = request.page - first;
        let blocks = request.pages.min(found - before);
        keep(preallocs, Prealloc { page: first, block, pages: before });
        let used = before + blocks;
        keep(preallocs, Prealloc { page: first + used, block: block + used, pages: found - used });
        Some(Grant { block: block + before, blocks })
    }

    /// First block for a whole request next to an extent that it continues (`ext4_mb_find_by_goal`, for which
    /// `ext4_mb_normalize_request` sets `EXT4_MB_HINT_TRY_GOAL`). It must lie in one group.
    fn at_goal(&mut self, request: &Request, page: u64, pages: u64) -> Option<u64> {
        let left =
            request.left.filter(|left| left.page + left.pages == page).map(|left| left.block + left.pages);
        let right = request.right.filter(|right| right.page == page + pages);
        let goal = left.or_else(|| right.and_then(|right| right.block.checked_sub(pages)))?;
        let fits = goal % GROUP + pages <= GROUP && self.space.free_from(goal) >= pages;
        if fits {
            self.last = group_of(goal);
        }
        fits.then_some(goal)
    }
}

/// Returns whether a request is for a file that shares its preallocation with others (`ext4_mb_group_or_file`).
fn is_small(request: &Request) -> bool {
    request.size.max(request.page + request.pages) <= STREAM_REQUEST
}

fn keep(preallocs: &mut Vec<Prealloc>, kept: Prealloc) {
    if kept.pages > 0 {
        preallocs.push(kept);
    }
}

/// First page covered by a run shorter than the normalized request (`ext4_mb_new_inode_pa`); the requested pages lie in
/// it.
fn window(request: &Request, page: u64, found: u64) -> u64 {
    let mut win = (request.page - page).min(found - request.pages);
    let odd = request.page % found;
    if odd > 0 && odd < win {
        win = odd;
    }
    request.page - win
}

/// Enlarged request of a large file: its first page, and number of pages (`ext4_mb_normalize_request`).
pub(super) fn normalize(request: &Request, preallocs: &[Prealloc]) -> (u64, u64) {
    let bytes = request.size.max(request.page + request.pages) * BLOCK;
    let blocks = |bytes: u64| bytes / BLOCK;
    let aligned = |shift: u64| request.page / blocks(1 << shift) * blocks(1 << shift);
    let (mut start, mut pages) = match bytes {
        0..=0x10_0000 => (0, blocks(bytes.next_power_of_two().max(16 << 10))),
        0x10_0001..=0x40_0000 => (aligned(21), blocks(2 << 20)),
        0x40_0001..=0x80_0000 => (aligned(22), blocks(4 << 20)),
        // The kernel's last branch is never taken with blocks of 4 KiB: its `max` is 8192.
        _ => (aligned(23), blocks(8 << 20)),
    };
    if let Some(left) = request.left
        && start < left.page + left.pages
    {
        let end = left.page + left.pages;
        pages -= end - start;
        start = end;
    }
    if let Some(right) = request.right
        && start + pages > right.page
    {
        pages = right.page - start;
    }
    let mut end = start + pages;
    for kept in preallocs {
        if kept.page >= end || kept.end() <= start {
            continue;
        }
        if kept.end() <= request.page {
            start = kept.end();
        } else if kept.page > request.page {
            end = kept.page;
        }
    }
    (start, (end - start).min(GROUP))
}

// Free blocks of a file system as runs, and their search by group, like the buddies of `fs/ext4/mballoc.c`.

/// Order of the largest buddy: 2^13 blocks (`MB_NUM_ORDERS` less one, with blocks of 4 KiB).
const LARGEST_ORDER: u32 = 13;

/// Maximum free runs compared for the longest, if none is long enough (`MB_DEFAULT_MAX_TO_SCAN`).
const MOST_LOOKED_AT: usize = 200;

/// Free blocks. Runs may cross group boundaries; search results never do.
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// Length by first block.
    runs: BTreeMap<u64, u64>,
    /// Upper bound on the longest free run of each group.
    longest: Vec<u16>,
    free: u64,
}

impl Space {
    /// Creates a space of `blocks` free blocks.
    pub(super) fn new(blocks: u64) -> Space {
        let runs = BTreeMap::from([(0, blocks)]);
        Space { runs, longest: vec![GROUP as u16; blocks.div_ceil(GROUP) as usize], free: blocks }
    }

    /// Number of free blocks.
    pub(super) fn free(&self) -> u64 {
        self.free
    }

    /// Number of contiguous free blocks from this one on.
    pub(super) fn free_from(&self, block: u64) -> u64 {
        let run = self.runs.range(..=block).next_back();
        run.map_or(0, |(start, len)| (start + len).saturating_sub(block))
    }

    /// First free run that ends after a block, cut to begin at or after it.
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

    /// Takes the free blocks of a range.
    pub(super) fn take_what_is_free(&mut self, block: u64, blocks: u64) {
        let (mut at, end) = (block, block + blocks);
        while let Some((start, len)) = self.next(at).filter(|(start, _)| *start < end) {
            let len = len.min(end - start);
            self.take(start, len);
            at = start + len;
        }
    }

    /// Frees blocks, none of which is free.
    pub(super) fn give(&mut self, block: u64, blocks: u64) {
        let (mut start, mut end) = (block, block + blocks);
        self.free += blocks;
        if let Some((left, len)) = self.runs.range(..block).next_back().map(|(s, l)| (*s, *l)) {
            debug_assert!(left + len <= block, "block {block} freed twice");
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

    /// Free runs of a group, cut at its boundaries.
    fn runs_of(&self, group: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (from, to) = (group * GROUP, (group + 1) * GROUP);
        let first = self.free_from(from);
        let first = (first > 0).then(|| (from, first.min(GROUP)));
        let skip = u64::from(first.is_some());
        let rest = self.runs.range(from + skip..to).map(move |(start, len)| (*start, (*len).min(to - start)));
        first.into_iter().chain(rest)
    }

    /// Groups in cyclic order from one on.
    fn around(&self, group: u64) -> impl Iterator<Item = u64> + use<> {
        let groups = self.longest.len() as u64;
        (group..groups).chain(0..group.min(groups))
    }

    /// Finds blocks to take, from a group on: the first block, and their number, at most `wanted`. `None` if nothing is
    /// free.
    ///
    /// As in `ext4_mb_regular_allocator`: a power of two from the smallest buddy that holds it (`cr` 0), any other size
    /// from the first run that is long enough (`cr` 1 and 2), and otherwise the longest of those scanned (`cr` 3).
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

    /// Finds a buddy of this order in the smallest free one of the group (`ext4_mb_simple_scan_group`).
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
