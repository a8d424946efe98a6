//! Exchanges of pages, step by step, and the choice of pages that rise.

use super::*;
use crate::placement::policy::Verdict;
use engine::Rng;
use proptest::prelude::*;

/// Two frames in front of six. Page `n` is marked at `n / 8` of 10 us, and so on; 0 and 1 were used first, then 5.
fn bench(change: impl Fn(&mut hot_policy::Params)) -> Bench {
    let mut params = eager();
    change(&mut params);
    let mut bench = Bench::new(&spec(&[2, 6], PlacementPolicy::hot(params)), 8, 0);
    bench.outside.own[1] = Time::from_ns(900);
    [0, 1, 5].into_iter().for_each(|page| bench.at(Time::ZERO, read(page)));
    bench
}

/// Another line, so that the caches in front do not wait.
fn line(line: u32, command: MemCommand) -> MemCommand {
    MemCommand { lines: 1 << line, ..command }
}

#[test]
fn a_page_used_soon_after_its_mark_takes_the_place_of_another() {
    let mut bench = bench(|_| {});
    bench.outside.own[1] = Time::from_ns(500);
    let ns = Time::from_ns;
    // 5 is marked at 6.25 us and used at 7.02 us. From then on its commands wait; those of 0 do while it moves.
    bench.at(ns(7_000), read(5));
    bench.at(ns(7_100), line(1, write(5)));
    bench.at(ns(7_200), line(1, write(0)));
    bench.at(ns(8_200), line(2, read(5)));
    bench.at(ns(8_500), line(2, read(0)));
    bench.at(ns(12_000), line(1, read(5)));
    bench.at(ns(12_000), line(1, read(0)));
    let ends: Vec<Time> = bench.run().into_iter().map(|(_, end)| end).collect();
    // Answered at 7.62 us. Both are read until the slower memory has, at 8.22 us; 5 is written by 8.32 us, 0 by 8.82 us.
    assert_eq!(ends[3..], [7_620, 8_420, 7_320, 8_420, 9_420, 12_120, 12_620].map(ns));
    let moved: Vec<(Time, Time, u8, bool)> =
        bench.moved().map(|asked| (asked.at, asked.end, asked.target, asked.command.write)).collect();
    assert_eq!(
        moved,
        [
            (7_620, 8_220, 1, false),
            (7_620, 7_720, 0, false),
            (8_220, 8_320, 0, true),
            (8_220, 8_820, 1, true)
        ]
        .map(|(at, end, target, write)| (ns(at), ns(end), target, write))
    );
    for asked in bench.moved() {
        let MemCommand { lines, demand, app, port, pc, .. } = asked.command;
        assert_eq!(
            (lines, demand, app, port, pc),
            (u64::MAX, false, 1, 3, 0),
            "whole pages, on behalf of the command that began it"
        );
    }
    assert_eq!([0, 1, 5].map(|page| bench.target(page)), [Some(1), Some(0), Some(0)]);
    bench.check_data();
    let stats = &bench.placement.stats;
    assert_eq!((stats.promotions, stats.demotions, stats.candidates), (1, 1, 1));
    assert_eq!((stats.waits, stats.moved_bytes), (3, 2 * PAGE));
    // 8.32 - 7.12, 8.32 - 8.22, 8.82 - 8.52.
    assert_eq!(stats.wait, ns(1_200 + 100 + 300));
    let tally = &bench.placement.tally;
    let migration = Stage::Migration as usize;
    assert_eq!((tally.reads()[migration], tally.writes()[migration]), (400_000, 1_200_000));
    let pages = |target: usize| (stats.targets[target].pages_out, stats.targets[target].pages_in);
    assert_eq!([pages(0), pages(1)], [(1, 1); 2]);
}

#[test]
fn a_page_that_is_used_late_or_was_not_marked_stays() {
    // Too late after its mark at 6.25 us; and then just before its next one.
    let mut bench = bench(|_| {});
    bench.at(Time::from_ns(8_230), read(5));
    bench.at(Time::from_ns(16_229), read(5));
    bench.run();
    assert_eq!((bench.placement.stats.candidates, bench.moved().count()), (0, 0));
    assert_eq!([0, 1, 5].map(|page| bench.target(page)), [Some(0), Some(0), Some(1)]);
}

