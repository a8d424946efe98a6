//! When dirty pages are written, and who waits for it. It knows no time but what it is told.
//!
//! Write-back of Linux 6.1 (`mm/page-writeback.c`, `fs/fs-writeback.c`, `lib/flex_proportions.c`) as a machine that decides and does nothing. A host has one
//! [`Writeback`]; each of its drives has accounts, estimates and a flusher there.
//!
//! 1. *Accounts.* Who dirties pages says so ([`Writeback::dirtied`]), and who writes them: [`Writeback::started`], [`Writeback::ended`]. Inodes come onto the
//!    lists of their drive with it.
//! 2. *Writers.* After each page or few, a writer asks [`Writeback::balance`], and sleeps as long as it is told.
//! 3. *Flushers.* Wherever a call returns [`Wake`], the thread of the flusher is woken or its timer set. It calls [`Writeback::start`], and then
//!    [`Writeback::next`] until there is nothing to do: it is told which pages of which inode to write, writes them, which may take time, and says what became
//!    of it ([`Writeback::wrote`]).
//!
//! Decisions:
//!
//! * Times are ticks of the kernel's clock, as they are there: a pause is a whole number of them, and a timer fires at one, never early.
//! * Counters are exact. The kernel's are sums over processors and may be wrong by a few pages each.
//! * As in the kernel, a drive that nothing was ever written to has no part of the background's threshold: its flusher, once it runs, writes all that is dirty
//!   on it, old or not. Who measures writes something first.
//! * Timers of the kernel that only do sums (ends of periods, bandwidth after a write) are caught up with when somebody looks.
//! * Left out: memory control groups, real-time tasks, `PF_LOCAL_THROTTLE`, `strictlimit`, laptop mode, `lazytime`.
//!
//! Bounds: pages are bounded by memory; inodes by files.

mod account;
mod balance;
mod bandwidth;
mod batch;
mod clock;
mod flusher;
mod fprop;
mod inodes;
mod limits;
mod pause;
mod position;
mod spec;
mod stats;
#[cfg(test)]
mod tests;
mod work;

pub use account::SyncInode;
pub use balance::{Balance, Dirtier};
pub use inodes::DirtyFlags;
pub use limits::{Bound, DirtyBounds, DirtyLimits};
pub use spec::WritebackSpec;
pub use stats::{Estimates, FlusherStats, WritebackStats};
pub use work::{Reason, Step, SyncMode, Wake, WorkId, WriteInode, Wrote};

use crate::Inode;
use bandwidth::Bandwidth;
use clock::{Clock, Jiffies};
use config::SpecError;
use engine::Time;
use flusher::Flusher;
use inodes::{Inodes, IoLists};
use limits::{Domain, Ratios};

/// A device (`struct bdi_writeback`). Counts are of pages.
#[derive(Clone, Debug)]
struct Wb {
    /// Dirty (`WB_RECLAIMABLE`).
    reclaimable: u64,
    /// Being written (`WB_WRITEBACK`).
    writeback: u64,
    /// Ever dirtied (`WB_DIRTIED`).
    dirtied: u64,
    /// Ever written (`WB_WRITTEN`).
    written: u64,
    /// Its part of what all devices have written.
    completions: fprop::Local,
    ratios: Ratios,
    max_prop_frac: u64,
    bandwidth: Bandwidth,
    /// When the bandwidth is updated although nobody pauses or writes.
    bandwidth_due: Option<Time>,
    /// More is dirty than its part of the limit, and than the limit.
    dirty_exceeded: bool,
    /// Inodes with pages that are being written.
    writeback_inodes: u32,
    lists: IoLists,
    flusher: Flusher,
}

impl Wb {
    fn new(hz: u64, ratios: Ratios, now: Jiffies) -> Wb {
        Wb {
            reclaimable: 0,
            writeback: 0,
            dirtied: 0,
            written: 0,
            completions: fprop::Local::default(),
            ratios,
            max_prop_frac: fprop::FRAC_BASE * u64::from(ratios.max) / 100,
            bandwidth: Bandwidth::new(hz, now),
            bandwidth_due: None,
            dirty_exceeded: false,
            writeback_inodes: 0,
            lists: IoLists::default(),
            flusher: Flusher::new(now),
        }
    }

    /// Dirty and being written.
    fn dirty(&self) -> u64 {
        self.reclaimable + self.writeback
    }
}

/// What is counted for each core, so that many tasks together do not dirty much unseen.
#[derive(Clone, Copy, Debug, Default)]
struct CoreDirty {
    /// Pages dirtied since a task of it was looked at (`bdp_ratelimits`).
    ratelimit: u64,
    /// Pages of tasks that have ended (`dirty_throttle_leaks`).
    leaks: u64,
}

