//! What the multiprocessors count.

use engine::Time;
use stats::Histogram;
use std::ops::AddAssign;

/// What has happened in the service of one kernel, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// Instructions of threads: lanes at work, summed over warp instructions.
    pub thread_instructions: u64,
    /// Loads from global memory, in warp instructions.
    pub loads: u64,
    /// Stores to global memory, in warp instructions.
    pub stores: u64,
    /// Atomic operations on global memory, in warp instructions.
    pub atomics: u64,
    /// Accesses to shared memory, in warp instructions.
    pub shared: u64,
    /// Cycles that bank conflicts have added to accesses to shared memory.
    pub bank_conflicts: u64,
    /// Barriers, in warp instructions.
    pub barriers: u64,
    /// Lines that the accesses to global memory were merged into.
    pub lines: u64,
    /// Lines of loads that the first-level cache had.
    pub l1_hits: u64,
    /// Lines of loads that it lacked, and that were not on their way: each is a read sent.
    pub l1_misses: u64,
    /// Lines of loads that were on their way already.
    pub l1_merges: u64,
    /// Lines of stores: each is a write sent.
    pub writes_sent: u64,
    /// Lines of atomics: each is sent.
    pub atomics_sent: u64,
    /// Look-ups, one for each page of an instruction, that the first-level TLB answered.
    pub tlb_hits: u64,
    /// Look-ups that it did not answer, whether or not the translation was on its way.
    pub tlb_misses: u64,
    /// Translations asked for.
    pub translations_sent: u64,
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, other: &Counters) {
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        self.loads += other.loads;
        self.stores += other.stores;
        self.atomics += other.atomics;
        self.shared += other.shared;
        self.bank_conflicts += other.bank_conflicts;
        self.barriers += other.barriers;
        self.lines += other.lines;
        self.l1_hits += other.l1_hits;
        self.l1_misses += other.l1_misses;
        self.l1_merges += other.l1_merges;
        self.writes_sent += other.writes_sent;
        self.atomics_sent += other.atomics_sent;
        self.tlb_hits += other.tlb_hits;
        self.tlb_misses += other.tlb_misses;
        self.translations_sent += other.translations_sent;
    }
}

/// One launch of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelStats {
    /// The application.
    pub app: u8,
    /// Which launch of the application it is, counted from zero.
    pub number: u32,
    /// When its first block was taken, or the last reset of the counters.
    pub begun: Time,
    /// When its last block ended; none while it runs.
    pub ended: Option<Time>,
    /// What has happened in its service.
    pub counters: Counters,
}

/// Cycles of one multiprocessor. Cycles without any warp are those that are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmStats {
    /// With an instruction issued, of a warp or of the helper thread.
    pub busy: u64,
    /// Without one, while a warp waited for the load-store unit to take its instruction.
    pub load_store: u64,
    /// Without one, while results of arithmetic or shared memory were awaited, and maybe others.
    pub arithmetic: u64,
    /// Without one, while only global memory or barriers were awaited.
    pub memory: u64,
}

/// What the multiprocessors count. Every line of an instruction is a request.
#[derive(Clone, Debug, Default)]
pub struct GpuStats {
    /// Kernels that have ended, in that order, then those that run, in the order of applications.
    pub kernels: Vec<KernelStats>,
    /// Each multiprocessor.
    pub sms: Vec<SmStats>,
    /// Instructions of helper threads, which belong to no kernel.
    pub helper_instructions: u64,
    /// Latencies of loads and atomics, in picoseconds: from the issue of the instruction until the line's data are here.
    pub reads: Histogram,
    /// Latencies of stores, in picoseconds: from the issue of the instruction until the line's answer is here.
    pub writes: Histogram,
    /// Picoseconds that translations took which a store had asked for, up to their latest milestone. See
    /// [`GpuStats::latency_sum`].
    pub store_translations: u128,
}

/// Sums of latencies, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySum {
    /// Of reads.
    pub reads: u128,
    /// Of writes.
    pub writes: u128,
}

impl GpuStats {
    /// What the stages of all parts must sum to, when nothing is outstanding.
    ///
    /// A translation is tallied among the reads by the part that walks. If a load or an atomic has asked for it, that
    /// line's latency holds it. If a store has, it counts here as a read of its own, and the store waits for
    /// [`Stage::Tlb`](proto::memory::Stage) meanwhile.
    pub fn latency_sum(&self) -> LatencySum {
        LatencySum { reads: self.reads.sum() + self.store_translations, writes: self.writes.sum() }
    }

    /// Counters of an application, summed over its launches.
    pub fn app(&self, app: u8) -> Counters {
        let mut sum = Counters::default();
        for kernel in self.kernels.iter().filter(|k| k.app == app) {
            sum += &kernel.counters;
        }
        sum
    }
}
