//! Which leaves were used last.

use crate::Inode;
use std::cell::Cell;

/// Entries; a power of two. One for each of many readers in order, and small enough for the first cache of a processor.
const ENTRIES: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    leaf: u32,
}

/// No leaf has this key: its page would be beyond the end of any file.
const NOTHING: Entry = Entry { key: u64::MAX, leaf: 0 };

/// A direct-mapped cache of walks from a root to a leaf: who reads in order walks once for 64 pages.
#[derive(Debug)]
pub(super) struct WalkCache {
    entries: Box<[Cell<Entry>]>,
}

impl Default for WalkCache {
    fn default() -> Self {
        WalkCache { entries: vec![Cell::new(NOTHING); ENTRIES].into() }
    }
}

#[inline]
fn key(inode: Inode, page: u32) -> u64 {
    u64::from(inode.0) << 32 | u64::from(page >> 6)
}

impl WalkCache {
    #[inline]
    fn entry(&self, key: u64) -> &Cell<Entry> {
        // Leaves of one file that follow each other do not meet; those of files are spread.
        let spread = (key >> 32).wrapping_mul(0x9e37_79b9) >> 8;
        &self.entries[(key ^ spread) as usize % ENTRIES]
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
