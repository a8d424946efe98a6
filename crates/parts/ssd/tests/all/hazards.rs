//! Commands that meet in one map unit, and commands that wait for space. The shadow judges the data.

use engine::{Recorder, Time};
use ftl::buffer::ahead::LookAheadPolicy;
use ftl::page_map::alloc::Allocation;
use ftl::page_map::gc::VictimPolicy;
use nand::dies;
use nand::dies::arbiter::Arbitration;
use nand::dies::sched::Scheduling;
use proto::{Command, IoOp};
use ssd::Device;
use ssd::Event;
use ssd::Out;
use ssd::soak::{Combination, Fill, Map, Memory, operations};
use ssd::spec::{GcModeSpec, GcScope, GcStreams, MultiPlaneRule, ReclaimUnit};

const UNIT: u64 = 4096;
const SECTOR: u64 = 512;

fn combination() -> Combination {
    Combination {
        map_unit: UNIT,
        page: 16384,
        reclaim: ReclaimUnit::block,
        one_shot: false,
        allocation: Allocation::striped,
        victim: VictimPolicy::greedy,
        copy_back: false,
        scheduler: Scheduling::oldest,
        arbiter: Arbitration::fifo,
        multi_plane: MultiPlaneRule::off,
        suspend: false,
        independent_reads: false,
        placements: 1,
        depth: 1,
        fill: Fill::Sequential,
        nvme: false,
        fold: true,
        least_worn: false,
        tight: false,
        memory: Memory::None,
        map: Map::Table,
        mode: GcModeSpec::preemptible,
        scope: GcScope::local,
        gap: None,
        streams: GcStreams::isolated,
        registers: false,
        joins: false,
        errors: false,
        look_ahead: LookAheadPolicy::none,
        destage: ftl::buffer::destage::DestagePolicy::watermarks,
        pages: ftl::page_map::pages::PageOrder::in_order,
        parity: None,
    }
}

/// Operation, first byte, bytes.
type Io = (IoOp, u64, u64);

/// Device and its clock.
struct Bench {
    device: Device,
    cx: Recorder<Event, Out>,
}

impl Bench {
    fn new(combination: &Combination) -> Bench {
        let mut device = combination.build(1).expect("it can be built");
        device.attach_shadow();
        Bench { device, cx: Recorder::default() }
    }

    /// Runs commands, at most `depth` at once; returns the number answered before no event was left.
    fn run(&mut self, ios: &[Io], depth: usize) -> usize {
        let (mut issued, mut answered) = (0, 0);
        loop {
            while issued < ios.len() && issued - answered < depth {
                self.device.submit(command(issued as u32, ios[issued]), &mut self.cx);
                issued += 1;
            }
            let Some(event) = self.cx.queue.pop() else { break };
            self.device.handle(event, &mut self.cx);
            answered += self.cx.sent.drain(..).count();
        }
        let checks = self.device.checks(self.cx.queue.now());
        let failed: Vec<_> = checks.into_iter().filter(|c| !c.ok).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        answered
    }
}

fn command(tag: u32, (op, offset, bytes): Io) -> Command {
    Command::new(tag, op, offset, bytes)
}

/// A plane's register holds the page of the last read until something else comes to its die: another page, a program. A
/// deallocation does not come to the die at all.
#[test]
fn a_register_holds_its_page_until_something_else_comes() {
    // Four units a page; neighbouring pages lie on the eight planes in turn.
    let other_page = 8 * 4 * UNIT;
    let between = [(IoOp::Read, other_page), (IoOp::Write, 2 * UNIT), (IoOp::Trim, 2 * UNIT)];
    for ((op, offset), hits) in between.into_iter().zip([0, 0, 1]) {
        let mut bench = Bench::new(&Combination { registers: true, ..combination() });
        let ios = [(IoOp::Read, 0, UNIT), (op, offset, UNIT), (IoOp::Read, UNIT, UNIT)];
        assert_eq!(bench.run(&ios, 1), 3);
        assert_eq!(bench.device.backend.counters.register_hits, hits, "{op:?}");
    }
}

