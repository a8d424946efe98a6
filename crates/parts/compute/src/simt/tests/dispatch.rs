//! Blocks, kernels, applications.

use super::*;
use dispatch::Need;

/// A kernel of blocks of one warp that run for `cycles` when alone.
fn blocks(count: u32, cycles: u16) -> Kernel {
    kernel(count, 1, move |_, _| vec![alu().times(cycles)])
}

/// How many blocks are taken at once.
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
        "a block of kernel 0 of application 0 has 513 threads, but 1 to 512 (`resident.block_threads`) are possible"
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
