//! Which physical block holds what: the block table, log blocks with their page tables, free blocks by wear. Knows no
//! time.
//!
//! Every page of the address space holds data from the start, unless it is said which do: data block `n` of a plane lies in
//! its block `n`. A plane's tables are made when something in it changes.

use super::layout::Place;
use super::spec::DirectMapping;
use crate::fastdiv::FastDiv;
use kernel::{Rng, Slab};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// No log block, no merge, no page.
pub(super) const NONE: u32 = u32::MAX;
const UNWRITTEN: u16 = u16::MAX;

/// A physical page of a plane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Spot {
    /// Block of the plane.
    pub block: u32,
    /// Page of the block.
    pub page: u32,
}

/// A log block.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) plane: u32,
    /// Which share of the plane's data blocks it serves.
    share: u32,
    block: u32,
    /// Next page to be programmed.
    next: u32,
    /// The log page of each page of its data blocks.
    table: Box<[u16]>,
    /// The merge that it waits for.
    pub(super) merge: u32,
}

#[derive(Clone, Debug)]
struct PlaneBlocks {
    data: Box<[u32]>,
    logs: Box<[u32]>,
    erases: Box<[u32]>,
    free: BTreeSet<(u32, u32)>,
}

/// A merge under way: its data blocks one after another, then the old blocks.
#[derive(Clone, Debug)]
pub(super) struct Merge {
    pub(super) log: u32,
    pub(super) plane: u32,
    share: u32,
    /// Its data blocks of which pages are in the log; the others stay as they are.
    parts: Vec<Part>,
    /// Blocks to be erased, and how many of them are.
    old: Vec<u32>,
    erased: usize,
}

/// A data block that a merge writes anew.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Data block of the plane, as the block table knows it.
    slot: u32,
    /// Block that its data goes to.
    fresh: u32,
    /// The merge's step that moves its first page, and its pages that hold data.
    first: u32,
    pages: u32,
}

impl Merge {
    /// Steps that move pages.
    fn copies(&self) -> u32 {
        self.parts.last().map_or(0, |part| part.first + part.pages)
    }
}

/// What a merge does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Moves a page.
    Copy {
        /// Where it is.
        from: Spot,
        /// Where it goes.
        to: Spot,
    },
    /// Erases a block.
    Erase(u32),
}

/// The blocks of all planes.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    share: FastDiv,
    data_blocks: u32,
    pub(super) blocks: u32,
    pages: u32,
    planes: Vec<Option<Box<PlaneBlocks>>>,
    /// Pages that hold data, from the first on, of data blocks of which not all do.
    occupied: FxHashMap<(u32, u32), u32>,
    pub(super) logs: Slab<Log>,
    /// Pages programmed and blocks erased, since the beginning.
    pub(super) programmed: u64,
    pub(super) erased: u64,
}

impl Blocks {
    pub(super) fn new(mapping: &DirectMapping, planes: u32, blocks: u32, pages: u32) -> Blocks {
        Blocks {
            share: FastDiv::new(mapping.log_share.into()),
            data_blocks: mapping.data_blocks,
            blocks,
            pages,
            planes: std::iter::repeat_with(|| None).take(planes as usize).collect(),
            occupied: FxHashMap::default(),
            logs: Slab::default(),
            programmed: 0,
            erased: 0,
        }
    }

    fn tables(&mut self, plane: u32) -> &mut PlaneBlocks {
        let (data_blocks, blocks, share) = (self.data_blocks, self.blocks, self.share.get() as u32);
        self.planes[plane as usize].get_or_insert_with(|| {
            Box::new(PlaneBlocks {
                data: (0..data_blocks).collect(),
                logs: vec![NONE; (data_blocks / share) as usize].into(),
                erases: vec![0; blocks as usize].into(),
                free: (data_blocks..blocks).map(|block| (0, block)).collect(),
            })
        })
    }

    /// Which share a data block belongs to, and which page of the share a page is.
    #[inline]
    fn in_share(&self, place: Place) -> (u32, usize) {
        let (share, block) = self.share.div_rem(place.slot.into());
        (share as u32, (block * u64::from(self.pages) + u64::from(place.index)) as usize)
    }

    /// The log block that serves a place, if it has one.
    #[inline]
    pub(super) fn log_of(&self, place: Place) -> Option<u32> {
        let share = self.share.div(place.slot.into());
        let log = self.planes[place.plane as usize].as_ref()?.logs[share as usize];
        (log != NONE).then_some(log)
    }

