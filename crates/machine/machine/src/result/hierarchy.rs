//! Results of the parts that GPUs and servers have in common, and of paging.

use mem::l2::L2;
use mem::mmu::Mmu;
use mem::paging::Paging;
use mem::stripe::{MemberStats, Stripe};
use mem::swap::Swap;
use proto::memory::{Stage, Tally};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The measured window.
#[derive(Clone, Copy)]
pub(super) struct Window {
    /// Length of the window, seconds.
    pub(super) seconds: f64,
}

impl Window {
    pub(super) fn per_second(self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }
}

/// Cache shared by the multiprocessors or cores.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct L2Result {
    /// Reads and atomic operations.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Share of reads and atomic operations that hit.
    pub hit_share: f64,
    /// Share of reads and atomic operations that joined a fetch under way.
    pub merge_share: f64,
    /// Lines prefetched.
    pub prefetched_lines: u64,
    /// Share of prefetched lines that were read.
    pub prefetch_used_share: f64,
    /// Share of correct predictions among those with a known outcome; null if there are none.
    pub prediction_accuracy_share: Option<f64>,
    /// Mean granularity of prefetches.
    pub prefetch_granularity_bytes: Option<f64>,
    /// Lines written to memory.
    pub written_lines: u64,
    /// Dirty pages accepted from flash registers.
    pub parked_pages: u64,
    /// Writes absorbed by parked pages.
    pub absorbed_writes: u64,
    /// Share of the window in which banks waited to place an access, over all banks.
    pub stalled_share: f64,
}

/// Translation behind the first-level TLBs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MmuResult {
    /// Translation requests.
    pub translations: u64,
    /// Share of translations that hit the TLB behind the first-level TLBs.
    pub tlb_hit_share: f64,
    /// Page walks.
    pub walks: u64,
    /// Memory reads by page walks.
    pub walk_reads: u64,
    /// Page faults.
    pub faults: u64,
    /// Size of the page tables, bytes.
    pub table_bytes: u64,
}

impl L2Result {
    /// Collects results of a cache with lines of `line` bytes, in a window of `seconds` seconds.
    pub(super) fn collect(l2: &L2, line: u64, seconds: f64) -> L2Result {
        let s = &l2.stats;
        let reads = s.reads + s.atomics;
        L2Result {
            reads,
            writes: s.writes,
            hit_share: share(s.hits, reads),
            merge_share: share(s.merges, reads),
            prefetched_lines: s.prefetched_lines,
            prefetch_used_share: share(s.used_prefetched_lines, s.prefetched_lines),
            prediction_accuracy_share: s.prefetch.accuracy(),
            prefetch_granularity_bytes: s.prefetch.granularity(line),
            written_lines: s.written_lines,
            parked_pages: s.parked_pages,
            absorbed_writes: s.absorbed,
            stalled_share: match seconds * f64::from(l2.banks()) {
                0.0 => 0.0,
                all => s.stalled.as_s_f64() / all,
            },
        }
    }
}

impl MmuResult {
    /// Collects results of several units together. All units share the page tables.
    pub(super) fn collect(mmus: &[Mmu]) -> MmuResult {
        let sum = |of: fn(&Mmu) -> u64| mmus.iter().map(of).sum::<u64>();
        let translations = sum(|mmu| mmu.stats.translations);
        MmuResult {
            translations,
            tlb_hit_share: share(sum(|mmu| mmu.stats.tlb_hits), translations),
            walks: sum(|mmu| mmu.stats.walks),
            walk_reads: sum(|mmu| mmu.stats.walk_reads),
            faults: sum(|mmu| mmu.stats.faults),
            table_bytes: mmus.first().map_or(0, Mmu::table_bytes),
        }
    }
}