#[test]
fn a_page_does_not_move_before_its_commands_are_answered() {
    let mut bench = bench(|_| {});
    // The command before its mark takes 4 us, so that the page is read then only; what comes meanwhile waits.
    bench.outside.latencies = [100, 100, 100, 3_100].map(Time::from_ns).into();
    bench.at(Time::from_ns(6_000), line(7, write(5)));
    bench.at(Time::from_ns(7_000), read(5));
    bench.at(Time::from_ns(7_100), line(9, read(5)));
    bench.run();
    let begin = bench.moved().next().map(|asked| asked.at);
    assert_eq!(begin, Some(Time::from_ns(6_020 + 4_000)));
    let last = bench.outside.asked.last().map(|asked| (asked.command.pc, asked.target));
    assert_eq!((last, bench.placement.stats.waits), (Some((6, 0)), 1));
    bench.check_data();
}

#[test]
fn a_page_with_commands_under_way_makes_no_room() {
    let mut bench = bench(|_| {});
    // 0 is busy until 20 us.
    bench.outside.latencies = [100, 100, 100, 14_000, 100].map(Time::from_ns).into();
    bench.at(Time::from_us(6), line(7, write(0)));
    bench.at(Time::from_us(7), read(5));
    bench.run();
    assert_eq!([0, 1, 5].map(|page| bench.target(page)), [Some(0), Some(1), Some(0)]);
    bench.check_data();
}

#[test]
fn a_page_used_since_the_hand_came_by_has_a_second_chance() {
    // The hand has gone once around when 0 makes room for 5; then 1 is used, and not 5: but a page that has just risen counts as used.
    let mut bench = Bench::new(&spec(&[3, 5], PlacementPolicy::hot(eager())), 8, 0);
    [0, 1, 2, 5, 6].into_iter().for_each(|page| bench.at(Time::ZERO, read(page)));
    bench.at(Time::from_us(7), read(5));
    bench.at(Time::from_us(7), line(1, read(6)));
    bench.at(Time::from_ns(7_900), read(1));
    bench.at(Time::from_us(8), read(6));
    bench.run();
    assert_eq!([0, 1, 2, 5, 6].map(|page| bench.target(page)), [1, 0, 1, 0, 0].map(Some));
}

#[test]
fn page_tables_never_make_room() {
    // The first memory holds page tables alone, and one data page of it is busy when it could.
    for (frames, tables, room) in [(2, 2, 0), (3, 2, 1)] {
        let mut bench = Bench::new(&spec(&[frames, 6], PlacementPolicy::hot(eager())), 8, tables);
        [0, 1, 3].into_iter().for_each(|page| bench.at(Time::ZERO, read(page)));
        // 3 is marked at 3.75 us.
        bench.at(Time::from_ns(4_000), read(3));
        bench.at(Time::from_ns(4_050), line(1, read(3)));
        bench.run();
        let stats = &bench.placement.stats;
        assert_eq!((stats.candidates, stats.promotions, stats.without_room), (1, room, 1 - room));
        assert_eq!((stats.waits, bench.target(3)), (1, Some(1 - room as u8)));
        assert_eq!([6, 7].map(|page| bench.placement.place_of(page * PAGE)), [Some((0, 0)), Some((0, PAGE))]);
    }
}

#[test]
fn so_many_exchanges_are_under_way_and_so_many_pages_rise_in_a_window() {
    let of = |exchanges: u32, pages: u64| {
        let mut params = eager();
        params.exchanges = exchanges;
        params.rate = Bandwidth::new(pages * PAGE * 100_000);
        let mut bench = Bench::new(&spec(&[4, 4], PlacementPolicy::hot(params)), 8, 0);
        (0..8).for_each(|page| bench.at(Time::ZERO, read(page)));
        // Marked at 5, 6.25 and 7.5 us.
        [4, 5, 6].into_iter().for_each(|page| bench.at(Time::from_ns(8_000), read(page)));
        bench.at(Time::from_ns(8_000), MemCommand { demand: false, ..read(7) });
        bench.run();
        let stats = &bench.placement.stats;
        assert_eq!(stats.candidates, stats.promotions + stats.limited + stats.crowded);
        (stats.promotions, stats.limited, stats.crowded)
    };
    // 4 is late by a microsecond.
    assert_eq!([of(2, 4), of(1, 4), of(2, 1)], [(2, 0, 0), (1, 0, 1), (1, 1, 0)]);
}

