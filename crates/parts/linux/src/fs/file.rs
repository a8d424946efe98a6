//! Files, their common directory, and their creation and truncation.

use super::extents::ExtentTree;
use super::layout::{BLOCK, FIRST, Layout, ROOT};
use super::mballoc::{Grant, Prealloc, Request};
use super::recovery::Record;
use super::{Ext4, FsError, Handle, Tid};
use crate::{Inode, fs::extents::Extent};
use engine::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Clock tick with `CONFIG_HZ=250`, the unit of file times (`ktime_get_coarse_real_ts64`).
const JIFFY: Time = Time::from_ms(4);
/// Entries of a directory block: 24 B each, for names of 13 to 16 letters. *Chosen.*
const ENTRIES: u32 = (BLOCK / 24) as u32;

/// Clock ticks up to a time.
pub(super) fn jiffies(now: Time) -> u64 {
    now.ps() / JIFFY.ps()
}

/// File of the file system.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// Inode number.
    pub(super) number: u32,
    /// Length in bytes, as seen by programs.
    pub(super) size: u64,
    /// Length to be written to the inode (`i_disksize`), and length already there.
    pub(super) disk_size: u64,
    pub(super) raw_size: u64,
    pub(super) extents: ExtentTree,
    /// Pages without a block yet.
    pub(super) delayed: Ranges,
    pub(super) preallocs: Vec<Prealloc>,
    /// Transactions that `fsync` and `fdatasync` wait for.
    pub(super) sync: Tid,
    pub(super) data_sync: Tid,
    /// Time of the last write; `None` if long ago.
    pub(super) stamp: Option<u64>,
    /// Truncated to zero: later writes are written back when it is closed (`EXT4_STATE_DA_ALLOC_CLOSE`).
    pub(super) flush_on_close: bool,
    /// Unlinked: its blocks are being freed.
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

    /// Number of pages up to the end.
    pub(super) fn pages(&self) -> u64 {
        self.size.div_ceil(BLOCK)
    }
}

/// Directory of all files, without a hash tree, whose inner nodes a new entry rarely touches.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    /// First inode number never used.
    next: u32,
    free: BTreeSet<u32>,
    /// Directory blocks.
    pub(super) blocks: Vec<u64>,
}

impl Directory {
    pub(super) fn new() -> Directory {
        Directory { next: FIRST, free: BTreeSet::new(), blocks: Vec::new() }
    }

    /// Takes the smallest unused inode number.
    pub(super) fn take(&mut self, layout: &Layout) -> Option<u32> {
        self.free.pop_first().or_else(|| {
            let number = self.next;
            (u64::from(number) <= layout.inodes()).then(|| {
                self.next += 1;
                number
            })
        })
    }

    /// Frees an inode number.
    pub(super) fn give(&mut self, number: u32) {
        self.free.insert(number);
    }

    /// Index of the directory block with the entry of a file.
    pub(super) fn block_of(number: u32) -> usize {
        ((number - FIRST) / ENTRIES) as usize
    }
}

// Page sets as ranges.

/// Set of pages.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// End by begin; ranges neither overlap nor touch.
    ends: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Returns whether the set is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// First range that ends after a page, cut to begin at or after it: begin and end.
    pub(super) fn next(&self, page: u64) -> Option<(u64, u64)> {
        let covering = self.ends.range(..=page).next_back().filter(|(_, end)| **end > page);
        covering
            .map(|(_, end)| (page, *end))
            .or_else(|| self.ends.range(page..).next().map(|(b, e)| (*b, *e)))
    }

    /// Adds pages, none of which is in the set.
    pub(super) fn insert(&mut self, begin: u64, end: u64) {
        let end = self.ends.remove(&end).unwrap_or(end);
        match self.ends.range_mut(..begin).next_back() {
            Some((_, left)) if *left == begin => *left = end,
            _ => _ = self.ends.insert(begin, end),
        }
    }

    /// Removes the pages of a range; returns how many were in the set.
    pub(super) fn remove(&mut self, begin: u64, end: u64) -> u64 {
        let mut removed = 0;
        while let Some((from, to)) = self.next(begin).filter(|(from, _)| *from < end) {
            let start = *self.ends.range(..=from).next_back().expect("a range covers it").0;
            self.ends.remove(&start);
            if start < from {
                self.ends.insert(start, from);
            }
            if to > end {
                self.ends.insert(end, to);
            }
            removed += to.min(end) - from;
        }
        removed
    }
}

// Truncation and removal of files.

