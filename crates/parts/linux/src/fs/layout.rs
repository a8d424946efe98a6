//! Metadata layout of a file system, as `mke2fs` makes it by default: blocks of 4 KiB, groups of 128 MiB, and an inode
//! of 256 B for every 16 KiB or more. The bitmaps and inode tables of 16 groups lie together in the first of them.

use super::{Ext4, Place};
use crate::Inode;
use config::SpecError;

/// Block size in bytes.
pub(super) const BLOCK: u64 = 4096;
/// Blocks of a group: coverage of a one-block bitmap.
pub(super) const GROUP: u64 = 8 * BLOCK;
/// Groups whose bitmaps and inode tables lie together (`flex_bg`, `mke2fs -G`).
pub(super) const FLEX: u64 = 16;
/// Inodes of a block of an inode table: 256 B each.
const INODES: u64 = BLOCK / 256;
/// Group descriptors of a block: 64 B each (feature `64bit`).
const DESCRIPTORS: u64 = BLOCK / 64;
/// Blocks of a drive for each inode (`inode_ratio`): half as many inodes from 4 TiB on, a quarter from 16 TiB on (types
/// `big` and `huge` of `mke2fs.conf`).
const fn blocks_per_inode(blocks: u64) -> u64 {
    const TIB: u64 = (1 << 40) / BLOCK;
    if blocks < 4 * TIB {
        4
    } else if blocks < 16 * TIB {
        8
    } else {
        16
    }
}
/// Inode number of the root directory, and of the first file: eleven is `lost+found`.
pub(super) const ROOT: u32 = 2;
pub(super) const FIRST: u32 = 12;

/// Number of whole blocks in `bytes` bytes.
pub(super) fn blocks_of(bytes: u64) -> u64 {
    bytes / BLOCK
}

/// Group of a block.
pub(super) fn group_of(block: u64) -> u64 {
    block / GROUP
}

/// Places of metadata, in blocks from the start of the drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) blocks: u64,
    pub(super) groups: u64,
    inodes_per_group: u64,
    /// Blocks of a super block copy: itself, the group descriptors, and the blocks reserved for more of them.
    copy: u64,
    /// First block of the journal, and its number of blocks.
    pub(super) journal: u64,
    pub(super) journal_blocks: u64,
}

impl Layout {
    /// Creates the layout of a drive of `blocks` blocks with a journal of `journal_blocks`.
    ///
    /// # Errors
    /// If the drive has no room for them.
    pub(super) fn new(blocks: u64, journal_blocks: u64) -> Result<Layout, SpecError> {
        // mke2fs drops a last group with fewer than 50 blocks besides a super block copy.
        let groups = blocks.div_ceil(GROUP);
        let copy = copy_blocks(blocks, groups);
        let rest = blocks % GROUP;
        let (blocks, groups) = if groups > 1 && rest != 0 && rest < copy + 50 {
            (blocks - rest, groups - 1)
        } else {
            (blocks, groups)
        };
        let inodes = (blocks / blocks_per_inode(blocks)).div_ceil(groups.max(1)).next_multiple_of(INODES);
        let mut layout =
            Layout { blocks, groups, inodes_per_group: inodes, copy, journal: 0, journal_blocks };
        if blocks < 2048 || layout.bitmaps(0) + layout.flex_blocks(0) >= blocks.min(GROUP) {
            let what = format!("{blocks} blocks of 4 KiB are too few for a file system");
            return Err(SpecError::new("", what).help("give the drive 64MiB or more"));
        }
        layout.journal = layout.place_of_journal()?;
        Ok(layout)
    }

    /// Finds the first run of free blocks for the journal, from the emptiest group in the middle on
    /// (`get_midpoint_journal_block` of e2fsprogs).
    fn place_of_journal(&self) -> Result<u64, SpecError> {
        let middle = group_of(self.blocks / 2);
        let start = if middle > FLEX { middle / FLEX * FLEX } else { middle.saturating_sub(1) };
        let end = if middle > FLEX { start + 1 } else { middle + 1 }.min(self.groups - 1);
        // The first of the emptiest groups.
        let first = (start..=end).min_by_key(|group| self.fixed_of(*group)).unwrap_or(start);
        let mut at = first * GROUP;
        let mut from_start = false;
        loop {
            let end = at + self.journal_blocks;
            if let Some((start, blocks)) =
                self.fixed().find(|(start, blocks)| *start < end && start + blocks > at)
            {
                at = start + blocks;
            } else if end <= self.blocks {
                return Ok(at);
            } else if from_start {
                let what = format!("no run of {} free blocks exists for the journal", self.journal_blocks);
                return Err(SpecError::new("journal_size", what).help("set a smaller `journal_size`"));
            } else {
                (at, from_start) = (0, true);
            }
        }
    }

