//! The one list of everything that a machine can choose: all policy families. `list`, `explain` and `docs/policies.md`
//! read it; a new family is a line, a new place that uses one is a field of its type.

pub use crate::result::metrics;
use compute::ooo::sched::ThreadScheduling;
use compute::ooo::{Arrivals, MissAction, TableSharing};
use compute::simt::blocks::BlockScheduling;
use compute::simt::kernels::KernelScheduling;
use compute::simt::sched::WarpScheduling;
use compute::vliw::sched::AcceleratorScheduling;
use compute::vliw::{AcceleratorSums, AcceleratorWork};
use config::catalogue::{Family, Listed, listed};
use ftl::buffer::admit::AdmissionPolicy;
use ftl::buffer::ahead::LookAheadPolicy;
use ftl::buffer::destage::DestagePolicy;
use ftl::buffer::evict::EvictionPolicy;
use ftl::page_groups::spec::DumpExtent;
use ftl::page_groups::translation::GroupTranslation;
use ftl::page_groups::victim::GroupVictim;
use ftl::page_map::alloc::Allocation;
use ftl::page_map::gc::VictimPolicy;
use ftl::page_map::pages::PageOrder;
use linux::block::SchedulerPolicy;
use linux::fs::JournalMode;
use linux::pagecache::readahead::ReadAheadPolicy;
use linux::pagecache::reclaim::ReclaimPolicy;
use mem::cache::replace::ReplacementPolicy;
use mem::dram::sched::DramScheduler;
use mem::dram_cache::admit::PageAdmission;
use mem::dram_cache::{Backing, Partition};
use mem::l2::WritePolicy;
use mem::l2::prefetch::Prefetching;
use mem::mmu::table::PageTable;
use mem::placement::PlacementPolicy;
use mem::swap::SwapBacking;
use nand::dies::arbiter::Arbitration;
use nand::dies::sched::Scheduling;
use nand::planes::spec::FlashNetwork;
use nand::registers::RegisterNetwork;
use net::mesh::Switching;
use net::noc::topology::Topology;
use spec::precondition::Precondition;
use spec::precondition::steady::Distribution;
use spec::warmup::WarmupPolicy;
use ssd::direct::spec::Transfer;
use ssd::port::initiator::EntranceChoice;
use ssd::spec::{
    FullReads, GcModeSpec, GcScope, GcStreams, Interface, Leaves, MapGranularity, Moves, MultiPlaneRule,
    PageLayout, Programming, ReclaimUnit, SlcFull, UnwrittenRead,
};
use std::sync::LazyLock;

/// Every policy family, in the order of a spec. The keys that choose from each follow from the spec's types: see
/// [`families`].
pub const FAMILIES: &[&Family] = &[
    PageLayout::FAMILY,
    Leaves::FAMILY,
    Programming::FAMILY,
    Interface::FAMILY,
    Arbitration::FAMILY,
    Scheduling::FAMILY,
    MultiPlaneRule::FAMILY,
    DestagePolicy::FAMILY,
    AdmissionPolicy::FAMILY,
    EvictionPolicy::FAMILY,
    LookAheadPolicy::FAMILY,
    Moves::FAMILY,
    FullReads::FAMILY,
    ReclaimUnit::FAMILY,
    Allocation::FAMILY,
    PageOrder::FAMILY,
    MapGranularity::FAMILY,
    UnwrittenRead::FAMILY,
    SlcFull::FAMILY,
    VictimPolicy::FAMILY,
    GcModeSpec::FAMILY,
    GcScope::FAMILY,
    GcStreams::FAMILY,
    WarpScheduling::FAMILY,
    BlockScheduling::FAMILY,
    KernelScheduling::FAMILY,
    WarmupPolicy::FAMILY,
    MissAction::FAMILY,
    TableSharing::FAMILY,
    ThreadScheduling::FAMILY,
    Arrivals::FAMILY,
    PageTable::FAMILY,
    ReplacementPolicy::FAMILY,
    WritePolicy::FAMILY,
    Prefetching::FAMILY,
    DramScheduler::FAMILY,
    PageAdmission::FAMILY,
    Partition::FAMILY,
    PlacementPolicy::FAMILY,
    Backing::FAMILY,
    SwapBacking::FAMILY,
    RegisterNetwork::FAMILY,
    FlashNetwork::FAMILY,
    Topology::FAMILY,
    Switching::FAMILY,
    Transfer::FAMILY,
    EntranceChoice::FAMILY,
    Precondition::FAMILY,
    Distribution::FAMILY,
    SchedulerPolicy::FAMILY,
    ReclaimPolicy::FAMILY,
    ReadAheadPolicy::FAMILY,
    JournalMode::FAMILY,
    AcceleratorWork::FAMILY,
    AcceleratorSums::FAMILY,
    AcceleratorScheduling::FAMILY,
    GroupTranslation::FAMILY,
    GroupVictim::FAMILY,
    DumpExtent::FAMILY,
];