// Properties of random traffic.

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

/// Gap before a command, its page and lines, whether it writes, whether a requester waits, whether an answer without
/// data is accepted.
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

    /// Every command comes back once, with the data written last; commands of a page keep their order; every moment of
    /// waiting is attributed to a stage; page tables do not move; and counts match those of the memories.
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

// Choice of pages that rise: compared with a scan that marks page after page, a formula, and a user's expectation.

/// Policy without a limit, for `pages` pages, two of which are in the first memory.
fn unlimited(params: &hot_policy::Params, pages: u32) -> Box<dyn Placing> {
    let params = hot_policy::Params { rate: Bandwidth::new(1 << 50), ..params.clone() };
    let mut policy =
        PlacementPolicy::hot(params).build(&spec(&[2, 1 << 20], PlacementPolicy::ranges).targets());
    policy.settle(&Extent { tables: pages, end: pages });
    policy
}

/// Model of Linux: a scan takes access to pages away, one after the other; the next use gives it back, and knows since
/// when.
struct Scanner {
    scan: u64,
    threshold: u64,
    /// Next mark of each page, and its last one.
    pages: Vec<(u64, Option<u64>)>,
}

impl Scanner {
    fn new(params: &hot_policy::Params, pages: u64) -> Scanner {
        let (scan, threshold) = (params.scan.time().ps(), params.threshold.time().ps());
        Scanner { scan, threshold, pages: (0..pages).map(|page| (page * scan / pages, None)).collect() }
    }

    fn scan(&mut self, now: Time) {
        for (next, mark) in &mut self.pages {
            while *next <= now.ps() {
                mark.get_or_insert(*next);
                *next += self.scan;
            }
        }
    }

