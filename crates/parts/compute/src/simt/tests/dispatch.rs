//! Blocks, kernels, applications: how they begin, and how they share the multiprocessors.

use super::*;
use blocks::strided;
use dispatch::Need;
use kernels::{automatic, large_chunk};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A kernel of blocks of one warp that run for `cycles` when alone.
fn blocks(count: u32, cycles: u16) -> Kernel {
    kernel(count, 1, move |_, _| vec![alu().times(cycles)])
}

/// Number of blocks taken at once.
fn at_once(spec: &GpuSpec, launch: impl Fn(&mut Launch)) -> usize {
    let mut kernel = blocks(100, 1000);
    launch(&mut kernel.launch);
    let world = World::new(spec, vec![vec![kernel]]).begin();
    world.script.starts.iter().filter(|(_, warp)| warp.warp == 0).count()
}

#[test]
fn blocks_are_taken_until_something_is_used_up() {
    assert_eq!(at_once(&small(), |_| ()), 8, "blocks");
    assert_eq!(at_once(&small(), |l| l.threads = 96), 5, "16 warps");
    assert_eq!(at_once(&small(), |l| l.threads = 65), 5, "whole warps");
    assert_eq!(at_once(&small(), |l| l.registers = 256), 4, "32768 registers");
    assert_eq!(at_once(&small(), |l| l.shared = 3000), 5, "16 KiB");
    let mut spec = small();
    spec.resident.threads = 192;
    assert_eq!(at_once(&spec, |_| ()), 6, "threads");
    assert_eq!(at_once(&GpuSpec { sms: 3, ..spec }, |_| ()), 18, "every multiprocessor");
}

#[test]
fn blocks_go_round_the_multiprocessors_and_fill_what_is_freed() {
    let mut spec = GpuSpec { sms: 2, ..small() };
    spec.resident.blocks = 1;
    let kernel = kernel(4, 1, |block, _| vec![alu().times(if block == 0 { 100 } else { 10 })]);
    let world = run(&spec, vec![vec![kernel]]);
    let slots: Vec<_> = world.script.starts.iter().map(|(slot, warp)| (*slot / 16, warp.block)).collect();
    assert_eq!(slots, [(0, 0), (1, 1), (1, 2), (1, 3)]);
    // A block's last instruction is in cycle 9; the next block's first in cycle 10.
    assert_eq!(world.gpu.stats.sms[1].busy, 30);
    assert_eq!(world.gpu.stats.kernels[0].ended, Some(Time::from_ns(99)));
}

#[test]
fn a_kernel_begins_when_every_block_of_the_one_before_has_ended() {
    let writes = kernel(3, 2, |_, _| vec![store([0])]);
    let world = run(&small(), vec![vec![writes, blocks(2, 5)]]);
    let kernels = &world.gpu.stats.kernels;
    // Six stores, four at a time: sent in cycles 2 to 5, then 102 and 103.
    assert_eq!((kernels[0].ended, kernels[1].begun), (Some(Time::from_ns(203)), Time::from_ns(203)));
    assert_eq!((kernels[0].number, kernels[1].number), (0, 1));
    assert_eq!((kernels[0].counters.stores, kernels[1].counters.stores), (6, 0));
    assert_eq!(world.gpu.stats.app(0).warp_instructions, 16);
}

#[test]
fn applications_share_every_multiprocessor() {
    let mut spec = GpuSpec { sms: 2, ..small() };
    spec.resident.blocks = 2;
    let world = run(&spec, vec![vec![blocks(3, 20)], vec![blocks(3, 20), blocks(1, 5)]]);
    let first: Vec<_> =
        world.script.starts[..4].iter().map(|(slot, w)| (slot / 16, w.app, w.block)).collect();
    assert_eq!(first, [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1)]);
    assert_eq!(
        (world.gpu.stats.app(0).warp_instructions, world.gpu.stats.app(1).warp_instructions),
        (60, 65)
    );
    let finished: Vec<_> = world.outside.sent.iter().filter(|(_, o)| matches!(o, Out::Finished(_))).collect();
    assert_eq!(finished[0].1, Out::Finished(0));
    assert_eq!(finished[1].1, Out::Finished(1));
}

