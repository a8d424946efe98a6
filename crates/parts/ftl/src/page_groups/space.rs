//! Blocks: free ones, open ones, and the valid groups of each.

use super::Physical;
use super::spec::Layout;
use nand::numbers::{NONE, Positions};
use std::collections::VecDeque;

/// State of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Erased.
    Free,
    /// Open: its numbers are being allocated.
    Open,
    /// All its numbers are allocated; programs or its metadata are outstanding.
    Full,
    /// Completely programmed: it can be reclaimed.
    Used,
    /// Victim being reclaimed.
    Victim,
}

/// Requester of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stream {
    /// Kernel write.
    Kernel,
    /// Dump; goes to the block that reclaim moves to.
    Dump,
    /// Reclaim move.
    Move,
}

/// Open block, and the number in it that is allocated next.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    block: u32,
    next: u32,
}

/// All blocks.
#[derive(Clone, Debug)]
pub(super) struct Space {
    block_groups: u32,
    meta: u32,
    reserve: u32,
    state: Vec<State>,
    /// Number of groups that the map names, by block.
    valid: Vec<u32>,
    /// Programs in flight, by block.
    pending: Vec<u32>,
    /// Kernel reads in flight, by block.
    reads: Vec<u32>,
    free: Positions,
    free_count: u32,
    pub(super) used: Positions,
    /// Number of data groups of used blocks that are not valid.
    invalid: u64,
    /// Full blocks that are programmed except for their metadata, in order of arrival.
    undescribed: VecDeque<u32>,
    kernel: Frontier,
    own: Frontier,
    /// Block that was opened last.
    last: u32,
}

impl Space {
    pub(super) fn new(layout: &Layout, reserve: u32) -> Space {
        let blocks = layout.blocks();
        let mut free = Positions::none(blocks);
        (0..blocks).for_each(|block| free.set(block, true));
        let none = Frontier { block: NONE, next: 0 };
        Space {
            block_groups: layout.block_groups(),
            meta: layout.metadata_groups(),
            reserve,
            state: vec![State::Free; blocks as usize],
            valid: vec![0; blocks as usize],
            pending: vec![0; blocks as usize],
            reads: vec![0; blocks as usize],
            free,
            free_count: blocks,
            used: Positions::none(blocks),
            invalid: 0,
            undescribed: VecDeque::with_capacity(blocks as usize),
            kernel: none,
            own: none,
            last: blocks - 1,
        }
    }

    pub(super) fn blocks(&self) -> u32 {
        self.state.len() as u32
    }
    pub(super) fn free_count(&self) -> u32 {
        self.free_count
    }
    pub(super) fn valid(&self, block: u32) -> u32 {
        self.valid[block as usize]
    }
    /// Returns the number of data groups of used blocks that reclaim could gain.
    pub(super) fn invalid(&self) -> u64 {
        self.invalid
    }
    pub(super) fn data_groups(&self) -> u32 {
        self.block_groups - self.meta
    }
    pub(super) fn is_read(&self, block: u32) -> bool {
        self.reads[block as usize] > 0
    }
    #[cfg(test)]
    pub(super) fn state(&self, block: u32) -> State {
        self.state[block as usize]
    }

    /// Returns whether a number can be allocated at once.
    pub(super) fn has_number(&self, stream: Stream) -> bool {
        let frontier = if stream == Stream::Kernel { self.kernel } else { self.own };
        let floor = if stream == Stream::Move { 0 } else { self.reserve };
        frontier.block != NONE || self.free_count > floor
    }

    /// Allocates the number after the last one of its stream, skipping metadata. At the end of a block, it is the first
    /// number of the next free block by address, after the block that was opened last. `None` if a block must be
    /// reclaimed first.
    pub(super) fn take(&mut self, stream: Stream) -> Option<Physical> {
        if !self.has_number(stream) {
            return None;
        }
        let mut frontier = if stream == Stream::Kernel { self.kernel } else { self.own };
        if frontier.block == NONE {
            frontier = Frontier { block: self.open(), next: self.meta };
        }
        let group = Physical(frontier.block * self.block_groups + frontier.next);
        self.pending[frontier.block as usize] += 1;
        frontier.next += 1;
        if frontier.next == self.block_groups {
            self.state[frontier.block as usize] = State::Full;
            frontier.block = NONE;
        }
        *if stream == Stream::Kernel { &mut self.kernel } else { &mut self.own } = frontier;
        Some(group)
    }

    fn open(&mut self) -> u32 {
        let block = self.free.first(None, self.last + 1..self.blocks());
        let block = block.or_else(|| self.free.first(None, 0..self.last + 1)).expect("a block is free");
        self.unfree(block, State::Open);
        self.last = block;
        block
    }

    fn unfree(&mut self, block: u32, state: State) {
        self.free.set(block, false);
        self.free_count -= 1;
        self.state[block as usize] = state;
    }

    /// Registers a programmed group of a block.
    pub(super) fn programmed(&mut self, block: u32) {
        let pending = &mut self.pending[block as usize];
        *pending -= 1;
        if *pending == 0 && self.state[block as usize] == State::Full {
            self.undescribed.push_back(block);
        }
    }

    /// Adds one group of a block to those that the map names.
    pub(super) fn gain(&mut self, block: u32) {
        self.valid[block as usize] += 1;
    }

    /// Removes one group of a block from those that the map names.
    pub(super) fn lose(&mut self, block: u32) {
        self.valid[block as usize] -= 1;
        self.invalid += u64::from(self.state[block as usize] == State::Used);
    }

    /// Returns a full block that needs its metadata.
    pub(super) fn take_undescribed(&mut self) -> Option<u32> {
        self.undescribed.pop_front()
    }

    /// Registers that a block has its metadata.
    pub(super) fn described(&mut self, block: u32) {
        self.state[block as usize] = State::Used;
        self.used.set(block, true);
        self.invalid += u64::from(self.data_groups() - self.valid(block));
    }

    /// Begins the reclaim of a block.
    pub(super) fn reclaim(&mut self, block: u32) {
        assert_eq!(self.state[block as usize], State::Used, "block {block}");
        self.invalid -= u64::from(self.data_groups() - self.valid(block));
        self.used.set(block, false);
        self.state[block as usize] = State::Victim;
    }

    /// Registers the erase of a block.
    pub(super) fn erased(&mut self, block: u32) {
        assert_eq!(self.valid(block), 0, "block {block} is erased with valid groups");
        self.state[block as usize] = State::Free;
        self.free.set(block, true);
        self.free_count += 1;
    }

    pub(super) fn read_begins(&mut self, block: u32) {
        self.reads[block as usize] += 1;
    }
    pub(super) fn read_ends(&mut self, block: u32) {
        self.reads[block as usize] -= 1;
    }

    /// Declares that the first `groups` data groups hold data from the start; writes continue after them.
    pub(super) fn assume(&mut self, groups: u32) {
        let data = self.data_groups();
        let (full, rest) = (groups / data, groups % data);
        for block in 0..full {
            self.unfree(block, State::Used);
            self.used.set(block, true);
            self.valid[block as usize] = data;
        }
        if rest > 0 {
            self.unfree(full, State::Open);
            self.valid[full as usize] = rest;
            self.kernel = Frontier { block: full, next: self.meta + rest };
        }
        self.last = if groups == 0 { self.blocks() - 1 } else { (groups - 1) / data };
    }

    /// Declares, after a power cut, that a block has content, valid or not; nothing is appended to it.
    pub(super) fn found(&mut self, block: u32, valid: u32) {
        self.unfree(block, State::Full);
        self.valid[block as usize] = valid;
        self.described(block);
    }
}
