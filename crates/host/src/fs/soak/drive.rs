//! A drive with a cache that forgets.

use super::Then;
use crate::fs::Content;
use kernel::Rng;
use std::collections::BTreeMap;

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cell {
    /// Of the file system.
    Meta(Content),
    /// A page of a file; versions only grow.
    Page { file: usize, page: u64, version: u32 },
}

/// A write on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) block: u64,
    pub(super) cell: Cell,
    pub(super) then: Then,
    fua: bool,
}

/// A drive.
#[derive(Clone, Debug, Default)]
pub(super) struct Drive {
    durable: BTreeMap<u64, Cell>,
    /// What the cache has, the oldest first.
    cache: BTreeMap<u64, Vec<Cell>>,
    flying: Vec<Write>,
}

impl Drive {
    /// A block is durable, as after a write with FUA: what was in the cache for it is older.
    pub(super) fn put(&mut self, block: u64, cell: Cell) {
        self.cache.remove(&block);
        self.durable.insert(block, cell);
    }

    /// A block is in the cache.
    pub(super) fn hold(&mut self, block: u64, cell: Cell) {
        self.cache.entry(block).or_default().push(cell);
    }

    pub(super) fn submit(&mut self, block: u64, cell: Cell, fua: bool, then: Then) {
        self.flying.push(Write { block, cell, then, fua });
    }

    /// Ends one of the writes on their way.
    pub(super) fn complete(&mut self, rng: &mut Rng) -> Option<Write> {
        if self.flying.is_empty() {
            return None;
        }
        let write = self.flying.swap_remove(rng.below(self.flying.len() as u64) as usize);
        if write.fua {
            self.put(write.block, write.cell);
        } else {
            self.hold(write.block, write.cell);
        }
        Some(write)
    }

    pub(super) fn is_flying(&self, holds: impl Fn(&Write) -> bool) -> bool {
        self.flying.iter().any(holds)
    }

    pub(super) fn flush(&mut self) {
        for (block, cells) in std::mem::take(&mut self.cache) {
            self.durable.insert(block, *cells.last().expect("none is empty"));
        }
    }

    /// The power goes: of each block, what was durable or anything newer.
    pub(super) fn cut(&mut self, rng: &mut Rng) -> BTreeMap<u64, Cell> {
        for write in std::mem::take(&mut self.flying) {
            self.hold(write.block, write.cell);
        }
        for (block, cells) in std::mem::take(&mut self.cache) {
            // Often all or nothing.
            let chosen = match rng.below(3) {
                0 => None,
                1 => cells.last(),
                _ => cells.get(rng.below(cells.len() as u64 + 1) as usize),
            };
            if let Some(cell) = chosen {
                self.durable.insert(block, *cell);
            }
        }
        std::mem::take(&mut self.durable)
    }
}
