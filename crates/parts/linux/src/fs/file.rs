//! A file, and the directory that all files are in.

use super::content::Tid;
use super::extents::ExtentTree;
use super::layout::{BLOCK, FIRST, Layout};
use super::mballoc::Prealloc;
use super::ranges::Ranges;
use engine::Time;
use std::collections::BTreeSet;

/// A tick of the kernel's clock with `CONFIG_HZ=250`: what times of files are given in (`ktime_get_coarse_real_ts64`).
const JIFFY: Time = Time::from_ms(4);
/// Entries of a block of a directory: 24 B each, for names of 13 to 16 letters. *Chosen.*
const ENTRIES: u32 = (BLOCK / 24) as u32;

/// Ticks of the kernel's clock up to a time.
pub(super) fn jiffies(now: Time) -> u64 {
    now.ps() / JIFFY.ps()
}

/// A file.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// Its inode number.
    pub(super) number: u32,
    /// Length in bytes, as a program sees it.
    pub(super) size: u64,
    /// Length that is written to the inode (`i_disksize`), and that stands there already.
    pub(super) disk_size: u64,
    pub(super) raw_size: u64,
    pub(super) extents: ExtentTree,
    /// Pages that have no block yet.
    pub(super) delayed: Ranges,
    pub(super) preallocs: Vec<Prealloc>,
    /// The transactions that `fsync` and `fdatasync` wait for.
    pub(super) sync: Tid,
    pub(super) data_sync: Tid,
    /// When it was last written; none: long ago.
    pub(super) stamp: Option<u64>,
    /// It was cut to nothing: what is written since is written back when it is closed (`EXT4_STATE_DA_ALLOC_CLOSE`).
    pub(super) flush_on_close: bool,
    /// It has no name any more, and its blocks are being freed.
    pub(super) unlinked: bool,
}

impl File {
    pub(super) fn new(number: u32, stamp: Option<u64>) -> File {
        File {
            number,
            size: 0,
            disk_size: 0,
            raw_size: 0,
            extents: ExtentTree::default(),
            delayed: Ranges::default(),
            preallocs: Vec::new(),
            sync: Tid(0),
            data_sync: Tid(0),
            stamp,
            flush_on_close: false,
            unlinked: false,
        }
    }

    /// Pages up to the end.
    pub(super) fn pages(&self) -> u64 {
        self.size.div_ceil(BLOCK)
    }
}

/// The directory of all files. Its entries are in no tree of hashes, whose inner nodes a new entry seldom touches.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    /// Numbers from here on have never been used.
    next: u32,
    free: BTreeSet<u32>,
    /// Its blocks.
    pub(super) blocks: Vec<u64>,
}

impl Directory {
    pub(super) fn new() -> Directory {
        Directory { next: FIRST, free: BTreeSet::new(), blocks: Vec::new() }
    }

    /// An inode number that no file has, the smallest one.
    pub(super) fn take(&mut self, layout: &Layout) -> Option<u32> {
        self.free.pop_first().or_else(|| {
            let number = self.next;
            (u64::from(number) <= layout.inodes()).then(|| {
                self.next += 1;
                number
            })
        })
    }

    /// A number is free.
    pub(super) fn give(&mut self, number: u32) {
        self.free.insert(number);
    }

    /// Which of its blocks has the entry of a file.
    pub(super) fn block_of(number: u32) -> usize {
        ((number - FIRST) / ENTRIES) as usize
    }
}
