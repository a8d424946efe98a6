//! The load-store unit, the first-level cache, miss registers and stores.

use super::*;

/// `count` lines from line `first`, one lane each.
fn lines(first: u64, count: u64) -> impl Iterator<Item = u64> {
    (first..first + count).map(|line| line * 128)
}

#[test]
fn a_hit_takes_the_latency_of_the_cache() {
    let program = |_, _| vec![load([0]).to(1), alu().from(1), load([124]).to(2), alu().from(2), alu(), alu()];
    let world = run(&small(), vec![vec![kernel(1, 1, program)]]);
    assert_eq!(world.cycles_of(0), [0, 102, 103, 105, 106]);
    let counters = world.gpu.stats.kernels[0].counters;
    assert_eq!((counters.l1_misses, counters.l1_hits, counters.l1_merges, counters.lines), (1, 1, 0, 2));
    // 102 ns for the miss, 2 ns for the hit.
    assert_eq!(world.gpu.stats.reads.sum(), 104_000);
}

#[test]
fn the_cache_takes_a_line_a_cycle() {
    let program = |_, _| {
        let warm = [load(lines(0, 4)).to(1), load(lines(4, 4)).to(2).from(1)];
        let again = [load(lines(0, 8)).to(3).from(2), alu().from(3), alu()];
        warm.into_iter().chain(again).collect()
    };
    let world = run(&small(), vec![vec![kernel(1, 1, program)]]);
    // Four lines leave in cycles 2 to 5; the last answer comes in cycle 105. Eight hits have their outcomes from two
    // cycles after issue on.
    assert_eq!(world.cycles_of(0), [0, 105, 210, 210 + 2 + 7]);
    let sent: Vec<u64> = world.accesses().iter().map(|(at, _)| *at).collect();
    assert_eq!(sent, [2, 3, 4, 5, 107, 108, 109, 110]);
}

#[test]
fn an_access_says_what_it_is() {
    let lanes = (0..32).map(|lane| 4096 + 64 + 4 * lane);
    let program = move |block, _| if block == 1 { vec![load(lanes.clone()).to(1)] } else { vec![] };
    let spec = GpuSpec { sms: 2, ..small() };
    let world = run(&spec, vec![vec![kernel(2, 3, program)]]);
    let first = world.accesses()[0].1;
    assert_eq!(
        (first.address, first.bytes, first.kind, first.app, first.pc),
        (4096, 64, AccessKind::Read, 0, 7)
    );
    assert_eq!((first.port, first.warp), (1, 16), "the second block is on the second multiprocessor");
    let misaligned = world.accesses().iter().filter(|(_, access)| access.warp == 16).count();
    assert_eq!(misaligned, 2);
    assert_eq!(world.gpu.stats.kernels[0].counters.l1_merges, 4, "the other two warps");
    assert_eq!(world.gpu.ports(), 2);
}

#[test]
fn requests_for_a_missing_line_merge_up_to_the_limit() {
    let program = |_, warp| vec![load([u64::from(warp) * 4]).to(1), alu().from(1), alu()];
    let world = run(&small(), vec![vec![kernel(1, 4, program)]]);
    let counters = world.gpu.stats.kernels[0].counters;
    // One is sent, two wait beside it, the unit waits with the fourth until the line is here.
    assert_eq!((counters.l1_misses, counters.l1_merges, counters.l1_hits), (1, 2, 1));
    assert_eq!(world.accesses().len(), 1);
    // Latencies: 102 from cycle 0, 101 from 1, 100 from 2, and 99 from 3.
    assert_eq!(world.gpu.stats.reads.sum(), 402_000);
    let stage = |stage: Stage| world.gpu.tally.reads()[stage as usize];
    // The merged ones were looked up two cycles after they were issued.
    assert_eq!((stage(Stage::L1Merge), stage(Stage::L1)), (99_000 + 98_000, 2_000 + 2_000 + 2_000 + 99_000));
}

#[test]
fn the_unit_waits_for_a_miss_register() {
    let program = |_, _| vec![load(lines(0, 6)).to(1), alu().from(1), alu()];
    let world = run(&small(), vec![vec![kernel(1, 1, program)]]);
    let sent: Vec<u64> = world.accesses().iter().map(|(at, _)| *at).collect();
    assert_eq!(sent, [2, 3, 4, 5, 102, 103]);
    assert_eq!(world.cycles_of(0), [0, 203]);
}

#[test]
fn a_waiting_unit_is_woken_only_by_what_it_waits_for() {
    let program = |_, warp| match warp {
        0 => vec![store([64 * 128])],
        _ => vec![load(lines(0, 6)).to(1)],
    };
    let mut world = World::new(&small(), vec![vec![kernel(1, 2, program)]]);
    world.latency = Time::ZERO;
    let mut world = world.begin();
    world.run();
    assert_eq!(world.gpu.outstanding(), 5);
    world.answer(0);
    assert!(world.outside.queue.is_empty(), "a store's answer frees no miss register");
    world.answer(1);
    assert!(!world.outside.queue.is_empty());
    world.latency = Time::from_ns(10);
    world.run();
    assert_eq!(
        world.accesses().len(),
        7,
        "the fifth line has been sent, and the sixth when that was answered"
    );
}