#[test]
fn writes_to_different_sectors_of_a_unit_both_stay() {
    // All of them read the old unit before any has written it.
    let mut bench = Bench::new(&combination());
    let writes: Vec<Io> = (0..8).map(|s| (IoOp::Write, 3 * UNIT + s * SECTOR, SECTOR)).collect();
    assert_eq!(bench.run(&writes, 8), 8);
    // Each write of the eight but the first to commit has to merge again, the last one seven times at most.
    let dropped = bench.device.ftl.counters.merges_dropped;
    assert!((7..=28).contains(&dropped), "{dropped} merges dropped");
    assert_eq!(bench.run(&[(IoOp::Read, 3 * UNIT, UNIT)], 1), 1);
}

#[test]
fn a_write_in_part_does_not_undo_a_whole_one() {
    for whole in [IoOp::Write, IoOp::WriteZeroes, IoOp::Trim] {
        let mut bench = Bench::new(&combination());
        let ios = [(IoOp::Write, 3 * UNIT + SECTOR, SECTOR), (whole, 3 * UNIT, UNIT)];
        assert_eq!(bench.run(&ios, 2), 2);
        assert_eq!(bench.run(&[(IoOp::Read, 3 * UNIT, UNIT)], 1), 1);
        assert!(bench.device.shadow().is_some_and(|s| s.units_checked == 1));
    }
}

#[test]
fn write_zeroes_covers_units_in_part() {
    let mut bench = Bench::new(&combination());
    let zeroes = (IoOp::WriteZeroes, 3 * UNIT + SECTOR, 2 * UNIT);
    assert_eq!(bench.run(&[zeroes], 1), 1);
    // The unit in the middle is deallocated, both edges are written.
    assert_eq!((bench.device.ftl.counters.trims, bench.device.ftl.counters.host_commits), (1, 2));
    let reads = [(IoOp::Read, 3 * UNIT, UNIT), (IoOp::Read, 4 * UNIT, UNIT), (IoOp::Read, 5 * UNIT, UNIT)];
    assert_eq!(bench.run(&reads, 1), 3);
    assert_eq!(bench.device.stats.unwritten_reads, 1);
}

/// A unit that was never written, and that a read has created with the sectors that it read, as in MQSim.
#[test]
fn a_created_unit_is_merged_with_nothing() {
    // These have the spec say that reads create.
    let created = Combination {
        fill: Fill::Empty,
        memory: Memory::WriteBack,
        tight: true,
        suspend: true,
        ..combination()
    };
    let mut bench = Bench::new(&created);
    let sector = |unit: u64, n: u64| (unit * UNIT + n * SECTOR, SECTOR);
    let io = |op: IoOp, (offset, bytes): (u64, u64)| (op, offset, bytes);
    let reads = [io(IoOp::Read, sector(3, 0)), io(IoOp::Read, sector(4, 0)), io(IoOp::Read, sector(3, 1))];
    assert_eq!(bench.run(&reads, 1), 3);
    assert_eq!(bench.device.stats.unwritten_reads, 3);
    // One write leaves the sector of the first read beside its own, one covers it, one meets a unit that was not read.
    let writes = [
        io(IoOp::Write, sector(3, 1)),
        io(IoOp::Write, sector(4, 0)),
        io(IoOp::Write, sector(5, 1)),
        (IoOp::Flush, 0, 0),
    ];
    assert_eq!(bench.run(&writes, 1), 4);
    assert_eq!(bench.device.stats.merge_reads, 1);
    // The rest of them is zeroes.
    assert_eq!(bench.run(&[(IoOp::Read, 3 * UNIT, 3 * UNIT)], 1), 1);
    assert_eq!(bench.device.stats.unwritten_reads, 3);
    assert!(bench.device.shadow().is_some_and(|s| s.violations == 0 && s.units_checked >= 6));
}

