//! What becomes of writes: by hand.

use super::*;

#[test]
fn written_lines_stay_and_go_when_they_make_room() {
    let mut spec = spec(WritePolicy::write_back);
    (spec.sets, spec.ways) = (1, 2);
    let mut rig = Rig::new(&spec, 1000);
    for (n, line) in [0u64, 1, 2].into_iter().enumerate() {
        rig.write(100 * n as u64, line * 128, 128);
    }
    let read = rig.read(300, 2 * 128);
    rig.run();
    assert_eq!(rig.commands(), [(true, 0, 1)], "line 0 goes, no line is fetched");
    let (at, write) = rig.world.commands[0];
    assert_eq!((at, write.demand, write.pc), (ns(205), false, 0));
    assert_eq!(rig.answered(read), Some(301_000));
    let stats = rig.cache.stats;
    assert_eq!((stats.write_backs, stats.written_lines, stats.evictions, stats.hits), (1, 1, 1, 1));
}

#[test]
fn a_line_written_in_part_is_fetched_when_it_is_read() {
    let mut spec = spec(WritePolicy::write_back);
    (spec.sets, spec.ways) = (1, 1);
    let mut rig = Rig::new(&spec, 1000);
    let write = rig.write(0, 0, 32);
    let reads = [rig.read(10, 0), rig.read(2000, 0)];
    rig.run();
    assert_eq!(rig.answered(write), Some(5_000));
    assert_eq!(reads.map(|tag| rig.answered(tag)), [Some(1_011_000), Some(2_001_000)]);
    assert_eq!(rig.commands(), [(false, 0, 1)]);
    // It is still dirty.
    rig.write(0, 128, 128);
    rig.run();
    assert_eq!(rig.commands()[1..], [(true, 0, 1)]);
}

#[test]
fn without_a_write_slot_a_write_waits_for_room() {
    let mut spec = spec(WritePolicy::write_back);
    (spec.sets, spec.ways, spec.write_slots) = (1, 1, 1);
    let mut rig = Rig::new(&spec, 1000);
    let tags = [rig.write(0, 0, 128), rig.write(10, 128, 128), rig.write(20, 256, 128)];
    rig.run();
    // The second sends line 0 to memory at 15, which frees the slot at 1015. Reading line 0 took 1 ns.
    assert_eq!(tags.map(|tag| rig.answered(tag)), [Some(5_000), Some(15_000), Some(1_015_000)]);
    assert_eq!(rig.commands(), [(true, 0, 1), (true, 0, 2)]);
    assert_eq!(rig.cache.stats.stalls, 1);
}

#[test]
fn read_only_writes_go_through_and_drop_the_copy() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    rig.read(0, 0);
    let write = rig.write(2000, 0, 4);
    let again = rig.read(4000, 0);
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 1), (true, 0, 1), (false, 0, 1)]);
    assert!(rig.world.commands[1].1.demand);
    // The look-up takes the read latency, the cells are not written.
    assert_eq!([write, again].map(|tag| rig.answered(tag)), [Some(3_001_000), Some(5_001_000)]);
    let stats = rig.cache.stats;
    assert_eq!((stats.write_throughs, stats.invalidations, stats.write_hits, stats.misses), (1, 1, 1, 2));
}

#[test]
fn a_write_that_passes_a_fetch_makes_it_old() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    let before = rig.read(0, 0);
    rig.write(10, 0, 4);
    let after = rig.read(20, 0);
    let later = rig.read(3000, 0);
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 1), (true, 0, 1), (false, 0, 1)]);
    let times = [before, after, later].map(|tag| rig.answered(tag).expect("answered"));
    assert_eq!(times, [1_001_000, 1_021_000, 3_001_000]);
    assert_eq!((rig.cache.stats.merges, rig.cache.stats.hits), (0, 1));
}

#[test]
fn atomics_stay_where_writes_stay() {
    let mut spec = spec(WritePolicy::write_back);
    (spec.sets, spec.ways) = (1, 1);
    let mut rig = Rig::new(&spec, 1000);
    let tags = [rig.atomic(0, 0), rig.atomic(0, 0), rig.atomic(2000, 0)];
    rig.run();
    // Look-up with its write, then the fetch; a hit takes both latencies.
    assert_eq!(tags.map(|tag| rig.answered(tag)), [Some(1_006_000), Some(1_006_000), Some(2_006_000)]);
    assert_eq!(rig.commands(), [(false, 0, 1)]);
    rig.write(0, 128, 128);
    rig.run();
    assert_eq!(rig.commands()[1..], [(true, 0, 1)], "they made the line dirty");
}

#[test]
fn read_only_atomics_read_and_write_through() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    let tags = [rig.atomic(0, 0), rig.atomic(0, 0)];
    rig.read(3000, 0);
    let hit = rig.atomic(5000, 0);
    rig.run();
    // One fetch for both, their writes together; the line is not kept, so the read fetches it.
    let (fetch, write) = ((false, 0, 1), (true, 0, 1));
    assert_eq!(rig.commands(), [fetch, write, write, fetch, write]);
    assert_eq!(tags.map(|tag| rig.answered(tag)), [Some(2_001_000), Some(2_001_000)]);
    assert_eq!(rig.answered(hit), Some(6_001_000));
    assert_eq!((rig.cache.stats.hits, rig.cache.stats.misses, rig.cache.stats.merges), (1, 2, 1));
}

#[test]
fn a_slot_is_kept_for_an_atomic_whose_line_is_fetched() {
    let mut spec = spec(WritePolicy::read_only);
    spec.write_slots = 1;
    let mut rig = Rig::new(&spec, 1000);
    let tags = [rig.atomic(0, 0), rig.write(0, 4096, 4)];
    rig.run();
    // Fetch, write of the atomic, and only then the other write.
    assert_eq!(tags.map(|tag| rig.answered(tag)), [Some(2_001_000), Some(3_001_000)]);
    assert_eq!(rig.cache.outstanding(), 0);
}

#[test]
fn a_write_waits_for_an_atomic_of_its_line() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    rig.atomic(0, 0);
    let write = rig.write(10, 0, 4);
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 1), (true, 0, 1), (true, 0, 1)]);
    assert_eq!(rig.world.commands[2].0, ns(1001));
    assert_eq!(rig.answered(write), Some(2_001_000));
}
