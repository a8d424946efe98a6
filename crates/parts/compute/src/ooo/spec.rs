//! The cores of a server as a user writes them.

use super::sched::ThreadScheduling;
use config::schema::product;
use config::units::{Duration, Frequency, Power};
use config::{SpecError, StatePower};
use engine::{Mutant, Time, planted_nth};
use mem::cache::replace::ReplacementPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Activity, EnergyReport, Meter};

/// Cores of one machine at most: a directory has a bit for each.
const MOST_CORES: u16 = 64;
/// Threads of all cores at most: each has a page of the service's address space.
const MOST_THREADS: u32 = 4096;
/// Longest latency inside a core, in cycles.
const LONGEST: u32 = 4096;
/// Shortest mean interval of arrivals. Each is cut to whole picoseconds: here by a two thousandth in the mean.
const SHORTEST: Time = Time::from_ns(1);

/// The cores of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [
    product(1 << 24, "lines of first-level instruction caches", &["cores", "l1i.sets", "l1i.ways"]),
    product(1 << 24, "lines of first-level data caches", &["cores", "l1d.sets", "l1d.ways"]),
]))]
pub struct CpuSpec {
    /// Cores, at most 64.
    #[schemars(range(min = 1, max = 64))]
    pub cores: u16,
    /// Their clock.
    pub clock: Frequency,
    /// Instructions that a core dispatches, and retires, a cycle.
    #[schemars(range(min = 1, max = 64))]
    pub width: u32,
    /// Instructions between dispatch and retirement at most: the reorder buffer.
    #[schemars(range(min = 1, max = 4_096))]
    pub window: u32,
    /// Stores that have retired and not been done at most.
    #[schemars(range(min = 1, max = 4_096))]
    pub store_buffer: u32,
    /// Loads and stores that the first-level data cache takes a cycle.
    #[schemars(range(min = 1))]
    pub ports: u32,
    /// Cycles from a flush of the window to the first instruction dispatched.
    #[schemars(range(max = 4_096), extend("x-unit" = "cycles"))]
    pub flush: u32,
    /// How far a core runs ahead of the machine's clock at most. What other cores do to its cache comes late by so much at
    /// most.
    pub quantum: Duration,
    /// The first-level instruction cache.
    pub l1i: L1Spec,
    /// The first-level data cache: write-back, write-allocate.
    pub l1d: L1Spec,
    /// Each of the two first-level TLBs, for instructions and for data; least recently used out first.
    pub tlb: TlbSpec,
    /// Whose page tables the cores walk.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "shared"))]
    pub tables: TableSharing,
    /// User-level threads.
    pub threads: ThreadsSpec,
    /// The jobs that come.
    pub load: LoadSpec,
    /// What they spend; left out, they report no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<CpuEnergySpec>,
}

/// What the cores of a server spend, and the rest of their chip but its memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuEnergySpec {
    /// Power of a core with its first-level caches: at work while it has something to run, stalls included.
    pub core: StatePower,
    /// Power of what belongs to no core: shared caches, network, leakage.
    pub chip_on: Power,
}

/// A first-level cache of a core, in lines of 64 B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct L1Spec {
    /// Sets.
    #[schemars(range(min = 1))]
    pub sets: u32,
    /// Ways a set.
    #[schemars(range(min = 1))]
    pub ways: u32,
    /// Which line of a set makes room.
    pub replacement: ReplacementPolicy,
    /// Cycles from the address to the value, tags and data.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub latency: u32,
    /// Lines that are missing at once (MSHRs), at most 64. Instructions are fetched in order, and fetch waits for a line that is
    /// missing: there a second register is taken only when threads are switched meanwhile.
    #[schemars(range(min = 1, max = 64))]
    pub registers: u32,
}

/// A first-level TLB of a core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlbSpec {
    /// Translations that it holds.
    #[schemars(range(min = 1, max = 65_536))]
    pub entries: u32,
    /// Ways a set; as many as entries for a fully associative one.
    #[schemars(range(min = 1, max = 65_536))]
    pub ways: u32,
    /// Pages that a core asks its second-level TLB for at once.
    #[schemars(range(min = 1, max = 65_536))]
    pub misses: u32,
}

config::policies! {
    /// What a thread does when its page is in flash.
    #[derive(Copy, Eq)]
    pub family MissAction: choice {
        /// Its core is told, flushes its window and runs another thread.
        default switch,
        /// Its core waits. What else its window needs from flash is fetched meanwhile.
        wait,
        /// Its core waits, and asks for no other page of data until that one is there.
        ///
        /// AstriFlash, section III-A: "each flash access is synchronous".
        serial,
    }
}