#[test]
fn space_in_another_group_is_found() {
    // Only what lies in one group is overwritten, and the new data goes to all of them: the others fill up with data
    // that stays valid, and have nothing to reclaim.
    let dynamic = [Allocation::round_robin, Allocation::all_defaults().swap_remove(2)];
    let memories = [Memory::None, Memory::WriteBack];
    for (allocation, memory) in dynamic.into_iter().flat_map(|a| memories.map(|m| (a.clone(), m))) {
        let combination = Combination { allocation, memory, tight: true, ..combination() };
        let mut bench = Bench::new(&combination);
        let (groups, per_program) =
            (u64::from(bench.device.ftl.geo.groups), u64::from(bench.device.ftl.geo.units_per_program));
        let stripes = bench.device.ftl.logical() / per_program;
        let bytes = per_program * UNIT;
        let writes: Vec<Io> =
            (0..20_000).map(|n| (IoOp::Write, n * 7 % (stripes / groups) * groups * bytes, bytes)).collect();
        assert_eq!(bench.run(&writes, 32), writes.len(), "{combination}");
    }
}

#[test]
fn a_victim_without_invalid_units_does_not_stop_reclaiming() {
    // Data written in order and never again is what closed first.
    for victim in [VictimPolicy::fifo, VictimPolicy::random] {
        let combination = Combination { victim, ..combination() };
        let mut bench = Bench::new(&combination);
        let units = bench.device.ftl.logical();
        let writes: Vec<Io> =
            (0..20_000).map(|n| (IoOp::Write, (units - 1 - n * 5 % (units / 8)) * UNIT, UNIT)).collect();
        assert_eq!(bench.run(&writes, 32), writes.len(), "{combination}");
    }
}

/// Soaks a combination with a few seeds.
fn soak(combination: &Combination) {
    for seed in 1..4 {
        let outcome = ssd::soak::run(combination, operations(2_000), seed, true).expect("it can be built");
        assert!(outcome.is_ok(), "{outcome:#?}");
    }
}

#[test]
fn global_reclaiming_leaves_each_group_room_for_its_own() {
    // Once, data of other groups filled a group until it had nothing to reclaim, and its own data waited for ever.
    let combination = Combination {
        one_shot: true,
        victim: VictimPolicy::random,
        memory: Memory::WriteThroughAndReads,
        scope: GcScope::global,
        mode: GcModeSpec::foreground,
        tight: true,
        ..combination()
    };
    soak(&combination);
}

#[test]
fn write_backs_of_the_map_take_less_than_reclaiming_gains() {
    // Once, every moved unit had a translation page written, with a program unit of its own.
    for map in [Map::Entries, Map::Pages] {
        let combination = Combination { one_shot: true, map, fill: Fill::Steady, ..combination() };
        soak(&combination);
        soak(&Combination { map_unit: 512, tight: true, ..combination });
    }
}

#[test]
fn reclaiming_ends_although_its_moves_cost_space() {
    // Once, the oldest unit was moved for ever although it was full: what others gave back went into translation pages.
    let combination = Combination {
        map_unit: 16384,
        victim: VictimPolicy::fifo,
        fill: Fill::Steady,
        tight: true,
        memory: Memory::WriteBackAndReads,
        map: Map::Pages,
        mode: GcModeSpec::foreground,
        scope: GcScope::global,
        allocation: Allocation::round_robin,
        ..combination()
    };
    soak(&combination);
    soak(&Combination {
        memory: Memory::None,
        map: Map::Entries,
        mode: GcModeSpec::background,
        ..combination
    });
}

