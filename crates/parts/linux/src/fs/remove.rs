//! Files become shorter, or go.

use super::file::File;
use super::layout::BLOCK;
use super::recovery::Record;
use super::{Ext4, FsError, Handle, Tid};
use crate::Inode;

impl Ext4 {
    /// Whether dirty pages that are about to be cut off a file, or removed with it, have to be written first, because a transaction that is being
    /// committed makes their blocks visible (`jbd2_journal_begin_ordered_truncate`).
    pub fn must_write_before_truncate(&self, inode: Inode) -> bool {
        self.journal.is_ordering(inode)
    }

    /// Makes a file shorter or longer (`ext4_setattr`, `ext4_truncate`). Whether it is done: the blocks of a long file are freed over several
    /// transactions (`ext4_ext_truncate_extend_restart`), and until it is done this is to be called again with a new handle. Pages in memory
    /// behind the end are the caller's: it asks [first](Ext4::must_write_before_truncate) what becomes of them.
    ///
    /// # Errors
    /// No such file.
    pub fn truncate(&mut self, handle: &Handle, inode: Inode, bytes: u64) -> Result<bool, FsError> {
        let mut file = self.take_file(inode)?;
        file.flush_on_close |= bytes == 0 && self.spec.auto_da_alloc;
        if file.size != bytes || file.disk_size != bytes {
            (file.size, file.disk_size) = (bytes, bytes);
            self.drop_delayed(&mut file, bytes.div_ceil(BLOCK));
            self.allocator.discard(&mut file.preallocs);
            // The list of orphans begins in the super block.
            self.dirty(handle.tid, self.layout.super_block());
            self.dirty_inode(handle.tid, inode, &mut file);
        }
        let done = self.free_from(handle, inode, &mut file, bytes.div_ceil(BLOCK));
        self.put_file(inode, file);
        Ok(done)
    }

    /// Removes a file that nobody has open (`ext4_unlink`, `ext4_evict_inode`). Whether it is done, as [`Ext4::truncate`].
    ///
    /// # Errors
    /// No such file.
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

    /// Frees the blocks of pages from one on, from the end, as far as the handle's credits go (`ext4_ext_remove_space`); whether that was all.
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
            // A record of the kernel's, which is in one group.
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