config::policies! {
    /// Whose page tables cores walk.
    #[derive(Copy, Eq)]
    pub family TableSharing: choice {
        /// All cores are one process, with one set of tables.
        default shared,
        /// Each core is a process of its own, with tables of its own for the data that all share: as many sets as cores.
        own,
    }
}

/// Whether a spec need not say it.
fn is_default(tables: &TableSharing) -> bool {
    *tables == TableSharing::default()
}

/// User-level threads of each core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadsSpec {
    /// Threads of a core.
    #[schemars(range(min = 1, max = 4_096))]
    pub count: u32,
    /// Core time of a switch from one thread to another.
    pub switch: Duration,
    /// Halted jobs of a core at most; with so many, the core waits for the oldest.
    #[schemars(range(min = 1, max = 4_096))]
    pub pending: u32,
    /// What a thread does when its page is in flash.
    pub miss: MissAction,
    /// Which thread runs next.
    pub scheduler: ThreadScheduling,
}

/// The jobs that come to a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Jobs of a run, over all cores: when so many have ended, the run ends.
    #[schemars(range(min = 1))]
    pub jobs: u64,
    /// When they come.
    pub arrivals: Arrivals,
}

config::policies! {
    /// When jobs come to the queue of a core.
    pub family Arrivals: choice {
        /// There is always another one: what a core can do at most.
        default closed,
        /// At random, independent of each other, with a mean interval: an open queue.
        poisson(Poisson),
    }
}

/// Parameters of `poisson`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Poisson {
    /// Mean time from one job of a core to the next.
    pub interval: Duration,
}

impl Default for Poisson {
    fn default() -> Poisson {
        Poisson { interval: Duration::new(Time::from_us(20)) }
    }
}

impl CpuSpec {
    /// Whether cores can be built.
    ///
    /// # Errors
    /// The first value that cannot be; its key is relative to the cores' own table.
    pub fn check(&self) -> Result<(), SpecError> {
        let counts = [
            ("cores", u64::from(self.cores)),
            ("clock", self.clock.hz()),
            ("width", self.width.into()),
            ("window", self.window.into()),
            ("store_buffer", self.store_buffer.into()),
            ("ports", self.ports.into()),
            ("quantum", self.quantum.time().ps()),
            ("tlb.misses", self.tlb.misses.into()),
            ("threads.count", self.threads.count.into()),
            ("threads.pending", self.threads.pending.into()),
            ("load.jobs", self.load.jobs),
        ];
        for (key, value) in counts {
            SpecError::positive(key, value)?;
        }
        if self.cores > MOST_CORES {
            let what = format!("{} cores; a directory follows at most {MOST_CORES}", self.cores);
            return Err(SpecError::new("cores", what));
        }
        let most = [
            ("width", self.width, 64),
            ("window", self.window, 4096),
            ("store_buffer", self.store_buffer, 4096),
        ];
        for (key, value, most) in most {
            if value > most {
                return Err(SpecError::new(
                    key,
                    format!("{value} are more than the {most} that are modelled"),
                ));
            }
        }
        if self.flush > LONGEST {
            return Err(SpecError::new("flush", format!("{} cycles; at most {LONGEST}", self.flush)));
        }
        self.l1i.check("l1i")?;
        self.l1d.check("l1d")?;
        self.tlb.check()?;
        if let Some(CpuEnergySpec { core: StatePower { idle, busy }, .. }) = self.energy
            && busy < idle
        {
            let what = format!("{busy} at work are less than {idle} without");
            return Err(SpecError::new("energy.core.busy", what));
        }
        self.threads.check(self.cores)?;
        match &self.load.arrivals {
            Arrivals::closed => Ok(()),
            Arrivals::poisson(poisson) if poisson.interval.time() < SHORTEST => {
                let what = format!("a job every {}; time is counted in picoseconds", poisson.interval);
                let error = SpecError::new("load.arrivals.poisson.interval", what);
                Err(error.help("give `1ns` or more, which no core keeps up with"))
            }
            Arrivals::poisson(_) => Ok(()),
        }
    }
}

