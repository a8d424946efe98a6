//! Cores of a server as a user writes them.

use super::sched::ThreadScheduling;
use config::schema::product;
use config::units::{Duration, Frequency, Power};
use config::{SpecError, StatePower};
use engine::{Mutant, Time, planted_nth};
use mem::cache::replace::ReplacementPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Activity, EnergyReport, Meter};

/// Most cores of a machine: a directory has a bit for each.
const MOST_CORES: u16 = 64;
/// Most threads of all cores: each has a page of the service's address space.
const MOST_THREADS: u32 = 4096;
/// Longest latency inside a core, in cycles.
const LONGEST: u32 = 4096;
/// Shortest mean interval of arrivals. Intervals are cut to whole picoseconds: here by a two thousandth on average.
const SHORTEST: Time = Time::from_ns(1);

/// Cores of a server.
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
    /// Clock of the cores.
    pub clock: Frequency,
    /// Instructions that a core dispatches, and retires, per cycle.
    #[schemars(range(min = 1, max = 64))]
    pub width: u32,
    /// Size of the reorder buffer: most instructions between dispatch and retirement.
    #[schemars(range(min = 1, max = 4_096))]
    pub window: u32,
    /// Size of the store buffer: most retired stores that are not done.
    #[schemars(range(min = 1, max = 4_096))]
    pub store_buffer: u32,
    /// Loads and stores accepted by the first-level data cache per cycle.
    #[schemars(range(min = 1))]
    pub ports: u32,
    /// Cycles from a flush of the window to the first instruction dispatched.
    #[schemars(range(max = 4_096), extend("x-unit" = "cycles"))]
    pub flush: u32,
    /// Largest time that a core runs ahead of the machine's clock. Effects of other cores on its cache come late by at
    /// most this time.
    pub quantum: Duration,
    /// First-level instruction cache.
    pub l1i: L1Spec,
    /// First-level data cache: write-back, write-allocate.
    pub l1d: L1Spec,
    /// First-level TLBs, one for instructions and one for data; least recently used entries are evicted first.
    pub tlb: TlbSpec,
    /// Page tables that the cores walk.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "shared"))]
    pub tables: TableSharing,
    /// User-level threads.
    pub threads: ThreadsSpec,
    /// Jobs of the server.
    pub load: LoadSpec,
    /// Energy of the cores; without it, they report no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<CpuEnergySpec>,
}

/// Energy of a server's cores, and of the rest of their chip except memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CpuEnergySpec {
    /// Power of a core with its first-level caches: busy while it has something to run, stalls included.
    pub core: StatePower,
    /// Power shared by all cores: shared caches, network, leakage.
    pub chip_on: Power,
}

/// First-level cache of a core, in lines of 64 B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct L1Spec {
    /// Number of sets.
    #[schemars(range(min = 1))]
    pub sets: u32,
    /// Ways per set.
    #[schemars(range(min = 1))]
    pub ways: u32,
    /// Replacement policy of a set.
    pub replacement: ReplacementPolicy,
    /// Cycles from the address to the value, tags and data.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub latency: u32,
    /// Most missing lines at once (MSHRs), at most 64. Instructions are fetched in order, and fetch waits for a missing
    /// line: a second register is used there only after a thread switch.
    #[schemars(range(min = 1, max = 64))]
    pub registers: u32,
}

/// First-level TLB of a core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlbSpec {
    /// Number of entries.
    #[schemars(range(min = 1, max = 65_536))]
    pub entries: u32,
    /// Ways per set; equal to the number of entries for a fully associative TLB.
    #[schemars(range(min = 1, max = 65_536))]
    pub ways: u32,
    /// Most pages requested from the second-level TLB at once.
    #[schemars(range(min = 1, max = 65_536))]
    pub misses: u32,
}

config::policies! {
    /// Reaction of a thread whose page is in flash.
    #[derive(Copy, Eq)]
    pub family MissAction: choice {
        /// The core is notified, flushes its window and runs a different thread.
        default switch,
        /// The core waits. Other pages that its window needs from flash are fetched meanwhile.
        wait,
        /// The core waits, and requests no other data page until this one arrives.
        ///
        /// AstriFlash, section III-A: "each flash access is synchronous".
        serial,
    }
}

config::policies! {
    /// Page tables that cores walk.
    #[derive(Copy, Eq)]
    pub family TableSharing: choice {
        /// Shared: all cores are one process, with one set of tables.
        default shared,
        /// Own: each core is a process, with its own tables for the shared data; as many sets as cores.
        own,
    }
}

/// Returns whether a spec can leave out the value.
fn is_default(tables: &TableSharing) -> bool {
    *tables == TableSharing::default()
}

/// User-level threads of each core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThreadsSpec {
    /// Threads per core.
    #[schemars(range(min = 1, max = 4_096))]
    pub count: u32,
    /// Core time of a switch from one thread to another.
    pub switch: Duration,
    /// Most halted jobs of a core; at this number, the core waits for the oldest.
    #[schemars(range(min = 1, max = 4_096))]
    pub pending: u32,
    /// Reaction of a thread whose page is in flash.
    pub miss: MissAction,
    /// Thread that runs next.
    pub scheduler: ThreadScheduling,
}

