//! Write-back: when dirty pages are written, and which tasks wait for it. It has no clock.
//!
//! Write-back of Linux 6.1 (`mm/page-writeback.c`, `fs/fs-writeback.c`, `lib/flex_proportions.c`) as a machine that
//! decides but does no I/O. A host has one [`Writeback`], with accounts, estimates and a flusher for each of its
//! drives.
//!
//! 1. *Accounts.* Tasks report the pages they dirty ([`Writeback::dirtied`]), and those they write:
//!    [`Writeback::started`], [`Writeback::ended`]. This also lists the inodes of a drive.
//! 2. *Writers.* After every one or few pages, a writer calls [`Writeback::balance`], and sleeps as long as it is told.
//! 3. *Flushers.* Wherever a call returns [`Wake`], the flusher's thread is woken or its timer set. It calls
//!    [`Writeback::start`], and then [`Writeback::next`] until no work is left. Each step names pages of an inode; the
//!    thread writes them, which may take time, and reports the result ([`Writeback::wrote`]).
//!
//! Decisions:
//!
//! * Times are ticks of the kernel's clock, as in the kernel: a pause is a whole number of them, and a timer fires at
//!   one, never early.
//! * Counters are exact. The kernel's are sums over processors and may be off by a few pages each.
//! * As in the kernel, a drive that was never written to has a zero share of the background threshold: its flusher,
//!   once it runs, writes all of its dirty pages, old or not. Write something before you measure.
//! * Kernel timers that only do sums (ends of periods, bandwidth after a write) are deferred to the next look-up.
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

/// Device (`struct bdi_writeback`). Counts are in pages.
#[derive(Clone, Debug)]
struct Wb {
    /// Dirty pages (`WB_RECLAIMABLE`).
    reclaimable: u64,
    /// Pages under write-back (`WB_WRITEBACK`).
    writeback: u64,
    /// Pages ever dirtied (`WB_DIRTIED`).
    dirtied: u64,
    /// Pages ever written (`WB_WRITTEN`).
    written: u64,
    /// Share of the writes of all devices.
    completions: Local,
    ratios: Ratios,
    max_prop_frac: u64,
    bandwidth: Bandwidth,
    /// Time of the bandwidth update if no task pauses or writes.
    bandwidth_due: Option<Time>,
    /// True if dirty pages exceed the device's share of the limit, and the limit.
    dirty_exceeded: bool,
    /// Inodes with pages under write-back.
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

    /// Pages dirty or under write-back.
    fn dirty(&self) -> u64 {
        self.reclaimable + self.writeback
    }
}

/// Counters of a core, which bound the unchecked dirtying by many tasks together.
#[derive(Clone, Copy, Debug, Default)]
struct CoreDirty {
    /// Pages dirtied since a task on the core was checked (`bdp_ratelimits`).
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
    /// Pages that the tasks of a core may dirty before one of them is checked.
    ratelimit_pages: u64,
    next_work: u32,
    /// Writers' counters since the window began.
    pub stats: WritebackStats,
    /// Flusher counters of each drive since the window began.
    pub flushers: Vec<FlusherStats>,
}

impl Writeback {
    /// Creates the state of a host without dirty pages. `avail` is the number of memory pages that may be dirty: free
    /// and file pages, less the kernel's reserves (`global_dirtyable_memory`). `hz` is the number of clock ticks a
    /// second; pauses and intervals are whole numbers of ticks.
    ///
    /// # Errors
    /// The first invalid value, with its key.
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

    /// Changes the bounds, like a write to `/proc/sys/vm/dirty_*`. A new limit, even a lower one, holds at once.
    pub fn set_bounds(&mut self, bounds: DirtyBounds, avail: u64) {
        let changed = self.bounds.limit != bounds.limit;
        self.bounds = bounds;
        if changed {
            self.set_ratelimit(avail);
        }
    }

    /// `writeback_set_ratelimit`: all cores together exceed the limit by at most a 32nd.
    fn set_ratelimit(&mut self, avail: u64) {
        let thresh = self.bounds.limits(avail).thresh;
        self.domain.dirty_limit = thresh;
        self.ratelimit_pages = (thresh / (self.cores.len().max(1) as u64 * 32)).max(16);
    }

    /// Current bounds.
    pub fn bounds(&self) -> DirtyBounds {
        self.bounds
    }

    /// Dirty pages of all drives (`nr_dirty` of `/proc/vmstat`).
    pub fn dirty(&self) -> u64 {
        self.domain.dirty
    }

    /// Pages of all drives under write-back (`nr_writeback`).
    pub fn writeback(&self) -> u64 {
        self.domain.writeback
    }

    /// Dirty pages of a drive.
    pub fn dirty_on(&self, drive: u16) -> u64 {
        self.wbs[usize::from(drive)].reclaimable
    }

    /// Pages of a drive under write-back.
    pub fn writeback_on(&self, drive: u16) -> u64 {
        self.wbs[usize::from(drive)].writeback
    }

    /// Dirty pages of an inode.
    pub fn dirty_of(&self, inode: Inode) -> u64 {
        self.inodes.get(inode).map_or(0, |record| record.dirty)
    }

