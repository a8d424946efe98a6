//! Inodes with dirty pages, and the lists of their device (`fs/fs-writeback.c`).

use super::{Jiffies, Reason, Writeback};
use crate::Inode;
use engine::Time;
use stats::Histogram;

const NONE: u32 = u32::MAX;

/// Dirty flags of an inode (`i_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DirtyFlags(u8);

impl DirtyFlags {
    /// Clean.
    pub const CLEAN: DirtyFlags = DirtyFlags(0);
    /// Inode, in fields that `fdatasync` does not need (`I_DIRTY_SYNC`).
    pub const SYNC: DirtyFlags = DirtyFlags(1);
    /// Inode, in fields needed to read its data (`I_DIRTY_DATASYNC`).
    pub const DATASYNC: DirtyFlags = DirtyFlags(2);
    /// Pages (`I_DIRTY_PAGES`).
    pub const PAGES: DirtyFlags = DirtyFlags(4);
    /// Inode, in any field (`I_DIRTY_INODE`).
    pub const INODE: DirtyFlags = DirtyFlags(1 | 2);

    /// Returns whether all of `flags` are set.
    pub fn has(self, flags: DirtyFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns whether any of `flags` is set.
    pub fn has_any(self, flags: DirtyFlags) -> bool {
        self.0 & flags.0 != 0
    }

    /// Union of both flag sets.
    #[must_use]
    pub fn with(self, flags: DirtyFlags) -> DirtyFlags {
        DirtyFlags(self.0 | flags.0)
    }
}

/// List of an inode. On `Io` and `MoreIo` it is queued for the flusher (`I_SYNC_QUEUED`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum On {
    #[default]
    None,
    Dirty,
    Io,
    MoreIo,
}

impl On {
    fn is_queued(self) -> bool {
        matches!(self, On::Io | On::MoreIo)
    }
}

/// Write-back state of an inode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    newer: u32,
    older: u32,
    pub(super) on: On,
    pub(super) flags: DirtyFlags,
    pub(super) drive: u16,
    pub(super) dirtied_when: Jiffies,
    /// Dirty pages.
    pub(super) dirty: u64,
    /// Pages under write-back.
    pub(super) writeback: u64,
    /// Position where the flusher goes on.
    pub(super) writeback_index: u64,
}

impl Record {
    const CLEAN: Record = Record {
        newer: NONE,
        older: NONE,
        on: On::None,
        flags: DirtyFlags::CLEAN,
        drive: 0,
        dirtied_when: 0,
        dirty: 0,
        writeback: 0,
        writeback_index: 0,
    };
}

/// List of inodes; new ones are at the front, and the flusher takes from the back.
#[derive(Clone, Copy, Debug)]
struct Queue {
    front: u32,
    back: u32,
}

impl Queue {
    const EMPTY: Queue = Queue { front: NONE, back: NONE };
}

/// Lists of a device.
#[derive(Clone, Debug)]
pub(super) struct IoLists {
    /// Inodes in the order of `dirtied_when`.
    dirty: Queue,
    /// Inodes of the flusher's current round.
    io: Queue,
    /// Inodes that have had their slice, and wait for the next round.
    more_io: Queue,
    /// Inodes on all lists.
    inodes: u64,
    /// Dirty pages of the inodes queued for the flusher.
    queued_pages: u64,
}

impl Default for IoLists {
    fn default() -> IoLists {
        IoLists { dirty: Queue::EMPTY, io: Queue::EMPTY, more_io: Queue::EMPTY, inodes: 0, queued_pages: 0 }
    }
}

impl IoLists {
    pub(super) fn inodes(&self) -> u64 {
        self.inodes
    }

    pub(super) fn queued_pages(&self) -> u64 {
        self.queued_pages
    }

    pub(super) fn io_is_empty(&self) -> bool {
        self.io.back == NONE
    }

    pub(super) fn more_io_is_empty(&self) -> bool {
        self.more_io.back == NONE
    }

    /// Next inode of the round.
    pub(super) fn next_io(&self) -> Option<Inode> {
        (self.io.back != NONE).then_some(Inode(self.io.back))
    }

    fn of(&mut self, on: On) -> Option<&mut Queue> {
        match on {
            On::None => None,
            On::Dirty => Some(&mut self.dirty),
            On::Io => Some(&mut self.io),
            On::MoreIo => Some(&mut self.more_io),
        }
    }
}