    /// The newest copy of a page, and whether it lies in a log block.
    #[inline]
    pub(super) fn locate(&self, place: Place) -> (Spot, bool) {
        let Some(tables) = &self.planes[place.plane as usize] else {
            return (Spot { block: place.slot, page: place.index }, false);
        };
        let (share, page) = self.in_share(place);
        let log = tables.logs[share as usize];
        if log != NONE {
            let log = &self.logs[log];
            if log.table[page] != UNWRITTEN {
                return (Spot { block: log.block, page: log.table[page].into() }, true);
            }
        }
        (Spot { block: tables.data[place.slot as usize], page: place.index }, false)
    }

    /// Whether a page can be programmed before a merge.
    #[inline]
    pub(super) fn has_room(&self, place: Place) -> bool {
        self.log_of(place).is_none_or(|log| self.logs[log].next < self.pages)
    }

    /// Takes the log block that serves a place, a fresh one if there is none: the least erased free block.
    fn open(&mut self, place: Place) -> u32 {
        if let Some(log) = self.log_of(place) {
            return log;
        }
        let (share, _) = self.in_share(place);
        let block = self.least_erased(place.plane);
        let table = vec![UNWRITTEN; self.share.get() as usize * self.pages as usize].into();
        let log = self.logs.insert(Log { plane: place.plane, share, block, next: 0, table, merge: NONE });
        self.tables(place.plane).logs[share as usize] = log;
        log
    }

    fn least_erased(&mut self, plane: u32) -> u32 {
        let least = self.tables(plane).free.pop_first();
        least.expect("the spec leaves blocks for every log block and a merge").1
    }

    /// Programs the next page of the log block that serves a place; the block is full then if there is no room left.
    ///
    /// Returns the log block and the page.
    pub(super) fn append(&mut self, place: Place) -> (u32, Spot) {
        let name = self.open(place);
        let (_, page) = self.in_share(place);
        let pages = self.pages;
        let log = &mut self.logs[name];
        assert!(log.next < pages, "a full log block is merged first");
        let spot = Spot { block: log.block, page: log.next };
        log.table[page] = log.next as u16;
        log.next += 1;
        self.programmed += 1;
        (name, spot)
    }

    /// Fills the log block that serves the data blocks of `slots`, all of one share, with copies of pages drawn at random
    /// from the first ones of each, as many as stand beside it, until it has `left` free pages.
    pub(super) fn fill(&mut self, plane: u32, slots: &[(u32, u32)], left: u32, rng: &mut Rng) {
        let all: u64 = slots.iter().map(|(_, pages)| u64::from(*pages)).sum();
        let until = self.pages.saturating_sub(left);
        let Some((first, _)) = slots.first().filter(|_| all > 0) else { return };
        let name = self.open(Place { plane, slot: *first, index: 0 });
        while self.logs[name].next < until {
            let (mut index, mut at) = (rng.below(all) as u32, 0);
            while index >= slots[at].1 {
                index -= slots[at].1;
                at += 1;
            }
            let (_, page) = self.in_share(Place { plane, slot: slots[at].0, index });
            let log = &mut self.logs[name];
            log.table[page] = log.next as u16;
            log.next += 1;
        }
    }

    /// Which share of a plane's data blocks one belongs to: these have a log block together.
    pub(super) fn share_of(&self, slot: u32) -> u32 {
        self.share.div(slot.into()) as u32
    }

    /// Begins to merge a log block with those of its data blocks of which it has pages: takes a fresh block for each.
    pub(super) fn begin(&mut self, name: u32) -> Merge {
        let log = &self.logs[name];
        let (plane, share) = (log.plane, log.share);
        let mut merge = Merge { log: name, plane, share, parts: Vec::new(), old: Vec::new(), erased: 0 };
        for nth in 0..self.share.get() as u32 {
            let pages = self.pages as usize;
            let table = &self.logs[name].table[nth as usize * pages..][..pages];
            if table.iter().any(|page| *page != UNWRITTEN) {
                let slot = share * self.share.get() as u32 + nth;
                let pages = self.occupied.get(&(plane, slot)).copied().unwrap_or(self.pages);
                let (fresh, first) = (self.least_erased(plane), merge.copies());
                merge.parts.push(Part { slot, fresh, first, pages });
            }
        }
        merge
    }

    /// Only the first pages of a data block hold data. A merge does not move what holds none.
    pub(super) fn occupy(&mut self, plane: u32, slot: u32, pages: u32) {
        self.occupied.insert((plane, slot), pages);
    }

    /// Step `n` of a merge; `None` once the old blocks are erased.
    pub(super) fn step(&self, merge: &Merge, n: u32) -> Option<Step> {
        if n < merge.copies() {
            let part = merge.parts[merge.parts.partition_point(|part| part.first <= n) - 1];
            let index = n - part.first;
            let (from, _) = self.locate(Place { plane: merge.plane, slot: part.slot, index });
            return Some(Step::Copy { from, to: Spot { block: part.fresh, page: index } });
        }
        merge.old.get((n - merge.copies()) as usize).map(|block| Step::Erase(*block))
    }