    /// Returns whether a use answers a mark, and whether it is hot.
    fn used(&mut self, page: u32, now: Time) -> (bool, bool) {
        self.scan(now);
        let mark = self.pages[page as usize].1.take();
        (mark.is_some(), mark.is_some_and(|mark| now.ps() - mark < self.threshold))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_page_is_hot_when_a_scanner_says_so(
        threshold in 0u64..40_000,
        scan in 1u64..20,
        uses in prop::collection::vec((0u64..3_000, 0u32..32), 1..400),
    ) {
        let params = hot_policy::Params { threshold: ns(threshold), scan: ns(scan * 1_024), ..eager() };
        let mut policy = unlimited(&params, 32);
        let mut scanner = Scanner::new(&params, 32);
        let mut now = Time::ZERO;
        for (gap, page) in uses {
            now += Time::from_ns(gap);
            let (place, is_new) = policy.place(page, now);
            let (_, hot) = scanner.used(page, now);
            let expected = if hot && !is_new && place.target == 1 { Verdict::Rise } else { Verdict::Stay };
            prop_assert_eq!(policy.used(page, place, now), expected, "page {} at {}", page, now);
            if expected == Verdict::Rise && page % 2 == 0 {
                // The page it is exchanged with was in the first memory, where nothing is marked.
                let sunk = policy.makes_room(&|_| true).expect("data lie in the first memory");
                prop_assert_eq!(policy.find(sunk).map(|place| place.target), Some(0));
                policy.exchanged(page, sunk, now);
                scanner.pages[sunk as usize].1 = None;
                prop_assert_eq!((policy.find(page).map(|place| place.target), policy.find(sunk)), (Some(0), Some(place)));
            }
        }
    }
}

/// Used with a chance of `p` every 10 ns, a page is hot at `1 - (1 - p)^n` of its marks, `n` being the times within the threshold.
#[test]
fn pages_are_as_often_hot_as_the_formula_says() {
    let params = eager();
    let (mut policy, mut scanner) = (unlimited(&params, 4), Scanner::new(&params, 4));
    (0..4).for_each(|page| {
        policy.place(page, Time::ZERO);
    });
    scanner.scan(Time::ZERO);
    scanner.pages.iter_mut().for_each(|(_, mark)| *mark = None);
    let place = policy.find(3).expect("it was placed");
    assert_eq!(place.target, 1);
    let mut rng = Rng::stream(7, "uses");
    let (mut answered, mut hot) = (0, 0);
    for slot in 1..4_000_000 {
        if rng.below(300) > 0 {
            continue;
        }
        let now = Time::from_ns(10 * slot);
        answered += u64::from(scanner.used(3, now).0);
        hot += u64::from(policy.used(3, place, now) == Verdict::Rise);
    }
    let expected = 1.0 - (0..200).fold(1.0, |chance, _| chance * 299.0 / 300.0);
    let found = hot as f64 / answered as f64;
    let deviation = (expected * (1.0 - expected) / answered as f64).sqrt();
    assert!(
        answered > 2_000 && (found - expected).abs() < 3.0 * deviation,
        "{found} of {answered}, {expected}"
    );
}

/// Eight frames in front of 56, all used once; then a command every 100 ns. Answers how many of the last thousand went to the first memory.
fn settled(bench: &mut Bench, commands: u64, mut page: impl FnMut(&mut Rng) -> u64) -> u64 {
    bench.outside.own[1] = Time::from_ns(900);
    (0..64).for_each(|page| bench.at(Time::ZERO, read(page)));
    let mut rng = Rng::stream(1, "traffic");
    for n in 0..commands {
        let lines = 1 << rng.below(64);
        let command = MemCommand { lines, write: rng.below(4) == 0, ..read(page(&mut rng)) };
        bench.at(Time::from_ns(1_000 + 100 * n), command);
    }
    bench.run();
    bench.check_data();
    let last = bench.outside.asked.iter().filter(|asked| u64::from(asked.command.pc) > 64 + commands - 1_000);
    last.filter(|asked| asked.target == 0).count() as u64
}

#[test]
fn hot_pages_end_in_the_first_memory() {
    let mut bench = Bench::new(&spec(&[8, 56], PlacementPolicy::hot(eager())), 64, 0);
    // Nine in ten go to six pages that were used late.
    let first =
        settled(&mut bench, 5_000, |rng| if rng.below(10) > 0 { 50 + rng.below(6) } else { rng.below(64) });
    assert_eq!((50..56).map(|page| bench.target(page)).collect::<Vec<_>>(), [Some(0); 6]);
    // 0.9, and an eighth of the rest.
    assert!((870..=950).contains(&first), "{first} of 1000");

    let mut bench = Bench::new(&spec(&[8, 56], PlacementPolicy::first_touch), 64, 0);
    let first =
        settled(&mut bench, 5_000, |rng| if rng.below(10) > 0 { 50 + rng.below(6) } else { rng.below(64) });
    assert!(first < 30 && bench.placement.stats.promotions == 0, "{first} of 1000: they stay where they are");
}

#[test]
fn uniform_use_moves_no_more_than_the_rate() {
    let mut bench = Bench::new(&spec(&[8, 56], PlacementPolicy::hot(eager())), 64, 0);
    settled(&mut bench, 5_000, |rng| rng.below(64));
    let stats = &bench.placement.stats;
    // 501 us, with 4 pages in each 10 us.
    let most = 4 * 51;
    assert!(stats.limited > 100 && (most / 2..=most).contains(&stats.promotions), "{stats:?}");
    // Each of them is a page read and one written, there and back: just that, and all of it, is what memories see.
    let bytes = |write: bool| {
        let moved = bench.moved().filter(|asked| asked.command.write == write);
        moved.map(|asked| asked.command.bytes(CPU_LINE)).sum::<u64>()
    };
    let moved = 2 * PAGE * stats.promotions;
    assert_eq!((bytes(false), bytes(true), stats.moved_bytes), (moved, moved, moved));
    for (target, own) in (0..).zip(&stats.targets) {
        let count =
            |write| bench.moved().filter(|a| a.target == target && a.command.write == write).count() as u64;
        assert_eq!((own.pages_out, own.pages_in), (count(false), count(true)));
    }
}
