//! What a drive with a volatile cache holds.

use crate::fs::Content;
use engine::Rng;
use std::collections::BTreeMap;

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    /// Of the file system.
    Meta(Content),
    /// A page of a file; versions only grow.
    Page { file: usize, page: u64, version: u32 },
}

/// The cells of a drive and its cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct Media {
    durable: BTreeMap<u64, Cell>,
    /// What the cache has, the oldest first, each with its number.
    cache: BTreeMap<u64, Vec<(u64, Cell)>>,
    /// Writes that have come to the cache.
    held: u64,
}

impl Media {
    /// A block is durable, as after a write with FUA: what was in the cache for it is older.
    pub(crate) fn put(&mut self, block: u64, cell: Cell) {
        self.cache.remove(&block);
        self.durable.insert(block, cell);
    }

    /// A block is in the cache.
    pub(crate) fn hold(&mut self, block: u64, cell: Cell) {
        self.held += 1;
        self.cache.entry(block).or_default().push((self.held, cell));
    }

    /// What a read finds.
    pub(crate) fn read(&self, block: u64) -> Option<Cell> {
        let cached = self.cache.get(&block).and_then(|cells| cells.last()).map(|(_, cell)| *cell);
        cached.or_else(|| self.durable.get(&block).copied())
    }

    /// Blocks in the cache.
    pub(crate) fn cached(&self) -> usize {
        self.cache.len()
    }

    /// The number of the newest write in the cache: what a flush that begins now makes durable.
    pub(crate) fn newest(&self) -> u64 {
        self.held
    }

    /// Everything up to a number is durable.
    pub(crate) fn flush(&mut self, newest: u64) {
        let Media { durable, cache, .. } = self;
        cache.retain(|block, cells| {
            let old = cells.partition_point(|(number, _)| *number <= newest);
            if let Some((_, cell)) = cells.drain(..old).next_back() {
                durable.insert(*block, cell);
            }
            !cells.is_empty()
        });
    }

    /// The power goes: of each block, what was durable or anything newer.
    pub(crate) fn cut(&mut self, rng: &mut Rng) -> BTreeMap<u64, Cell> {
        for (block, cells) in std::mem::take(&mut self.cache) {
            // Often all or nothing.
            let chosen = match rng.below(3) {
                0 => None,
                1 => cells.last(),
                _ => cells.get(rng.below(cells.len() as u64 + 1) as usize),
            };
            if let Some((_, cell)) = chosen {
                self.durable.insert(block, *cell);
            }
        }
        std::mem::take(&mut self.durable)
    }
}
