//! Times, by hand.

use super::*;

#[test]
fn a_look_up_is_all_that_a_placement_adds() {
    for (latency, policy) in [(20, PlacementPolicy::ranges), (0, PlacementPolicy::first_touch)] {
        let mut bench = Bench::new(&PlacementSpec { latency: ns(latency), ..spec(&[1, 1], policy) }, 2, 0);
        bench.outside.own[1] = Time::from_ns(900);
        let us = Time::from_us;
        bench.at(us(1), read(0));
        bench.at(us(1), write(1));
        bench.at(us(1), MemCommand { demand: false, lines: 6, ..write(0) });
        let ends: Vec<Time> = bench.run().into_iter().map(|(_, end)| end - us(1)).collect();
        assert_eq!(ends, [100, 1_000, 100].map(|at| Time::from_ns(at + latency)));
        // What memories were asked for is what came, but for its name and its place.
        let asked: Vec<(u8, MemCommand)> =
            bench.outside.asked.iter().map(|asked| (asked.target, asked.command)).collect();
        for ((target, command), (to, original)) in
            asked.iter().zip([0, 1, 0].into_iter().zip(&bench.outside.commands))
        {
            let since = us(1) + Time::from_ns(latency);
            let expected =
                MemCommand { tag: command.tag, from: Port::default(), page: 0, since, ..*original };
            assert_eq!((*target, MemCommand { from: Port::default(), ..*command }), (to, expected));
        }
        let tally = &bench.placement.tally;
        let own = u128::from(latency) * 1_000;
        assert_eq!(
            (tally.reads()[Stage::Controller as usize], tally.writes()[Stage::Controller as usize]),
            (own, own)
        );
        assert_eq!(tally.reads().iter().chain(tally.writes()).sum::<u128>(), 2 * own);
        let of = |reads, writes, lines_read, lines_written| TargetStats {
            reads,
            writes,
            lines_read,
            lines_written,
            ..TargetStats::default()
        };
        assert_eq!(bench.placement.stats.targets, [of(1, 1, 1, 2), of(0, 1, 0, 1)]);
        bench.placement.reset_stats(us(9));
        assert_eq!(bench.placement.stats.targets, [TargetStats::default(); 2]);
        assert_eq!(bench.placement.tally, Tally::default());
    }
}

#[test]
fn an_answer_without_data_goes_back_as_one() {
    let mut bench = Bench::new(&spec(&[1, 1], PlacementPolicy::ranges), 2, 0);
    bench.outside.signals = 0b10;
    let signal = |page| MemCommand { absent: Absent::Signal, ..read(page) };
    [0, 1].into_iter().for_each(|page| bench.at(Time::ZERO, signal(page)));
    bench.run();
    let absent: Vec<Absent> = bench.outside.done.iter().map(|(_, command)| command.absent).collect();
    assert_eq!(absent, [Absent::Signal, Absent::Signalled]);
}

#[test]
#[should_panic(expected = "there are 2 pages, none of address 8192")]
fn a_page_beyond_the_extent_is_refused() {
    let mut bench = Bench::new(&spec(&[4, 4], PlacementPolicy::ranges), 2, 0);
    bench.at(Time::ZERO, read(2));
    bench.run();
}

#[test]
#[should_panic(expected = "more than 1 commands at the same time")]
fn more_commands_than_the_bound_are_refused() {
    let mut bench = Bench::new(&spec(&[4, 4], PlacementPolicy::ranges), 2, 0);
    bench.placement.bound(1);
    [0, 1].into_iter().for_each(|page| bench.at(Time::ZERO, read(page)));
    bench.run();
}