impl Ext4 {
    /// Returns whether dirty pages about to be truncated or removed must be written first, because a committing
    /// transaction makes their blocks visible (`jbd2_journal_begin_ordered_truncate`).
    pub fn must_write_before_truncate(&self, inode: Inode) -> bool {
        self.journal.is_ordering(inode)
    }

    /// Truncates or extends a file (`ext4_setattr`, `ext4_truncate`). Returns whether it is done: the blocks of a long
    /// file are freed over several transactions (`ext4_ext_truncate_extend_restart`), so repeat the call with a new
    /// handle until it is done. The caller drops pages in memory after the end, and asks
    /// [first](Ext4::must_write_before_truncate) whether to write them.
    ///
    /// # Errors
    /// If the file does not exist.
    pub fn truncate(&mut self, handle: &Handle, inode: Inode, bytes: u64) -> Result<bool, FsError> {
        let mut file = self.take_file(inode)?;
        file.flush_on_close |= bytes == 0 && self.spec.auto_da_alloc;
        if file.size != bytes || file.disk_size != bytes {
            (file.size, file.disk_size) = (bytes, bytes);
            self.drop_delayed(&mut file, bytes.div_ceil(BLOCK));
            self.allocator.discard(&mut file.preallocs);
            // The orphan list begins in the super block.
            self.dirty(handle.tid, self.layout.super_block());
            self.dirty_inode(handle.tid, inode, &mut file);
        }
        let done = self.free_from(handle, inode, &mut file, bytes.div_ceil(BLOCK));
        self.put_file(inode, file);
        Ok(done)
    }

    /// Removes a file without descriptors (`ext4_unlink`, `ext4_evict_inode`). Returns whether it is done, like
    /// [`Ext4::truncate`].
    ///
    /// # Errors
    /// If the file does not exist.
    pub fn unlink(&mut self, handle: &Handle, inode: Inode) -> Result<bool, FsError> {
        let mut file = self.take_file(inode)?;
        let tid = handle.tid;
        if !file.unlinked {
            file.unlinked = true;
            (file.size, file.disk_size) = (0, 0);
            self.drop_delayed(&mut file, 0);
            self.allocator.discard(&mut file.preallocs);
            self.dirty_name(tid, file.number);
            self.dirty(tid, self.layout.super_block());
            self.dirty_inode(tid, inode, &mut file);
            self.record(tid, inode, Record::Unlink);
        }
        let done = self.free_from(handle, inode, &mut file, 0);
        if done {
            self.dirty(tid, self.layout.super_block());
            self.dirty(tid, self.layout.bitmap_of_inode(file.number));
            self.dirty(tid, self.layout.descriptor(self.layout.group_of_inode(file.number)));
            self.directory.give(file.number);
        } else {
            self.put_file(inode, file);
        }
        Ok(done)
    }

    fn drop_delayed(&mut self, file: &mut File, from: u64) {
        let dropped = file.delayed.remove(from, u64::MAX);
        self.allocator.unpromise(dropped);
    }

    /// Frees the blocks of pages from `from` on, last first, within the handle's credits (`ext4_ext_remove_space`);
    /// returns whether that was all.
    fn free_from(&mut self, handle: &Handle, inode: Inode, file: &mut File, from: u64) -> bool {
        let tid = handle.tid;
        let budget = self.journal.changed() + handle.credits().saturating_sub(8) as usize;
        let is_on = self.journal.is_on();
        let mut freed = false;
        let done = loop {
            let Some(last) = file.extents.previous(u64::MAX).filter(|last| last.page + last.pages > from)
            else {
                break true;
            };
            if is_on && freed && self.journal.changed() >= budget {
                break false;
            }
            // One kernel record, which lies in one group.
            let begin = last.page.max(from).max((last.page + last.pages).saturating_sub(1 << 15));
            self.free_extent(tid, file, begin);
            self.record(tid, inode, Record::Hole { from: begin });
            freed = true;
        };
        if freed {
            self.settle(tid, file);
            self.dirty_inode(tid, inode, file);
            file.data_sync = tid;
        }
        done
    }

    fn free_extent(&mut self, tid: Tid, file: &mut File, begin: u64) {
        let mut gone = Vec::with_capacity(1);
        file.extents.remove(begin, u64::MAX, |extent| gone.push(extent));
        for extent in gone {
            self.stats.freed += extent.pages;
            self.free_blocks(tid, extent.block, extent.pages, true);
            if self.journals_data() {
                (extent.block..extent.block + extent.pages).for_each(|block| self.free_journaled(tid, block));
            }
        }
    }
}