/// All inodes that have ever been dirty, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Inodes {
    records: Vec<Record>,
}

impl Inodes {
    /// Returns the record of an inode on a drive, which it keeps until it is forgotten.
    #[inline]
    pub(super) fn of_drive(&mut self, inode: Inode, drive: u16) -> &mut Record {
        let at = inode.0 as usize;
        if at >= self.records.len() {
            self.records.resize(at + 1, Record::CLEAN);
        }
        let record = &mut self.records[at];
        debug_assert!(
            record.drive == drive || record.on == On::None && record.dirty + record.writeback == 0,
            "{inode:?} is on drive {}, not on {drive}",
            record.drive
        );
        record.drive = drive;
        record
    }

    pub(super) fn get(&self, inode: Inode) -> Option<&Record> {
        self.records.get(inode.0 as usize)
    }

    pub(super) fn get_mut(&mut self, inode: Inode) -> Option<&mut Record> {
        self.records.get_mut(inode.0 as usize)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Inode, &Record)> {
        self.records.iter().enumerate().map(|(number, record)| (Inode(number as u32), record))
    }

    /// Forgets an unlisted inode.
    pub(super) fn forget(&mut self, inode: Inode) {
        self.records[inode.0 as usize] = Record::CLEAN;
    }

    /// Adds and removes dirty pages of an inode.
    #[inline]
    pub(super) fn change_dirty(&mut self, lists: &mut IoLists, inode: Inode, more: u64, less: u64) {
        let record = &mut self.records[inode.0 as usize];
        assert!(record.dirty + more >= less, "{inode:?} has {} dirty pages, loses {less}", record.dirty);
        record.dirty = record.dirty + more - less;
        if record.on.is_queued() {
            lists.queued_pages = lists.queued_pages + more - less;
        }
    }

    /// Moves an inode to the front of a list, or takes it off all (`inode_io_list_move_locked`,
    /// `inode_cgwb_move_to_attached`).
    pub(super) fn move_to(&mut self, lists: &mut IoLists, inode: Inode, on: On) {
        self.take(lists, inode);
        let Record { dirty, .. } = self.records[inode.0 as usize];
        let Some(queue) = lists.of(on) else { return };
        let front = std::mem::replace(&mut queue.front, inode.0);
        if front == NONE {
            queue.back = inode.0;
        } else {
            self.records[front as usize].newer = inode.0;
        }
        let record = &mut self.records[inode.0 as usize];
        (record.newer, record.older, record.on) = (NONE, front, on);
        lists.inodes += 1;
        lists.queued_pages += if on.is_queued() { dirty } else { 0 };
    }

    fn take(&mut self, lists: &mut IoLists, inode: Inode) {
        let Record { newer, older, on, dirty, .. } = self.records[inode.0 as usize];
        let Some(queue) = lists.of(on) else { return };
        if newer == NONE {
            queue.front = older;
        } else {
            self.records[newer as usize].older = older;
        }
        if older == NONE {
            queue.back = newer;
        } else {
            self.records[older as usize].newer = newer;
        }
        self.records[inode.0 as usize].on = On::None;
        lists.inodes -= 1;
        lists.queued_pages -= if on.is_queued() { dirty } else { 0 };
    }

    /// Makes an inode that could not be written the newest; its age stays if the list remains in order
    /// (`redirty_tail_locked`).
    pub(super) fn redirty_tail(&mut self, lists: &mut IoLists, inode: Inode, now: Jiffies) {
        let newest = lists.dirty.front;
        if newest != NONE {
            let than = self.records[newest as usize].dirtied_when;
            let record = &mut self.records[inode.0 as usize];
            if record.dirtied_when < than {
                record.dirtied_when = now;
            }
        }
        self.move_to(lists, inode, On::Dirty);
    }

    /// Fills the list of this round: inodes that have had their slice, then those dirtied up to a time, eldest first
    /// (`queue_io`). An eldest inode is written first, and so is at the back.
    pub(super) fn queue_io(&mut self, lists: &mut IoLists, dirtied_before: Jiffies) {
        while lists.more_io.back != NONE {
            self.move_to(lists, Inode(lists.more_io.back), On::Io);
        }
        while lists.dirty.back != NONE {
            let eldest = lists.dirty.back;
            if self.records[eldest as usize].dirtied_when > dirtied_before {
                break;
            }
            self.move_to(lists, Inode(eldest), On::Io);
        }
    }