impl TlbSpec {
    fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("tlb.entries", self.entries.into())?;
        SpecError::positive("tlb.ways", self.ways.into())?;
        if !self.entries.is_multiple_of(self.ways) {
            let what = format!("{} entries cannot be arranged in sets of {}", self.entries, self.ways);
            return Err(SpecError::new("tlb.ways", what).help("give a divisor of the entries"));
        }
        Ok(())
    }
}

impl ThreadsSpec {
    fn check(&self, cores: u16) -> Result<(), SpecError> {
        let all = u64::from(self.count) * u64::from(cores);
        if all > MOST_THREADS.into() {
            let what =
                format!("{} threads on each of {cores} cores are {all}; at most {MOST_THREADS}", self.count);
            return Err(SpecError::new("threads.count", what));
        }
        if self.pending > self.count {
            let what = format!("{} halted jobs, but a core has {} threads", self.pending, self.count);
            return Err(SpecError::new("threads.pending", what).help("give at most as many as threads"));
        }
        Ok(())
    }
}

impl L1Spec {
    fn check(&self, table: &str) -> Result<(), SpecError> {
        let counts = [
            ("sets", self.sets),
            ("ways", self.ways),
            ("latency", self.latency),
            ("registers", self.registers),
        ];
        for (key, value) in counts {
            SpecError::positive(&format!("{table}.{key}"), value.into())?;
        }
        let lines = u64::from(self.sets) * u64::from(self.ways);
        if lines > 1 << 24 {
            let what = format!("{} sets of {} ways are more than 2^24 lines", self.sets, self.ways);
            return Err(SpecError::new(&format!("{table}.sets"), what));
        }
        if self.latency > LONGEST {
            return Err(SpecError::new(
                &format!("{table}.latency"),
                format!("{} cycles; at most {LONGEST}", self.latency),
            ));
        }
        if self.registers > 64 {
            return Err(SpecError::new(
                &format!("{table}.registers"),
                format!("{} registers; at most 64", self.registers),
            ));
        }
        Ok(())
    }
}

// What a server's cores spend: all of them take the idle power all the time, more while they have something to run.

const ON: usize = 0;

const WORK: usize = 1;

const REST: usize = 2;

const ACTIVITIES: [Activity; 3] =
    [Activity::state("cores on"), Activity::state("core at work"), Activity::state("chip on")];

/// What a core has spent, and the first one the rest of the chip.
#[derive(Clone)]
pub(super) struct CoreMeter {
    meter: Meter,
    /// What work adds, microwatts.
    work: u64,
    cycle: Time,
    width: u64,
    /// The slot from which on it has been at work, as far as that is not metered.
    from: u64,
}

impl CoreMeter {
    /// With cycles of so many slots.
    pub(super) fn new(costs: &CpuEnergySpec, number: u16, cycle: Time, width: u64) -> CoreMeter {
        let StatePower { idle, busy } = costs.core;
        let mut meter = Meter::new(&ACTIVITIES);
        meter.set_power(ON, Time::ZERO, idle.microwatts());
        if number == 0 {
            meter.set_power(REST, Time::ZERO, costs.chip_on.microwatts());
        }
        CoreMeter { meter, work: busy.microwatts().saturating_sub(idle.microwatts()), cycle, width, from: 0 }
    }

    fn time(&self, slot: u64) -> Time {
        Time::from_ps((u128::from(self.cycle.ps()) * u128::from(slot) / u128::from(self.width)) as u64)
    }

    /// It has been at work up to a slot.
    fn worked(&mut self, until: u64) {
        if until > self.from {
            let work = if planted_nth(Mutant::UnpaidCore, 4) { 0 } else { self.work };
            self.meter.spend_over(WORK, self.time(self.from), self.time(until), work);
            self.from = until;
        }
    }

    /// Between two slots it had nothing to run.
    #[cold]
    pub(super) fn idles(&mut self, from: u64, until: u64) {
        self.worked(from);
        self.from = until;
    }

    /// Energy since counters began. The core has been at work or idle as far as `until`, which may lie ahead.
    pub(super) fn report(&self, now: Time, until: u64) -> EnergyReport {
        let mut meter = self.clone();
        meter.worked(until.min(self.slot(now)));
        meter.meter.report(now)
    }

    /// Counters begin anew.
    pub(super) fn reset(&mut self, now: Time, until: u64) {
        self.worked(until.min(self.slot(now)));
        self.meter.reset(now);
    }

    /// The slot in which a time lies.
    fn slot(&self, now: Time) -> u64 {
        (u128::from(now.ps()) * u128::from(self.width) / u128::from(self.cycle.ps())) as u64
    }
}
