//! The helper thread of a multiprocessor.

use super::*;

/// Instructions for each of so many pages.
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

/// It needs no warp, and goes on beside an application that is held.
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
