//! Stages tile the lives of requests. [`World::check_end`] checks the sums of every test; here the parts are counted.

use super::*;

const FAR: u64 = 100 * 4096;

fn stages(world: &World, write: bool) -> Vec<(Stage, u128)> {
    let mut tally = world.gpu.tally.clone();
    tally.add(&world.elsewhere);
    let sums = if write { tally.writes() } else { tally.reads() };
    [Stage::L1, Stage::L1Merge, Stage::Tlb, Stage::Walk, Stage::Memory]
        .into_iter()
        .map(|stage| (stage, sums[stage as usize] / 1000))
        .filter(|(_, ns)| *ns > 0)
        .collect()
}

#[test]
fn the_load_that_asks_has_the_milestones_of_the_walk() {
    let world = run(&small(), vec![vec![kernel(1, 1, |_, _| vec![load([FAR]).to(1)])]]);
    assert_eq!(stages(&world, false), [(Stage::L1, 4), (Stage::Walk, 50), (Stage::Memory, 100)]);
    assert_eq!(world.gpu.stats.reads.sum(), 154_000);
}

#[test]
fn a_load_that_waits_beside_waits_for_the_tlb() {
    let program = |_, warp: u32| vec![load([FAR + 128 * u64::from(warp)]).to(1)];
    let world = run(&small(), vec![vec![kernel(1, 2, program)]]);
    // The second is issued in cycle 1, looked up in 3, translated in 52, sent in 55.
    let expected = [(Stage::L1, 4 + 2 + 3), (Stage::Tlb, 49), (Stage::Walk, 50), (Stage::Memory, 200)];
    assert_eq!(stages(&world, false), expected);
}

#[test]
fn a_translation_that_a_store_asks_for_is_a_read_of_its_own() {
    let program = |_, warp: u32| if warp == 0 { vec![store([FAR])] } else { vec![load([FAR]).to(1)] };
    let world = run(&small(), vec![vec![kernel(1, 2, program)]]);
    assert_eq!(stages(&world, true), [(Stage::L1, 4), (Stage::Tlb, 50), (Stage::Memory, 100)]);
    let reads = [(Stage::L1, 2 + 3), (Stage::Tlb, 49), (Stage::Walk, 50), (Stage::Memory, 100)];
    assert_eq!(stages(&world, false), reads);
    let stats = &world.gpu.stats;
    assert_eq!((stats.store_translations, stats.reads.sum(), stats.writes.sum()), (50_000, 154_000, 154_000));
    assert_eq!(stats.latency_sum(), LatencySum { reads: 204_000, writes: 154_000 });
}
