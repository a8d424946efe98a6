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
mod batch;
mod flusher;
mod inodes;
mod spec;
#[cfg(test)]
mod tests;

pub use account::SyncInode;
pub use balance::{Balance, Dirtier};
pub use batch::{Reason, Step, SyncMode, Wake, WorkId, WriteInode, Wrote};
pub use inodes::{DirtyFlags, Estimates, FlusherStats, WritebackStats};
pub use spec::{Bound, DirtyBounds, DirtyLimits, WritebackSpec};

use crate::Inode;
use balance::Bandwidth;
use config::SpecError;
use engine::Time;
use flusher::Flusher;
use inodes::{Inodes, IoLists};
use spec::{Domain, Ratios};

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
    completions: Local,
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
            completions: Local::default(),
            ratios,
            max_prop_frac: FRAC_BASE * u64::from(ratios.max) / 100,
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

// How long a writer pauses, and how many pages it may dirty before it is looked at again (`mm/page-writeback.c`).

/// `DIRTY_POLL_THRESH`: pauses are made longer rather than that a writer is looked at more often than every so many pages.
const DIRTY_POLL_THRESH: u64 = 32;

/// `dirty_poll_interval`: pages that a writer may dirty while nobody has to pause, about the root of what is left.
fn dirty_poll_interval(dirty: u64, thresh: u64) -> u64 {
    if thresh > dirty { 1 << ((thresh - dirty).ilog2() >> 1) } else { 1 }
}

/// `wb_max_pause`: the longest pause, in which the device writes an eighth of what is dirty for it.
fn wb_max_pause(hz: u64, avg_write_bandwidth: u64, wb_dirty: u64) -> Jiffies {
    let eighth = (1 + hz / 8).next_power_of_two();
    (wb_dirty / (1 + avg_write_bandwidth / eighth) + 1).min(interval(hz))
}

/// Rates of a writer, in pages a second.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// Of the device (`avg_write_bandwidth`).
    write_bandwidth: u64,
    /// Of each of its writers.
    dirty_ratelimit: u64,
    /// The same times the position ratio.
    task_ratelimit: u64,
}

/// The shortest pause that is taken, and the pages that a writer dirties before its next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MinPause {
    pause: Jiffies,
    nr_dirtied_pause: u64,
}

/// `wb_min_pause`: about 10 ms for one writer, and 10 ms more whenever there are twice as many.
fn wb_min_pause(hz: u64, max_pause: Jiffies, rates: &Rates) -> MinPause {
    let ticks = hz.next_power_of_two();
    let (hi, lo) = (rates.write_bandwidth.ilog2(), rates.dirty_ratelimit.ilog2());
    let more = u64::from(hi.saturating_sub(lo)) * (10 * hz) / 1024;
    let mut target = ((hz / 100).max(1) + more).min(1 + max_pause / 2);
    let mut pages = rates.dirty_ratelimit * target / ticks;
    if pages < DIRTY_POLL_THRESH {
        target = max_pause;
        pages = rates.dirty_ratelimit * target / ticks;
        if pages > DIRTY_POLL_THRESH {
            pages = DIRTY_POLL_THRESH;
            target = hz * DIRTY_POLL_THRESH / rates.dirty_ratelimit;
        }
    }
    if hz * pages / (rates.task_ratelimit + 1) > max_pause {
        target = max_pause;
        pages = rates.task_ratelimit * target / ticks;
    }
    let pause = if pages >= DIRTY_POLL_THRESH { 1 + target / 2 } else { target };
    MinPause { pause, nr_dirtied_pause: pages }
}

// The kernel's clock: ticks, and when a timer fires that counts them.

/// A point in time or a span, in ticks.
type Jiffies = u64;

/// A wheel of the timers has 64 slots; each is eight times as wide as those of the wheel below.
const WHEEL_SHIFT: u32 = 3;

const WHEELS: u32 = 9;

/// Ticks of the kernel's clock, counted as Linux does: from five minutes before a 32-bit counter wraps (`INITIAL_JIFFIES`), so that
/// zero can mean "never".
#[derive(Clone, Copy, Debug)]
struct Clock {
    hz: u64,
    tick: u64,
}