#[test]
fn an_empty_grid_and_warps_without_work_end_at_once() {
    let idle = kernel(20, 3, |_, _| vec![]);
    let world = run(&small(), vec![vec![blocks(0, 1), idle, blocks(1, 1), blocks(0, 1)], vec![]]);
    let numbers: Vec<_> = world.gpu.stats.kernels.iter().map(|k| (k.number, k.ended)).collect();
    assert_eq!(numbers, (0..4).map(|n| (n, Some(Time::ZERO))).collect::<Vec<_>>());
    assert_eq!(world.script.starts.len(), 61);
}

#[test]
fn a_kernel_that_fits_nowhere_is_refused() {
    let refuse = |change: fn(&mut Launch)| {
        let mut kernel = blocks(1, 1);
        change(&mut kernel.launch);
        let mut world = World::new(&small(), vec![vec![kernel]]);
        world.gpu.begin(&mut world.script, &mut world.outside).expect_err("too large")
    };
    let unfit = refuse(|l| l.threads = 513);
    assert_eq!((unfit.what, unfit.needs, unfit.limit), (Need::BlockThreads, 513, 512));
    assert_eq!(
        unfit.to_string(),
        "a block of kernel 0 of application 0 has 513 threads; allowed are 1 to 512 (`resident.block_threads`)"
    );
    assert_eq!(refuse(|l| l.registers = 2000).what, Need::Registers);
    assert_eq!(refuse(|l| l.shared = 16_385).what, Need::Shared);
    assert_eq!(refuse(|l| l.threads = 0).needs, 0);
    let mut spec = small();
    spec.resident.warps = 4;
    let mut world = World::new(&spec, vec![vec![kernel(1, 5, |_, _| vec![])]]);
    assert_eq!(world.gpu.begin(&mut world.script, &mut world.outside).map_err(|u| u.what), Err(Need::Warps));
}

#[test]
fn a_later_kernel_that_does_not_fit_stops_its_application() {
    let mut large = blocks(1, 1);
    large.launch.shared = 1 << 20;
    let mut world = World::new(&small(), vec![vec![blocks(1, 3), large], vec![blocks(1, 50)]]).begin();
    world.run();
    assert_eq!(world.gpu.unfit.map(|u| (u.app, u.kernel, u.what)), Some((0, 1, Need::Shared)));
    assert!(world.gpu.is_done());
    assert_eq!(world.gpu.stats.app(1).warp_instructions, 50);
}

// Barriers.

#[test]
fn the_last_warp_lets_all_pass() {
    let program = |_, warp: u32| {
        let before = if warp == 1 { 5 } else { 0 };
        let mut steps = vec![alu(); before];
        steps.extend([barrier(), alu(), alu()]);
        steps
    };
    let world = run(&small(), vec![vec![kernel(1, 2, program)]]);
    // Warp 0 waits from cycle 0 on; warp 1 issues arithmetic in cycles 1 to 5 and its barrier in cycle 6.
    assert_eq!(world.cycles_of(0), [6, 7]);
    assert_eq!(world.cycles_of(1), [1, 2, 3, 4, 5, 6, 8]);
    assert_eq!(world.gpu.stats.kernels[0].counters.barriers, 2);
}

#[test]
fn a_warp_that_ends_is_not_waited_for() {
    let program = |_, warp| if warp == 0 { vec![barrier(), alu(), alu()] } else { vec![alu(); 4] };
    let world = run(&small(), vec![vec![kernel(1, 2, program)]]);
    assert_eq!(world.cycles_of(0), [4, 5], "warp 1 issues its last instruction in cycle 4");
    let at_once = |_, warp| if warp == 0 { vec![barrier(), alu(), alu()] } else { vec![] };
    let world = run(&small(), vec![vec![kernel(1, 2, at_once)]]);
    assert_eq!(world.cycles_of(0), [0, 1]);
}

