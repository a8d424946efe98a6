//! Properties of any traffic.

use super::*;
use proptest::prelude::*;

fn any_policy() -> impl Strategy<Value = PlacementPolicy> {
    let fixed = (0..PlacementPolicy::all_defaults().len())
        .prop_map(|n| PlacementPolicy::all_defaults().swap_remove(n));
    let times = (1u64..20_000, 1u64..20);
    let hot = (times, 1u64..20, 1u32..4).prop_map(|((threshold, scan), pages, exchanges)| {
        PlacementPolicy::hot(hot_policy::Params {
            threshold: ns(threshold),
            scan: ns(1_000 * scan),
            rate: Bandwidth::new(pages * PAGE * 100_000),
            window: ns(10_000),
            exchanges,
        })
    });
    prop_oneof![1 => fixed, 2 => hot]
}

/// A gap, a page, its lines, whether they are written, whether somebody waits, whether it can do without data.
type Draw = (u64, u64, u64, bool, bool, bool);

fn any_traffic() -> impl Strategy<Value = Vec<Draw>> {
    let gap = prop_oneof![4 => 0u64..100, 1 => 0u64..4_000];
    let page = prop_oneof![0u64..40, 10u64..13];
    prop::collection::vec((gap, page, 1u64.., any::<bool>(), any::<bool>(), any::<bool>()), 1..250)
}

fn command((_, page, mask, write, demand, signals): &Draw, pages: u64, line: u64) -> MemCommand {
    let lines = if mask.is_multiple_of(4) { *mask } else { mask & mask.wrapping_neg() };
    let lines = (lines & (u64::MAX >> (64 - PAGE / line))).max(1);
    let absent = if *signals { Absent::Signal } else { Absent::Wait };
    MemCommand { lines, write: *write, demand: *demand, absent, ..read(page % pages) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Every command comes back once, with the data that were written last; commands of a page keep their order; every moment that
    /// somebody waits has a name; page tables stay where they are; and what is counted is what memories saw.
    #[test]
    fn commands_and_data_are_conserved(
        policy in any_policy(),
        sizes in prop::collection::vec(1u64..16, 1..4),
        (short, tables) in (0u64..4, 0u64..5),
        latency in prop::sample::select(vec![0u64, 20]),
        traffic in any_traffic(),
        latencies in prop::collection::vec(1u64..3_000, 1..20),
        signals in any::<u32>(),
        line in prop::sample::select(vec![CPU_LINE, LINE, 256, 512]),
    ) {
        let pages = (sizes.iter().sum::<u64>().saturating_sub(short)).max(1);
        let tables = tables.min(pages);
        let spec = PlacementSpec { latency: ns(latency), ..spec(&sizes, policy) };
        let mut bench = Bench::of_lines(&spec, pages, tables, line);
        bench.outside.latencies = latencies.into_iter().map(Time::from_ns).collect();
        bench.outside.signals = signals;
        let places = |bench: &Bench| (pages - tables..pages).map(|page| bench.placement.place_of(page * PAGE)).collect::<Vec<_>>();
        let before = places(&bench);
        let mut now = Time::ZERO;
        for draw in &traffic {
            now += Time::from_ns(draw.0);
            bench.at(now, command(draw, pages, line));
        }
        let times = bench.run();
        bench.check_data();
        prop_assert_eq!(places(&bench), before);

        let commands = &bench.outside.commands;
        let of = |page: u64| move |number: &u32| commands[*number as usize].page == page;
        let came: Vec<u32> = bench.outside.came.iter().map(|(number, _)| *number).collect();
        let asked: Vec<u32> = bench.outside.asked.iter().filter_map(|asked| asked.command.pc.checked_sub(1)).collect();
        for page in (0..pages).map(|page| page * PAGE) {
            let in_order = |numbers: &[u32]| numbers.iter().copied().filter(of(page)).collect::<Vec<_>>();
            prop_assert_eq!(in_order(&came), in_order(&asked), "overtaken");
        }

        let demanded = |number: &usize| commands[*number].demand;
        let life: u128 = (0..commands.len()).filter(demanded).map(|n| u128::from((times[n].1 - times[n].0).ps())).sum();
        let there = bench.outside.asked.iter().filter(|asked| asked.command.demand);
        let there: u128 = there.map(|asked| u128::from((asked.end - asked.at).ps())).sum();
        let tally = &bench.placement.tally;
        prop_assert_eq!(life, there + tally.reads().iter().chain(tally.writes()).sum::<u128>());
        let stages = [Stage::Controller, Stage::Migration].map(|stage| stage as usize);
        let others = (0..Stage::COUNT).filter(|stage| !stages.contains(stage));
        prop_assert_eq!(others.map(|stage| tally.reads()[stage] + tally.writes()[stage]).sum::<u128>(), 0);

        let stats = &bench.placement.stats;
        for (target, own) in (0..).zip(&stats.targets) {
            let seen = |write: bool, moves: bool| {
                let seen = bench.outside.asked.iter().filter(move |asked| {
                    asked.target == target && asked.command.write == write && (asked.command.pc == 0) == moves
                });
                seen.fold((0, 0), |(count, lines), a| (count + 1, lines + u64::from(a.command.lines.count_ones())))
            };
            prop_assert_eq!(((own.reads, own.lines_read), (own.writes, own.lines_written)), (seen(false, false), seen(true, false)));
            prop_assert_eq!((own.pages_out, own.pages_in), (seen(false, true).0, seen(true, true).0));
        }
        prop_assert_eq!((stats.promotions, stats.moved_bytes), (stats.demotions, 2 * PAGE * stats.promotions));
        prop_assert_eq!(stats.candidates, stats.promotions + stats.limited + stats.crowded + stats.without_room);
    }
}

#[test]
fn a_run_is_the_same_every_time() {
    let run = || {
        let mut bench = Bench::new(&spec(&[4, 12], PlacementPolicy::hot(eager())), 16, 2);
        bench.outside.latencies = [90, 400, 1_700].map(Time::from_ns).into();
        for n in 0..400 {
            bench.at(Time::from_ns(n * 130), MemCommand { write: n % 3 == 0, ..read(n * n % 14) });
        }
        (bench.run(), bench.placement.stats)
    };
    let (ends, stats) = run();
    assert!(stats.promotions > 5 && stats.waits > 5, "{stats:?}");
    assert_eq!((ends, stats), run());
}