#[test]
fn a_group_over_its_share_gives_data_away() {
    // Once, full units of such a group were copied back inside it for ever, although no command waited.
    let combination = Combination {
        map_unit: 16384,
        allocation: Allocation::all_defaults().swap_remove(2),
        victim: VictimPolicy::fifo,
        copy_back: true,
        scheduler: Scheduling::in_order,
        arbiter: Arbitration::data_first,
        suspend: true,
        fill: Fill::Steady,
        fold: false,
        tight: true,
        memory: Memory::WriteThrough,
        map: Map::Pages,
        scope: GcScope::global,
        gap: Some(2),
        ..combination()
    };
    let outcome = ssd::soak::run(&combination, 6_000, 5, true).expect("it can be built");
    assert!(outcome.is_ok(), "{outcome:#?}");
    for map in [Map::Table, Map::Entries] {
        soak(&Combination { map, ..combination.clone() });
    }
}

#[test]
fn deallocations_and_unread_pages_reach_the_map_on_flash() {
    // Once, a deallocation left its entry as it was; and a translation page of which the cache had nothing but one
    // changed entry was written back as if it had the others.
    for map in [Map::Entries, Map::Pages] {
        let mut bench = Bench::new(&Combination { map, ..combination() });
        let units = bench.device.ftl.logical();
        let trims: Vec<Io> = (0..40).map(|n| (IoOp::Trim, n * 37 % units * UNIT, UNIT)).collect();
        // Far apart: each takes a place in the cache of another page.
        let writes: Vec<Io> = (0..400).map(|n| (IoOp::Write, n * 1009 % units * UNIT, UNIT)).collect();
        for ios in [&trims, &writes, &trims, &writes] {
            assert_eq!(bench.run(ios, 16), ios.len());
        }
        let checks = bench.device.checks(bench.cx.queue.now());
        assert!(checks.iter().any(|check| check.name == "shadow_map"));
    }
}

#[test]
fn tries_that_fail_leave_no_trace() {
    // Without folding there are more events, and so more tries to reclaim while nothing can be reclaimed. Once, these
    // were counted as victims.
    let combination = Combination {
        one_shot: true,
        victim: VictimPolicy::random,
        scheduler: Scheduling::in_order,
        arbiter: Arbitration::command_first,
        copy_back: true,
        suspend: true,
        depth: 16,
        tight: true,
        map: Map::Pages,
        ..combination()
    };
    for seed in 300..306 {
        let run = |fold| {
            let combination = Combination { fold, ..combination.clone() };
            ssd::soak::run(&combination, 1_000, seed, false).expect("it can be built")
        };
        let (folded, unfolded) = (run(true), run(false));
        assert_eq!((folded.digest, folded.moves), (unfolded.digest, unfolded.moves), "seed {seed}");
    }
}

/// Time that dies are busy with commands submitted at these times, and the suspends.
fn busy(suspend: bool, ios: &[(Time, Io)]) -> (Time, u64) {
    let mut bench = Bench::new(&Combination { suspend, ..combination() });
    for (tag, (at, io)) in (0..).zip(ios) {
        // Nothing happens in the middle of a program: a look at an idle channel is the alarm.
        bench.cx.queue.after(*at, dies::Event::ChannelFree(1).into());
        while bench.cx.queue.now() < *at {
            let event = bench.cx.queue.pop().expect("something is under way");
            bench.device.handle(event, &mut bench.cx);
        }
        bench.device.submit(command(tag, *io), &mut bench.cx);
    }
    bench.run(&[], 0);
    let dies = bench.device.backend.die_busy(bench.cx.queue.now());
    (dies.into_iter().fold(Time::ZERO, |sum, busy| sum + busy), bench.device.backend.counters.suspends)
}

/// A read of the die meets a program of 200 us half-way: it takes 10 us until the die takes commands, and 5 us to go on.
#[test]
fn a_suspend_costs_its_latency_and_the_time_to_resume() {
    let write = (Time::ZERO, (IoOp::Write, 3 * UNIT, UNIT));
    let read = |at| (Time::from_us(at), (IoOp::Read, 2 * UNIT, UNIT));
    let alone = busy(true, &[write]).0 + busy(true, &[read(0)]).0;
    assert_eq!(busy(false, &[write, read(100)]), (alone, 0));
    assert_eq!(busy(true, &[write, read(100)]), (alone + Time::from_us(15), 1));
}