#[test]
fn a_warp_ends_for_the_barrier_before_its_loads_arrive() {
    let program = |_, warp| if warp == 0 { vec![barrier(), alu(), alu()] } else { vec![load([0]).to(1)] };
    let world = run(&small(), vec![vec![kernel(1, 2, program)]]);
    assert_eq!(world.cycles_of(0), [1, 2]);
    assert_eq!(world.gpu.stats.kernels[0].ended, Some(Time::from_ns(103)));
}

#[test]
fn blocks_do_not_wait_for_each_other() {
    let program = |block, _| if block == 0 { vec![alu(), barrier(), alu(), alu()] } else { vec![alu(); 9] };
    let world = run(&small(), vec![vec![kernel(2, 1, program)]]);
    assert_eq!(world.cycles_of(0), [0, 2, 4]);
}

#[test]
fn a_barrier_may_stand_inside_a_piece_and_be_the_last_instruction() {
    let launch = Launch { number: 0, blocks: 1, threads: 96, registers: 1, shared: 0 };
    let program = |_, warp: u32| match warp {
        0 => vec![vec![alu(), barrier(), alu(), barrier()]],
        1 => vec![vec![barrier()], vec![alu(), barrier()], vec![]],
        _ => vec![vec![alu(), barrier(), barrier()]],
    };
    let world = run(&small(), vec![vec![Kernel { launch, program: Box::new(program) }]]);
    let counters = world.gpu.stats.kernels[0].counters;
    assert_eq!((counters.barriers, counters.warp_instructions), (6, 10));
}

// Where blocks go, and whose kernels run.

fn strided(stride: u32) -> BlockScheduling {
    BlockScheduling::strided(strided::Params { stride })
}

/// All policies, and parameters near which a small kernel is one of few blocks or not.
fn combinations() -> Vec<(BlockScheduling, KernelScheduling)> {
    let blocks = BlockScheduling::all_defaults().into_iter().chain([strided(1), strided(2)]);
    let kernels = KernelScheduling::all_defaults().into_iter().chain([
        KernelScheduling::large_chunk(large_chunk::Params { kernels: 2 }),
        KernelScheduling::automatic(automatic::Params { stride: 1, kernels: 2 }),
    ]);
    let kernels: Vec<_> = kernels.collect();
    blocks.flat_map(|b| kernels.iter().map(move |k| (b.clone(), k.clone())).collect::<Vec<_>>()).collect()
}

/// Kernels of blocks of one warp that all take as long.
fn app(blocks: &[u32]) -> Vec<Kernel> {
    blocks.iter().map(|count| kernel(*count, 1, |_, _| vec![alu().times(10)])).collect()
}

/// Two multiprocessors that hold two blocks each.
fn two() -> GpuSpec {
    let mut spec = GpuSpec { sms: 2, ..small() };
    spec.resident.blocks = 2;
    spec
}

/// The multiprocessor and number of each block in the order in which they began.
fn places(world: &World) -> Vec<(u32, u32)> {
    world.script.starts.iter().map(|(slot, warp)| (slot / 16, warp.block)).collect()
}

#[test]
fn blocks_run_where_their_policy_says() {
    let of = |blocks| places(&run(&GpuSpec { blocks, ..two() }, vec![app(&[7])]));
    // All places are taken in turn; blocks of a multiprocessor end together, and what they free is taken in turn.
    assert_eq!(of(BlockScheduling::round_robin)[..4], [(0, 0), (1, 1), (0, 2), (1, 3)]);
    // Chunks of 7 over 2, rounded up.
    assert_eq!(of(BlockScheduling::large_chunk)[..4], [(0, 0), (1, 4), (0, 1), (1, 5)]);
    let chunk = |(sm, block): &(u32, u32)| *sm == block / 4;
    assert!(of(BlockScheduling::large_chunk).iter().all(chunk));
    assert!(of(strided(2)).iter().all(|(sm, block)| *sm == block / 2 % 2));
    // 7 blocks are fewer than 4 x 2: chunks.
    assert_eq!(of(strided(4)), of(BlockScheduling::large_chunk));
}

