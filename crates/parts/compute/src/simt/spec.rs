//! Multiprocessors as a user writes them, and their constants as the model uses them.

use super::blocks::BlockScheduling;
use super::kernels::KernelScheduling;
use super::sched::WarpScheduling;
use config::schema::product;
use config::units::{Bytes, Frequency, Power};
use config::{SpecError, StatePower};
use engine::{Mutant, Time, planted_nth};
use mem::cache::replace::ReplacementPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Activity, EnergyReport, Meter};

/// Most warps of a multiprocessor: they are bits of one word.
const WARPS: u64 = 128;
/// Longest latency inside a multiprocessor, in cycles.
const LONGEST: u64 = 4096;

/// Streaming multiprocessors of a GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-products" = [
    product(1 << 24, "lines of first-level caches", &["sms", "l1.sets", "l1.ways"]),
    product(1 << 22, "miss registers", &["sms", "l1.miss_registers"]),
    product(1 << 24, "stores", &["sms", "load_store.stores"]),
    product(1 << 24, "translations of first-level TLBs", &["sms", "tlb.entries"]),
    product(1 << 20, "banks of shared memory", &["sms", "shared.banks"]),
]))]
pub struct GpuSpec {
    /// Number of multiprocessors.
    #[schemars(range(min = 1, max = 1_024))]
    pub sms: u16,
    /// Clock of the multiprocessors.
    pub clock: Frequency,
    /// Warp instructions that a multiprocessor issues per cycle.
    #[schemars(range(min = 1))]
    pub issue: u8,
    /// Ready warp that issues next.
    pub scheduler: WarpScheduling,
    /// Assignment of a kernel's blocks to multiprocessors.
    pub blocks: BlockScheduling,
    /// Sharing of the multiprocessors among applications.
    pub kernels: KernelScheduling,
    /// True if an application that has ended restarts, on its original data, until every other one has ended once:
    /// MacSim's `repeat_trace`. The run then ends, wherever other applications are; IPC counts all warp instructions.
    pub repeat: bool,
    /// Resources of a multiprocessor.
    pub resident: ResidentSpec,
    /// Integer and floating-point arithmetic.
    pub alu: AluSpec,
    /// Special functions: square root, division, transcendental.
    pub sfu: SfuSpec,
    /// Shared memory of blocks.
    pub shared: SharedSpec,
    /// Load-store unit.
    pub load_store: LoadStoreSpec,
    /// First-level data cache: physical, write-through, stores evict.
    pub l1: L1Spec,
    /// First-level translation lookaside buffer.
    pub tlb: TlbSpec,
    /// Energy of the multiprocessors; without it, they report no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<GpuEnergySpec>,
}

/// Energy of multiprocessors, and of the rest of their chip except memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuEnergySpec {
    /// Power of a multiprocessor: busy in cycles in which it issues an instruction.
    pub multiprocessor: StatePower,
    /// Power shared by all multiprocessors: leakage, clocks, network, second-level cache.
    pub chip_on: Power,
}

/// Resources of a multiprocessor. A block stays until its last warp has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResidentSpec {
    /// Number of warps: 1 to 128.
    #[schemars(range(min = 1, max = 128))]
    pub warps: u8,
    /// Number of blocks.
    #[schemars(range(min = 1))]
    pub blocks: u16,
    /// Number of threads, in whole warps.
    #[schemars(range(min = 1))]
    pub threads: u32,
    /// Threads per block.
    #[schemars(range(min = 1))]
    pub block_threads: u32,
    /// Number of 32-bit registers.
    #[schemars(range(min = 1))]
    pub registers: u32,
    /// Size of shared memory.
    pub shared: Bytes,
}

/// Integer and floating-point arithmetic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AluSpec {
    /// Cycles from issue to the issue of an instruction that reads the result.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub latency: u16,
}

/// Special functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SfuSpec {
    /// Cycles from issue to the issue of an instruction that reads the result.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub latency: u16,
    /// Cycles between two instructions: lanes of a warp divided by special function units.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub interval: u16,
}

/// Shared memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedSpec {
    /// Cycles from issue to the issue of an instruction that reads the result, without bank conflicts.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub latency: u16,
    /// Banks of 4 B: a power of two. Lanes that touch different words of a bank take a cycle each.
    #[schemars(range(min = 1, max = 32_768), extend("x-power-of-two" = true))]
    pub banks: u16,
}

/// Load-store unit. It coalesces the addresses of a warp into lines of 128 B and takes one line per cycle to the cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadStoreSpec {
    /// Lines in the unit: those that wait for the cache and those that wait for a translation. An instruction enters
    /// with all of its lines while fewer are inside.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub queue: u32,
    /// Outstanding stores and atomics; the unit waits for a free entry.
    #[schemars(range(min = 1))]
    pub stores: u32,
}

