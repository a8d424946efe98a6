//! Properties of random traffic.

use super::*;
use config::policy::{Choice, check_family};
use proptest::prelude::*;

pub(super) fn any_cache() -> impl Strategy<Value = DramCacheSpec> {
    let policy = (0..ReplacementPolicy::all_defaults().len())
        .prop_map(|n| ReplacementPolicy::all_defaults().swap_remove(n));
    let backing = prop_oneof![
        Just(Backing::device),
        Just(Backing::memory),
        (1u64..60, 1u64..200).prop_map(|(read, write)| Backing::fixed(Fixed {
            read: Duration::new(Time::from_us(read)),
            write: Duration::new(Time::from_us(write)),
        })),
    ];
    let partition = prop::sample::select(Partition::all_defaults());
    let admission = prop::sample::select(PageAdmission::all_defaults());
    let shape = (1u32..5, prop::sample::select(vec![1u32, 2, 4, 8]), 1u16..4);
    let misses = (1u32..4, 1u32..4);
    let room = (1u32..4, 1u32..5, prop::sample::select(vec![1u32, 7, 64]), any::<bool>());
    (policy, backing, (partition, admission), shape, misses, room).prop_map(
        |(
            replacement,
            backing,
            (partition, admission),
            (sets, ways, controllers),
            misses,
            (buffer, queue, burst, hash),
        )| {
            let mut spec = small(sets, ways);
            spec = DramCacheSpec { replacement, admission, backing, partition, evict_buffer: buffer, ..spec };
            spec.misses = MissSpec { sets: misses.0, ways: misses.1 };
            spec.dram.controllers = controllers;
            spec.dram.banks.hash = hash;
            spec.frontside.queue = queue;
            spec.backside.burst = burst;
            spec
        },
    )
}

/// Gap before a command, its page and lines, whether it writes, whether the core accepts an answer without data.
pub(super) type Draw = (u64, u64, u64, bool, bool);

pub(super) fn any_traffic() -> impl Strategy<Value = Vec<Draw>> {
    let gap = prop_oneof![3 => 0u64..100, 1 => 0u64..20_000];
    let draw = (gap, 0u64..40, 1u64.., any::<bool>(), any::<bool>());
    proptest::collection::vec(draw, 1..200)
}

