//! Broken devices: each must be found, and the same device unbroken must not.

use config::units::Bytes;
use engine::{Mutant, mutant};
use ftl::buffer::ahead::{LookAheadPolicy, sequential};
use ssd::soak::{Combination, End, Map, Memory, run};
use ssd::spec::GcStreams;

fn device() -> Combination {
    Combination::plain()
}

/// Names of the checks that fail.
fn failures(mutant: Option<Mutant>) -> Vec<&'static str> {
    failures_of(&device(), mutant)
}

fn failures_of(combination: &Combination, mutant: Option<Mutant>) -> Vec<&'static str> {
    let _armed = mutant.map(mutant::arm);
    let outcome = run(combination, 20_000, 1, true).expect("it can be built");
    assert!(matches!(outcome.end, End::Done | End::Violated), "{mutant:?}: {:?}", outcome.end);
    outcome.failed.iter().map(|c| c.name).collect()
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
fn a_deallocation_that_does_nothing_is_found() {
    is_found(Mutant::TrimIgnored);
    let device = Combination { memory: Memory::WriteBack, ..device() };
    are_found(&device, &[Mutant::TrimIgnored], "shadow_reads");
}

#[test]
fn suspends_that_cost_too_little_or_too_much_are_found() {
    use Mutant::*;
    let device = Combination { suspend: true, ..device() };
    are_found(&device, &[FreeResume, FreeSuspend, RestartedProgram], "array_time");
}

#[test]
fn what_is_counted_twice_or_not_at_all_is_found() {
    are_found(&device(), &[Mutant::RecordedTwice], "recorded");
    are_found(&device(), &[Mutant::FreeErase], "wear");
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

/// Checks that the unmodified device is sound, and that a check of this name finds each mutant of it.
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
fn a_stale_look_ahead_is_found() {
    let params = sequential::Params { streams: 3, trigger: 1, window: Bytes::from_kib(16) };
    let look_ahead = LookAheadPolicy::sequential(params);
    for joins in [false, true] {
        // Few commands leave room in the buffer.
        let (memory, depth) = (Memory::WriteThrough, 4);
        let device = Combination { memory, depth, joins, look_ahead: look_ahead.clone(), ..device() };
        assert_eq!(failures_of(&device, None), [""; 0]);
        let found = failures_of(&device, Some(Mutant::StaleFill));
        // A read finds it, or a look at all units before one comes.
        assert!(found.iter().any(|check| check.starts_with("shadow_")), "it is found by {found:?} only");
    }
}

#[test]
fn a_merge_across_an_erase_is_found() {
    let device = Combination { registers: true, joins: true, ..device() };
    are_found(&device, &[Mutant::MergeAcrossErase], "shadow_reads");
}

#[test]
fn faults_of_a_demand_map_are_found() {
    use Mutant::*;
    for map in [Map::Entries, Map::Pages] {
        let device = Combination { map, ..device() };
        are_found(
            &device,
            &[SwappedEntries, StaleCopy, LostWriteBack, StalePage, UnreadPage],
            "shadow_reads",
        );
        // The next write-back of the page sets it right: only a look at the whole map is sure to find it.
        are_found(&device, &[StalePageCopy], "shadow_map");
    }
}

/// Placements that garbage collection does not keep apart although it should; where it need not, nothing is wrong.
#[test]
fn data_moved_behind_the_frontier_of_another_placement_is_found() {
    for memory in [Memory::None, Memory::WriteBack] {
        let device = Combination { placements: 3, memory, ..device() };
        are_found(&device, &[Mutant::WrongStream], "shadow_placements");
        let mixed = Combination { streams: GcStreams::mixed, ..device };
        assert_eq!(failures_of(&mixed, Some(Mutant::WrongStream)), [""; 0]);
    }
}