/// Returns the mean time per stage of reads and of writes, nanoseconds. Stages that took no time are left out.
pub(super) fn breakdown(
    tally: &Tally,
    [reads, writes]: [(&'static str, u64); 2],
) -> [(&'static str, Map<String, Value>); 2] {
    let means = |sums: &[u128; Stage::COUNT], requests: u64| {
        let named = Stage::NAMES.iter().zip(sums).filter(|(_, sum)| **sum > 0);
        named
            .map(|(name, sum)| ((*name).to_owned(), (*sum as f64 / 1e3 / requests.max(1) as f64).into()))
            .collect()
    };
    [(reads.0, means(tally.reads(), reads.1)), (writes.0, means(tally.writes(), writes.1))]
}

/// Sum of all stages, picoseconds.
pub(super) fn total(tally: &Tally) -> u128 {
    tally.reads().iter().chain(tally.writes()).sum()
}

pub(super) fn share(part: u64, of: u64) -> f64 {
    per(part, of as f64)
}

pub(super) fn per(count: u64, of: f64) -> f64 {
    if of > 0.0 { count as f64 / of } else { 0.0 }
}

/// Paging by the host.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PagingResult {
    /// Page faults that reached the host.
    pub faults: u64,
    /// Interrupts of the host by page faults.
    pub interrupts: u64,
    /// Batches in which the driver took faults.
    pub batches: u64,
    /// Granules moved into the GPU's memory.
    pub granules: u64,
    /// Bytes moved into the GPU's memory.
    pub moved_bytes: u64,
    /// Granules evicted.
    pub evictions: u64,
}

impl PagingResult {
    pub(super) fn collect(paging: &Paging) -> PagingResult {
        let s = &paging.stats;
        PagingResult {
            faults: s.faults + s.merged + s.present,
            interrupts: s.interrupts,
            batches: s.batches,
            moved_bytes: s.moved_bytes,
            granules: s.mapped,
            evictions: s.evictions,
        }
    }
}

/// Paging by the operating system.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SwapResult {
    /// Page walks that found the page in memory.
    pub present: u64,
    /// Page faults that requested the page from flash.
    pub faults: u64,
    /// Page faults for a page already in transit, in either direction.
    pub merged: u64,
    /// Mean time from a page fault until the page arrives; null if none arrived.
    pub fault_ns: Option<f64>,
    /// Pages mapped.
    pub mapped: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Evicted pages written to flash.
    pub write_backs: u64,
    /// TLB shoot-downs.
    pub shootdowns: u64,
    /// Page faults that found no free frame.
    pub starved: u64,
    /// Commands that the flash device failed.
    pub failed: u64,
    /// Core time of the kernel, all cores together.
    pub kernel_ns: f64,
    /// Time spinning for the lock of the page table; part of `kernel_ns`.
    pub spinning_ns: f64,
    /// Time of shoot-downs, on both sides; part of `kernel_ns`.
    pub shooting_ns: f64,
}

impl SwapResult {
    pub(super) fn collect(swap: &Swap) -> SwapResult {
        let s = &swap.stats;
        // Time of the simulation is counted in picoseconds.
        let waited = swap.tally.reads()[Stage::Fault as usize] as f64 / 1e3;
        SwapResult {
            present: s.present,
            faults: s.faults,
            merged: s.merged,
            fault_ns: (s.served > 0).then(|| waited / s.served as f64),
            mapped: s.mapped,
            evictions: s.evictions,
            write_backs: s.write_backs,
            shootdowns: s.shootdowns,
            starved: s.starved,
            failed: s.failed,
            kernel_ns: s.kernel.as_ns_f64(),
            spinning_ns: s.spinning.as_ns_f64(),
            shooting_ns: s.shooting.as_ns_f64(),
        }
    }
}

// Results of a stripe of drives.

/// Results of one drive of a stripe.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemberResult {
    /// Commands to the drive.
    pub commands: u64,
    /// Bytes of these commands.
    pub bytes: u64,
}

/// Results of a stripe.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StripeResult {
    /// Name of the stripe.
    pub name: String,
    /// Capacity of the stripe, bytes.
    pub capacity_bytes: u64,
    /// Bytes of the drives that no command reaches, because a different drive is smaller.
    pub unused_bytes: u64,
    /// Commands to the stripe.
    pub commands: u64,
    /// Commands to the drives.
    pub parts: u64,
    /// Commands that span more than one chunk.
    pub crossed: u64,
    /// Mean time of a command from the first answer of a drive to the last; null without commands.
    pub straggling_ns: Option<f64>,
    /// Drives, in the order of their chunks.
    pub members: Vec<MemberResult>,
}

/// Checks of a stripe's accounts and of its shadow: name, outcome, detail.
pub(super) fn paging_checks(name: &str, stripe: &Stripe) -> Vec<(String, bool, String)> {
    let found = stripe.check();
    let agree = format!("commands and parts of the stripe {name} agree");
    let mut checks = vec![(agree, found.is_ok(), found.err().unwrap_or_default())];
    checks.extend(stripe.shadowed().map(|found| {
        let first = found.first.as_deref().unwrap_or_default();
        let detail = format!("{} of {} parts were wrong: {first}", found.wrong, found.compared);
        (format!("bytes of the stripe {name} are on their drives"), found.wrong == 0, detail)
    }));
    checks
}

impl StripeResult {
    pub(super) fn collect(name: &str, stripe: &Stripe) -> StripeResult {
        let s = &stripe.stats;
        let member = |member: &MemberStats| MemberResult { commands: member.commands, bytes: member.bytes };
        StripeResult {
            name: name.to_owned(),
            capacity_bytes: stripe.capacity(),
            unused_bytes: stripe.unused(),
            commands: s.commands,
            parts: s.parts,
            crossed: s.crossed,
            straggling_ns: (s.commands > 0).then(|| s.straggling.as_ns_f64() / s.commands as f64),
            members: s.members.iter().map(member).collect(),
        }
    }
}