// Creation of files.

impl Ext4 {
    /// Creates a file that existed before the run: written at once and closed, as contiguous as free space allows.
    ///
    /// # Errors
    /// No room, or no inode; nothing has changed in either case.
    pub fn exists(&mut self, inode: Inode, bytes: u64) -> Result<(), FsError> {
        let pages = bytes.div_ceil(BLOCK);
        if self.available() < pages {
            return Err(self.no_space());
        }
        let mut file = Box::new(File::new(self.number_for(inode)?, None));
        let mut goal = self.layout.goal_of_inode(file.number);
        let mut page = 0;
        while page < pages {
            let grant = match self.room(goal, page, pages, &mut file) {
                Some(grant) => grant,
                None => {
                    self.discard_preallocations();
                    self.room(goal, page, pages, &mut file).expect("enough blocks are free for its pages")
                }
            };
            file.extents.set(Extent { page, pages: grant.blocks, block: grant.block, unwritten: false });
            (page, goal) = (page + grant.blocks, grant.block + grant.blocks);
        }
        self.allocator.discard(&mut file.preallocs);
        let allocator = &mut self.allocator;
        file.extents.settle(|goal| allocator.metadata(goal), |_| {});
        (file.size, file.disk_size, file.raw_size) = (bytes, bytes, bytes);
        self.grow_directory(None, file.number);
        if self.history.is_some() {
            self.record(Tid(0), inode, Record::Create);
            self.record(Tid(0), inode, Record::Size(bytes));
            let extents: Vec<Extent> = file.extents.iter().copied().collect();
            extents.into_iter().for_each(|extent| self.record(Tid(0), inode, Record::Map(extent)));
        }
        self.put_file(inode, file);
        Ok(())
    }

    /// Allocates blocks for pages of a file that existed before the run.
    fn room(&mut self, goal: u64, page: u64, pages: u64, file: &mut File) -> Option<Grant> {
        if page == 0 {
            let request =
                Request { page: 0, pages: pages.min(2048), size: pages, goal, left: None, right: None };
            return self.allocator.data(&request, &mut file.preallocs);
        }
        self.allocator.discard(&mut file.preallocs);
        self.allocator.run(goal, pages - page)
    }

    /// Creates an empty file (`ext4_create`).
    ///
    /// # Errors
    /// If the file exists, or no inode is left.
    pub fn create(&mut self, handle: &Handle, inode: Inode, now: Time) -> Result<(), FsError> {
        let tid = handle.tid;
        let number = self.number_for(inode)?;
        let mut file = Box::new(File::new(number, Some(jiffies(now))));
        self.dirty(tid, self.layout.bitmap_of_inode(number));
        self.dirty(tid, self.layout.descriptor(self.layout.group_of_inode(number)));
        self.grow_directory(Some(tid), number);
        self.dirty_name(tid, number);
        self.record(tid, inode, Record::Create);
        self.dirty_inode(tid, inode, &mut file);
        file.data_sync = tid;
        self.put_file(inode, file);
        Ok(())
    }

    /// Marks the directory entry of a file as changed, with the directory's times.
    pub(super) fn dirty_name(&mut self, tid: Tid, number: u32) {
        if let Some(block) = self.directory.blocks.get(Directory::block_of(number)) {
            self.dirty(tid, *block);
        }
        self.dirty(tid, self.layout.inode_block(ROOT));
    }

    fn number_for(&mut self, inode: Inode) -> Result<u32, FsError> {
        let at = inode.0 as usize;
        if self.files.len() <= at {
            self.files.resize_with(at + 1, || None);
        }
        if self.files[at].is_some() {
            return Err(FsError::NoInode);
        }
        self.directory.take(&self.layout).ok_or(FsError::NoInode)
    }

    /// Grows the directory if no block has room for an entry; on a full drive it gets none, as programs do not read it.
    fn grow_directory(&mut self, tid: Option<Tid>, number: u32) {
        while self.directory.blocks.len() <= Directory::block_of(number) {
            let Some(block) = self.allocator.metadata(0) else { return };
            self.directory.blocks.push(block);
            if let Some(tid) = tid {
                self.dirty_groups(tid, block, 1);
            }
        }
    }

    /// Error for a lack of room, telling whether a commit would make some.
    pub(super) fn no_space(&mut self) -> FsError {
        self.stats.no_space += 1;
        FsError::NoSpace { retry: self.pending.back().map(|(tid, ..)| *tid) }
    }
}
