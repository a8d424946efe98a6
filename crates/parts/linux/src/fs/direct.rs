//! Writes past the page cache (`ext4_dio_write_iter`, `ext4_iomap_alloc`).

use super::file::{File, jiffies};
use super::layout::BLOCK;
use super::write::{holes, next_hole};
use super::{Ext4, FsError, Handle, Place, Tid};
use crate::Inode;
use engine::Time;

impl File {
    /// Whether a direct write up to a byte makes the file longer, in memory or on the drive (`ext4_extending_io`): what was written to the page
    /// cache before it and has no blocks yet has made it longer in memory only.
    fn is_extended_by(&self, end: u64) -> bool {
        end > self.size || end > self.disk_size
    }
}

impl Ext4 {
    /// Whether files can be read and written past the page cache: with data in the journal such calls go through it (`ext4_should_use_dio`).
    pub fn has_direct(&self) -> bool {
        !self.journals_data()
    }

    /// Whether a direct write needs no handle, neither before nor after: all of its pages have data, and the inode stays as it is
    /// (`ext4_overwrite_io`).
    pub fn direct_is_bare(&self, inode: Inode, offset: u64, bytes: u64, now: Time) -> bool {
        let Some(file) = self.file(inode) else { return true };
        file.stamp == Some(jiffies(now)) && !self.direct_has_end(inode, offset, bytes)
    }

    /// Whether [`Ext4::direct_end`] has to be called when the data of a direct write are on the drive: some pages have none yet, or the
    /// file becomes longer.
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

    /// Whether data of a file would not be found again after a loss of power, whatever the drive has of them: what they need is not in the
    /// journal yet (`ext4_inode_datasync_dirty`). Without a journal it is taken to be so always.
    pub fn is_datasync_dirty(&self, inode: Inode) -> bool {
        let tid = self.file(inode).map_or(Tid(0), |file| file.data_sync);
        !self.journal.is_on() || !self.journal.is_done(tid)
    }

    /// Credits of a handle for a direct write: those of write-back, and the list of orphans.
    pub fn direct_credits(&self, inode: Inode) -> u32 {
        self.writepages_credits(inode) + 3
    }

    /// A direct write begins, whose pages are neither dirty nor delayed: they get blocks. Those before the end are unwritten until
    /// [`Ext4::direct_end`], those behind it count, but the file does not reach them yet.
    ///
    /// # Errors
    /// No room, or no such file.
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
                // In the list of orphans, so that recovery cuts off what the file does not reach.
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

    /// The data of a direct write are on the drive: its pages count, and the file reaches them (`ext4_dio_write_end_io`,
    /// `ext4_handle_inode_extension`).
    ///
    /// # Errors
    /// No such file.
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
