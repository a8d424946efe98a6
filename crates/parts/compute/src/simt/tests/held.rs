//! Applications that are held.

use super::*;

/// A chain of loads, each of which needs the value of the one before.
fn loads(count: u64, line: u64) -> Vec<Step> {
    (0..count).map(|n| load([128 * (line + n)]).to(1).from(1)).collect()
}

/// One warp of each of two applications: a load begins every 102 cycles, two of look-up and a hundred of memory, if
/// nothing holds it.
fn chains() -> World {
    let chain = |line| vec![kernel(1, 1, move |_, _| loads(8, line))];
    // Every multiprocessor knows 64 pages of each.
    let spec = GpuSpec { tlb: TlbSpec { entries: 128, ways: 128, misses: 4 }, ..small() };
    World::new(&spec, vec![chain(0), chain(100)]).begin()
}

#[test]
fn one_that_is_held_sends_nothing_and_the_other_does_not_notice() {
    let mut world = chains();
    world.run_to(150);
    world.hold(1, true);
    world.run_to(1_000);
    let sent = |world: &World, app| world.accesses().iter().filter(|(_, a)| a.app == app).count();
    // Sent by cycle 150: the load of cycle 0 or 1, and that of 102 cycles later. The one under way is answered.
    assert_eq!((sent(&world, 0), sent(&world, 1)), (8, 2));
    assert_eq!(world.cycles_of(0), (0..7).map(|n| 102 * n).collect::<Vec<_>>());
    world.hold(1, false);
    world.run();
    world.check_end();
    assert_eq!(sent(&world, 1), 8);
    let after: Vec<u64> = world.cycles_of(1).into_iter().filter(|cycle| *cycle > 150).collect();
    assert_eq!(after, (0..5).map(|n| 1_000 + 102 * n).collect::<Vec<_>>());
}

/// While it waits there is no event, and the multiprocessor waits for memory.
#[test]
fn one_that_is_held_costs_no_event() {
    let program = |_, _| vec![alu(), load([0]), alu()];
    let mut world = World::new(&small(), vec![vec![kernel(1, 1, program)]]).begin();
    world.hold(0, true);
    world.run();
    assert!(world.outside.queue.is_empty() && !world.gpu.is_done() && world.accesses().is_empty());
    world.run_to(500);
    world.hold(0, false);
    world.run();
    world.check_end();
    // The arithmetic of cycle 0; then the load, the arithmetic behind it, and the answer a hundred cycles after the look-up.
    assert_eq!(world.gpu.stats.kernels[0].ended, Some(Time::from_ns(602)));
    assert_eq!(world.gpu.stats.sms[0], SmStats { busy: 3, memory: 599, ..SmStats::default() });
}

/// Places of blocks that end go to the application that is not held.
#[test]
fn one_that_is_held_takes_no_block() {
    let mut spec = small();
    spec.resident.blocks = 2;
    let blocks = |count| vec![kernel(count, 1, |_, _| vec![alu().times(10)])];
    let mut world = World::new(&spec, vec![blocks(6), blocks(6)]).begin();
    world.hold(1, true);
    world.run();
    let apps: Vec<u8> = world.script.starts.iter().map(|(_, warp)| warp.app).collect();
    // One block of it had begun, and ends: it waits for no memory.
    assert_eq!(apps, [0, 1, 0, 0, 0, 0, 0]);
    world.hold(1, false);
    world.run();
    world.check_end();
}

/// A kernel that begins while its application is held waits too.
#[test]
fn the_next_kernel_is_held_as_well() {
    let short = || kernel(1, 1, |_, _| vec![alu()]);
    let mut world = World::new(&small(), vec![vec![short(), short()]]).begin();
    world.hold(0, true);
    world.run();
    assert_eq!((world.script.starts.len(), world.gpu.is_done()), (1, false));
    world.hold(0, false);
    world.run();
    world.check_end();
}