    /// Inodes of a list, next one first, for checks.
    pub(super) fn list<'i>(&'i self, lists: &'i IoLists, on: On) -> impl Iterator<Item = Inode> + 'i {
        let mut next = match on {
            On::None => NONE,
            On::Dirty => lists.dirty.back,
            On::Io => lists.io.back,
            On::MoreIo => lists.more_io.back,
        };
        std::iter::from_fn(move || {
            let inode = (next != NONE).then_some(Inode(next))?;
            next = self.records[next as usize].newer;
            Some(inode)
        })
    }
}

// Write-back statistics.

/// Writers' counters of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WritebackStats {
    /// Number of checks of writers.
    pub balances: u64,
    /// Pauses of writers, in picoseconds.
    pub pauses: Histogram,
}

/// Counters of the measured window for the flusher of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlusherStats {
    /// Number of runs.
    pub runs: u64,
    /// Pages submitted, by reason in the order of [`Reason::ALL`].
    pub pages: [u64; Reason::ALL.len()],
}

/// Estimates of a device, in pages a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimates {
    /// Write bandwidth (`avg_write_bandwidth`, `BdiWriteBandwidth` of debugfs).
    pub write_bandwidth: u64,
    /// Dirtying rate of each writer (`dirty_ratelimit`).
    pub dirty_ratelimit: u64,
}

impl WritebackStats {
    pub(super) fn pause(&mut self, pause: Time) {
        self.pauses.record(pause.ps());
    }
}

impl FlusherStats {
    pub(super) fn count(&mut self, reason: Reason, pages: u64) {
        self.pages[reason as usize] += pages;
    }
}

impl Writeback {
    /// Starts the measured window: clears the counters.
    pub fn reset_stats(&mut self) {
        self.stats.balances = 0;
        self.stats.pauses.clear();
        self.flushers.fill(FlusherStats::default());
    }

    /// Estimates of a device's speed.
    pub fn estimates(&self, drive: u16) -> Estimates {
        let bandwidth = &self.wbs[usize::from(drive)].bandwidth;
        Estimates {
            write_bandwidth: bandwidth.avg_write_bandwidth,
            dirty_ratelimit: bandwidth.dirty_ratelimit,
        }
    }

    /// Cross-checks the accounts, which agree between any two calls.
    ///
    /// # Errors
    /// The violated invariant, with numbers.
    pub fn check(&self) -> Result<(), String> {
        let mut of_inodes = vec![(0, 0, 0, 0); self.wbs.len()];
        for (inode, record) in self.inodes.all() {
            let (dirty, writeback, listed, queued) = &mut of_inodes[usize::from(record.drive)];
            *dirty += record.dirty;
            *writeback += record.writeback;
            *listed += u64::from(record.on != On::None);
            *queued += if matches!(record.on, On::Io | On::MoreIo) { record.dirty } else { 0 };
            if record.dirty > 0 && record.on == On::None {
                return Err(format!("{inode:?} has {} dirty pages but is on no list", record.dirty));
            }
        }
        for (drive, (wb, of_inodes)) in self.wbs.iter().zip(&of_inodes).enumerate() {
            let of_wb = (wb.reclaimable, wb.writeback, wb.lists.inodes(), wb.lists.queued_pages());
            if of_wb != *of_inodes {
                return Err(format!("drive {drive} counts {of_wb:?}, its inodes {of_inodes:?}"));
            }
            let listed =
                [On::Dirty, On::Io, On::MoreIo].map(|on| self.inodes.list(&wb.lists, on).count() as u64);
            if listed.iter().sum::<u64>() != wb.lists.inodes() {
                return Err(format!(
                    "drive {drive}: {listed:?} inodes listed, {} counted",
                    wb.lists.inodes()
                ));
            }
        }
        let sum = self.wbs.iter().fold((0, 0), |sum, wb| (sum.0 + wb.reclaimable, sum.1 + wb.writeback));
        if sum != (self.domain.dirty, self.domain.writeback) {
            return Err(format!("drives have {sum:?}, all {:?}", (self.domain.dirty, self.domain.writeback)));
        }
        Ok(())
    }
}
