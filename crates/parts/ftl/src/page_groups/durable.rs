//! What survives a power cut: groups with their spare areas, metadata, dumps.

use super::Physical;
use super::geometry::Layout;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a group's spare area says of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Spare {
    /// Logical group, or behind these group of the map.
    pub(super) index: u32,
    /// Place of the data in the order of writes: a copy that reclaim makes has that of its source.
    pub(super) version: u64,
    /// Place of the program in the order of all programs.
    pub(super) made: u64,
}

/// A group of the map as a dump has written it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Dumped {
    /// Its entries.
    pub(super) entries: Vec<Option<Physical>>,
    /// All programs made before this one had ended: the entries take them into account.
    pub(super) mark: u64,
}

/// What a power cut leaves of the flash.
#[derive(Clone, Debug)]
pub struct Durable {
    block_groups: u32,
    /// Groups that are programmed.
    pub(super) spares: BTreeMap<u32, Spare>,
    /// Programs under way.
    registers: BTreeMap<u32, Spare>,
    /// Groups that hold groups of the map.
    pub(super) dumps: BTreeMap<u32, Dumped>,
    /// Blocks that have their metadata.
    pub(super) described: Vec<bool>,
    /// Blocks that a program has begun in since they were erased.
    pub(super) touched: Vec<bool>,
    /// Logical groups that were there from the start, and the blocks that still hold theirs.
    pub(super) base: u32,
    pub(super) untouched: Vec<bool>,
}

impl Durable {
    pub(super) fn new(layout: &Layout) -> Durable {
        let none = vec![false; layout.blocks() as usize];
        Durable {
            block_groups: layout.block_groups(),
            spares: BTreeMap::new(),
            registers: BTreeMap::new(),
            dumps: BTreeMap::new(),
            described: none.clone(),
            touched: none.clone(),
            base: 0,
            untouched: none,
        }
    }

    pub(super) fn assume(&mut self, groups: u32, layout: &Layout) {
        self.base = groups;
        let data = layout.data_groups();
        for block in 0..groups.div_ceil(data) {
            self.untouched[block as usize] = true;
            self.touched[block as usize] = true;
            self.described[block as usize] = (block + 1) * data <= groups;
        }
    }

    /// The same without what was under way.
    pub(super) fn cut(&self) -> Durable {
        Durable { registers: BTreeMap::new(), ..self.clone() }
    }

    fn groups_of(&self, block: u32) -> Range<u32> {
        block * self.block_groups..(block + 1) * self.block_groups
    }

    pub(super) fn begin(&mut self, group: Physical, spare: Spare, block: u32) {
        self.registers.insert(group.0, spare);
        self.touched[block as usize] = true;
    }

    pub(super) fn programmed(&mut self, group: Physical) {
        let spare = self.registers.remove(&group.0).expect("a program under way");
        self.spares.insert(group.0, spare);
    }

    /// The spare area of a programmed group.
    pub(super) fn spare(&self, group: Physical, layout: &Layout) -> Option<Spare> {
        if let Some(spare) = self.spares.get(&group.0) {
            return Some(*spare);
        }
        let is_untouched = self.untouched[layout.block_of(group).0 as usize];
        let number = layout.data_number(group).filter(|number| is_untouched && *number < self.base)?;
        Some(Spare { index: number, version: 0, made: 0 })
    }

    /// The oldest program that has not ended, or `next` if there is none.
    pub(super) fn mark(&self, next: u64) -> u64 {
        self.registers.values().map(|spare| spare.made).min().unwrap_or(next)
    }

    /// A dump, or a move of what a dump has written, is being programmed.
    pub(super) fn dump(&mut self, group: Physical, dumped: Dumped) {
        self.dumps.insert(group.0, dumped);
    }

    /// An erase begins: nothing of the block can be read any more.
    pub(super) fn erase_begins(&mut self, block: u32) {
        let gone: Vec<u32> = self.spares.range(self.groups_of(block)).map(|(group, _)| *group).collect();
        for group in gone {
            self.spares.remove(&group);
            self.dumps.remove(&group);
        }
        self.described[block as usize] = false;
        self.untouched[block as usize] = false;
    }

    pub(super) fn erased(&mut self, block: u32) {
        self.touched[block as usize] = false;
    }
}