impl Clock {
    fn new(hz: u32) -> Clock {
        Clock { hz: hz.into(), tick: Time::period(hz.into()).ps() }
    }

    fn hz(&self) -> u64 {
        self.hz
    }

    fn initial(&self) -> Jiffies {
        (1 << 32) - 300 * self.hz
    }

    /// Ticks that have passed.
    #[inline]
    fn jiffies(&self, now: Time) -> Jiffies {
        self.initial() + now.ps() / self.tick
    }

    /// When a tick comes.
    fn time(&self, jiffies: Jiffies) -> Time {
        Time::from_ps((jiffies - self.initial()) * self.tick)
    }

    /// A span in ticks, rounded up (`msecs_to_jiffies`).
    fn span(&self, span: Time) -> Jiffies {
        span.ps().div_ceil(self.tick)
    }

    /// The tick at which a timer fires that is set now for `delay` ticks: never early, and the later the more it is
    /// (`kernel/time/timer.c`, `calc_wheel_index`, `calc_index`).
    fn expiry(&self, now: Jiffies, delay: Jiffies) -> Jiffies {
        let level = (1..WHEELS).find(|level| delay < 63 << ((level - 1) * WHEEL_SHIFT)).unwrap_or(WHEELS) - 1;
        let shift = level * WHEEL_SHIFT;
        (((now + delay) >> shift) + 1) << shift
    }
}

/// `BANDWIDTH_INTERVAL` and `MAX_PAUSE`: 200 ms.
fn interval(hz: u64) -> Jiffies {
    hz / 5
}

// Proportions of events, of which older ones count less (`lib/flex_proportions.c`).
//
// Events of a kind are counted, and all of them together; every count halves when a period ends. Each kind does so when it is looked at next.
// The kernel's counters are sums over processors and read with an error; these are exact.

/// Precision of a maximum proportion.
const FRAC_SHIFT: u32 = 10;

/// All.
const FRAC_BASE: u64 = 1 << FRAC_SHIFT;

/// Events of all kinds.
#[derive(Clone, Copy, Debug)]
struct Global {
    events: u64,
    period: u64,
}

/// Events of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Local {
    events: u64,
    period: u64,
}

impl Default for Global {
    /// One event that no kind has, so that no period is without any (`fprop_global_init`).
    fn default() -> Global {
        Global { events: 1, period: 0 }
    }
}

impl Global {
    /// A period has ended. Returns whether it changes anything that further ones end (`fprop_new_period`).
    fn new_period(&mut self) -> bool {
        let more = self.events > 1;
        if more {
            self.events /= 2;
            self.period += 1;
        }
        more
    }
}

impl Local {
    /// Events have happened, unless the kind has `max_frac` parts of all of [`FRAC_BASE`] already; of those that would exceed it, as many
    /// as just reach it (`__fprop_add_percpu_max`).
    fn add(&mut self, global: &mut Global, max_frac: u64, mut nr: u64) {
        if max_frac < FRAC_BASE {
            let (numerator, denominator) = self.fraction(global);
            let room = i128::from(denominator * max_frac) - i128::from(numerator << FRAC_SHIFT);
            let Ok(room) = u64::try_from(room) else { return };
            let others = FRAC_BASE - max_frac;
            if room < nr * others {
                nr = room.div_ceil(others);
            }
        }
        self.events = self.now(global) + nr;
        self.period = global.period;
        global.events += nr;
    }

    /// The kind's part of all events: numerator and denominator (`fprop_fraction_percpu`).
    fn fraction(&self, global: &Global) -> (u64, u64) {
        let numerator = self.now(global);
        (numerator, global.events.max(numerator).max(1))
    }

    /// Its events, with what they have lost in periods since (`fprop_reflect_period_percpu`).
    fn now(&self, global: &Global) -> u64 {
        let periods = global.period - self.period;
        if periods < 64 { self.events >> periods } else { 0 }
    }
}