/// A multiprocessor whose chunk is done is idle, though blocks wait for another.
#[test]
fn a_chunk_waits_for_its_multiprocessor() {
    let mut spec = GpuSpec { blocks: BlockScheduling::large_chunk, ..two() };
    spec.resident.blocks = 1;
    let kernel = kernel(4, 1, |block, _| vec![alu().times(if block == 0 { 100 } else { 10 })]);
    let world = run(&spec, vec![vec![kernel]]);
    assert_eq!(places(&world), [(0, 0), (1, 2), (1, 3), (0, 1)]);
    assert_eq!(world.gpu.stats.sms.iter().map(|sm| sm.busy).collect::<Vec<_>>(), [110, 20]);
}

/// Application and number of each kernel, in the order in which they began; asserts that none began before the end of
/// the one before.
fn one_at_a_time(world: &World) -> Vec<(u8, u32)> {
    let mut kernels = world.gpu.stats.kernels.clone();
    kernels.sort_by_key(|kernel| (kernel.begun, kernel.ended));
    for pair in kernels.windows(2) {
        assert!(pair[0].ended.is_some_and(|ended| ended <= pair[1].begun), "{pair:?}");
    }
    kernels.iter().map(|kernel| (kernel.app, kernel.number)).collect()
}

fn with(kernels: KernelScheduling) -> GpuSpec {
    GpuSpec { kernels, ..two() }
}

#[test]
fn two_applications_take_turns_with_a_kernel_each() {
    let world = run(&with(KernelScheduling::round_robin), vec![app(&[9, 1]), app(&[2, 2, 2, 2])]);
    assert_eq!(one_at_a_time(&world), [(0, 0), (1, 0), (0, 1), (1, 1), (1, 2), (1, 3)]);
    assert_eq!(world.gpu.stats.sms[0].busy + world.gpu.stats.sms[1].busy, 10 * (9 + 1 + 8));
    assert_eq!(world.gpu.stats.app(1).warp_instructions, 80);
}

#[test]
fn three_applications_take_turns() {
    let apps = || vec![app(&[3]), app(&[5, 1, 1]), app(&[1, 6])];
    let world = run(&with(KernelScheduling::round_robin), apps());
    assert_eq!(one_at_a_time(&world), [(0, 0), (1, 0), (2, 0), (1, 1), (2, 1), (1, 2)]);
    let twos = KernelScheduling::large_chunk(large_chunk::Params { kernels: 2 });
    let world = run(&with(twos), apps());
    assert_eq!(one_at_a_time(&world), [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (1, 2)]);
    // Two multiprocessors times a stride of 2: kernels of three blocks and fewer are small.
    let small = KernelScheduling::automatic(automatic::Params { stride: 2, kernels: 9 });
    let world = run(&with(small), vec![app(&[4, 4]), app(&[3, 4, 1]), app(&[1, 1, 1])]);
    let order = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (0, 1), (1, 2)];
    assert_eq!(one_at_a_time(&world), order);
}

#[test]
fn applications_have_multiprocessors_of_their_own() {
    for blocks in BlockScheduling::all_defaults() {
        let spec = GpuSpec { blocks, ..with(KernelScheduling::partitioned) };
        let world = run(&spec, vec![app(&[5, 1]), app(&[3])]);
        assert!(
            world.script.starts.iter().all(|(slot, warp)| slot / 16 == u32::from(warp.app)),
            "{:?}",
            spec.blocks
        );
        assert_eq!(world.script.starts.len(), 9);
        // More applications than multiprocessors: the third beside the first.
        let world = run(&spec, vec![app(&[4]), app(&[4]), app(&[4])]);
        assert!(world.script.starts.iter().all(|(slot, warp)| slot / 16 == u32::from(warp.app) % 2));
    }
}

