//! Files come to be.

use super::file::{Directory, File, jiffies};
use super::layout::{BLOCK, ROOT};
use super::mballoc::{Grant, Request};
use super::recovery::Record;
use super::{Ext4, FsError, Handle, Tid};
use crate::Inode;
use crate::fs::extents::Extent;
use engine::Time;

impl Ext4 {
    /// A file that was there before: so long, written at once and closed. Its blocks lie one after another, as far as those that are free do.
    ///
    /// # Errors
    /// No room, or no inode; then nothing has changed.
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
                    self.room(goal, page, pages, &mut file).expect("as many blocks are free as it has pages")
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

    /// Blocks for a page of a file that was there before and for the pages behind it.
    fn room(&mut self, goal: u64, page: u64, pages: u64, file: &mut File) -> Option<Grant> {
        if page == 0 {
            let request =
                Request { page: 0, pages: pages.min(2048), size: pages, goal, left: None, right: None };
            return self.allocator.data(&request, &mut file.preallocs);
        }
        self.allocator.discard(&mut file.preallocs);
        self.allocator.run(goal, pages - page)
    }

    /// A new file without data (`ext4_create`).
    ///
    /// # Errors
    /// There is such a file, or no inode is left.
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

    /// The directory's entry of a file is changed, and the directory's times with it.
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

    /// The directory gets a block if it has none for an entry; without one on a full drive, as names are no programs' data.
    fn grow_directory(&mut self, tid: Option<Tid>, number: u32) {
        while self.directory.blocks.len() <= Directory::block_of(number) {
            let Some(block) = self.allocator.metadata(0) else { return };
            self.directory.blocks.push(block);
            if let Some(tid) = tid {
                self.dirty_groups(tid, block, 1);
            }
        }
    }

    /// There is no room, and whether a commit would make some.
    pub(super) fn no_space(&mut self) -> FsError {
        self.stats.no_space += 1;
        FsError::NoSpace { retry: self.pending.back().map(|(tid, ..)| *tid) }
    }
}
