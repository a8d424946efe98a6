//! Counts of dirty pages and pages under write-back (`folio_account_dirtied`, `folio_account_cleaned`,
//! `__folio_start_writeback`, `__folio_end_writeback`, `mm/page-writeback.c`; `__mark_inode_dirty`,
//! `fs/fs-writeback.c`).

use super::balance::Dirtier;
use super::inodes::{DirtyFlags, On};
use super::{Wake, Writeback, interval};
use crate::Inode;
use engine::{Mutant, Time, planted};

/// State of the inode itself for `fsync`, once its pages are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncInode {
    /// Nothing to write.
    Clean,
    /// Must be written.
    Write,
    /// Held by the flusher: ask again when the flusher has written it.
    Busy,
}

impl Writeback {
    /// Accounts for clean pages of an inode dirtied by a task on a core.
    #[inline]
    pub fn dirtied(
        &mut self,
        inode: Inode,
        drive: u16,
        pages: u64,
        task: &mut Dirtier,
        core: u16,
        now: Time,
    ) -> Wake {
        task.nr_dirtied += pages;
        self.cores[usize::from(core)].ratelimit += pages;
        self.settle(drive, now);
        self.wbs[usize::from(drive)].dirtied += pages;
        self.add_dirty(inode, drive, pages, now)
    }

    /// Accounts for pages that a flusher began to write, could not, and made dirty again
    /// (`folio_redirty_for_writepage`). They have not been [`started`](Writeback::started) or have
    /// [`ended`](Writeback::ended), and are reported as skipped.
    pub fn redirtied(&mut self, inode: Inode, drive: u16, pages: u64, now: Time) -> Wake {
        self.add_dirty(inode, drive, pages, now)
    }

    #[inline]
    fn add_dirty(&mut self, inode: Inode, drive: u16, pages: u64, now: Time) -> Wake {
        self.domain.dirty += pages;
        let flags = self.inodes.of_drive(inode, drive).flags;
        let wb = &mut self.wbs[usize::from(drive)];
        wb.reclaimable += pages;
        self.inodes.change_dirty(&mut wb.lists, inode, pages, 0);
        if flags.has(DirtyFlags::PAGES) {
            return Wake::Nothing;
        }
        self.mark_dirty(inode, drive, DirtyFlags::PAGES, now)
    }

    /// Marks an inode dirty (`__mark_inode_dirty`). For pages, [`Writeback::dirtied`] does so.
    pub fn mark_dirty(&mut self, inode: Inode, drive: u16, flags: DirtyFlags, now: Time) -> Wake {
        let record = self.inodes.of_drive(inode, drive);
        let was = record.flags;
        record.flags = was.with(flags);
        if was != DirtyFlags::CLEAN || record.on != On::None {
            return Wake::Nothing;
        }
        let now = self.clock.jiffies(now);
        record.dirtied_when = now;
        let wb = &mut self.wbs[usize::from(drive)];
        let first = wb.lists.inodes() == 0;
        self.inodes.move_to(&mut wb.lists, inode, On::Dirty);
        if first { self.wake_delayed(drive, now) } else { Wake::Nothing }
    }

    /// Accounts for dirty pages of an inode dropped without a write: the file was truncated or removed.
    pub fn cleaned(&mut self, inode: Inode, pages: u64) {
        let drive = self.drive_of(inode);
        self.remove_dirty(inode, drive, pages);
    }

    /// Accounts for dirty pages of an inode that enter write-back, by any writer.
    #[inline]
    pub fn started(&mut self, inode: Inode, pages: u64) {
        let drive = self.drive_of(inode);
        self.remove_dirty(inode, drive, pages);
        self.domain.writeback += pages;
        let record = self.inodes.of_drive(inode, drive);
        let wb = &mut self.wbs[usize::from(drive)];
        wb.writeback += pages;
        wb.writeback_inodes += u32::from(record.writeback == 0 && pages > 0);
        record.writeback += pages;
    }

    /// Accounts for the end of write-back of an inode's pages.
    ///
    /// # Panics
    /// If fewer pages are under write-back.
    pub fn ended(&mut self, inode: Inode, pages: u64, now: Time) {
        let drive = self.drive_of(inode);
        self.settle(drive, now);
        let jiffies = self.clock.jiffies(now);
        let record = self.inodes.of_drive(inode, drive);
        assert!(record.writeback >= pages, "{inode:?}: {pages} pages written, of {}", record.writeback);
        record.writeback -= pages;
        let last = record.writeback == 0;
        self.domain.writeback -= pages;
        let wb = &mut self.wbs[usize::from(drive)];
        wb.writeback -= pages;
        wb.written += pages;
        self.domain.written(&mut wb.completions, wb.max_prop_frac, pages, jiffies);
        if last && pages > 0 {
            wb.writeback_inodes -= 1;
            // `wb_inode_writeback_end`: a timer that is already set stays.
            let due = self.clock.expiry(jiffies, interval(self.clock.hz()));
            wb.bandwidth_due.get_or_insert(self.clock.time(due));
        }
    }