/// First-level data cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct L1Spec {
    /// Number of sets, of lines of 128 B.
    #[schemars(range(min = 1))]
    pub sets: u32,
    /// Ways per set.
    #[schemars(range(min = 1))]
    pub ways: u32,
    /// Replacement policy of a set.
    pub replacement: ReplacementPolicy,
    /// Cycles from the issue of a load that hits to the issue of an instruction that reads the value.
    #[schemars(range(min = 1, max = 4_096), extend("x-unit" = "cycles"))]
    pub latency: u16,
    /// Missing lines at once (miss status holding registers); the unit waits for a free register.
    #[schemars(range(min = 1))]
    pub miss_registers: u16,
    /// Requests that wait for a missing line beside the first; the unit waits with the next.
    pub merges: u16,
}

/// First-level translation lookaside buffer; least recently used entries are evicted first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlbSpec {
    /// Number of entries.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub entries: u32,
    /// Ways per set: a divisor of the number of entries; equal to it for a fully associative buffer.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub ways: u32,
    /// Pages whose translation is missing at once; the unit waits with the next.
    #[schemars(range(min = 1))]
    pub misses: u16,
}

impl GpuSpec {
    /// Checks every value.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key inside the `gpu` table.
    pub fn check(&self) -> Result<(), SpecError> {
        let positive = SpecError::positive;
        positive("sms", self.sms.into())?;
        at_most("sms", u64::from(self.sms), u64::from(u16::MAX) - 1, "ports of the network")?;
        positive("clock", self.clock.hz())?;
        at_most("clock", self.clock.hz(), 1_000_000_000_000, "Hz: time is counted in picoseconds")?;
        positive("issue", self.issue.into())?;
        self.resident.check()?;
        let warps = u64::from(self.sms) * u64::from(self.resident.warps);
        if warps > 1 << 16 {
            let what =
                format!("{} multiprocessors of {} warps are {warps} warps", self.sms, self.resident.warps);
            return Err(SpecError::new("resident.warps", format!("{what}; at most 65536 are allowed")));
        }
        for (key, cycles) in [
            ("alu.latency", self.alu.latency),
            ("sfu.latency", self.sfu.latency),
            ("sfu.interval", self.sfu.interval),
            ("shared.latency", self.shared.latency),
            ("l1.latency", self.l1.latency),
        ] {
            positive(key, cycles.into())?;
            at_most(key, cycles.into(), LONGEST, "cycles")?;
        }
        if !self.shared.banks.is_power_of_two() {
            let what = format!("{} banks: the number must be a power of two", self.shared.banks);
            return Err(SpecError::new("shared.banks", what));
        }
        positive("load_store.queue", self.load_store.queue.into())?;
        positive("load_store.stores", self.load_store.stores.into())?;
        self.l1.check()?;
        self.energy.as_ref().map_or(Ok(()), GpuEnergySpec::check)?;
        self.tlb.check()
    }
}

impl GpuEnergySpec {
    fn check(&self) -> Result<(), SpecError> {
        let StatePower { idle, busy } = self.multiprocessor;
        if busy < idle {
            let what = format!("the busy power {busy} is below the idle power {idle}");
            return Err(SpecError::new("energy.multiprocessor.busy", what));
        }
        Ok(())
    }
}

impl ResidentSpec {
    fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("resident.warps", self.warps.into())?;
        at_most("resident.warps", self.warps.into(), WARPS, "warps")?;
        SpecError::positive("resident.blocks", self.blocks.into())?;
        SpecError::positive("resident.threads", self.threads.into())?;
        SpecError::positive("resident.block_threads", self.block_threads.into())?;
        SpecError::positive("resident.registers", self.registers.into())
    }
}

impl L1Spec {
    fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("l1.sets", self.sets.into())?;
        SpecError::positive("l1.ways", self.ways.into())?;
        at_most("l1.ways", u64::from(self.sets) * u64::from(self.ways), 1 << 24, "lines")?;
        SpecError::positive("l1.miss_registers", self.miss_registers.into())
    }
}

impl TlbSpec {
    fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("tlb.entries", self.entries.into())?;
        SpecError::positive("tlb.ways", self.ways.into())?;
        SpecError::positive("tlb.misses", self.misses.into())?;
        at_most("tlb.entries", self.entries.into(), 1 << 24, "translations")?;
        if !self.entries.is_multiple_of(self.ways) {
            let what = format!("{} entries are not a multiple of {} ways", self.entries, self.ways);
            return Err(SpecError::new("tlb.ways", what).help(
                "use a divisor of the entries; as many ways as entries make the buffer fully associative",
            ));
        }
        Ok(())
    }
}

