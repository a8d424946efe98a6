//! Content of physical blocks: the block table, log blocks with their page tables, free blocks by wear. Independent of
//! time.
//!
//! An entry of the table names one data block and one log block for all planes of its set: blocks are taken, merged and
//! freed in all of them together, under one number. So 80 KB suffice for a terabyte (ZnG, section III-B).
//!
//! Every page of the address space holds data from the start, unless occupied pages are given: data block `n` of a set
//! is its block `n`. A set's tables are created when something in it changes.

pub mod mapping;
mod merge;

pub use merge::{Merge, Progress, Step};

use engine::{Rng, Slab};
use mapping::{DirectMapping, Place};
use nand::numbers::{FastDiv, NONE};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ops::Range;

/// Null page of a log.
const UNWRITTEN: u16 = u16::MAX;

/// Physical page of a plane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Spot {
    /// Block of the plane.
    pub block: u32,
    /// Page of the block.
    pub page: u32,
}

/// Log block, one in each plane of its set.
#[derive(Clone, Debug)]
pub struct Log {
    /// Set of the log block.
    pub set: u32,
    /// Share of the set's data blocks that the log block serves.
    share: u32,
    block: u32,
    /// Next page to program, of each plane.
    next: Box<[u32]>,
    /// Log page of each page of its data blocks, plane after plane.
    table: Box<[u16]>,
    /// Number of programs in flight in the log block.
    programs: u32,
    /// Merge that the log block waits for: nothing is programmed into it any more.
    pub merge: u32,
}

#[derive(Clone, Debug)]
struct SetBlocks {
    data: Box<[u32]>,
    logs: Box<[u32]>,
    erases: Box<[u32]>,
    free: BTreeSet<(u32, u32)>,
}

/// Blocks of all planes.
#[derive(Clone, Debug)]
pub struct Blocks {
    share: FastDiv,
    group: FastDiv,
    data_blocks: u32,
    /// Blocks per plane.
    pub blocks: u32,
    pages: u32,
    sets: Vec<Option<Box<SetBlocks>>>,
    /// Number of occupied pages, from the first on, of partly occupied data blocks, by plane and data block.
    occupied: FxHashMap<(u32, u32), u32>,
    /// Log blocks, open and full.
    pub logs: Slab<Log>,
    /// Pages programmed since the beginning.
    pub programmed: u64,
    /// Blocks erased since the beginning.
    pub erased: u64,
}

impl Blocks {
    /// Creates erased blocks.
    pub fn new(mapping: &DirectMapping, planes: u32, blocks: u32, pages: u32) -> Blocks {
        Blocks {
            share: FastDiv::new(mapping.log_share.into()),
            group: FastDiv::new(mapping.group.into()),
            data_blocks: mapping.data_blocks,
            blocks,
            pages,
            sets: std::iter::repeat_with(|| None).take((planes / mapping.group) as usize).collect(),
            occupied: FxHashMap::default(),
            logs: Slab::default(),
            programmed: 0,
            erased: 0,
        }
    }

    fn tables(&mut self, set: u32) -> &mut SetBlocks {
        let (data_blocks, blocks, share) = (self.data_blocks, self.blocks, self.share.get() as u32);
        self.sets[set as usize].get_or_insert_with(|| {
            Box::new(SetBlocks {
                data: (0..data_blocks).collect(),
                logs: vec![NONE; (data_blocks / share) as usize].into(),
                erases: vec![0; blocks as usize].into(),
                free: (data_blocks..blocks).map(|block| (0, block)).collect(),
            })
        })
    }

    /// Returns the set of a plane, and the plane's number in it.
    #[inline]
    pub fn set_of(&self, plane: u32) -> (u32, usize) {
        let (set, member) = self.group.div_rem(plane.into());
        (set as u32, member as usize)
    }

    /// Returns the planes of a set.
    pub fn planes_of(&self, set: u32) -> Range<u32> {
        let group = self.group.get() as u32;
        set * group..(set + 1) * group
    }

    /// Returns the share of a place's data block, and the page's entry of a log's table in the part of its plane.
    #[inline]
    fn in_share(&self, place: Place) -> (u32, usize) {
        let (share, block) = self.share.div_rem(place.slot.into());
        (share as u32, (block * u64::from(self.pages) + u64::from(place.index)) as usize)
    }

    /// Returns the number of entries of a log's table for one plane.
    #[inline]
    fn entries(&self) -> usize {
        self.share.get() as usize * self.pages as usize
    }

    /// Returns the log block that serves a place, if it has one.
    #[inline]
    pub fn log_of(&self, place: Place) -> Option<u32> {
        let (set, _) = self.set_of(place.plane);
        let share = self.share.quotient(place.slot.into());
        let log = self.sets[set as usize].as_ref()?.logs[share as usize];
        (log != NONE).then_some(log)
    }