    /// Begins a task's own write of pages of a device, as by `fsync` (`do_writepages`). For a flusher, its steps do so.
    pub fn begin_writepages(&mut self, drive: u16, now: Time) {
        self.settle(drive, now);
        let now = self.clock.jiffies(now);
        let wb = &mut self.wbs[usize::from(drive)];
        wb.bandwidth.start(wb.dirtied, wb.written, wb.writeback_inodes > 0, now);
    }

    /// Ends a task's own submission of pages of a device (`do_writepages`).
    pub fn end_writepages(&mut self, drive: u16, now: Time) {
        self.settle(drive, now);
        let now = self.clock.jiffies(now);
        let wb = &mut self.wbs[usize::from(drive)];
        if wb.bandwidth.is_due(now) {
            wb.bandwidth.update(wb.dirtied, wb.written, None, now);
        }
    }

    /// Begins the write of the inode itself by `fsync` without a journal, or by `fdatasync` (`sync_inode_metadata`,
    /// `writeback_single_inode`), after its pages are written. If it must be written, it counts as written from now on.
    pub fn sync_inode(&mut self, inode: Inode, data_only: bool, now: Time) -> SyncInode {
        let Some(record) = self.inodes.get(inode) else { return SyncInode::Clean };
        let needed = if data_only { DirtyFlags::DATASYNC } else { DirtyFlags::INODE };
        if !record.flags.has_any(needed) {
            return SyncInode::Clean;
        }
        let (drive, on) = (record.drive, record.on);
        let wb = &mut self.wbs[usize::from(drive)];
        if wb.flusher.writing() == Some(inode) {
            return SyncInode::Busy;
        }
        let now = self.clock.jiffies(now);
        self.take_flags(inode);
        let wb = &mut self.wbs[usize::from(drive)];
        if self.inodes.of_drive(inode, drive).flags == DirtyFlags::CLEAN {
            self.inodes.move_to(&mut wb.lists, inode, On::None);
        } else if on == On::Dirty {
            self.inodes.redirty_tail(&mut wb.lists, inode, now);
        }
        SyncInode::Write
    }

    /// Returns whether the flusher is writing an inode (`I_SYNC`); a removal waits for it (`inode_wait_for_writeback`).
    pub fn is_at(&self, inode: Inode) -> bool {
        let record = self.inodes.get(inode);
        record.is_some_and(|record| self.wbs[usize::from(record.drive)].flusher.writing() == Some(inode))
    }

    /// Forgets a removed inode without pages (`evict`).
    ///
    /// # Panics
    /// If it has pages that are dirty or under write-back, or the flusher is writing it.
    pub fn evict(&mut self, inode: Inode) {
        assert!(!self.is_at(inode), "{inode:?} is evicted while the flusher writes it");
        let Some(record) = self.inodes.get(inode) else { return };
        let (drive, dirty, writeback) = (record.drive, record.dirty, record.writeback);
        let forgotten = planted(Mutant::ReclaimedDirty);
        assert!(
            dirty + writeback == 0 || forgotten,
            "{inode:?} is evicted with {dirty} dirty pages, {writeback} under write-back"
        );
        self.inodes.move_to(&mut self.wbs[usize::from(drive)].lists, inode, On::None);
        self.inodes.forget(inode);
    }

    /// Takes the dirty flags of an inode that has been written; pages dirtied again stay so
    /// (`__writeback_single_inode`).
    pub(super) fn take_flags(&mut self, inode: Inode) -> DirtyFlags {
        let record = self.inodes.get_mut(inode).expect("an inode that has been dirty");
        let left = if record.dirty > 0 { DirtyFlags::PAGES } else { DirtyFlags::CLEAN };
        std::mem::replace(&mut record.flags, left)
    }

    #[inline]
    fn remove_dirty(&mut self, inode: Inode, drive: u16, pages: u64) {
        let wb = &mut self.wbs[usize::from(drive)];
        self.inodes.change_dirty(&mut wb.lists, inode, 0, pages);
        wb.reclaimable -= pages;
        self.domain.dirty -= pages;
    }

    fn drive_of(&self, inode: Inode) -> u16 {
        self.inodes.get(inode).expect("an inode that has been dirty").drive
    }

    /// Updates the bandwidth of a device some time after pages of an inode have been written
    /// (`wb_update_bandwidth_workfn`). The update is deferred to the next look-up or change of the counts.
    #[inline]
    pub(super) fn settle(&mut self, drive: u16, now: Time) {
        let wb = &mut self.wbs[usize::from(drive)];
        if wb.bandwidth_due.is_some_and(|due| due <= now) {
            let due = wb.bandwidth_due.take().expect("checked");
            wb.bandwidth.update(wb.dirtied, wb.written, None, self.clock.jiffies(due));
        }
    }
}