fn at_most(key: &str, value: u64, most: u64, unit: &str) -> Result<(), SpecError> {
    if value > most {
        return Err(SpecError::new(
            key,
            format!("`{key}` gives {value}; at most {most} {unit} are possible"),
        ));
    }
    Ok(())
}

/// Checks the reach of a translation entry, bytes, as given by the page table.
pub(crate) fn check_reach(reach: u64) -> Result<(), SpecError> {
    if reach == 0 || !reach.is_multiple_of(proto::memory::PAGE) {
        let what = format!("a translation entry covers {reach} B, which is not a multiple of 4 KiB");
        return Err(SpecError::new("tlb", what));
    }
    Ok(())
}

// Energy of multiprocessors: all of them take the idle power all the time, and more in cycles in which they issue.

const ON: usize = 0;

const ISSUE: usize = 1;

const REST: usize = 2;

const ACTIVITIES: [Activity; 3] = [
    Activity::state("multiprocessors on"),
    Activity::state("multiprocessor issues"),
    Activity::state("chip on"),
];

/// Energy meter of multiprocessors.
pub(super) struct GpuMeter {
    meter: Meter,
    /// Additional power of a multiprocessor in a cycle in which it issues, microwatts.
    issues: u64,
    /// Metered issue cycles of all multiprocessors.
    cycles: u64,
}

impl GpuMeter {
    /// Creates a meter for `sms` multiprocessors.
    pub(super) fn new(costs: &GpuEnergySpec, sms: u16) -> GpuMeter {
        let StatePower { idle, busy } = costs.multiprocessor;
        let mut meter = Meter::new(&ACTIVITIES);
        meter.set_power(ON, Time::ZERO, idle.microwatts() * u64::from(sms));
        meter.set_power(REST, Time::ZERO, costs.chip_on.microwatts());
        GpuMeter { meter, issues: busy.microwatts().saturating_sub(idle.microwatts()), cycles: 0 }
    }

    /// Resets the meter.
    pub(super) fn reset(&mut self, now: Time) {
        self.meter.reset(now);
        self.cycles = 0;
    }

    /// Energy since the meter was reset.
    pub(super) fn report(&self, now: Time) -> EnergyReport {
        self.meter.report(now)
    }

    /// Meters a cycle; `cycles` is the number of issue cycles of all multiprocessors since the reset.
    pub(super) fn cycle(&mut self, (begin, end): (Time, Time), cycles: u64) {
        if !planted_nth(Mutant::UnpaidIssue, 16) {
            self.meter.spend_over(ISSUE, begin, end, self.issues * (cycles - self.cycles));
        }
        self.cycles = cycles;
    }
}

// Constants of the multiprocessors as the model uses them.

/// Reach of a translation entry, bytes. Usually a power of two; a flash block of 384 pages is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    bytes: u64,
    /// Shift of the reach; 64 when `bytes` is not a power of two.
    shift: u32,
}

impl Reach {
    pub(super) fn new(bytes: u64) -> Reach {
        Reach { bytes, shift: if bytes.is_power_of_two() { bytes.trailing_zeros() } else { 64 } }
    }

    #[inline]
    pub(super) fn bytes(self) -> u64 {
        self.bytes
    }

    /// Page of an address.
    #[inline]
    pub(super) fn page(self, address: u64) -> u64 {
        if self.shift < 64 { address >> self.shift } else { address / self.bytes }
    }
}

/// Constants of every multiprocessor, latencies in cycles.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub period: Time,
    pub reach: Reach,
    pub issue: u32,
    pub warps: u32,
    pub blocks: u32,
    pub threads: u32,
    pub block_threads: u32,
    pub registers: u32,
    pub shared_bytes: u64,
    pub alu: u64,
    pub sfu: u64,
    pub sfu_interval: u64,
    pub shared: u64,
    pub l1: u64,
    pub queue: usize,
}

impl Model {
    pub(super) fn new(spec: &GpuSpec, reach: u64) -> Model {
        Model {
            period: Time::period(spec.clock.hz()),
            reach: Reach::new(reach),
            issue: spec.issue.into(),
            warps: spec.resident.warps.into(),
            blocks: spec.resident.blocks.into(),
            threads: spec.resident.threads,
            block_threads: spec.resident.block_threads,
            registers: spec.resident.registers,
            shared_bytes: spec.resident.shared.get(),
            alu: spec.alu.latency.into(),
            sfu: spec.sfu.latency.into(),
            sfu_interval: spec.sfu.interval.into(),
            shared: spec.shared.latency.into(),
            l1: spec.l1.latency.into(),
            queue: spec.load_store.queue as usize,
        }
    }
}