#[test]
fn stores_hold_credits_and_the_warp_goes_on() {
    let program = |_, _| vec![store(lines(0, 6)), alu(), alu(), alu()];
    let world = run(&small(), vec![vec![kernel(1, 1, program)]]);
    let sent: Vec<u64> = world.accesses().iter().map(|(at, _)| *at).collect();
    assert_eq!(sent, [2, 3, 4, 5, 102, 103]);
    assert_eq!(world.cycles_of(0), [0, 1, 2]);
    // The warp has ended when its stores are acknowledged.
    assert_eq!(world.gpu.stats.kernels[0].ended, Some(Time::from_ns(203)));
    assert_eq!((world.gpu.stats.writes.count(), world.gpu.stats.reads.count()), (6, 0));
    let mut tags: Vec<u32> = world.accesses()[..4].iter().map(|(_, access)| access.tag).collect();
    tags.dedup();
    assert_eq!(tags.len(), 4, "names of outstanding requests differ");
}

#[test]
fn a_store_evicts_the_line() {
    let program = |_, _| {
        vec![load([0]).to(1), alu().from(1), store([4]), load([0]).to(2), alu().from(2), load([0]).to(3)]
    };
    let world = run(&small(), vec![vec![kernel(1, 1, program)]]);
    let counters = world.gpu.stats.kernels[0].counters;
    assert_eq!((counters.l1_misses, counters.l1_hits, counters.writes_sent), (2, 1, 1));
}

#[test]
fn a_line_that_is_changed_on_its_way_is_not_kept() {
    let program = |_, _| vec![load([0]).to(1), store([4]), load([0]).to(2).from(1), alu().from(2)];
    let world = run(&small(), vec![vec![kernel(1, 1, program)]]);
    let counters = world.gpu.stats.kernels[0].counters;
    assert_eq!((counters.l1_misses, counters.l1_hits), (2, 0));
}

#[test]
fn atomics_bypass_the_cache_and_return_a_value() {
    let program = |_, _| {
        let warm = [load([0]).to(1), alu().from(1)];
        let atomics = [atomic([0, 8]).to(2), alu(), alu().from(2), atomic([0]), load([0]).to(3), alu()];
        warm.into_iter().chain(atomics).collect()
    };
    let world = run(&small(), vec![vec![kernel(1, 1, program)]]);
    // Issued in cycle 103, sent in 105, answered in 205.
    assert_eq!(world.cycles_of(0)[2..], [103, 104, 205, 206, 207]);
    let counters = world.gpu.stats.kernels[0].counters;
    assert_eq!((counters.atomics, counters.atomics_sent, counters.l1_misses, counters.l1_hits), (2, 2, 2, 0));
    let atomics: Vec<u8> =
        world.accesses().iter().filter(|(_, a)| a.kind == AccessKind::Atomic).map(|(_, a)| a.bytes).collect();
    assert_eq!(atomics, [8, 4]);
    assert_eq!((world.gpu.stats.reads.count(), world.gpu.stats.writes.count()), (4, 0));
}

#[test]
fn an_instruction_enters_while_there_are_fewer_lines_than_the_queue_holds() {
    let spec = GpuSpec { load_store: LoadStoreSpec { queue: 2, stores: 4 }, ..small() };
    let program = |_, warp| vec![load(lines(3 * u64::from(warp), 3)).to(1), alu()];
    let world = run(&spec, vec![vec![kernel(1, 2, program)]]);
    // Three lines enter in cycle 0 and leave in cycles 2, 3 and 4: one is left when the second may enter.
    assert_eq!((world.cycles_of(0), world.cycles_of(1)), (vec![0], vec![3]));
    assert_eq!(world.gpu.stats.sms[0].load_store, 1, "cycle 2; in cycle 1 the first warp issued");
}

#[test]
fn the_least_recently_used_line_makes_room() {
    // Sets of two ways; lines 0, 4 and 8 share the first of four sets.
    let touch = |line: u64, n: u8| [load([line * 128]).to(n), alu().from(n)];
    let program =
        move |_, _| [0, 4, 0, 8, 0, 4].into_iter().zip(1..).flat_map(|(l, n)| touch(l, n)).collect();
    let world = run(&small(), vec![vec![kernel(1, 1, program)]]);
    let counters = world.gpu.stats.kernels[0].counters;
    assert_eq!((counters.l1_misses, counters.l1_hits), (4, 2));
}

#[test]
fn an_access_without_lanes_ends_at_once() {
    let mut nothing = load([0]).to(1);
    nothing.inst.mask = 0;
    nothing.addresses.clear();
    let world =
        run(&small(), vec![vec![kernel(1, 1, move |_, _| vec![nothing.clone(), alu().from(1), alu()])]]);
    assert_eq!(world.cycles_of(0), [0, 1]);
}

use proto::memory::AccessKind;

// The first-level TLB.

