//! What brings missing pages did.

use mem::paging::Paging;
use mem::stripe::{MemberStats, Stripe};
use mem::swap::Swap;
use proto::memory::Stage;
use schemars::JsonSchema;
use serde::Serialize;

/// Paging by the host.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PagingResult {
    /// Page faults that reached the host.
    pub faults: u64,
    /// Interrupts of the host.
    pub interrupts: u64,
    /// Batches in which the driver took faults.
    pub batches: u64,
    /// Granules brought into the GPU's memory.
    pub granules: u64,
    /// Bytes brought.
    pub moved_bytes: u64,
    /// Granules that made room.
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
    /// Page walks whose page was in memory.
    pub present: u64,
    /// Page faults for a page that nobody had asked for: pages asked from flash.
    pub faults: u64,
    /// Page faults for a page that was coming or leaving.
    pub merged: u64,
    /// Mean time from a page fault to the page; null if none came.
    pub fault_ns: Option<f64>,
    /// Pages mapped.
    pub mapped: u64,
    /// Pages that left.
    pub evictions: u64,
    /// Pages that left and were written to flash.
    pub write_backs: u64,
    /// TLB shoot-downs.
    pub shootdowns: u64,
    /// Page faults that found no free frame.
    pub starved: u64,
    /// Commands that the flash device could not do.
    pub failed: u64,
    /// Time of cores that the kernel took, all cores together.
    pub kernel_ns: f64,
    /// Of it, spinning for the lock of the page table.
    pub spinning_ns: f64,
    /// Of it, shoot-downs, on both sides.
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

// What a stripe of drives did.

/// One drive of a stripe.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MemberResult {
    /// Commands that it was given.
    pub commands: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Several drives as one.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StripeResult {
    /// What it is called.
    pub name: String,
    /// Bytes that it has.
    pub capacity_bytes: u64,
    /// Bytes of its drives that no command reaches, because another drive is smaller.
    pub unused_bytes: u64,
    /// Commands that came.
    pub commands: u64,
    /// Commands that the drives were given for them.
    pub parts: u64,
    /// Commands with bytes of more than one chunk.
    pub crossed: u64,
    /// Mean time of a command from the first answer of a drive to the last; null without commands.
    pub straggling_ns: Option<f64>,
    /// The drives, in the order of their chunks.
    pub members: Vec<MemberResult>,
}

/// Accounts of a stripe, and what its shadow has found: name, whether it holds, and what does not.
pub(super) fn checks(name: &str, stripe: &Stripe) -> Vec<(String, bool, String)> {
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