    /// Initially used blocks without the journal, as ordered runs.
    pub(super) fn fixed(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let groups = (0..self.groups).map(|group| (group * GROUP, self.fixed_of(group)));
        groups.filter(|(_, blocks)| *blocks > 0)
    }

    /// Initially used blocks at the start of a group.
    fn fixed_of(&self, group: u64) -> u64 {
        let copy = if has_copy(group) { self.copy } else { 0 };
        copy + if group.is_multiple_of(FLEX) { self.flex_blocks(group / FLEX) } else { 0 }
    }

    /// Groups of a flexible group.
    fn flex_groups(&self, flex: u64) -> u64 {
        FLEX.min(self.groups - flex * FLEX)
    }

    fn flex_blocks(&self, flex: u64) -> u64 {
        self.flex_groups(flex) * (2 + self.inodes_per_group / INODES)
    }

    /// First block bitmap of a flexible group; inode bitmaps follow, then inode tables.
    fn bitmaps(&self, flex: u64) -> u64 {
        let group = flex * FLEX;
        group * GROUP + if has_copy(group) { self.copy } else { 0 }
    }

    /// Super block.
    pub(super) fn super_block(&self) -> u64 {
        0
    }

    /// Block with the block bitmap of a group.
    pub(super) fn block_bitmap(&self, group: u64) -> u64 {
        self.bitmaps(group / FLEX) + group % FLEX
    }

    /// Block with the inode bitmap of a group.
    fn inode_bitmap(&self, group: u64) -> u64 {
        let flex = group / FLEX;
        self.bitmaps(flex) + self.flex_groups(flex) + group % FLEX
    }

    /// Block with the descriptor of a group.
    pub(super) fn descriptor(&self, group: u64) -> u64 {
        1 + group / DESCRIPTORS
    }

    /// Number of inodes.
    pub(super) fn inodes(&self) -> u64 {
        self.inodes_per_group * self.groups
    }

    /// Group of an inode.
    pub(super) fn group_of_inode(&self, number: u32) -> u64 {
        u64::from(number - 1) / self.inodes_per_group
    }

    /// Inode table block of an inode.
    pub(super) fn inode_block(&self, number: u32) -> u64 {
        let (group, index) = (self.group_of_inode(number), u64::from(number - 1) % self.inodes_per_group);
        let flex = group / FLEX;
        let tables = self.bitmaps(flex) + 2 * self.flex_groups(flex);
        tables + group % FLEX * (self.inodes_per_group / INODES) + index / INODES
    }

    /// Bitmap block of an inode.
    pub(super) fn bitmap_of_inode(&self, number: u32) -> u64 {
        self.inode_bitmap(self.group_of_inode(number))
    }

    /// Goal for the first block of an empty file (`ext4_inode_to_goal_block`): the second group of its flexible group.
    pub(super) fn goal_of_inode(&self, number: u32) -> u64 {
        let group = self.group_of_inode(number) / FLEX * FLEX;
        (group + 1).min(self.groups - 1) * GROUP
    }
}

/// Returns whether a group begins with a super block copy (`ext2fs_bg_has_super`: 0, 1, powers of 3, 5 and 7).
fn has_copy(group: u64) -> bool {
    let power_of = |base: u64| {
        let mut power = base;
        while power < group {
            power *= base;
        }
        power == group
    };
    group <= 1 || [3, 5, 7].into_iter().any(power_of)
}

/// Blocks of a super block copy, with descriptors reserved for a thousandfold growth (`calc_reserved_gdt_blocks`).
fn copy_blocks(blocks: u64, groups: u64) -> u64 {
    let descriptors = groups.div_ceil(DESCRIPTORS);
    let most = blocks.saturating_mul(1024).min(u64::from(u32::MAX));
    let reserved = most.div_ceil(GROUP).div_ceil(DESCRIPTORS).saturating_sub(descriptors).min(BLOCK / 4);
    1 + descriptors + reserved
}

// Access to metadata blocks that are being written to the log (`do_get_write_access`).

/// Metadata that a handle is about to change first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changes {
    /// Inode of a file.
    Inode(Inode),
    /// Inode of a file, and block bitmaps.
    Blocks(Inode),
    /// Directory, and an inode.
    Name(Inode),
}

impl Ext4 {
    /// Returns whether a handle has to wait until the log is [written](Ext4::log_written). The log's copy of a block is
    /// the block itself, unless the running transaction had changed it before (`BH_Shadow`, `b_frozen_data`).
    ///
    /// Extent and directory blocks are not checked: changing them always changes an inode too.
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

    /// Returns whether newly allocated blocks of a file are still being written as their former metadata; a data write
    /// waits for that (`clean_bdev_aliases`).
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

    /// Returns whether log writes are in flight.
    pub fn is_logging(&self) -> bool {
        self.journal.is_logging()
    }

    /// Handles the completion of a commit's log writes so far (`journal_end_buffer_io_sync`); waiting handles go on.
    pub fn log_written(&mut self) {
        self.journal.log_written();
    }
}