/// Jobs of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Jobs of a run, over all cores: the run ends when this many have ended.
    #[schemars(range(min = 1))]
    pub jobs: u64,
    /// Arrival process of the jobs.
    pub arrivals: Arrivals,
}

config::policies! {
    /// Arrivals of jobs at the queue of a core.
    pub family Arrivals: choice {
        /// Closed loop: a next job is always available, which measures the maximum throughput.
        default closed,
        /// Open queue: random, independent arrivals with a mean interval.
        poisson(Poisson),
    }
}

/// Parameters of `poisson`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Poisson {
    /// Mean time between two jobs of a core.
    pub interval: Duration,
}

impl Default for Poisson {
    fn default() -> Poisson {
        Poisson { interval: Duration::new(Time::from_us(20)) }
    }
}

impl CpuSpec {
    /// Checks whether the cores can be built.
    ///
    /// # Errors
    /// The first invalid value; its key is relative to the cores' own table.
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
            let what = format!("{} cores; a directory tracks at most {MOST_CORES}", self.cores);
            return Err(SpecError::new("cores", what));
        }
        let most = [
            ("width", self.width, 64),
            ("window", self.window, 4096),
            ("store_buffer", self.store_buffer, 4096),
        ];
        for (key, value, most) in most {
            if value > most {
                return Err(SpecError::new(key, format!("{value} exceeds the modelled maximum of {most}")));
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
            let what = format!("the busy power {busy} is below the idle power {idle}");
            return Err(SpecError::new("energy.core.busy", what));
        }
        self.threads.check(self.cores)?;
        match &self.load.arrivals {
            Arrivals::closed => Ok(()),
            Arrivals::poisson(poisson) if poisson.interval.time() < SHORTEST => {
                let what = format!(
                    "a job every {} is too frequent: time is counted in picoseconds",
                    poisson.interval
                );
                let error = SpecError::new("load.arrivals.poisson.interval", what);
                Err(error.help("set it to `1ns` or more; no core can keep up with 1 ns"))
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
            let what = format!("{} entries are not a multiple of {} ways", self.entries, self.ways);
            return Err(SpecError::new("tlb.ways", what).help("use a divisor of the entries"));
        }
        Ok(())
    }
}

impl ThreadsSpec {
    fn check(&self, cores: u16) -> Result<(), SpecError> {
        let all = u64::from(self.count) * u64::from(cores);
        if all > MOST_THREADS.into() {
            let what = format!(
                "{} threads on each of {cores} cores are {all} threads; at most {MOST_THREADS} are allowed",
                self.count
            );
            return Err(SpecError::new("threads.count", what));
        }
        if self.pending > self.count {
            let what = format!("{} halted jobs, but a core has {} threads", self.pending, self.count);
            return Err(SpecError::new("threads.pending", what).help("use at most the number of threads"));
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

// Energy of a server's cores: every core takes the idle power all the time, and more while it has something to run.

const ON: usize = 0;

const WORK: usize = 1;

const REST: usize = 2;

const ACTIVITIES: [Activity; 3] =
    [Activity::state("cores on"), Activity::state("core at work"), Activity::state("chip on")];

/// Energy meter of a core; the first core's also meters the rest of the chip.
#[derive(Clone)]
pub(super) struct CoreMeter {
    meter: Meter,
    /// Additional power of work, microwatts.
    work: u64,
    cycle: Time,
    width: u64,
    /// First slot of work that is not metered yet.
    from: u64,
}

impl CoreMeter {
    /// Creates a meter for cycles of `width` slots.
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

    /// Meters work up to a slot.
    fn worked(&mut self, until: u64) {
        if until > self.from {
            let work = if planted_nth(Mutant::UnpaidCore, 4) { 0 } else { self.work };
            self.meter.spend_over(WORK, self.time(self.from), self.time(until), work);
            self.from = until;
        }
    }

    /// Marks the slots between two as idle.
    #[cold]
    pub(super) fn idles(&mut self, from: u64, until: u64) {
        self.worked(from);
        self.from = until;
    }

    /// Energy since counters were reset. The core's state is known up to `until`, which may lie ahead.
    pub(super) fn report(&self, now: Time, until: u64) -> EnergyReport {
        let mut meter = self.clone();
        meter.worked(until.min(self.slot(now)));
        meter.meter.report(now)
    }

    /// Resets the meter.
    pub(super) fn reset(&mut self, now: Time, until: u64) {
        self.worked(until.min(self.slot(now)));
        self.meter.reset(now);
    }

    /// Slot of a time.
    fn slot(&self, now: Time) -> u64 {
        (u128::from(now.ps()) * u128::from(self.width) / u128::from(self.cycle.ps())) as u64
    }
}
