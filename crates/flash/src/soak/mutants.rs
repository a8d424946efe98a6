//! Broken devices: each must be found, and the same device unbroken must not.

use super::{Combination, End, Fill, Host, Map, Memory};
use crate::backend::arbiter::Arbitration;
use crate::backend::sched::{Scheduling, read_first};
use crate::device::Mutant;
use crate::ftl::alloc::Allocation;
use crate::ftl::gc::VictimPolicy;
use crate::spec::{GcModeSpec, GcScope, MultiPlaneRule, ReclaimUnit};
use config::units::Duration;
use kernel::Time;

/// Several map units a program unit, reads that overtake and are overtaken, several lanes a reclaim unit.
fn device() -> Combination {
    let scheduler =
        Scheduling::read_first(read_first::Params { max_wait: Duration::new(Time::from_us(100)) });
    Combination {
        map_unit: 4096,
        page: 16384,
        reclaim: ReclaimUnit::plane_set,
        one_shot: false,
        allocation: Allocation::striped,
        victim: VictimPolicy::greedy,
        copy_back: false,
        scheduler,
        arbiter: Arbitration::fifo,
        multi_plane: MultiPlaneRule::off,
        suspend: false,
        independent_reads: false,
        placements: 1,
        depth: 64,
        fill: Fill::Steady,
        nvme: false,
        fold: true,
        least_worn: false,
        tight: true,
        memory: Memory::None,
        map: Map::Table,
        mode: GcModeSpec::preemptible,
        scope: GcScope::local,
        gap: None,
    }
}

/// Names of the checks that fail.
fn failures(mutant: Option<Mutant>) -> Vec<&'static str> {
    failures_of(&device(), mutant)
}

fn failures_of(combination: &Combination, mutant: Option<Mutant>) -> Vec<&'static str> {
    let mut device = combination.build(1).expect("it can be built");
    device.attach_shadow();
    device.set_mutant(mutant);
    let mut host = Host::new(device, 1, 64);
    let end = host.drive(20_000);
    assert!(matches!(end, End::Done | End::Violated), "{mutant:?}: {end:?}");
    host.failed.iter().map(|c| c.name).collect()
}

#[test]
fn the_device_itself_is_sound() {
    assert!(failures(None).is_empty());
    // Nor do its reads depend on the order in which dies work.
    assert!(failures(Some(Mutant::EagerErase)).is_empty());
}

fn is_found(mutant: Mutant) {
    let found = failures(Some(mutant));
    assert!(found.contains(&"shadow_reads"), "{mutant:?} is found by {found:?} only");
}

#[test]
fn swapped_entries_are_found() {
    is_found(Mutant::SwappedEntries);
}

#[test]
fn a_stale_copy_is_found() {
    is_found(Mutant::StaleCopy);
}

#[test]
fn a_lost_program_is_found() {
    is_found(Mutant::LostProgram);
}

#[test]
fn a_read_that_passes_a_write_is_found() {
    is_found(Mutant::EarlyAcknowledge);
}

#[test]
fn a_deallocation_that_does_not_stick_is_found() {
    is_found(Mutant::TrimUndone);
}

#[test]
fn an_erase_under_a_read_is_found() {
    is_found(Mutant::PinIgnored);
}

#[test]
fn a_lost_update_is_found() {
    is_found(Mutant::BlindMerge);
}

#[test]
fn a_torn_program_is_found() {
    is_found(Mutant::TornProgram);
}

/// Whether the device is sound by itself, and a check of this name finds each mutant of it.
fn are_found(device: &Combination, mutants: &[Mutant], check: &str) {
    assert_eq!(failures_of(device, None), [""; 0]);
    for mutant in mutants {
        let found = failures_of(device, Some(*mutant));
        assert!(found.contains(&check), "{mutant:?} is found by {found:?} only");
    }
}

#[test]
fn faults_around_the_buffer_are_found() {
    use Mutant::*;
    let device = Combination { memory: Memory::WriteBack, ..device() };
    let mutants =
        [LostLine, EarlyFlush, FuaIgnored, BufferPassed, DiscardIgnored, SwappedEntries, TornProgram];
    are_found(&device, &mutants, "shadow_reads");
    let caches_reads = Combination { memory: Memory::WriteBackAndReads, ..device };
    are_found(&caches_reads, &[LostLine, BufferPassed, LostProgram], "shadow_reads");
}

#[test]
fn a_write_through_the_buffer_that_is_answered_early_is_found() {
    let device = Combination { memory: Memory::WriteThrough, ..device() };
    are_found(&device, &[Mutant::FuaIgnored], "shadow_reads");
}

#[test]
fn faults_of_a_demand_map_are_found() {
    use Mutant::*;
    for map in [Map::Entries, Map::Pages] {
        let device = Combination { map, ..device() };
        are_found(&device, &[SwappedEntries, StaleCopy, LostWriteBack, StalePage], "shadow_reads");
        // The next write-back of the page sets it right: only a look at the whole map is sure to find it.
        are_found(&device, &[StalePageCopy], "shadow_map");
    }
}