/// Every family with the keys of a spec that choose from it.
pub fn families() -> &'static [Listed] {
    static LISTED: LazyLock<Vec<Listed>> = LazyLock::new(|| listed(FAMILIES, &params()));
    &LISTED
}

/// Every key of a spec, with its kind, units, limits and meaning.
pub fn params() -> Vec<config::schema::Param> {
    // An empty prefix matches every key.
    config::schema::params(spec::document(), "").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Choices between forms, each with its own keys, rather than between policies.
    const FORMS: [&str; 8] = [
        "accelerator.offload.link",
        "flash.ftl.mapping",
        "flash.host.link",
        "flash.host.nvme.arbitration",
        "flash.inner.link",
        "flash.inner.nvme.arbitration",
        "host.linux.fs",
        "memory",
    ];

    #[test]
    fn every_choice_of_a_spec_is_a_family_of_the_list() {
        let choices: Vec<_> = params().into_iter().filter(|p| p.kind.starts_with("one of ")).collect();
        for choice in &choices {
            if FORMS.contains(&choice.key.as_str()) {
                continue;
            }
            let of: Vec<_> = families().iter().filter(|listed| listed.keys.contains(&choice.key)).collect();
            let [listed] = of[..] else { panic!("`{}` is of {} families", choice.key, of.len()) };
            let names: Vec<_> = listed.family.entries.iter().map(|e| e.name).collect();
            assert_eq!(choice.kind, format!("one of {}", names.join(", ")), "{}", choice.key);
        }
        for Listed { family, keys } in families() {
            assert!(!keys.is_empty(), "no key of a spec chooses from {}", family.name);
        }
    }

    /// The places that were once a list by hand.
    #[test]
    fn a_family_has_every_key_of_its_type() {
        let keys = |family: &str| {
            let listed = families().iter().find(|listed| listed.family.name == family);
            listed.unwrap_or_else(|| panic!("no family {family}")).keys.clone()
        };
        let caches = ["cpu.l1d", "cpu.l1i", "gpu.l1", "l2", "memory.dram_cache"];
        assert_eq!(keys("ReplacementPolicy"), caches.map(|cache| format!("{cache}.replacement")));
        assert_eq!(keys("DramScheduler"), ["memory.dram.scheduler", "memory.dram_cache.dram.scheduler"]);
        assert_eq!(keys("Switching"), ["fabric.mesh.switching", "memory.direct.network.mesh.switching"]);
        assert_eq!(keys("VictimPolicy"), ["flash.ftl.gc.victim"]);
    }

    /// Numbers that no field bounds more than their type does, by why not.
    const UNBOUNDED: &[(&str, &[&str])] = &[
        (
            "counted one by one; nothing is held for those to come",
            &[
                "cpu.load.jobs",
                "cpu.warmup.fixed.jobs",
                "flash.bad_blocks.grown.endurance",
                "paging.driver.batch",
            ],
        ),
        ("a real number that is only calculated with", &["flash.bad_blocks.grown.shape"]),
        (
            "what waits is held, not what might",
            &[
                "flash.host.nvme.depth",
                "flash.host.nvme.in_controller",
                "flash.inner.nvme.depth",
                "flash.inner.nvme.in_controller",
                "memory.initiator.depth",
                "l2.merges",
            ],
        ),
        (
            "more than there are means all that there are",
            &[
                "cpu.ports",
                "flash.buffer.eviction.cflru.window",
                "flash.die.partner_search",
                "flash.ftl.allocation.full.look",
                "flash.ftl.allocation.least_queued.look",
                "flash.ftl.allocation.restricted.look",
                "flash.ftl.gc.victim.d_choices.d",
                "flash.ftl.gc.victim.windowed_greedy.window",
                "flash.host.nvme.arbitration.round_robin.burst",
                "flash.host.nvme.arbitration.weighted.burst",
                "flash.host.nvme.arbitration.weighted.high",
                "flash.host.nvme.arbitration.weighted.low",
                "flash.host.nvme.arbitration.weighted.medium",
                "flash.inner.nvme.arbitration.round_robin.burst",
                "flash.inner.nvme.arbitration.weighted.burst",
                "flash.inner.nvme.arbitration.weighted.high",
                "flash.inner.nvme.arbitration.weighted.low",
                "flash.inner.nvme.arbitration.weighted.medium",
                "gpu.blocks.strided.stride",
                "gpu.kernels.automatic.kernels",
                "gpu.kernels.automatic.stride",
                "gpu.kernels.large_chunk.kernels",
                "gpu.resident.block_threads",
                "gpu.resident.registers",
                "gpu.resident.threads",
                "memory.dram.scheduler.fr_fcfs.batch",
                "memory.dram_cache.dram.scheduler.fr_fcfs.batch",
            ],
        ),
        (
            "a threshold that a count may never reach",
            &[
                "flash.buffer.look_ahead.sequential.trigger",
                "flash.ftl.gc.window",
                "flash.ftl.wear.static_gap",
                "l2.prefetch.dynamic.window",
                "memory.direct.redirect.window",
                "memory.engine.prefetch.after",
            ],
        ),
        (
            "the geometry, which has bounds, must have room for it",
            &[
                "flash.ftl.gc.hard",
                "flash.ftl.gc.start",
                "flash.ftl.gc.stop",
                "flash.ftl.pages.by_type.open",
                "memory.direct.mapping.data_blocks",
                "memory.direct.mapping.group",
            ],
        ),
        ("a device is at most 1 EiB", &["flash.geometry.pages"]),
    ];

    #[test]
    fn every_number_and_quantity_has_a_bound() {
        let is_counted = |kind: &str| {
            let kind = kind.trim_start_matches("array of ");
            let kinds =
                ["integer", "real number", "duration", "size", "bandwidth", "transfer rate", "frequency"];
            kinds.contains(&kind)
        };
        let mut without = Vec::new();
        for param in params().iter().filter(|param| is_counted(&param.kind)) {
            // A rate has a least; of what is counted or measured, too much is the danger.
            let is_rate = ["bandwidth", "transfer rate"].contains(&param.kind.as_str());
            let is_open = param.allowed.ends_with("or more") || param.allowed == "above 0";
            let is_bounded = !param.allowed.is_empty() && (is_rate || !is_open);
            if !is_bounded {
                without.push(param.key.clone());
            }
        }
        let mut listed: Vec<&str> = UNBOUNDED.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
        without.sort_unstable();
        listed.sort_unstable();
        assert_eq!(without, listed);
    }

    #[test]
    fn every_key_of_a_spec_is_explained() {
        for param in params() {
            assert!(!param.doc.is_empty(), "`{}` has no documentation", param.key);
        }
    }
}