/// Number of times each application has reported its end.
fn ends(world: &World) -> Vec<usize> {
    let of = |app| {
        world.outside.sent.iter().filter(|(_, out)| matches!(out, Out::Finished(a) if *a == app)).count()
    };
    (0..world.script.apps()).map(of).collect()
}

#[test]
fn what_has_ended_begins_again_until_all_have() {
    let mut spec = with(KernelScheduling::partitioned);
    let last_end =
        |world: &World| world.gpu.stats.kernels.iter().filter(|k| k.app == 1).filter_map(|k| k.ended).max();
    let once = run(&spec, vec![app(&[2]), app(&[2; 6])]);
    spec.repeat = true;
    let mut world = World::new(&spec, vec![app(&[2]), app(&[2; 6])]).begin();
    world.run();
    // Kernels of both are alike: in the time of six of one application, the one of the other begins six times, or once more at the end.
    let rounds = world.gpu.stats.kernels.iter().filter(|k| k.app == 0).count();
    assert!((6..=7).contains(&rounds), "{rounds}");
    assert_eq!(ends(&world), [1, 1]);
    assert_eq!((last_end(&world), world.gpu.stats.app(1)), (last_end(&once), once.gpu.stats.app(1)));
    assert!(world.gpu.is_done() && world.outside.queue.is_empty());
    // What was under way at the end comes back, and nothing follows it.
    let mut world = World::new(&spec, vec![vec![chain(1, 0), chain(9, 32)], vec![chain(2, 64)]]).begin();
    world.run();
    assert_eq!((ends(&world), world.gpu.outstanding()), (vec![1, 1], 0));
    // An application without work ends once, and is not asked again for ever.
    let mut world = World::new(&spec, vec![app(&[]), app(&[0, 3])]).begin();
    world.run();
    assert_eq!((ends(&world), world.gpu.stats.app(1).warp_instructions), (vec![1, 1], 30));
}

/// Empty grids take no turn; an application whose next kernel fits nowhere has none left.
#[test]
fn only_kernels_with_blocks_take_turns() {
    let world = run(&with(KernelScheduling::round_robin), vec![app(&[0, 2, 0, 2]), app(&[0]), app(&[1, 1])]);
    let apps: Vec<u8> = world.script.starts.iter().map(|(_, warp)| warp.app).collect();
    assert_eq!(apps, [0, 0, 2, 0, 0, 2]);
    let mut large = app(&[1, 1]);
    large[1].launch.shared = 1 << 20;
    let mut world = World::new(&with(KernelScheduling::round_robin), vec![large, app(&[1, 1])]).begin();
    world.run();
    assert!(world.gpu.unfit.is_some() && world.gpu.is_done());
    assert_eq!(world.gpu.stats.app(1).warp_instructions, 20);
}

/// A chain of loads a block: while its application is held, it stays.
fn chain(blocks: u32, line: u64) -> Kernel {
    kernel(blocks, 1, move |_, _| (0..4).map(|n| load([128 * (line + n)]).to(1).from(1)).collect())
}

#[test]
fn the_others_do_not_wait_for_one_that_is_held() {
    for (blocks, kernels) in combinations() {
        let spec = GpuSpec { blocks, kernels, ..two() };
        let mut world = World::new(&spec, vec![vec![chain(5, 0)], vec![chain(3, 64), chain(3, 96)]]).begin();
        world.run_to(150);
        // Every block has sent its first load.
        world.hold(0, true);
        world.run();
        let what = format!("{:?}", (&spec.blocks, &spec.kernels));
        assert!(!world.gpu.is_done() && world.outside.queue.is_empty(), "{what}");
        let begun = |world: &World, app| world.script.starts.iter().filter(|(_, w)| w.app == app).count();
        let waits = world.gpu.stats.kernels.iter().any(|k| k.app == 1 && k.ended.is_none());
        // Where the first application has the whole GPU its blocks stay, and the second finds no room beside them.
        let full = world.script.starts.iter().take(4).all(|(_, w)| w.app == 0);
        assert_eq!(waits, full, "{what}");
        assert!(full || begun(&world, 1) == 6, "{what}");
        world.hold(0, false);
        world.run();
        world.check_end();
        assert_eq!((begun(&world, 0), begun(&world, 1)), (5, 6), "{what}");
    }
}

