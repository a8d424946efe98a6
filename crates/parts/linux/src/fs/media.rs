//! Contents of a drive with a volatile cache.

use crate::fs::Content;
use engine::Rng;
use std::collections::BTreeMap;

/// Content of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    /// Metadata of the file system.
    Meta(Content),
    /// Page of a file; versions only grow.
    Page { file: usize, page: u64, version: u32 },
}

/// Contents of a drive and its cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct Media {
    durable: BTreeMap<u64, Cell>,
    /// Cached versions, oldest first, each with its number.
    cache: BTreeMap<u64, Vec<(u64, Cell)>>,
    /// Writes that have entered the cache.
    held: u64,
}

impl Media {
    /// Makes a block durable, as after a write with FUA: earlier versions in the cache are dropped.
    pub(crate) fn put(&mut self, block: u64, cell: Cell) {
        self.cache.remove(&block);
        self.durable.insert(block, cell);
    }

    /// Puts a block into the cache.
    pub(crate) fn hold(&mut self, block: u64, cell: Cell) {
        self.held += 1;
        self.cache.entry(block).or_default().push((self.held, cell));
    }

    /// Content that a read returns.
    pub(crate) fn read(&self, block: u64) -> Option<Cell> {
        let cached = self.cache.get(&block).and_then(|cells| cells.last()).map(|(_, cell)| *cell);
        cached.or_else(|| self.durable.get(&block).copied())
    }

    /// Blocks in the cache.
    pub(crate) fn cached(&self) -> usize {
        self.cache.len()
    }

    /// Number of the newest write in the cache; a flush that begins now makes it durable.
    pub(crate) fn newest(&self) -> u64 {
        self.held
    }

    /// Makes all writes up to a number durable.
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

    /// Models a power failure: each block keeps its durable version or any newer one.
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
