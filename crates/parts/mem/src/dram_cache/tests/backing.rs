//! A memory behind the cache, which answers in any order.

use super::random::{any_cache, any_traffic, command};
use super::*;
use proptest::prelude::*;

fn over_memory(sets: u32, ways: u32) -> DramCacheSpec {
    DramCacheSpec { backing: Backing::memory, ..small(sets, ways) }
}

#[test]
fn a_miss_reads_all_lines_of_its_page_and_a_changed_page_goes_back_whole() {
    for line in [CPU_LINE, LINE] {
        let mut bench = Bench::of_lines(&over_memory(1, 1), line);
        let us = Time::from_us;
        // Two applications: 4 reads a page, 9 writes it; then 4 wants another one.
        bench.at(us(0), MemCommand { app: 4, pc: 11, ..read(0) });
        bench.at(us(100), MemCommand { app: 9, pc: 12, ..write(0) });
        bench.at(us(200), MemCommand { app: 4, pc: 13, ..signal(1) });
        bench.run();
        let at = |n: usize| bench.outside.asked[n].0;
        let all = u64::MAX >> (64 - PAGE / line);
        let first = MemCommand { lines: all, app: 4, port: 0, pc: 11, since: at(0), ..read(0) };
        let second = MemCommand { pc: 13, since: at(1), tag: bench.outside.asked[1].1.tag, ..first };
        let tag = bench.outside.asked[2].1.tag;
        let back = MemCommand { write: true, demand: false, app: 9, pc: 0, since: at(2), tag, ..first };
        let asked: Vec<MemCommand> = bench.outside.asked.iter().map(|(_, command)| *command).collect();
        assert_eq!(asked, [first, MemCommand { page: PAGE, ..second }, back]);
        assert!(bench.outside.submitted.is_empty());
        assert!(bench.cache.is_cached(PAGE) && !bench.cache.is_cached(0));
        versions::replay(&bench);
    }
}

/// A page that a write-back of the caches in front misses is wanted by nobody; a read of it, before it is asked for, wants it.
#[test]
fn a_page_is_demanded_if_somebody_waits_for_it() {
    let demanded = |accesses: &[MemCommand]| {
        let mut spec = over_memory(16, 4);
        spec.backside.command = 1_000;
        let mut bench = Bench::new(&spec);
        accesses.iter().for_each(|access| bench.at(Time::ZERO, *access));
        bench.run();
        bench.outside.asked.iter().map(|(_, command)| command.demand).collect::<Vec<_>>()
    };
    let write_back = MemCommand { demand: false, ..write(3) };
    assert_eq!(demanded(&[write_back]), [false]);
    assert_eq!(demanded(&[write_back, signal(3)]), [true]);
    assert_eq!(demanded(&[write(3)]), [true]);
}

#[test]
fn answers_may_come_in_any_order() {
    let mut bench = Bench::new(&over_memory(16, 4));
    bench.outside.latencies = [90, 60, 30].map(Time::from_us).into();
    (0..3).for_each(|page| bench.at(Time::ZERO, read(page)));
    let ends = bench.ends();
    assert!(ends[2] < ends[1] && ends[1] < ends[0], "{ends:?}");
    let came: Vec<u64> = bench.outside.arrived.iter().map(|(_, page, _)| page / PAGE).collect();
    assert_eq!(came, [2, 1, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A memory that takes as long as a drive makes no difference to anything but the form of the commands.
    #[test]
    fn a_memory_is_asked_when_a_drive_would_be(
        spec in any_cache(),
        traffic in any_traffic(),
        latencies in proptest::collection::vec(1u64..200, 1..20),
        line in prop::sample::select(vec![CPU_LINE, LINE, 256, 512]),
    ) {
        let run = |backing: Backing| {
            let mut bench = Bench::of_lines(&DramCacheSpec { backing, ..spec.clone() }, line);
            bench.outside.latencies = latencies.iter().copied().map(Time::from_us).collect();
            let mut now = Time::ZERO;
            for draw in &traffic {
                now += Time::from_ns(draw.0);
                bench.at(now, command(draw, line));
            }
            let done = bench.run();
            versions::replay(&bench);
            (bench, done)
        };
        let ((device, ends), (memory, others)) = (run(Backing::device), run(Backing::memory));
        prop_assert_eq!(ends, others);
        prop_assert_eq!(device.cache.stats, memory.cache.stats);
        prop_assert_eq!(&device.cache.tally, &memory.cache.tally);
        prop_assert_eq!(device.outside.arrived, memory.outside.arrived);
        prop_assert_eq!(device.outside.submitted.len(), memory.outside.asked.len());
        for ((at, block), (then, asked)) in device.outside.submitted.iter().zip(&memory.outside.asked) {
            prop_assert_eq!((at, block.tag, block.offset), (then, asked.tag, asked.page));
            prop_assert_eq!((block.op == IoOp::Write, block.bytes), (asked.write, asked.bytes(line)));
        }
    }
}
