//! Who may change a block of metadata while it is being written to the log (`do_get_write_access`).

use super::layout::{ROOT, group_of};
use super::{Ext4, Place};
use crate::Inode;

/// What a handle is about to change first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changes {
    /// The inode of a file.
    Inode(Inode),
    /// It, and which blocks are in use.
    Blocks(Inode),
    /// The names of files, and an inode.
    Name(Inode),
}

impl Ext4 {
    /// Whether a handle has to wait until the log is [written](Ext4::log_written). The log's copy of a block is the block itself, unless the running
    /// transaction had changed it before (`BH_Shadow`, `b_frozen_data`).
    ///
    /// Blocks of extents and directories are not asked for: whoever changes them changes an inode with them.
    pub fn is_logged(&self, changes: Changes) -> bool {
        if !self.journal.is_logging() {
            return false;
        }
        let (Changes::Inode(inode) | Changes::Blocks(inode) | Changes::Name(inode)) = changes;
        let file = self.file(inode);
        let own = file.map(|file| self.layout.inode_block(file.number));
        let root = matches!(changes, Changes::Name(_)).then(|| self.layout.inode_block(ROOT));
        let group = file.filter(|_| matches!(changes, Changes::Blocks(_))).map(|file| {
            let last = file.extents.previous(u64::MAX);
            let goal = self.layout.goal_of_inode(file.number);
            group_of(last.map_or(goal, |last| last.block + last.pages - 1))
        });
        let group = group.map(|group| [self.layout.block_bitmap(group), self.layout.descriptor(group)]);
        let mut blocks = own.into_iter().chain(root).chain(group.into_iter().flatten());
        blocks.any(|block| self.journal.is_logged(block))
    }

    /// Whether blocks that have become a file's are still being written as the metadata that they were: who writes data into them waits for that
    /// (`clean_bdev_aliases`).
    pub fn is_aliased(&self, inode: Inode, mut page: u64, end: u64) -> bool {
        while page < end && self.journal.is_writing_home(0, u64::MAX) {
            let run = self.map(inode, page, end - page);
            if let Place::Mapped { block } | Place::Unwritten { block } = run.place
                && self.journal.is_writing_home(block, run.pages)
            {
                return true;
            }
            page += run.pages;
        }
        false
    }

    /// Whether blocks are being written to the log.
    pub fn is_logging(&self) -> bool {
        self.journal.is_logging()
    }

    /// What a commit has written to the log so far is there (`journal_end_buffer_io_sync`): who waits for that goes on.
    pub fn log_written(&mut self) {
        self.journal.log_written();
    }
}
