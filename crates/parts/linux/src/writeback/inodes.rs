//! Inodes with dirty pages, and the lists of a device that they are on (`fs/fs-writeback.c`).

use super::{Jiffies, Reason, Writeback};
use crate::Inode;
use engine::Time;
use stats::Histogram;

const NONE: u32 = u32::MAX;

/// What is dirty of an inode (`i_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DirtyFlags(u8);

impl DirtyFlags {
    /// Nothing.
    pub const CLEAN: DirtyFlags = DirtyFlags(0);
    /// The inode itself, in what `fdatasync` does not need (`I_DIRTY_SYNC`).
    pub const SYNC: DirtyFlags = DirtyFlags(1);
    /// The inode itself, in what is needed to read its data (`I_DIRTY_DATASYNC`).
    pub const DATASYNC: DirtyFlags = DirtyFlags(2);
    /// Its pages (`I_DIRTY_PAGES`).
    pub const PAGES: DirtyFlags = DirtyFlags(4);
    /// The inode itself, in whatever way (`I_DIRTY_INODE`).
    pub const INODE: DirtyFlags = DirtyFlags(1 | 2);

    /// Whether all of `flags` are set.
    pub fn has(self, flags: DirtyFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether any of `flags` is set.
    pub fn has_any(self, flags: DirtyFlags) -> bool {
        self.0 & flags.0 != 0
    }

    /// Both.
    #[must_use]
    pub fn with(self, flags: DirtyFlags) -> DirtyFlags {
        DirtyFlags(self.0 | flags.0)
    }
}

/// The list that an inode is on. On `Io` and `MoreIo` it is queued for the flusher (`I_SYNC_QUEUED`).
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

/// An inode as write-back knows it.
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
    /// Pages being written.
    pub(super) writeback: u64,
    /// Where the flusher goes on.
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

/// A list; what came last is at its front, and the flusher takes from the back.
#[derive(Clone, Copy, Debug)]
struct Queue {
    front: u32,
    back: u32,
}

impl Queue {
    const EMPTY: Queue = Queue { front: NONE, back: NONE };
}

/// The lists of a device.
#[derive(Clone, Debug)]
pub(super) struct IoLists {
    /// In the order of `dirtied_when`.
    dirty: Queue,
    /// What the flusher writes in this round.
    io: Queue,
    /// What has had its slice, and waits for the next round.
    more_io: Queue,
    /// Inodes on all of them.
    inodes: u64,
    /// Dirty pages of those that are queued for the flusher.
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

    /// The inode whose turn it is.
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

/// All inodes that have ever been dirty, by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Inodes {
    records: Vec<Record>,
}

impl Inodes {
    /// An inode on a drive, which it keeps until it is gone.
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

    /// Forgets an inode that is on no list.
    pub(super) fn forget(&mut self, inode: Inode) {
        self.records[inode.0 as usize] = Record::CLEAN;
    }

    /// Dirty pages come to an inode, or leave it.
    #[inline]
    pub(super) fn change_dirty(&mut self, lists: &mut IoLists, inode: Inode, more: u64, less: u64) {
        let record = &mut self.records[inode.0 as usize];
        assert!(record.dirty + more >= less, "{inode:?} has {} dirty pages, and loses {less}", record.dirty);
        record.dirty = record.dirty + more - less;
        if record.on.is_queued() {
            lists.queued_pages = lists.queued_pages + more - less;
        }
    }

    /// Moves an inode to the front of a list, or takes it off all (`inode_io_list_move_locked`, `inode_cgwb_move_to_attached`).
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

    /// What could not be written becomes the newest; it is as old as it was if that keeps the list in order (`redirty_tail_locked`).
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

    /// Fills the list of this round: what had its slice before, then what was dirtied up to a time, the eldest first (`queue_io`).
    /// An eldest inode is written first, and so is at the back.
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

    /// The inodes of a list from the one that is next on, for checks.
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

// What write-back counts.

/// Counters of the measured window: writers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WritebackStats {
    /// How often a writer was looked at.
    pub balances: u64,
    /// Pauses of writers, in picoseconds: their number, sum and longest.
    pub pauses: Histogram,
}

/// Counters of the measured window: the flusher of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlusherStats {
    /// How often it ran.
    pub runs: u64,
    /// Pages that it submitted, by reason in the order of [`Reason::ALL`].
    pub pages: [u64; Reason::ALL.len()],
}

/// Estimates of a device, in pages a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimates {
    /// What it writes (`avg_write_bandwidth`, `BdiWriteBandwidth` of debugfs).
    pub write_bandwidth: u64,
    /// What each writer may dirty (`dirty_ratelimit`).
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
    /// Starts the measured window: what was counted before is forgotten.
    pub fn reset_stats(&mut self) {
        self.stats.balances = 0;
        self.stats.pauses.clear();
        self.flushers.fill(FlusherStats::default());
    }

    /// What is known of a device's speed.
    pub fn estimates(&self, drive: u16) -> Estimates {
        let bandwidth = &self.wbs[usize::from(drive)].bandwidth;
        Estimates {
            write_bandwidth: bandwidth.avg_write_bandwidth,
            dirty_ratelimit: bandwidth.dirty_ratelimit,
        }
    }

    /// Holds the accounts against each other; they hold between any two calls.
    ///
    /// # Errors
    /// What does not hold, in numbers.
    pub fn check(&self) -> Result<(), String> {
        let mut of_inodes = vec![(0, 0, 0, 0); self.wbs.len()];
        for (inode, record) in self.inodes.all() {
            let (dirty, writeback, listed, queued) = &mut of_inodes[usize::from(record.drive)];
            *dirty += record.dirty;
            *writeback += record.writeback;
            *listed += u64::from(record.on != On::None);
            *queued += if matches!(record.on, On::Io | On::MoreIo) { record.dirty } else { 0 };
            if record.dirty > 0 && record.on == On::None {
                return Err(format!("{inode:?} has {} dirty pages and is on no list", record.dirty));
            }
        }
        for (drive, (wb, of_inodes)) in self.wbs.iter().zip(&of_inodes).enumerate() {
            let of_wb = (wb.reclaimable, wb.writeback, wb.lists.inodes(), wb.lists.queued_pages());
            if of_wb != *of_inodes {
                return Err(format!("drive {drive} has {of_wb:?}, its inodes {of_inodes:?}"));
            }
            let listed =
                [On::Dirty, On::Io, On::MoreIo].map(|on| self.inodes.list(&wb.lists, on).count() as u64);
            if listed.iter().sum::<u64>() != wb.lists.inodes() {
                return Err(format!("drive {drive}: {listed:?} inodes on lists of {}", wb.lists.inodes()));
            }
        }
        let sum = self.wbs.iter().fold((0, 0), |sum, wb| (sum.0 + wb.reclaimable, sum.1 + wb.writeback));
        if sum != (self.domain.dirty, self.domain.writeback) {
            return Err(format!("drives have {sum:?}, all {:?}", (self.domain.dirty, self.domain.writeback)));
        }
        Ok(())
    }
}
