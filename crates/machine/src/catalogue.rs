//! The one list of everything that a machine can choose: all policy families. `list`, `explain` and `docs/policies.md`
//! read it; a new family is a line.

pub use crate::result::metrics;

use crate::precondition::Precondition;
use crate::precondition::steady::Distribution;
use crate::warmup::WarmupPolicy;
use compute::ooo::sched::ThreadScheduling;
use compute::ooo::{Arrivals, MissAction};
use compute::simt::blocks::BlockScheduling;
use compute::simt::kernels::KernelScheduling;
use compute::simt::sched::WarpScheduling;
use config::catalogue::Family;
use flash::backend::arbiter::Arbitration;
use flash::backend::sched::Scheduling;
use flash::buffer::admit::AdmissionPolicy;
use flash::buffer::ahead::LookAheadPolicy;
use flash::buffer::evict::EvictionPolicy;
use flash::direct::spec::{ArrayOrder, FlashNetwork, RegisterNetwork, Transfer};
use flash::ftl::alloc::Allocation;
use flash::ftl::gc::VictimPolicy;
use flash::initiator::EntranceChoice;
use flash::spec::{
    GcModeSpec, GcScope, GcStreams, Interface, MapGranularity, Moves, MultiPlaneRule, PageLayout,
    Programming, ReclaimUnit, UnwrittenRead,
};
use mem::cache::replace::ReplacementPolicy;
use mem::dram::sched::DramScheduler;
use mem::dram_cache::{Backing, Partition};
use mem::l2::WritePolicy;
use mem::l2::prefetch::Prefetching;
use mem::mmu::table::PageTable;
use net::mesh::Switching;

/// The first-level caches choose from the same policies as the shared cache.
const FIRST_LEVEL: &Family = &at("gpu.l1.replacement", ReplacementPolicy::FAMILY);

/// The families of a server's cores, at the keys of its first processor.
const CORES: [&Family; 5] = [
    &at("cpu.0.l1i.replacement", ReplacementPolicy::FAMILY),
    &at("cpu.0.l1d.replacement", ReplacementPolicy::FAMILY),
    &at("cpu.0.threads.miss", MissAction::FAMILY),
    &at("cpu.0.threads.scheduler", ThreadScheduling::FAMILY),
    &at("cpu.0.load.arrivals", Arrivals::FAMILY),
];
/// The mesh of a server switches as that of a flash network.
const MESH: &Family = &at("fabric.mesh.switching", Switching::FAMILY);
/// A DRAM cache replaces pages as caches lines, and its DRAM is one.
const PAGES: &Family = &at("memory.dram_cache.replacement", ReplacementPolicy::FAMILY);
const CACHE_DRAM: &Family = &at("memory.dram_cache.dram.scheduler", DramScheduler::FAMILY);

/// A family at a further key.
const fn at(key: &'static str, family: &Family) -> Family {
    Family { key, doc: family.doc, entries: family.entries }
}

/// Every policy family, in the order of a spec.
pub const FAMILIES: &[&Family] = &[
    PageLayout::FAMILY,
    Programming::FAMILY,
    Interface::FAMILY,
    Arbitration::FAMILY,
    Scheduling::FAMILY,
    MultiPlaneRule::FAMILY,
    AdmissionPolicy::FAMILY,
    EvictionPolicy::FAMILY,
    LookAheadPolicy::FAMILY,
    Moves::FAMILY,
    ReclaimUnit::FAMILY,
    Allocation::FAMILY,
    MapGranularity::FAMILY,
    UnwrittenRead::FAMILY,
    VictimPolicy::FAMILY,
    GcModeSpec::FAMILY,
    GcScope::FAMILY,
    GcStreams::FAMILY,
    WarpScheduling::FAMILY,
    BlockScheduling::FAMILY,
    KernelScheduling::FAMILY,
    FIRST_LEVEL,
    WarmupPolicy::FAMILY,
    CORES[0],
    CORES[1],
    CORES[2],
    CORES[3],
    CORES[4],
    PageTable::FAMILY,
    MESH,
    ReplacementPolicy::FAMILY,
    WritePolicy::FAMILY,
    Prefetching::FAMILY,
    DramScheduler::FAMILY,
    PAGES,
    Partition::FAMILY,
    Backing::FAMILY,
    CACHE_DRAM,
    ArrayOrder::FAMILY,
    RegisterNetwork::FAMILY,
    FlashNetwork::FAMILY,
    Switching::FAMILY,
    Transfer::FAMILY,
    EntranceChoice::FAMILY,
    Precondition::FAMILY,
    Distribution::FAMILY,
];

/// Every key of a spec, with its kind, units and meaning.
pub fn params() -> Vec<config::schema::Param> {
    // Without a prefix nothing can be unknown.
    config::schema::params(&config::schema::of::<crate::Spec>(), "").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Choices between forms, each with its own keys, rather than between policies.
    const FORMS: [&str; 6] = [
        "flash.ftl.mapping",
        "flash.host.link",
        "flash.host.nvme.arbitration",
        "flash.inner.link",
        "flash.inner.nvme.arbitration",
        "memory",
    ];

    #[test]
    fn every_choice_of_a_spec_is_a_family_of_the_list() {
        let choices: Vec<_> = params().into_iter().filter(|p| p.kind.starts_with("one of ")).collect();
        assert!(choices.len() >= FAMILIES.len());
        for choice in &choices {
            if FORMS.contains(&choice.key.as_str()) {
                continue;
            }
            let family = FAMILIES.iter().find(|f| f.key == choice.key);
            let family = family.unwrap_or_else(|| panic!("`{}` is not in FAMILIES", choice.key));
            let names: Vec<_> = family.entries.iter().map(|e| e.name).collect();
            assert_eq!(choice.kind, format!("one of {}", names.join(", ")), "{}", choice.key);
        }
        for family in FAMILIES {
            assert!(choices.iter().any(|c| c.key == family.key), "no key of a spec is `{}`", family.key);
        }
    }

    #[test]
    fn every_key_of_a_spec_is_explained() {
        for param in params() {
            assert!(!param.doc.is_empty(), "`{}` has no documentation", param.key);
        }
    }
}