    /// Dirty flags of an inode.
    pub fn flags_of(&self, inode: Inode) -> DirtyFlags {
        self.inodes.get(inode).map_or(DirtyFlags::CLEAN, |record| record.flags)
    }

    /// Inodes of a drive with pages under write-back, in order of their numbers, for `sync` to wait for
    /// (`wait_sb_inodes`). Scans all inodes.
    pub fn being_written(&self, drive: u16) -> impl Iterator<Item = Inode> {
        let of_drive = move |record: &inodes::Record| record.drive == drive && record.writeback > 0;
        self.inodes.all().filter(move |(_, record)| of_drive(record)).map(|(inode, _)| inode)
    }

    /// Error bound of a kernel counter (`wb_stat_error`); smaller amounts are not worth a pause.
    fn stat_error(&self) -> u64 {
        let cores = (self.cores.len() as u64).max(1);
        cores * 8 * u64::from(1 + cores.ilog2())
    }
}

// Length of a writer's pause, and pages it may dirty before its next check (`mm/page-writeback.c`).

/// `DIRTY_POLL_THRESH`: pauses are lengthened rather than checking a writer after fewer pages than this.
const DIRTY_POLL_THRESH: u64 = 32;

/// `dirty_poll_interval`: pages that a writer may dirty while no pause is needed, about the root of the remainder.
fn dirty_poll_interval(dirty: u64, thresh: u64) -> u64 {
    if thresh > dirty { 1 << ((thresh - dirty).ilog2() >> 1) } else { 1 }
}

/// `wb_max_pause`: the maximum pause, in which the device writes an eighth of its dirty pages.
fn wb_max_pause(hz: u64, avg_write_bandwidth: u64, wb_dirty: u64) -> Jiffies {
    let eighth = (1 + hz / 8).next_power_of_two();
    (wb_dirty / (1 + avg_write_bandwidth / eighth) + 1).min(interval(hz))
}

/// Rates of a writer, in pages a second.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// Bandwidth of the device (`avg_write_bandwidth`).
    write_bandwidth: u64,
    /// Rate of each of its writers.
    dirty_ratelimit: u64,
    /// Rate of each writer times the position ratio.
    task_ratelimit: u64,
}

/// Minimum pause, and pages that a writer dirties before its next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MinPause {
    pause: Jiffies,
    nr_dirtied_pause: u64,
}

/// `wb_min_pause`: about 10 ms for one writer, and 10 ms more for each doubling of their number.
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

// Kernel clock: ticks, and expiry of tick-based timers.

/// Point in time or time span, in ticks.
type Jiffies = u64;

/// Log2 of the slot width ratio between timer wheel levels. A level has 64 slots.
const WHEEL_SHIFT: u32 = 3;

const WHEELS: u32 = 9;

/// Ticks of the kernel's clock, counted as in Linux: from five minutes before a 32-bit counter wraps
/// (`INITIAL_JIFFIES`), so that zero can mean "never".
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

    /// Time of a tick.
    fn time(&self, jiffies: Jiffies) -> Time {
        Time::from_ps((jiffies - self.initial()) * self.tick)
    }

    /// Time span in ticks, rounded up (`msecs_to_jiffies`).
    fn span(&self, span: Time) -> Jiffies {
        span.ps().div_ceil(self.tick)
    }

    /// Expiry tick of a timer set now for `delay` ticks: never early, and late by more for longer delays
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

// Proportions of events, with less weight on older ones (`lib/flex_proportions.c`).
//
// Events are counted by kind and in total. All counts halve at the end of a period, each kind's lazily at its next use.
// The kernel's counters are sums over processors and read with an error; these are exact.

/// Precision of a maximum proportion, in bits.
const FRAC_SHIFT: u32 = 10;

/// Proportion of one.
const FRAC_BASE: u64 = 1 << FRAC_SHIFT;

/// Events of all kinds.
#[derive(Clone, Copy, Debug)]
struct Global {
    events: u64,
    period: u64,
}

/// Events of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Local {
    events: u64,
    period: u64,
}

impl Default for Global {
    /// One event of no kind, so that each period has events (`fprop_global_init`).
    fn default() -> Global {
        Global { events: 1, period: 0 }
    }
}

impl Global {
    /// Ends a period. Returns whether further periods change anything (`fprop_new_period`).
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
    /// Adds events, unless the kind already has a share of `max_frac` / [`FRAC_BASE`]; an excess is cut to just reach
    /// it (`__fprop_add_percpu_max`).
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

    /// Share of the kind in all events: numerator and denominator (`fprop_fraction_percpu`).
    fn fraction(&self, global: &Global) -> (u64, u64) {
        let numerator = self.now(global);
        (numerator, global.events.max(numerator).max(1))
    }

    /// Events of the kind, reduced by the periods since (`fprop_reflect_period_percpu`).
    fn now(&self, global: &Global) -> u64 {
        let periods = global.period - self.period;
        if periods < 64 { self.events >> periods } else { 0 }
    }
}
