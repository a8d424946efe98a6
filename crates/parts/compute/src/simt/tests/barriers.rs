//! Barriers.

use super::*;

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
