//! Writes of pages to the page cache, write-back, and direct writes.

use super::file::{File, jiffies};
use super::layout::BLOCK;
use super::mballoc::Request;
use super::recovery::Record;
use super::{Ext4, Extent, FsError, Handle, JournalMode, Place, Tid, WRITEPAGES_MOST};
use crate::Inode;
use engine::Time;

impl Ext4 {
    /// Returns whether a write to the page cache needs no handle: no block is allocated and the inode does not change.
    pub fn write_is_bare(&self, inode: Inode, offset: u64, bytes: u64, now: Time) -> bool {
        let Some(file) = self.file(inode) else { return true };
        self.delays() && file.stamp == Some(jiffies(now)) && offset + bytes <= file.size
    }

    /// Returns whether a write to the page cache allocates blocks.
    pub fn write_allocates(&self) -> bool {
        !self.delays()
    }

    /// Credits of a handle for a write to the page cache.
    pub fn write_credits(&self, inode: Inode, bytes: u64) -> u32 {
        if self.delays() {
            return super::INODE_CREDITS;
        }
        // With data in the journal, its pages count too.
        let data = if self.journals_data() { (bytes / BLOCK + 2) as u32 } else { 0 };
        self.writepages_credits(inode) + data
    }

    /// Credits of a handle for [`Ext4::writepages`] (`ext4_meta_trans_blocks` for one extent: inner nodes, bitmaps,
    /// descriptors, inode, super block).
    pub fn writepages_credits(&self, inode: Inode) -> u32 {
        let index = 2 * self.file(inode).map_or(0, |file| file.extents.depth());
        index + 2 * (index + 1) + 6
    }

    /// Writes bytes to the page cache: `file_update_time`, `write_begin` and `write_end` for all of their pages.
    /// `handle` may be `None` if the write [is bare](Ext4::write_is_bare).
    ///
    /// # Errors
    /// No room, or the file does not exist; the file is unchanged in either case.
    pub fn write(
        &mut self,
        handle: Option<&Handle>,
        inode: Inode,
        offset: u64,
        bytes: u64,
        now: Time,
    ) -> Result<(), FsError> {
        let mut file = self.take_file(inode)?;
        let result = self.write_file(handle.map(|handle| handle.tid), inode, &mut file, (offset, bytes), now);
        self.put_file(inode, file);
        result
    }

    fn write_file(
        &mut self,
        tid: Option<Tid>,
        inode: Inode,
        file: &mut File,
        (offset, bytes): (u64, u64),
        now: Time,
    ) -> Result<(), FsError> {
        let (first, end) = (offset / BLOCK, (offset + bytes).div_ceil(BLOCK));
        if self.delays() {
            self.reserve(file, first, end)?;
        } else {
            let tid = tid.expect("a handle is needed");
            self.allocate_holes(tid, inode, file, first, end)?;
            if self.journals_data() {
                self.journal_pages(tid, inode, file, first, end);
            }
        }
        let Some(tid) = tid else {
            debug_assert!(file.stamp == Some(jiffies(now)) && offset + bytes <= file.size);
            return Ok(());
        };
        let mut changed = file.stamp != Some(jiffies(now));
        file.stamp = Some(jiffies(now));
        if offset + bytes > file.size {
            file.size = offset + bytes;
            // `ext4_da_should_update_i_disksize`: at once if the last page already has a block, even one that is being
            // written.
            let last = file.extents.next(end - 1).filter(|extent| extent.page < end);
            if !self.delays() || last.is_some() {
                file.disk_size = file.size;
            }
            changed = true;
        }
        if changed {
            self.dirty_inode(tid, inode, file);
        }
        Ok(())
    }

    /// Prepares a page for a change through a mapping (`ext4_page_mkwrite`), like a write that does not extend the
    /// file.
    ///
    /// # Errors
    /// No room, or the file does not exist.
    pub fn page_mkwrite(
        &mut self,
        handle: Option<&Handle>,
        inode: Inode,
        page: u64,
        now: Time,
    ) -> Result<(), FsError> {
        let size = self.size(inode).ok_or(FsError::NoFile)?;
        let offset = (page * BLOCK).min(size);
        self.write(handle, inode, offset, BLOCK.min(size - offset), now)
    }

