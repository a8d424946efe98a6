//! Counters of the multiprocessors.

use engine::Time;
use stats::Histogram;
use std::ops::AddAssign;

/// Counters of one kernel, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Warp instructions.
    pub warp_instructions: u64,
    /// Thread instructions: active lanes, summed over warp instructions.
    pub thread_instructions: u64,
    /// Loads from global memory, in warp instructions.
    pub loads: u64,
    /// Stores to global memory, in warp instructions.
    pub stores: u64,
    /// Atomic operations on global memory, in warp instructions.
    pub atomics: u64,
    /// Accesses to shared memory, in warp instructions.
    pub shared: u64,
    /// Cycles that bank conflicts added to accesses of shared memory.
    pub bank_conflicts: u64,
    /// Barriers, in warp instructions.
    pub barriers: u64,
    /// Lines of global-memory accesses after coalescing.
    pub lines: u64,
    /// Lines of loads that hit the first-level cache.
    pub l1_hits: u64,
    /// Lines of loads that missed and were not under way: each sends a read.
    pub l1_misses: u64,
    /// Lines of loads that were already under way.
    pub l1_merges: u64,
    /// Lines of stores: each sends a write.
    pub writes_sent: u64,
    /// Lines of atomics: each is sent.
    pub atomics_sent: u64,
    /// Look-ups, one for each page of an instruction, that hit the first-level TLB.
    pub tlb_hits: u64,
    /// Look-ups that missed, whether or not the translation was under way.
    pub tlb_misses: u64,
    /// Translations requested.
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

/// Counters of one kernel launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelStats {
    /// Application of the kernel.
    pub app: u8,
    /// Number of the launch within the application, from zero.
    pub number: u32,
    /// Time at which its first block was taken, or of the last reset of the counters.
    pub begun: Time,
    /// Time at which its last block ended; `None` while it runs.
    pub ended: Option<Time>,
    /// Counters of the launch.
    pub counters: Counters,
}

/// Cycles of one multiprocessor by class. The rest are cycles without any warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmStats {
    /// Cycles with an instruction issued, by a warp or the helper thread.
    pub busy: u64,
    /// Cycles without issue, while a warp waited for the load-store unit to take its instruction.
    pub load_store: u64,
    /// Cycles without issue, while results of arithmetic or shared memory were awaited, and possibly others.
    pub arithmetic: u64,
    /// Cycles without issue, while only global memory or barriers were awaited.
    pub memory: u64,
}

/// Counters of all multiprocessors. Every line of an instruction is a request.
#[derive(Clone, Debug, Default)]
pub struct GpuStats {
    /// Kernels: those that have ended, in that order, then running ones, in the order of applications.
    pub kernels: Vec<KernelStats>,
    /// Cycles of each multiprocessor.
    pub sms: Vec<SmStats>,
    /// Instructions of helper threads, which belong to no kernel.
    pub helper_instructions: u64,
    /// Latencies of loads and atomics, picoseconds: from the issue of the instruction until the line's data arrive.
    pub reads: Histogram,
    /// Latencies of stores, picoseconds: from the issue of the instruction until the line's answer arrives.
    pub writes: Histogram,
    /// Time of translations requested by stores, up to their latest milestone, picoseconds. See
    /// [`GpuStats::latency_sum`].
    pub store_translations: u128,
}

/// Sums of latencies, picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySum {
    /// Sum over reads.
    pub reads: u128,
    /// Sum over writes.
    pub writes: u128,
}

impl GpuStats {
    /// Sums that the stages of all parts must equal when nothing is outstanding.
    ///
    /// A translation is tallied among the reads by the part that walks. If a load or an atomic requested it, that
    /// line's latency includes it. If a store did, it counts here as a separate read, and the store waits for
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
