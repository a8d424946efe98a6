//! A drive with a cache that forgets.

use super::Then;
use crate::fs::media::{Cell, Media};
use engine::Rng;
use std::collections::BTreeMap;

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
    media: Media,
    flying: Vec<Write>,
}

impl Drive {
    /// A block is durable.
    pub(super) fn put(&mut self, block: u64, cell: Cell) {
        self.media.put(block, cell);
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
            self.media.put(write.block, write.cell);
        } else {
            self.media.hold(write.block, write.cell);
        }
        Some(write)
    }

    pub(super) fn is_flying(&self, holds: impl Fn(&Write) -> bool) -> bool {
        self.flying.iter().any(holds)
    }

    pub(super) fn flush(&mut self) {
        self.media.flush(self.media.newest());
    }

    /// The power goes: of each block, what was durable or anything newer.
    pub(super) fn cut(&mut self, rng: &mut Rng) -> BTreeMap<u64, Cell> {
        for write in std::mem::take(&mut self.flying) {
            self.media.hold(write.block, write.cell);
        }
        self.media.cut(rng)
    }
}