    /// Step `n` of a merge is done; after the last page the tables show the fresh blocks.
    pub(super) fn done(&mut self, merge: &mut Merge, n: u32) {
        match self.step(merge, n) {
            Some(Step::Copy { .. }) => {
                self.programmed += 1;
                if n + 1 == merge.copies() {
                    self.commit(merge);
                }
            }
            Some(Step::Erase(block)) => {
                self.erased += 1;
                merge.erased += 1;
                let tables = self.tables(merge.plane);
                tables.erases[block as usize] += 1;
                tables.free.insert((tables.erases[block as usize], block));
                if merge.erased == merge.old.len() {
                    tables.logs[merge.share as usize] = NONE;
                    self.logs.remove(merge.log);
                }
            }
            None => unreachable!("a merge ends with its last erase"),
        }
    }

    /// The tables show the fresh blocks. The log block stays in its place, full and without pages, until the old blocks are
    /// erased: what waits for the merge is programmed before anything that comes later.
    fn commit(&mut self, merge: &mut Merge) {
        let log = &mut self.logs[merge.log];
        log.table.fill(UNWRITTEN);
        let log_block = std::mem::replace(&mut log.block, NONE);
        let tables = self.tables(merge.plane);
        for part in &merge.parts {
            merge.old.push(std::mem::replace(&mut tables.data[part.slot as usize], part.fresh));
        }
        merge.old.push(log_block);
    }