    /// Promises blocks to pages without any (`ext4_da_reserve_space`).
    fn reserve(&mut self, file: &mut File, first: u64, end: u64) -> Result<(), FsError> {
        let Some(hole) = next_hole(file, first, end) else { return Ok(()) };
        let behind = holes(file, hole.1, end).map(|(from, to)| to - from);
        if !self.allocator.promise(hole.1 - hole.0 + behind.sum::<u64>()) {
            return Err(self.no_space());
        }
        let mut next = Some(hole);
        while let Some((from, to)) = next {
            file.delayed.insert(from, to);
            next = next_hole(file, to, end);
        }
        Ok(())
    }

    /// Allocates blocks for pages without any, if allocation is not delayed (`ext4_write_begin`, `_ext4_get_block`).
    fn allocate_holes(
        &mut self,
        tid: Tid,
        inode: Inode,
        file: &mut File,
        first: u64,
        end: u64,
    ) -> Result<(), FsError> {
        let pages: u64 = holes(file, first, end).map(|(from, to)| to - from).sum();
        if self.available() < pages {
            return Err(self.no_space());
        }
        let mut page = first;
        while let Some((from, _)) = next_hole(file, page, end) {
            // The kernel writes page by page, and allocates a block for each.
            if !self.allocate(tid, inode, file, from, 1, false) {
                return Err(self.no_space());
            }
            if self.spec.data == JournalMode::ordered {
                self.journal.order(inode, from, from + 1, true);
            }
            page = from + 1;
        }
        Ok(())
    }

    /// Adds pages to the running transaction (`ext4_journalled_write_end`).
    fn journal_pages(&mut self, tid: Tid, inode: Inode, file: &File, first: u64, end: u64) {
        let mut page = first;
        while let Some(extent) = file.extents.next(page).filter(|extent| page < end && extent.page < end) {
            let to = (extent.page + extent.pages).min(end);
            for page in page.max(extent.page)..to {
                let block = extent.block + (page - extent.page);
                self.journal.dirty(block, true);
                if let Some(history) = &mut self.history {
                    history.changed(tid, block);
                    history.add(tid, inode, Record::Data { page });
                }
            }
            page = to;
        }
    }

    /// Allocates delayed blocks of up to [`WRITEPAGES_MOST`] pages that are about to be written
    /// (`mpage_map_and_submit_extent`). Afterwards each of them has a block; [`Ext4::map`] returns it.
    ///
    /// # Errors
    /// No room, which delayed allocation should have prevented; or the file does not exist.
    pub fn writepages(
        &mut self,
        handle: &Handle,
        inode: Inode,
        page: u64,
        count: u64,
    ) -> Result<(), FsError> {
        debug_assert!(count <= WRITEPAGES_MOST);
        let mut file = self.take_file(inode)?;
        let result = self.write_back(handle.tid, inode, &mut file, page, page + count);
        self.put_file(inode, file);
        result
    }

    fn write_back(
        &mut self,
        tid: Tid,
        inode: Inode,
        file: &mut File,
        first: u64,
        end: u64,
    ) -> Result<(), FsError> {
        let unwritten = self.is_unwritten_first();
        let mut allocated = false;
        while let Some((from, to)) = file.delayed.next(first).filter(|(from, _)| *from < end) {
            let to = to.min(end);
            if !self.allocate(tid, inode, file, from, to - from, unwritten) {
                return Err(self.no_space());
            }
            self.allocator.unpromise(file.delayed.remove(from, to));
            allocated = true;
            if !unwritten && self.spec.data == JournalMode::ordered {
                self.journal.order(inode, from, to, false);
            }
        }
        let size = (end * BLOCK).min(file.size);
        if allocated && size > file.disk_size {
            file.disk_size = size;
            self.dirty_inode(tid, inode, file);
        }
        Ok(())
    }

    /// Allocates blocks for pages without any; returns whether all of them got one.
    pub(super) fn allocate(
        &mut self,
        tid: Tid,
        inode: Inode,
        file: &mut File,
        page: u64,
        pages: u64,
        unwritten: bool,
    ) -> bool {
        let (mut at, end) = (page, page + pages);
        while at < end {
            let (left, right) = (file.extents.previous(at), file.extents.next(at));
            let goal = match left {
                Some(left) => left.block + (at - left.page),
                None => self.layout.goal_of_inode(file.number),
            };
            let request = Request { page: at, pages: end - at, size: file.pages(), goal, left, right };
            let grant = self.allocator.data(&request, &mut file.preallocs);
            let Some(grant) = grant.or_else(|| self.allocate_again(&request, file)) else {
                return false;
            };
            let extent = Extent { page: at, pages: grant.blocks, block: grant.block, unwritten };
            file.extents.set(extent);
            self.settle(tid, file);
            self.dirty_groups(tid, grant.block, grant.blocks);
            self.record(tid, inode, Record::Map(extent));
            self.dirty_inode(tid, inode, file);
            if !unwritten {
                file.data_sync = tid;
            }
            self.stats.allocated += grant.blocks;
            self.stats.allocations += 1;
            at += grant.blocks;
        }
        true
    }

