//! The first-level TLB.

use super::*;

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