/// With room beside what is held the next application has the turn at once, and the first goes on when its turn comes.
#[test]
fn a_turn_passes_on_when_its_application_is_held() {
    let mut spec = two();
    spec.kernels = KernelScheduling::round_robin;
    spec.resident.blocks = 4;
    let first = || vec![chain(6, 0), chain(1, 0)];
    let mut world = World::new(&spec, vec![first(), vec![chain(1, 64), chain(1, 96)]]).begin();
    world.run_to(50);
    assert_eq!(world.script.starts.len(), 6, "the first application has the GPU");
    world.hold(0, true);
    // Nothing has ended: the hold itself passes the turn on. Both kernels of the second run, one after the other.
    assert_eq!(world.script.starts.len(), 7);
    world.run();
    assert_eq!(world.script.starts.len(), 8);
    world.hold(0, false);
    world.run();
    world.check_end();
    let apps: Vec<u8> = world.script.starts.iter().map(|(_, warp)| warp.app).collect();
    assert_eq!(apps, [0, 0, 0, 0, 0, 0, 1, 1, 0]);
}

/// Programs of each application: kernels of these blocks, of up to three warps, drawn by a seed.
fn grids(seed: u64, app: u64) -> Vec<(u32, u32)> {
    let mut rng = engine::Rng::stream(seed, &format!("grids/{app}"));
    (0..1 + rng.below(4)).map(|_| (rng.below(9) as u32, 1 + rng.below(3) as u32)).collect()
}

/// Runs random programs under a combination of policies; applications are held and let go at random.
fn soak(seed: u64, apps: u64, blocks: BlockScheduling, kernels: KernelScheduling, holds: bool) -> World {
    let kernel = |app: u64, number: u64, (blocks, warps): (u32, u32)| {
        let seed = seed ^ number << 32;
        let launch = Launch { number: 0, blocks, threads: 32 * warps, registers: 20, shared: 1000 };
        Kernel { launch, program: Box::new(move |block, warp| random::program(seed, app, block, warp)) }
    };
    let of = |app| (0..).zip(grids(seed, app)).map(|(number, grid)| kernel(app, number, grid)).collect();
    let spec = GpuSpec { blocks, kernels, ..random::spec(seed) };
    let mut world = World::new(&spec, (0..apps).map(of).collect()).begin();
    let mut rng = engine::Rng::stream(seed, "holds");
    loop {
        if holds && rng.below(20) == 0 {
            world.hold(rng.below(apps) as u8, rng.below(2) == 0);
        }
        if !world.turn() {
            break;
        }
    }
    // Held applications are released one by one, as reclaiming ends.
    for app in 0..apps as u8 {
        world.hold(app, false);
        world.run();
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn every_block_of_every_kernel_runs_once(seed: u64, apps in 1u64..4, holds: bool) {
        for (blocks, kernels) in combinations() {
            let at_once = [KernelScheduling::shared, KernelScheduling::partitioned];
            let alone = !at_once.contains(&kernels) && !holds;
            let what = format!("{blocks:?} {kernels:?}");
            let world = soak(seed, apps, blocks, kernels, holds);
            world.check_end();
            for app in 0..apps {
                let mut starts = world.script.starts.iter().filter(|(_, w)| u64::from(w.app) == app);
                for (blocks, warps) in grids(seed, app) {
                    let count = (blocks * warps) as usize;
                    let own: BTreeSet<_> = starts.by_ref().take(count).map(|(_, w)| (w.block, w.warp)).collect();
                    let all = (0..blocks).flat_map(|b| (0..warps).map(move |w| (b, w))).collect();
                    prop_assert_eq!(&own, &all, "{}: {}", what, app);
                }
                prop_assert!(starts.next().is_none(), "{}: {}", what, app);
            }
            if alone {
                one_at_a_time(&world);
            }
        }
    }
}