pub(super) fn command(draw: &Draw, line: u64) -> MemCommand {
    let (_, page, mask, write, waits) = *draw;
    let absent = if waits { Absent::Wait } else { Absent::Signal };
    let lines = if mask.is_multiple_of(4) { mask } else { mask & mask.wrapping_neg() };
    let lines = (lines & (u64::MAX >> (64 - PAGE / line))).max(1);
    MemCommand { lines, demand: !write, ..super::line(page, write, absent) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Every command comes back once; those that can wait for data get them; no written data is lost; and every moment
    /// of waiting is attributed to a stage.
    #[test]
    fn commands_and_data_are_conserved(
        spec in any_cache(),
        traffic in any_traffic(),
        warm in proptest::collection::vec((0u64..40, any::<bool>()), 0..40),
        latencies in proptest::collection::vec(1u64..200, 1..20),
        bytes in prop::sample::select(vec![CPU_LINE, LINE, 256, 512]),
    ) {
        let mut bench = Bench::of_lines(&spec, bytes);
        bench.cache.set_tables(36 * PAGE..39 * PAGE);
        bench.outside.latencies = latencies.into_iter().map(Time::from_us).collect();
        for (page, write) in &warm {
            bench.cache.warm(page * PAGE, *write);
        }
        let mut now = Time::ZERO;
        for draw in &traffic {
            now += Time::from_ns(draw.0);
            bench.at(now, command(draw, bytes));
        }
        let done = bench.run();
        super::replay(&bench);
        for ((_, answer), asked) in done.iter().zip(&bench.outside.commands) {
            let may = asked.absent == Absent::Signal && !asked.write;
            prop_assert!(answer.absent == asked.absent || (may && answer.absent == Absent::Signalled));
        }
        let stats = bench.cache.stats;
        let signalled = done.iter().filter(|(_, answer)| answer.absent == Absent::Signalled).count() as u64;
        prop_assert_eq!(stats.signalled, signalled);
        prop_assert_eq!(stats.hits + stats.passes + stats.flat + signalled, traffic.len() as u64);
        prop_assert_eq!(stats.misses, stats.signalled + stats.waits);
        prop_assert_eq!(stats.misses, stats.merged + stats.installs + stats.bypasses);
        prop_assert_eq!(stats.installs + stats.bypasses, stats.fetches + stats.reclaims);
        prop_assert_eq!(stats.responses, stats.fetches);
        prop_assert_eq!(stats.write_backs, stats.dirty_evictions);
        prop_assert_eq!(bench.outside.arrived.len() as u64, stats.installs);
        let moved = stats.fetches + stats.write_backs;
        let expected = match spec.backing {
            Backing::device => (moved, 0),
            Backing::memory => (0, moved),
            Backing::fixed(_) => (0, 0),
        };
        prop_assert_eq!((bench.outside.submitted.len() as u64, bench.outside.asked.len() as u64), expected);
        let flat = |command: &MemCommand| (36..39).contains(&(command.page / PAGE));
        let tables = bench.outside.commands.iter().filter(|command| flat(command)).count() as u64;
        prop_assert_eq!(stats.flat, if spec.partition == Partition::flat { tables } else { 0 });
        let waited = |((end, _), asked): (&(Time, MemCommand), &MemCommand)| {
            if asked.demand { u128::from((*end - asked.since).ps()) } else { 0 }
        };
        let tally: u128 = [bench.cache.tally.reads(), bench.cache.tally.writes()].iter().flat_map(|t| t.iter()).sum();
        prop_assert_eq!(tally, done.iter().zip(&bench.outside.commands).map(waited).sum::<u128>());
    }

    /// Equal bytes come and go at equal times, for any number of lines.
    #[test]
    fn lines_of_all_sizes_move_the_same_bytes(spec in any_cache(), traffic in any_traffic()) {
        let run = |line: u64| {
            let mut bench = Bench::of_lines(&spec, line);
            let mut now = Time::ZERO;
            for (gap, page, pieces, write, waits) in &traffic {
                now += Time::from_ns(*gap);
                let held = (0..PAGE / line).filter(|n| pieces >> (n * line / 512) & 1 == 1 || pieces & 0xFF == 0);
                let lines = held.fold(0, |lines, n| lines | 1 << n);
                let absent = if *waits { Absent::Wait } else { Absent::Signal };
                bench.at(now, MemCommand { lines, ..super::line(*page, *write, absent) });
            }
            let ends: Vec<(Time, Absent)> = bench.run().iter().map(|(end, answer)| (*end, answer.absent)).collect();
            (ends, bench.cache.stats, bench.cache.dram_stats().clone(), bench.outside.arrived)
        };
        for line in [CPU_LINE, LINE, 256] {
            prop_assert_eq!(run(line), run(512));
        }
    }
}

#[test]
fn a_run_is_the_same_every_time() {
    let run = || {
        let mut bench = Bench::new(&DramCacheSpec { evict_buffer: 2, ..small(2, 2) });
        for n in 0..200 {
            bench.at(Time::from_ns(n * 700), line(n * n % 11, n % 3 == 0, Absent::Signal));
        }
        (bench.run(), bench.cache.stats, bench.outside.submitted)
    };
    assert_eq!(run(), run());
}

// Valid and refused specs.

fn error(change: impl Fn(&mut DramCacheSpec)) -> SpecError {
    let mut spec = table_1();
    change(&mut spec);
    spec.check().expect_err("cannot be built")
}

#[test]
fn table_1_has_two_gibibytes_a_controller() {
    let cache = DramCache::new(&table_1(), CPU_LINE).expect("can be built");
    assert_eq!((cache.controllers(), cache.capacity()), (4, 8 << 30));
}

#[test]
fn a_line_is_one_of_the_sizes_that_memories_have() {
    for line in [0, 32, 96, 1024] {
        assert_eq!(DramCache::new(&table_1(), line).err().map(|error| error.key), Some("line".to_owned()));
    }
}

#[test]
fn a_line_is_neighbouring_columns() {
    let columns =
        |line, lines| Layout::new(&table_1(), crate::lines_of(line).expect("a size of lines")).columns(lines);
    assert_eq!([columns(64, 0b101), columns(128, 0b101), columns(512, 0b101)], [0b101, 0b110011, 0xFF00FF]);
    assert_eq!([64, 128, 256, 512].map(|line| columns(line, u64::MAX >> (64 - PAGE / line))), [u64::MAX; 4]);
}

#[test]
fn a_row_has_to_hold_a_set() {
    let small = error(|spec| spec.dram.banks.row = Bytes::from_kib(16));
    assert_eq!(small.key, "dram.banks.row");
    assert!(small.help.is_some_and(|help| help.contains("16448B")), "{}", small.what);
    assert_eq!(error(|spec| spec.dram.interleave = Bytes::from_kib(4)).key, "dram.interleave");
    assert_eq!(error(|spec| spec.ways = 3).key, "dram.banks.row");
    assert_eq!(error(|spec| spec.ways = 9).key, "ways");
    assert_eq!(error(|spec| spec.misses.ways = 9).key, "misses.ways");
    assert_eq!(error(|spec| spec.misses.sets = 258).key, "misses.sets");
    assert_eq!(error(|spec| spec.sets = 0).key, "sets");
    assert_eq!(error(|spec| spec.sets = 1 << 27).key, "sets");
    assert_eq!(error(|spec| spec.evict_buffer = 0).key, "evict_buffer");
    assert_eq!(error(|spec| spec.frontside.queue = 0).key, "frontside.queue");
    assert_eq!(error(|spec| spec.backside.burst = 65).key, "backside.burst");
    assert_eq!(error(|spec| spec.dram.bus.width = 12).key, "dram.bus.width");
}

/// Sets, the miss status row and page tables of a controller lie in rows of their own, behind that controller.
#[test]
fn nothing_lies_in_a_row_twice() {
    let mut spec = small(5, 2);
    (spec.dram.controllers, spec.partition) = (3, Partition::flat);
    let mut layout = Layout::new(&spec, crate::lines_of(CPU_LINE).expect("a size of lines"));
    layout.set_tables(100 * PAGE..120 * PAGE);
    let row = spec.dram.banks.row.get();
    // Which row of which controller, and where in it, an address of the DRAM is.
    let at = |address: u64| (address / row % 3, address / row / 3, address % row);
    let mut seen = std::collections::BTreeSet::new();
    for controller in 0..3 {
        for place in 0..10 {
            let (behind, number, offset) = at(layout.way(controller, place));
            assert_eq!((behind, number), (controller.into(), u64::from(place / 2)));
            assert!(seen.insert((behind, number, offset)) && offset + PAGE <= 2 * PAGE);
        }
        for page in 0..15 {
            let page = page * PAGE;
            if layout.controller_of(page) == controller {
                let set = layout.line_of(page) % 5;
                assert_eq!(at(layout.tags(controller, page)), (controller.into(), set, 2 * PAGE));
                assert_eq!(at(layout.misses(controller, page)).1, 5);
                assert_eq!(layout.page_of(controller, layout.line_of(page)), page);
            }
        }
    }
    for page in 100..120 {
        let (behind, number, offset) = at(layout.flat(page * PAGE).expect("a page table"));
        assert_eq!(behind, page % 3);
        assert!(number > 5 && seen.insert((behind, number, offset)) && offset + PAGE <= 2 * PAGE);
    }
    assert_eq!((layout.flat(99 * PAGE), layout.flat(120 * PAGE)), (None, None));
}

#[test]
fn the_families_are_in_order() {
    for result in [check_family::<Partition>(), check_family::<Backing>(), check_family::<PageAdmission>()] {
        assert!(result.is_ok(), "{result:?}");
    }
    assert_eq!(Backing::FAMILY.name, <Backing as Choice>::FAMILY.name);
    for backing in Backing::all_defaults() {
        for partition in Partition::all_defaults() {
            assert!(
                DramCache::new(&DramCacheSpec { backing: backing.clone(), partition, ..table_1() }, CPU_LINE)
                    .is_ok()
            );
        }
    }
}
