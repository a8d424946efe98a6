//! Which leaves were used last.

use crate::Inode;
use std::cell::Cell;

/// The fewest and the most entries, of 16 bytes: one for each of many readers in order; not more than a processor's second cache holds.
const FEWEST: u64 = 1 << 8;
const MOST: u64 = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    leaf: u32,
}

/// No leaf has this key: its page would be beyond the end of any file.
const NOTHING: Entry = Entry { key: u64::MAX, leaf: 0 };

/// A direct-mapped cache of walks from a root to a leaf: who reads in order walks once for 64 pages; who reads at random in what is mostly cached seldom
/// does.
#[derive(Debug)]
pub(super) struct WalkCache {
    entries: Box<[Cell<Entry>]>,
}

#[inline]
fn key(inode: Inode, page: u32) -> u64 {
    u64::from(inode.0) << 32 | u64::from(page >> 6)
}

impl WalkCache {
    /// For a memory of so many pages: an entry for sixteen of them.
    pub(super) fn new(pages: u64) -> WalkCache {
        let entries = (pages / 16).next_power_of_two().clamp(FEWEST, MOST);
        WalkCache { entries: vec![Cell::new(NOTHING); entries as usize].into() }
    }

    #[inline]
    fn entry(&self, key: u64) -> &Cell<Entry> {
        // Leaves of one file that follow each other do not meet; those of files are spread.
        let spread = (key >> 32).wrapping_mul(0x9e37_79b9) >> 8;
        &self.entries[(key ^ spread) as usize & (self.entries.len() - 1)]
    }

    #[inline]
    pub(super) fn get(&self, inode: Inode, page: u32) -> Option<u32> {
        let key = key(inode, page);
        let entry = self.entry(key).get();
        (entry.key == key).then_some(entry.leaf)
    }

    #[inline]
    pub(super) fn put(&self, inode: Inode, page: u32, leaf: u32) {
        let key = key(inode, page);
        self.entry(key).set(Entry { key, leaf });
    }

    /// The leaf that covers a page is gone.
    pub(super) fn remove(&self, inode: Inode, page: u32) {
        let key = key(inode, page);
        let entry = self.entry(key);
        if entry.get().key == key {
            entry.set(NOTHING);
        }
    }
}