    /// Retries an allocation after freeing all preallocations.
    fn allocate_again(&mut self, request: &Request, file: &mut File) -> Option<super::mballoc::Grant> {
        self.allocator.discard(&mut file.preallocs);
        self.discard_preallocations();
        self.allocator.data(request, &mut file.preallocs)
    }

    /// Frees the preallocations of small files and of all files (`ext4_mb_discard_preallocations`).
    pub(super) fn discard_preallocations(&mut self) {
        self.allocator.discard_small();
        for file in self.files.iter_mut().flatten() {
            self.allocator.discard(&mut file.preallocs);
        }
    }

    /// Handles data on the drive: unwritten pages become valid with the transaction of this handle
    /// (`ext4_convert_unwritten_extents`).
    ///
    /// # Errors
    /// If the file has been removed meanwhile.
    pub fn end_io(&mut self, handle: &Handle, inode: Inode, page: u64, count: u64) -> Result<(), FsError> {
        let tid = handle.tid;
        let mut file = self.take_file(inode)?;
        self.convert(tid, inode, &mut file, page, page + count);
        self.put_file(inode, file);
        Ok(())
    }

    /// Makes unwritten pages valid.
    pub(super) fn convert(&mut self, tid: Tid, inode: Inode, file: &mut File, first: u64, end: u64) {
        let mut converted = std::mem::take(&mut self.converted);
        file.extents.convert(first, end, |extent| converted.push(extent));
        if !converted.is_empty() {
            self.settle(tid, file);
            self.dirty_inode(tid, inode, file);
            file.data_sync = tid;
        }
        for extent in converted.drain(..) {
            self.record(tid, inode, Record::Map(extent));
        }
        self.converted = converted;
    }

    /// Handles the close by a file's last writer: frees its preallocation, unless pages are delayed
    /// (`ext4_release_file`). Returns whether its dirty pages are to be written now, without waiting for them
    /// (`ext4_alloc_da_blocks`).
    pub fn release(&mut self, inode: Inode) -> bool {
        let Some(file) = self.files.get_mut(inode.0 as usize).and_then(Option::as_deref_mut) else {
            return false;
        };
        let flush = std::mem::take(&mut file.flush_on_close) && !file.delayed.is_empty();
        if file.delayed.is_empty() {
            self.allocator.discard(&mut file.preallocs);
        }
        flush
    }

    /// Returns whether [`Ext4::end_io`] must be called for these pages once their data are on the drive.
    pub fn needs_end_io(&self, inode: Inode, page: u64, count: u64) -> bool {
        let (mut at, end) = (page, page + count);
        while at < end {
            let run = self.map(inode, at, end - at);
            if matches!(run.place, Place::Unwritten { .. }) {
                return true;
            }
            at += run.pages;
        }
        false
    }
}

/// First pages of a range with neither a block nor a promise of one.
pub(super) fn next_hole(file: &File, first: u64, end: u64) -> Option<(u64, u64)> {
    let mut page = first;
    while page < end {
        let extent = file.extents.next(page).filter(|extent| extent.page < end);
        let delayed = file.delayed.next(page).filter(|(from, _)| *from < end);
        let extent = extent.map(|extent| (extent.page.max(page), extent.page + extent.pages));
        let next = match (extent, delayed) {
            (Some(one), Some(other)) => one.min(other),
            (one, other) => one.or(other).unwrap_or((end, end)),
        };
        if next.0 > page {
            return Some((page, next.0));
        }
        page = next.1;
    }
    None
}

/// All such pages of a range.
pub(super) fn holes(file: &File, first: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    let mut page = first;
    std::iter::from_fn(move || {
        let hole = next_hole(file, page, end)?;
        page = hole.1;
        Some(hole)
    })
}

// Direct writes (`ext4_dio_write_iter`, `ext4_iomap_alloc`).

impl File {
    /// Returns whether a direct write up to a byte extends the file, in memory or on the drive (`ext4_extending_io`).
    /// Earlier buffered writes without blocks yet have extended it in memory only.
    fn is_extended_by(&self, end: u64) -> bool {
        end > self.size || end > self.disk_size
    }
}

impl Ext4 {
    /// Returns whether direct reads and writes are supported; with data in the journal they go through the page cache
    /// (`ext4_should_use_dio`).
    pub fn has_direct(&self) -> bool {
        !self.journals_data()
    }