    /// For each plane with tables: the different blocks that are data, log, free or part of `merge`, the plane's, and how
    /// many places they are in.
    pub(super) fn census<'a>(
        &'a self,
        merge: impl Fn(u32) -> Option<&'a Merge>,
    ) -> impl Iterator<Item = (usize, usize)> {
        (0..).zip(&self.planes).filter_map(move |(plane, tables)| {
            let tables = tables.as_ref()?;
            let logs = tables.logs.iter().filter(|log| **log != NONE).map(|log| self.logs[*log].block);
            let logs = logs.filter(|block| *block != NONE);
            let mut all: Vec<u32> = tables.data.iter().copied().chain(logs).collect();
            all.extend(tables.free.iter().map(|(_, block)| *block));
            if let Some(merge) = merge(plane) {
                // Before its commit the fresh blocks are nowhere else, after it the old ones that are not erased yet.
                match merge.old.is_empty() {
                    true => all.extend(merge.parts.iter().map(|part| part.fresh)),
                    false => all.extend(&merge.old[merge.erased..]),
                }
            }
            let places = all.len();
            all.sort_unstable();
            all.dedup();
            Some((all.len(), places))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One plane of 12 blocks with 4 pages: 4 data blocks, two to a log block.
    fn blocks() -> Blocks {
        let search = config::units::Duration::default();
        let log_filled = vec![config::units::Share::ZERO];
        let mapping = DirectMapping { group: 1, data_blocks: 4, log_share: 2, search, log_filled };
        Blocks::new(&mapping, 1, 12, 4)
    }
    fn place(slot: u32, index: u32) -> Place {
        Place { plane: 0, slot, index }
    }
    fn spot(block: u32, page: u32) -> Spot {
        Spot { block, page }
    }
    /// Runs a merge of the log block to its end; its steps.
    fn merge(blocks: &mut Blocks, log: u32) -> Vec<Step> {
        let (mut merge, mut steps) = (blocks.begin(log), Vec::new());
        while let Some(step) = blocks.step(&merge, steps.len() as u32) {
            blocks.done(&mut merge, steps.len() as u32);
            steps.push(step);
        }
        steps
    }

    /// ZnG, section IV-A: a page that is in the log's page table is read from there, others by index from the data block;
    /// pages of the log are programmed in order.
    #[test]
    fn the_newest_copy_is_in_the_log() {
        let mut blocks = blocks();
        assert_eq!(blocks.locate(place(1, 3)), (spot(1, 3), false));
        // Page 3 of data block 1 twice, page 0 of data block 0 in between: log pages 0, 1, 2 of the first free block.
        let (log, first) = blocks.append(place(1, 3));
        assert_eq!(first, spot(4, 0));
        assert_eq!(blocks.append(place(0, 0)), (log, spot(4, 1)));
        assert_eq!(blocks.append(place(1, 3)), (log, spot(4, 2)));
        assert_eq!(blocks.locate(place(1, 3)), (spot(4, 2), true));
        assert_eq!(blocks.locate(place(0, 0)), (spot(4, 1), true));
        assert_eq!(blocks.locate(place(1, 2)), (spot(1, 2), false));
        // Data blocks 2 and 3 have a log block of their own.
        assert_eq!(blocks.append(place(2, 0)).1, spot(5, 0));
        assert!(blocks.has_room(place(0, 1)));
        blocks.append(place(0, 2));
        assert!(!blocks.has_room(place(1, 1)) && blocks.has_room(place(3, 1)));
    }

    #[test]
    fn a_merge_moves_the_newest_copies_in_order_and_erases_the_old_blocks() {
        let mut blocks = blocks();
        let (log, _) = blocks.append(place(1, 3));
        for (slot, index) in [(0, 1), (1, 3), (0, 0)] {
            blocks.append(place(slot, index));
        }
        let copy = |from, to| Step::Copy { from, to };
        let expected = [
            copy(spot(4, 3), spot(5, 0)),
            copy(spot(4, 1), spot(5, 1)),
            copy(spot(0, 2), spot(5, 2)),
            copy(spot(0, 3), spot(5, 3)),
            copy(spot(1, 0), spot(6, 0)),
            copy(spot(1, 1), spot(6, 1)),
            copy(spot(1, 2), spot(6, 2)),
            copy(spot(4, 2), spot(6, 3)),
            Step::Erase(0),
            Step::Erase(1),
            Step::Erase(4),
        ];
        assert_eq!(merge(&mut blocks, log), expected);
        for index in 0..4 {
            assert_eq!(blocks.locate(place(0, index)), (spot(5, index), false));
            assert_eq!(blocks.locate(place(1, index)), (spot(6, index), false));
        }
        assert_eq!((blocks.programmed, blocks.erased, blocks.log_of(place(0, 0))), (4 + 8, 3, None));
    }

    /// Of the free blocks, those that were erased least are taken: blocks never used before any that a merge has freed.
    #[test]
    fn the_least_erased_block_is_taken() {
        let mut blocks = blocks();
        let mut logs = Vec::new();
        for _ in 0..5 {
            let mut last = NONE;
            for index in 0..4 {
                let (log, spot) = blocks.append(place(0, index));
                (last, logs) = (log, [logs, vec![spot.block]].concat());
            }
            merge(&mut blocks, last);
        }
        // Fresh are 4 to 11: each log takes one, and the merge another for the one data block that the log has pages of.
        // Then the blocks erased once follow by number: 0.
        logs.dedup();
        assert_eq!(logs, [4, 6, 8, 10, 0]);
        assert_eq!(blocks.locate(place(0, 0)).0.block, 4);
        assert_eq!(blocks.locate(place(1, 0)).0.block, 1, "no page of it was ever in a log");
    }

    #[test]
    fn pages_without_data_are_not_moved() {
        let mut blocks = blocks();
        blocks.occupy(0, 1, 2);
        let mut last = NONE;
        for _ in 0..4 {
            last = blocks.append(place(1, 1)).0;
        }
        let steps = merge(&mut blocks, last);
        let copy = |from, to| Step::Copy { from, to };
        let moved = [copy(spot(1, 0), spot(5, 0)), copy(spot(4, 3), spot(5, 1))];
        assert_eq!(steps, [&moved[..], &[Step::Erase(1), Step::Erase(4)]].concat());
    }

    #[test]
    fn a_filled_log_has_the_pages_left_that_were_asked_for() {
        let mut blocks = blocks();
        blocks.fill(0, &[(0, 4), (1, 4)], 1, &mut Rng::stream(1, "test"));
        assert!(blocks.has_room(place(1, 0)));
        assert_eq!(blocks.append(place(1, 0)).1, spot(4, 3));
        assert!(!blocks.has_room(place(0, 0)));
        let in_log = (0..8).filter(|n| blocks.locate(place(n / 4, n % 4)).1).count();
        assert!((1..=4).contains(&in_log), "{in_log}");
    }

    /// Three pages of data block 1 hold data: only these are in its log block, so that a merge leaves data block 0 alone.
    #[test]
    fn only_pages_that_hold_data_are_filled_in() {
        for seed in 0..20 {
            let mut blocks = blocks();
            blocks.occupy(0, 1, 3);
            blocks.fill(0, &[(1, 3)], 0, &mut Rng::stream(seed, "test"));
            assert!((0..4).all(|n| !blocks.locate(place(0, n)).1) && !blocks.locate(place(1, 3)).1);
            let log = blocks.log_of(place(1, 0)).expect("it has been filled");
            let steps = merge(&mut blocks, log);
            assert_eq!(steps.len(), 3 + 2, "three pages, and erases of the old block and of the log");
        }
    }
}