/// A page that is not known from the start.
const FAR: u64 = 100 * 4096;

/// A page that is known, and used less long ago than 63 others.
const NEAR: u64 = 63 * 4096;

fn translations(world: &World) -> Vec<(u64, u64)> {
    let asked = |(at, out): &(Time, Out)| match out {
        Out::Translate(t) => {
            assert_eq!(t.since, *at);
            Some((at.ns(), t.page))
        }
        _ => None,
    };
    world.outside.sent.iter().filter_map(asked).collect()
}

#[test]
fn a_missing_translation_is_asked_for_and_the_line_goes_on() {
    let world = run(&small(), vec![vec![kernel(1, 1, |_, _| vec![load([FAR]).to(1), alu().from(1), alu()])]]);
    assert_eq!(translations(&world), [(2, 100)]);
    // Answered in cycle 52, looked up in the cache by 54, answered by memory in 154.
    assert_eq!(world.accesses()[0].0, 54);
    assert_eq!(world.cycles_of(0), [0, 154]);
}

#[test]
fn lines_of_a_missing_page_wait_for_one_translation_and_others_pass() {
    let program =
        |_, warp: u32| vec![load([[FAR, FAR + 128, 128][warp as usize]]).to(1), alu().from(1), alu()];
    let world = run(&small(), vec![vec![kernel(1, 3, program)]]);
    assert_eq!(translations(&world), [(2, 100)]);
    let sent: Vec<_> = world.accesses().iter().map(|(at, a)| (*at, a.address)).collect();
    assert_eq!(sent, [(4, 128), (54, FAR), (55, FAR + 128)]);
    let counters = world.gpu.stats.kernels[0].counters;
    assert_eq!((counters.tlb_hits, counters.tlb_misses, counters.translations_sent), (1, 2, 1));
}

#[test]
fn an_instruction_looks_each_page_up_once() {
    let pages = (0..8).map(|n| 128 * n + 4096 * (n % 2));
    let program = move |_, _| vec![load(pages.clone()).to(1)];
    let world = run(&small(), vec![vec![kernel(1, 1, program)]]);
    let counters = world.gpu.stats.kernels[0].counters;
    assert_eq!((counters.lines, counters.tlb_hits, counters.tlb_misses), (8, 2, 0));
}

#[test]
fn the_unit_waits_when_too_many_pages_are_missing() {
    let mut spec = small();
    spec.tlb.misses = 1;
    let program = |_, warp: u32| vec![load([[FAR, 2 * FAR, NEAR][warp as usize]]).to(1)];
    let world = run(&spec, vec![vec![kernel(1, 3, program)]]);
    assert_eq!(translations(&world), [(2, 100), (52, 200)]);
    // The third line is behind the second, which goes on in cycle 52.
    let sent: Vec<_> = world.accesses().iter().map(|(at, a)| (*at, a.address)).collect();
    assert_eq!(sent, [(53, NEAR), (54, FAR), (104, 2 * FAR)]);
    let counters = world.gpu.stats.kernels[0].counters;
    assert_eq!((counters.tlb_hits, counters.tlb_misses), (1, 2));
}

#[test]
fn translations_of_applications_are_their_own() {
    let program = |_, _| vec![load([FAR]).to(1)];
    let apps = vec![vec![kernel(1, 1, program)], vec![kernel(1, 1, program)]];
    let world = run(&small(), apps);
    assert_eq!(translations(&world).len(), 2);
}

#[test]
fn the_reach_of_an_entry_is_any_number_of_pages() {
    let reach = 3 * 4096;
    let program = move |_, _| vec![load([5 * reach + 130]).to(1)];
    let mut world = World::new(&small(), vec![vec![kernel(1, 1, program)]]);
    world.gpu = Gpu::new(&small(), 1, reach).expect("a spec that fits");
    world.gpu.know(0, 5, 9);
    let mut world = world.begin();
    world.run();
    assert_eq!(world.accesses()[0].1.address, 9 * reach + 128);
}

#[test]
fn a_forgotten_translation_takes_its_lines_along() {
    let program =
        |_, _| vec![load([0]).to(1), alu().from(1).times(100), load([0]).to(2), alu().from(2), alu()];
    let mut world = World::new(&small(), vec![vec![kernel(1, 1, program)]]).begin();
    world.run_to(150);
    world.gpu.invalidate(0, 0);
    world.run();
    world.check_end();
    let counters = world.gpu.stats.kernels[0].counters;
    assert_eq!((counters.l1_misses, counters.l1_hits, counters.translations_sent), (2, 0, 1));
}

#[test]
fn a_translation_that_is_forgotten_before_its_line_has_used_it_is_asked_for_again() {
    let mut world = World::new(&small(), vec![vec![kernel(1, 1, |_, _| vec![load([FAR]).to(1)])]]).begin();
    world.run_to(53);
    world.gpu.invalidate(0, 100);
    world.run();
    world.check_end();
    assert_eq!(translations(&world), [(2, 100), (54, 100)]);
    assert_eq!(world.accesses()[0].0, 106);
}