    /// Returns whether a direct write needs no handle, neither before nor after: all of its pages have data, and the
    /// inode does not change (`ext4_overwrite_io`).
    pub fn direct_is_bare(&self, inode: Inode, offset: u64, bytes: u64, now: Time) -> bool {
        let Some(file) = self.file(inode) else { return true };
        file.stamp == Some(jiffies(now)) && !self.direct_has_end(inode, offset, bytes)
    }

    /// Returns whether [`Ext4::direct_end`] must be called when the data of a direct write are on the drive: some pages
    /// have no data yet, or the file grows.
    pub fn direct_has_end(&self, inode: Inode, offset: u64, bytes: u64) -> bool {
        let Some(file) = self.file(inode) else { return false };
        if file.is_extended_by(offset + bytes) {
            return true;
        }
        let (mut page, end) = (offset / BLOCK, (offset + bytes).div_ceil(BLOCK));
        while page < end {
            let run = self.map(inode, page, end - page);
            if !matches!(run.place, Place::Mapped { .. }) {
                return true;
            }
            page += run.pages;
        }
        false
    }

    /// Returns whether data of a file would be lost in a power failure even if they are on the drive, because metadata
    /// are not in the journal yet (`ext4_inode_datasync_dirty`). Without a journal it is always true.
    pub fn is_datasync_dirty(&self, inode: Inode) -> bool {
        let tid = self.file(inode).map_or(Tid(0), |file| file.data_sync);
        !self.journal.is_on() || !self.journal.is_done(tid)
    }

    /// Credits of a handle for a direct write: those of write-back, and the orphan list.
    pub fn direct_credits(&self, inode: Inode) -> u32 {
        self.writepages_credits(inode) + 3
    }

    /// Begins a direct write by allocating blocks; its pages are neither dirty nor delayed. Pages before the end are
    /// unwritten until [`Ext4::direct_end`]; those after it are valid, but beyond the file's length.
    ///
    /// # Errors
    /// No room, or the file does not exist.
    pub fn direct_write(
        &mut self,
        handle: &Handle,
        inode: Inode,
        offset: u64,
        bytes: u64,
        now: Time,
    ) -> Result<(), FsError> {
        let mut file = self.take_file(inode)?;
        let (first, end) = (offset / BLOCK, (offset + bytes).div_ceil(BLOCK));
        let result = self.allocate_direct(handle.tid, inode, &mut file, first, end);
        if result.is_ok() {
            let longer = file.is_extended_by(offset + bytes);
            if longer {
                // On the orphan list, so that recovery truncates blocks beyond the file's length.
                self.dirty(handle.tid, self.layout.super_block());
            }
            if longer || file.stamp != Some(jiffies(now)) {
                file.stamp = Some(jiffies(now));
                self.dirty_inode(handle.tid, inode, &mut file);
            }
        }
        self.put_file(inode, file);
        result
    }

    fn allocate_direct(
        &mut self,
        tid: Tid,
        inode: Inode,
        file: &mut File,
        first: u64,
        end: u64,
    ) -> Result<(), FsError> {
        let pages: u64 = holes(file, first, end).map(|(from, to)| to - from).sum();
        if self.available() < pages {
            return Err(self.no_space());
        }
        let inside = file.pages();
        let mut page = first;
        while let Some((from, to)) = next_hole(file, page, end) {
            // Not across the end of the file.
            page = if from < inside { to.min(inside) } else { to };
            if !self.allocate(tid, inode, file, from, page - from, from < inside) {
                return Err(self.no_space());
            }
        }
        Ok(())
    }

    /// Ends a direct write whose data are on the drive: makes its pages valid, and extends the file
    /// (`ext4_dio_write_end_io`, `ext4_handle_inode_extension`).
    ///
    /// # Errors
    /// If the file does not exist.
    pub fn direct_end(
        &mut self,
        handle: &Handle,
        inode: Inode,
        offset: u64,
        bytes: u64,
    ) -> Result<(), FsError> {
        let tid = handle.tid;
        let mut file = self.take_file(inode)?;
        self.convert(tid, inode, &mut file, offset / BLOCK, (offset + bytes).div_ceil(BLOCK));
        let end = offset + bytes;
        if file.is_extended_by(end) {
            file.size = file.size.max(end);
            file.disk_size = file.disk_size.max(end);
            self.dirty(tid, self.layout.super_block());
            self.dirty_inode(tid, inode, &mut file);
        }
        self.put_file(inode, file);
        Ok(())
    }
}