    /// Returns the newest copy of a page, and whether it is in a log block.
    #[inline]
    pub fn locate(&self, place: Place) -> (Spot, bool) {
        let (set, member) = self.set_of(place.plane);
        let Some(tables) = &self.sets[set as usize] else {
            return (Spot { block: place.slot, page: place.index }, false);
        };
        let (share, page) = self.in_share(place);
        let log = tables.logs[share as usize];
        if log != NONE {
            let log = &self.logs[log];
            let at = log.table[member * self.entries() + page];
            if at != UNWRITTEN {
                return (Spot { block: log.block, page: at.into() }, true);
            }
        }
        (Spot { block: tables.data[place.slot as usize], page: place.index }, false)
    }

    /// Returns whether a page can be programmed before a merge.
    #[inline]
    pub fn has_room(&self, place: Place) -> bool {
        let (_, member) = self.set_of(place.plane);
        let open = |log: &Log| log.merge == NONE && log.next[member] < self.pages;
        self.log_of(place).is_none_or(|log| open(&self.logs[log]))
    }

    /// Begins a program of a page: no merge of its log block begins before the program has ended.
    pub fn program_begins(&mut self, place: Place) {
        let log = self.open(place);
        self.logs[log].programs += 1;
    }

    /// Ends a program into a log block.
    pub fn program_ends(&mut self, log: u32) {
        self.logs[log].programs -= 1;
    }

    /// Returns whether a program into a log block is in flight in some plane.
    pub fn is_programming(&self, log: u32) -> bool {
        self.logs[log].programs > 0
    }

    /// Returns the log block that serves a place, taking the least erased free block if it has none.
    fn open(&mut self, place: Place) -> u32 {
        if let Some(log) = self.log_of(place) {
            return log;
        }
        let ((set, _), (share, _)) = (self.set_of(place.plane), self.in_share(place));
        let block = self.least_erased(set);
        let planes = self.group.get() as usize;
        let (next, table) = (vec![0; planes].into(), vec![UNWRITTEN; planes * self.entries()].into());
        let log = self.logs.insert(Log { set, share, block, next, table, programs: 0, merge: NONE });
        self.tables(set).logs[share as usize] = log;
        log
    }

    fn least_erased(&mut self, set: u32) -> u32 {
        let least = self.tables(set).free.pop_first();
        least.expect("the spec leaves blocks for every log block and a merge").1
    }

    /// Programs the next page of the log block that serves a place; the block becomes full if no room is left.
    ///
    /// Returns the log block and the page.
    pub fn append(&mut self, place: Place) -> (u32, Spot) {
        let name = self.open(place);
        let ((_, member), (_, page)) = (self.set_of(place.plane), self.in_share(place));
        let (pages, entries) = (self.pages, self.entries());
        let log = &mut self.logs[name];
        let next = &mut log.next[member];
        assert!(*next < pages, "a full log block is merged first");
        let spot = Spot { block: log.block, page: *next };
        log.table[member * entries + page] = *next as u16;
        *next += 1;
        self.programmed += 1;
        (name, spot)
    }

    /// Fills the log block of the data blocks in `slots`, all of one share, in a plane. The content are copies of pages
    /// drawn at random from the first pages of each, as many as given beside it, until `left` pages are free.
    pub fn fill(&mut self, plane: u32, slots: &[(u32, u32)], left: u32, rng: &mut Rng) {
        let all: u64 = slots.iter().map(|(_, pages)| u64::from(*pages)).sum();
        let (until, entries) = (self.pages.saturating_sub(left), self.entries());
        let Some((first, _)) = slots.first().filter(|_| all > 0) else { return };
        let name = self.open(Place { plane, slot: *first, index: 0 });
        let (_, member) = self.set_of(plane);
        while self.logs[name].next[member] < until {
            let (mut index, mut at) = (rng.below(all) as u32, 0);
            while index >= slots[at].1 {
                index -= slots[at].1;
                at += 1;
            }
            let (_, page) = self.in_share(Place { plane, slot: slots[at].0, index });
            let log = &mut self.logs[name];
            log.table[member * entries + page] = log.next[member] as u16;
            log.next[member] += 1;
        }
    }

    /// Returns the share of a data block: the data blocks of a share have a log block together.
    pub fn share_of(&self, slot: u32) -> u32 {
        self.share.quotient(slot.into()) as u32
    }

    /// Declares that only the first pages of a data block hold data. A merge does not move empty pages.
    pub fn occupy(&mut self, plane: u32, slot: u32, pages: u32) {
        self.occupied.insert((plane, slot), pages);
    }