/// Write-back of a host.
#[derive(Clone, Debug)]
pub struct Writeback {
    clock: Clock,
    bounds: DirtyBounds,
    dirty_expire: Jiffies,
    dirty_writeback: Jiffies,
    domain: Domain,
    wbs: Vec<Wb>,
    inodes: Inodes,
    cores: Vec<CoreDirty>,
    /// Pages that the tasks of a core may dirty before one of them is looked at.
    ratelimit_pages: u64,
    next_work: u32,
    /// What happened to writers since the window began.
    pub stats: WritebackStats,
    /// What the flusher of each drive has done since the window began.
    pub flushers: Vec<FlusherStats>,
}

impl Writeback {
    /// A host with nothing dirty. `avail` are the pages of memory that may hold dirty ones: free ones and those of files, less
    /// the kernel's reserves (`global_dirtyable_memory`); `hz` ticks of the kernel's clock in a second: pauses and intervals are whole numbers of them.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
    pub fn new(
        spec: &WritebackSpec,
        hz: u32,
        drives: u16,
        cores: u16,
        avail: u64,
    ) -> Result<Writeback, SpecError> {
        spec.check(drives)?;
        let clock = Clock::new(hz);
        let now = clock.jiffies(Time::ZERO);
        let ratios = Ratios {
            min: spec::percent("min_ratio", spec.min_ratio)?,
            max: spec::percent("max_ratio", spec.max_ratio)?,
        };
        let mut writeback = Writeback {
            clock,
            bounds: spec.bounds()?,
            dirty_expire: clock.span(spec.dirty_expire.time()),
            dirty_writeback: clock.span(spec.dirty_writeback.time()),
            domain: Domain::new(clock.hz(), ratios.min * u32::from(drives), now),
            wbs: vec![Wb::new(clock.hz(), ratios, now); usize::from(drives)],
            inodes: Inodes::default(),
            cores: vec![CoreDirty::default(); usize::from(cores)],
            ratelimit_pages: 0,
            next_work: 0,
            stats: WritebackStats::default(),
            flushers: vec![FlusherStats::default(); usize::from(drives)],
        };
        writeback.set_ratelimit(avail);
        Ok(writeback)
    }

    /// Changes the bounds, as a write to `/proc/sys/vm/dirty_*` does. A new limit holds at once, a lower one too.
    pub fn set_bounds(&mut self, bounds: DirtyBounds, avail: u64) {
        let changed = self.bounds.limit != bounds.limit;
        self.bounds = bounds;
        if changed {
            self.set_ratelimit(avail);
        }
    }

    /// `writeback_set_ratelimit`: all cores together exceed the limit by a 32nd at most.
    fn set_ratelimit(&mut self, avail: u64) {
        let thresh = self.bounds.limits(avail).thresh;
        self.domain.dirty_limit = thresh;
        self.ratelimit_pages = (thresh / (self.cores.len().max(1) as u64 * 32)).max(16);
    }

    /// The bounds as they stand.
    pub fn bounds(&self) -> DirtyBounds {
        self.bounds
    }

    /// Dirty pages of all drives (`nr_dirty` of `/proc/vmstat`).
    pub fn dirty(&self) -> u64 {
        self.domain.dirty
    }

    /// Pages of all drives that are being written (`nr_writeback`).
    pub fn writeback(&self) -> u64 {
        self.domain.writeback
    }

    /// Dirty pages of a drive.
    pub fn dirty_on(&self, drive: u16) -> u64 {
        self.wbs[usize::from(drive)].reclaimable
    }

    /// Pages of a drive that are being written.
    pub fn writeback_on(&self, drive: u16) -> u64 {
        self.wbs[usize::from(drive)].writeback
    }

    /// Dirty pages of an inode.
    pub fn dirty_of(&self, inode: Inode) -> u64 {
        self.inodes.get(inode).map_or(0, |record| record.dirty)
    }

    /// What is dirty of an inode.
    pub fn flags_of(&self, inode: Inode) -> DirtyFlags {
        self.inodes.get(inode).map_or(DirtyFlags::CLEAN, |record| record.flags)
    }

    /// Inodes of a drive with pages that are being written, in the order of their numbers: what `sync` waits for
    /// (`wait_sb_inodes`). It looks at all inodes.
    pub fn being_written(&self, drive: u16) -> impl Iterator<Item = Inode> {
        let of_drive = move |record: &inodes::Record| record.drive == drive && record.writeback > 0;
        self.inodes.all().filter(move |(_, record)| of_drive(record)).map(|(inode, _)| inode)
    }

    /// By how much a kernel's counter may be wrong (`wb_stat_error`): so little is not worth a pause.
    fn stat_error(&self) -> u64 {
        let cores = (self.cores.len() as u64).max(1);
        cores * 8 * u64::from(1 + cores.ilog2())
    }
}
