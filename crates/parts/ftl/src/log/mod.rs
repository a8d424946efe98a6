//! Which physical block holds what: the block table, log blocks with their page tables, free blocks by wear. Knows no
//! time.
//!
//! An entry of the table names one data block and one log block for all planes of its set: blocks are taken, merged and freed in
//! all of them together, under one number. That is what lets 80 KB name a terabyte (ZnG, section III-B).
//!
//! Every page of the address space holds data from the start, unless it is said which do: data block `n` of a set lies in
//! its block `n`. A set's tables are made when something in it changes.

pub mod layout;
mod merge;
pub mod spec;
#[cfg(test)]
mod tests;

pub use merge::{Merge, Progress, Step};

use engine::{Rng, Slab};
use layout::Place;
use nand::fastdiv::FastDiv;
use nand::names::NONE;
use rustc_hash::FxHashMap;
use spec::DirectMapping;
use std::collections::BTreeSet;
use std::ops::Range;

/// No page of a log.
const UNWRITTEN: u16 = u16::MAX;

/// A physical page of a plane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Spot {
    /// Block of the plane.
    pub block: u32,
    /// Page of the block.
    pub page: u32,
}

/// A log block, one in each plane of its set.
#[derive(Clone, Debug)]
pub struct Log {
    /// The set.
    pub set: u32,
    /// Which share of the set's data blocks it serves.
    share: u32,
    block: u32,
    /// Next page to be programmed, of each plane.
    next: Box<[u32]>,
    /// The log page of each page of its data blocks, plane after plane.
    table: Box<[u16]>,
    /// Programs under way in it.
    programs: u32,
    /// The merge that it waits for: nothing is programmed into it any more.
    pub merge: u32,
}

#[derive(Clone, Debug)]
struct SetBlocks {
    data: Box<[u32]>,
    logs: Box<[u32]>,
    erases: Box<[u32]>,
    free: BTreeSet<(u32, u32)>,
}

/// The blocks of all planes.
#[derive(Clone, Debug)]
pub struct Blocks {
    share: FastDiv,
    group: FastDiv,
    data_blocks: u32,
    /// Blocks of a plane.
    pub blocks: u32,
    pages: u32,
    sets: Vec<Option<Box<SetBlocks>>>,
    /// Pages that hold data, from the first on, of data blocks of which not all do, by plane and data block.
    occupied: FxHashMap<(u32, u32), u32>,
    /// Log blocks, open and full.
    pub logs: Slab<Log>,
    /// Pages programmed since the beginning.
    pub programmed: u64,
    /// Blocks erased since the beginning.
    pub erased: u64,
}

impl Blocks {
    /// All erased.
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

    /// The set of a plane, and which of its planes it is.
    #[inline]
    pub fn set_of(&self, plane: u32) -> (u32, usize) {
        let (set, member) = self.group.div_rem(plane.into());
        (set as u32, member as usize)
    }

    /// The planes of a set.
    pub fn planes_of(&self, set: u32) -> Range<u32> {
        let group = self.group.get() as u32;
        set * group..(set + 1) * group
    }

    /// Which share a data block belongs to, and which entry of a log's table a page has, in the part of its plane.
    #[inline]
    fn in_share(&self, place: Place) -> (u32, usize) {
        let (share, block) = self.share.div_rem(place.slot.into());
        (share as u32, (block * u64::from(self.pages) + u64::from(place.index)) as usize)
    }

    /// Entries of a log's table for one plane.
    #[inline]
    fn entries(&self) -> usize {
        self.share.get() as usize * self.pages as usize
    }

    /// The log block that serves a place, if it has one.
    #[inline]
    pub fn log_of(&self, place: Place) -> Option<u32> {
        let (set, _) = self.set_of(place.plane);
        let share = self.share.div(place.slot.into());
        let log = self.sets[set as usize].as_ref()?.logs[share as usize];
        (log != NONE).then_some(log)
    }

    /// The newest copy of a page, and whether it lies in a log block.
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

    /// Whether a page can be programmed before a merge.
    #[inline]
    pub fn has_room(&self, place: Place) -> bool {
        let (_, member) = self.set_of(place.plane);
        let open = |log: &Log| log.merge == NONE && log.next[member] < self.pages;
        self.log_of(place).is_none_or(|log| open(&self.logs[log]))
    }

    /// A program of a page begins: no merge of its log block begins before it has ended.
    pub fn program_begins(&mut self, place: Place) {
        let log = self.open(place);
        self.logs[log].programs += 1;
    }

    /// A program into a log block has ended.
    pub fn program_ends(&mut self, log: u32) {
        self.logs[log].programs -= 1;
    }

    /// Whether a program into a log block is under way in some plane.
    pub fn is_programming(&self, log: u32) -> bool {
        self.logs[log].programs > 0
    }

    /// Takes the log block that serves a place, a fresh one if there is none: the least erased free block.
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

    /// Programs the next page of the log block that serves a place; the block is full then if there is no room left.
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

    /// Fills the log block that serves the data blocks of `slots`, all of one share, in a plane with copies of pages drawn at
    /// random from the first ones of each, as many as stand beside it, until it has `left` free pages.
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

    /// Which share of a set's data blocks one belongs to: these have a log block together.
    pub fn share_of(&self, slot: u32) -> u32 {
        self.share.div(slot.into()) as u32
    }

    /// Only the first pages of a data block hold data. A merge does not move what holds none.
    pub fn occupy(&mut self, plane: u32, slot: u32, pages: u32) {
        self.occupied.insert((plane, slot), pages);
    }

    /// For each set with tables: the different blocks that are data, log, free or part of `merge`, the set's, and how many
    /// places they are in.
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
