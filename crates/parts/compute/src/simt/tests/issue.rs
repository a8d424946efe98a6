//! Issue, latencies of arithmetic, the scoreboard, the helper thread.

use super::*;

fn chain(length: usize) -> Vec<Step> {
    (0..length).map(|_| alu().to(1).from(1)).collect()
}

#[test]
fn independent_arithmetic_issues_every_cycle() {
    let world = run(&small(), vec![vec![kernel(1, 4, |_, _| vec![alu(); 25])]]);
    let stats = &world.gpu.stats;
    assert_eq!(stats.kernels[0].counters.warp_instructions, 100);
    assert_eq!(stats.kernels[0].counters.thread_instructions, 3_200);
    assert_eq!(stats.kernels[0].ended, Some(Time::from_ns(99)));
    assert_eq!(stats.sms[0], SmStats { busy: 100, ..SmStats::default() });
    let slots: Vec<u32> = world.issued.iter().map(|(slot, _)| *slot).collect();
    assert_eq!(slots[..8], [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn a_wider_multiprocessor_issues_more() {
    let spec = GpuSpec { issue: 2, ..small() };
    let world = run(&spec, vec![vec![kernel(1, 4, |_, _| vec![alu(); 25])]]);
    assert_eq!(world.gpu.stats.sms[0].busy, 50);
}

#[test]
fn a_chain_takes_the_latency_of_each_link() {
    let world = run(&small(), vec![vec![kernel(1, 1, |_, _| chain(10))]]);
    assert_eq!(world.cycles_of(0), (0..9).map(|n| 4 * n).collect::<Vec<_>>());
    // The last is issued in cycle 36 and has its result at the beginning of cycle 40.
    assert_eq!(world.gpu.stats.kernels[0].ended, Some(Time::from_ns(40)));
    assert_eq!(world.gpu.stats.sms[0], SmStats { busy: 10, arithmetic: 30, ..SmStats::default() });
}

#[test]
fn four_chains_hide_a_latency_of_four() {
    let world = run(&small(), vec![vec![kernel(1, 4, |_, _| chain(10))]]);
    assert_eq!(world.gpu.stats.sms[0].busy, 40);
    assert_eq!(world.gpu.stats.kernels[0].ended, Some(Time::from_ns(39 + 4)));
}

#[test]
fn special_functions_come_at_their_interval() {
    let sfu = || step(InstKind::Sfu, vec![]).to(1);
    let program =
        move |_, warp| if warp == 0 { vec![sfu(), alu().from(1), alu()] } else { vec![sfu(), alu()] };
    let world = run(&small(), vec![vec![kernel(1, 2, program)]]);
    assert_eq!(world.cycles_of(0), [0, 10]);
    assert_eq!(world.cycles_of(1), [8]);
}

#[test]
fn an_instruction_that_stands_for_several_issues_as_often() {
    let program = |_, _| vec![alu().times(10).to(3), alu().from(3)];
    let fair = run(&small(), vec![vec![kernel(1, 2, program)]]);
    assert_eq!(fair.issued, [(0, 18), (1, 19)]);
    assert_eq!(fair.gpu.stats.kernels[0].counters.warp_instructions, 22);
    // The result of the last of the ten is awaited.
    assert_eq!(fair.gpu.stats.kernels[0].ended, Some(Time::from_ns(19 + 4)));
    let greedy = GpuSpec { scheduler: WarpScheduling::greedy_then_oldest, ..small() };
    let greedy = run(&greedy, vec![vec![kernel(1, 2, program)]]);
    // In cycle 13 the result of warp 0 is here, but warp 1 is ready and issued last.
    assert_eq!(greedy.issued, [(0, 9), (1, 19)]);
}

#[test]
fn only_what_needs_the_value_waits_for_a_load() {
    let program = |_, _| vec![load([0]).to(1), alu().to(2), alu().from(2), alu().from(1), alu()];
    let world = run(&small(), vec![vec![kernel(1, 1, program)]]);
    // The load is looked up by cycle 2 and answered 100 cycles later.
    assert_eq!(world.cycles_of(0), [0, 1, 5, 102]);
    let cycles = world.gpu.stats.sms[0];
    assert_eq!((cycles.busy, cycles.arithmetic, cycles.memory), (5, 3, 96));
}

#[test]
fn a_register_is_not_written_twice_at_once() {
    let overwrite = |_, _| vec![load([0]).to(1), alu().to(1), alu()];
    let world = run(&small(), vec![vec![kernel(1, 1, overwrite)]]);
    assert_eq!(world.cycles_of(0), [0, 102]);
    let chain = |_, _| vec![alu().to(200), alu().to(200), alu()];
    let world = run(&small(), vec![vec![kernel(1, 1, chain)]]);
    assert_eq!(world.cycles_of(0), [0, 4]);
}

#[test]
fn bank_conflicts_take_their_cycles() {
    let share = |kind, stride: u64| step(kind, (0..32).map(|lane| lane * stride).collect()).to(1);
    let program = move |_, warp| match warp {
        0 => vec![share(InstKind::SharedLoad, 128), alu().from(1), alu()],
        _ => vec![share(InstKind::SharedStore, 4), alu().from(1), alu()],
    };
    let world = run(&small(), vec![vec![kernel(1, 2, program)]]);
    // 32 cycles in one bank: the value is there 3 + 31 cycles later, the next access may follow after 32.
    assert_eq!(world.cycles_of(0), [0, 34]);
    assert_eq!(world.cycles_of(1), [32, 33]);
    let counters = world.gpu.stats.kernels[0].counters;
    assert_eq!((counters.shared, counters.bank_conflicts), (2, 31));
}

#[test]
fn a_stalled_multiprocessor_has_no_event() {
    let program = |_, _| vec![load([0]).to(1), alu().from(1)];
    let mut world = World::new(&small(), vec![vec![kernel(1, 3, program)]]);
    world.latency = Time::ZERO;
    let mut world = world.begin();
    world.run();
    assert!(world.outside.queue.is_empty() && !world.gpu.is_done());
    assert_eq!((world.cycle(), world.gpu.outstanding()), (4, 1), "the third load is merged in cycle 4");
    world.run_to(1_000);
    world.answer(0);
    world.run();
    world.check_end();
    assert_eq!(world.gpu.stats.kernels[0].ended, Some(Time::from_ns(1_002)));
}

#[test]
fn what_arrives_between_edges_waits_for_the_next() {
    let program = |_, _| vec![load([0]).to(1), alu().from(1), alu()];
    let mut world = World::new(&small(), vec![vec![kernel(1, 1, program)]]);
    world.latency = Time::from_ps(100_001);
    let mut world = world.begin();
    world.run();
    assert_eq!(world.cycles_of(0), [0, 103]);
    assert_eq!(world.gpu.stats.reads.sum(), 102_001);
}

#[test]
fn counters_can_begin_anew() {
    let program = |_, _| vec![load([0]).to(1), alu().from(1), alu(), alu()];
    let mut world = World::new(&small(), vec![vec![kernel(1, 1, program)]]).begin();
    world.run_to(50);
    world.gpu.reset_stats(Time::from_ns(50));
    world.run();
    let stats = &world.gpu.stats;
    assert_eq!(stats.kernels[0].counters.warp_instructions, 3);
    assert_eq!(
        (stats.kernels[0].begun, stats.kernels[0].ended),
        (Time::from_ns(50), Some(Time::from_ns(104)))
    );
    assert_eq!(stats.sms[0], SmStats { busy: 3, memory: 52, ..SmStats::default() });
}

// Applications that are held.

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

/// A held warp causes no event, and the multiprocessor waits for memory.
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

// The helper thread of a multiprocessor.

/// Number of pages, each with its instructions.
const PAGES: u64 = 5;

const EACH: u64 = 28;

/// Four warps that are always ready, and helper threads `threads` that move pages meanwhile.
fn busy(spec: &GpuSpec, threads: &[u32]) -> World {
    let mut world = World::new(spec, vec![vec![kernel(1, 4, |_, _| vec![alu(); 400])]]).begin();
    for thread in threads {
        for _ in 0..PAGES {
            world.help(*thread, EACH as u32);
        }
    }
    world.run();
    world.check_end();
    world
}

/// When the work of helper threads has been done, in cycles.
fn helped(world: &World) -> Vec<u64> {
    let all = world.outside.sent.iter();
    all.filter(|(_, out)| matches!(out, Out::Helped(_))).map(|(time, _)| time.ns()).collect()
}

/// Warps that are ready lose a slot an instruction; the thread issues one each latency of 4 cycles.
#[test]
fn ready_warps_wait_for_each_instruction() {
    let (without, with) = (busy(&small(), &[]), busy(&small(), &[0]));
    let ended = |world: &World| world.gpu.stats.kernels[0].ended.expect("it has ended").ns();
    assert_eq!((ended(&without), ended(&with)), (1_599, 1_599 + PAGES * EACH));
    assert_eq!(helped(&with), (1..=PAGES).map(|page| 4 * (page * EACH - 1)).collect::<Vec<_>>());
    assert_eq!(with.gpu.stats.helper_instructions, PAGES * EACH);
    assert_eq!(with.gpu.stats.kernels[0].counters, without.gpu.stats.kernels[0].counters);
    assert_eq!(with.gpu.stats.sms[0], SmStats { busy: 1_600 + PAGES * EACH, ..SmStats::default() });
}

/// One of two slots of a cycle is the helper's: 1,740 instructions take 870 cycles.
#[test]
fn a_wider_multiprocessor_issues_beside_it() {
    let world = busy(&GpuSpec { issue: 2, ..small() }, &[0]);
    assert_eq!(world.gpu.stats.kernels[0].ended, Some(Time::from_ns(869)));
}

/// Threads go to multiprocessors in turn, and those of one execute their work one after the other.
#[test]
fn threads_take_turns() {
    let world = busy(&GpuSpec { sms: 2, ..small() }, &[0, 1, 2]);
    let last = |thread| {
        let of = |(time, out): &(Time, Out)| match out {
            Out::Helped(help) if help.thread == thread => Some(time.ns()),
            _ => None,
        };
        world.outside.sent.iter().filter_map(of).max()
    };
    let whole = 4 * PAGES * EACH;
    assert_eq!([last(0), last(1), last(2)], [Some(whole - 4), Some(whole - 4), Some(2 * whole - 4)]);
}

/// The helper thread needs no warp, and goes on beside an application that is held.
#[test]
fn it_goes_on_without_warps() {
    let mut world = World::new(&small(), vec![vec![kernel(1, 1, |_, _| vec![load([0])])]]).begin();
    world.hold(0, true);
    world.help(0, 10);
    world.run();
    assert_eq!(helped(&world), [36]);
    world.hold(0, false);
    world.run();
    world.check_end();
    let from = world.cycle();
    world.help(0, 10);
    world.run();
    assert_eq!(helped(&world)[1], from + 36);
    assert_eq!(world.gpu.stats.kernels[0].counters.warp_instructions, 1);
}

#[test]
fn its_counter_can_begin_anew() {
    let mut world = busy(&small(), &[0]);
    world.gpu.reset_stats(world.outside.now());
    assert_eq!(world.gpu.stats.helper_instructions, 0);
}