    /// Returns, for each set with tables, the number of distinct blocks that are data, log, free or part of `merge`
    /// (the set's), and the number of places in which they occur.
    pub fn census<'a>(
        &'a self,
        merge: impl Fn(u32) -> Option<&'a Merge>,
    ) -> impl Iterator<Item = (usize, usize)> {
        (0..).zip(&self.sets).filter_map(move |(set, tables)| {
            let tables = tables.as_ref()?;
            let logs = tables.logs.iter().filter(|log| **log != NONE).map(|log| self.logs[*log].block);
            let logs = logs.filter(|block| *block != NONE);
            let mut all: Vec<u32> = tables.data.iter().copied().chain(logs).collect();
            all.extend(tables.free.iter().map(|(_, block)| *block));
            if let Some(merge) = merge(set) {
                all.extend(merge.apart());
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
    // Worked examples of the tables and of merges.
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
    /// Runs a merge of the log block to its end; returns its steps.
    fn merge(blocks: &mut Blocks, log: u32) -> Vec<Step> {
        let (mut merge, mut steps) = (blocks.begin(log), Vec::new());
        while let Some(step) = blocks.step(&merge, 0, steps.len() as u32) {
            blocks.done(&mut merge, 0, steps.len() as u32);
            steps.push(step);
        }
        steps
    }

    /// ZnG, section IV-A: a page in the log's page table is read from there, others by index from the data block; pages
    /// of the log are programmed in order.
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
        // Data blocks 2 and 3 have their own log block.
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

    /// Among the free blocks, those erased least are taken: blocks never used before any that a merge has freed.
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
        // Fresh are 4 to 11: each log takes one, and the merge one more for the single data block with pages in the
        // log. Then the blocks erased once follow by number: 0.
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

    /// Three pages of data block 1 hold data: only these are in its log block, so that a merge leaves data block 0
    /// unchanged.
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

    /// Two planes of a set: the log block of one is full, the other's has a single page, of a different data block.
    /// The two data blocks move in both planes, under the same numbers; the old blocks are free when both planes have
    /// erased them.
    #[test]
    fn a_set_of_planes_is_merged_together() {
        let search = config::units::Duration::default();
        let log_filled = vec![config::units::Share::ZERO];
        let mapping = DirectMapping { group: 2, data_blocks: 4, log_share: 2, search, log_filled };
        let mut blocks = Blocks::new(&mapping, 2, 12, 2);
        let place = |plane, slot, index| Place { plane, slot, index };
        let (log, _) = blocks.append(place(0, 0, 1));
        assert_eq!(blocks.append(place(0, 0, 1)), (log, spot(4, 1)));
        assert!(!blocks.has_room(place(0, 1, 0)) && blocks.has_room(place(1, 1, 0)));
        assert_eq!(blocks.append(place(1, 1, 0)), (log, spot(4, 0)));
        let mut merge = blocks.begin(log);
        let copy = |from, to| Some(Step::Copy { from, to });
        let moves = [
            [
                (spot(0, 0), spot(5, 0)),
                (spot(4, 1), spot(5, 1)),
                (spot(1, 0), spot(6, 0)),
                (spot(1, 1), spot(6, 1)),
            ],
            [
                (spot(0, 0), spot(5, 0)),
                (spot(0, 1), spot(5, 1)),
                (spot(4, 0), spot(6, 0)),
                (spot(1, 1), spot(6, 1)),
            ],
        ];
        for (plane, moves) in (0..).zip(&moves) {
            for (n, (from, to)) in (0..).zip(moves) {
                assert_eq!(blocks.step(&merge, plane, n), copy(*from, *to));
                let last = plane == 1 && n == 3;
                let progress = if last { Progress::Moved } else { Progress::Going };
                assert_eq!(blocks.done(&mut merge, plane, n), progress);
            }
            if plane == 0 {
                assert_eq!(blocks.step(&merge, 0, 4), None, "the other plane has not moved its pages yet");
                assert_eq!(blocks.locate(place(0, 0, 1)).0, spot(4, 1));
            }
        }
        assert_eq!(blocks.locate(place(0, 0, 1)), (spot(5, 1), false));
        let erases: Vec<_> = (0..6).map(|n| (n / 3, 4 + n % 3)).collect();
        for (plane, n) in &erases {
            let old = [0, 1, 4][*n as usize - 4];
            assert_eq!(blocks.step(&merge, *plane, *n), Some(Step::Erase(old)));
            let over = (*plane, *n) == (1, 6);
            let progress = if over { Progress::Over } else { Progress::Going };
            assert_eq!(blocks.done(&mut merge, *plane, *n), progress);
        }
        assert_eq!((blocks.programmed, blocks.erased, blocks.log_of(place(1, 0, 0))), (3 + 8, 6, None));
    }
}
