//! Latencies by hand, with the constants of Table I.

use super::*;
use proto::memory::Stage;

/// Cycles of 2 GHz.
fn cycles(count: u64) -> Time {
    Time::from_ps(500 * count)
}

/// A line takes 8 CAS.
const LINE_CYCLES: u64 = 8 * 3;

#[test]
fn a_hit_costs_ras_and_two_accesses_to_the_row() {
    let mut bench = Bench::new(&table_1());
    // Behind the first controller: two sets of one bank, 16 sets apart.
    let (a, b) = (0, 4 * 16);
    assert_eq!((bench.cache.controller_of(a * PAGE), bench.cache.controller_of(b * PAGE)), (0, 0));
    for page in [a, b] {
        bench.cache.warm(page * PAGE, false);
    }
    let at = Time::from_us(1);
    bench.at(Time::ZERO, read(a));
    bench.at(at, read(b));
    bench.at(at.times(2), read(b));
    let ends = bench.ends();
    // Open, column; tags; column; data; answer.
    let open = |ras: u64| cycles(2 + ras + LINE_CYCLES + 1 + LINE_CYCLES + 1);
    assert_eq!(ends[1] - at, open(55), "another row was open");
    assert_eq!(ends[0].times(2), open(55) + open(0), "no row was open: half the RAS");
    assert_eq!(ends[2] - at.times(2), open(0), "the row was open");
    let waited = bench.cache.tally.reads();
    let of = |stage: Stage| waited[stage as usize];
    assert_eq!(of(Stage::Controller), 3 * u128::from(cycles(4).ps()));
    assert_eq!(of(Stage::Memory), 3 * u128::from(cycles(LINE_CYCLES).ps()));
    assert_eq!(of(Stage::Tags) * 2, u128::from(cycles(55 * 3 + 6 * LINE_CYCLES).ps()));
    assert_eq!(waited.iter().sum::<u128>(), of(Stage::Controller) + of(Stage::Memory) + of(Stage::Tags));
    assert_eq!((bench.cache.stats.hits, bench.cache.stats.misses), (3, 0));
}

/// A miss of an idle machine, in picoseconds. Its set and the miss status row lie in the same bank.
#[test]
fn a_miss_takes_these_steps() {
    let mut bench = Bench::new(&table_1());
    bench.at(Time::ZERO, signal(0));
    bench.at(Time::from_us(10), read(0));
    let done = bench.run();
    let (ras, column) = (cycles(55), cycles(LINE_CYCLES));
    let tags = cycles(2) + Time::from_ps(13_750) + column;
    assert_eq!(done[0].0, tags + cycles(2), "one cycle for the miss request, one for the answer");
    assert_eq!(done[0].1.absent, Absent::Signalled);
    // Search, enter, ask; each command takes three cycles.
    let searched = tags + cycles(3) + ras + column;
    let asked = searched + cycles(3 + 3);
    // The page has an empty way; 64 lines, the tags, the entry. The look-up for the second command, which found the entry,
    // has closed the row of the set.
    let come = asked + Time::from_us(50);
    let installed = come + ras + (cycles(3) + column).times(65) + cycles(3);
    assert_eq!(bench.outside.arrived, [(installed, 0, installed - asked)]);
    assert_eq!(bench.cache.stats.response, Time::from_us(50));
    // The entry's row is opened for its removal, then the page's again for the data.
    let data = installed + ras + column + ras + column;
    assert_eq!(done[1].0, data + cycles(1));
    assert_eq!(done[1].1.absent, Absent::Wait);
    let stats = &bench.cache.stats;
    assert_eq!((stats.misses, stats.signalled, stats.waits, stats.hits), (2, 1, 1, 1));
    assert_eq!((stats.fetches, stats.merged, stats.installs), (1, 1, 1));
    // The second found the row of its tags open: they had been read for the victim.
    let waited = bench.cache.tally.reads();
    let second = done[1].0 - Time::from_us(10);
    let front = cycles(2) + column;
    assert_eq!(waited[Stage::Refill as usize], u128::from((installed - Time::from_us(10) - front).ps()));
    assert_eq!(waited.iter().sum::<u128>(), u128::from((done[0].0 + second).ps()));
}

#[test]
fn a_victim_is_copied_while_flash_reads() {
    let spec = small(1, 1);
    let mut bench = Bench::new(&spec);
    bench.cache.warm(0, true);
    bench.at(Time::ZERO, read(1));
    bench.run();
    let submitted = &bench.outside.submitted;
    let ops: Vec<_> = submitted.iter().map(|(_, c)| (c.op, c.offset)).collect();
    assert_eq!(ops, [(IoOp::Read, PAGE), (IoOp::Write, 0)]);
    // The miss status row is in another bank here, and the row of the set still open. The tags come as soon as the entry
    // has passed the bus; then the victim is dropped, and 64 lines are copied.
    let column = cycles(LINE_CYCLES);
    let asked = submitted[0].0;
    let entered = asked - cycles(3) + column;
    let known = entered + column;
    // The first line waits for the new tags to be written.
    let copied = known + cycles(3) + column.times(2) + (cycles(3) + column).times(63);
    assert_eq!(submitted[1].0, copied + cycles(3));
}

/// While a page is being written, an access to another bank waits for the command that is on the bus, for its tags and for
/// its data.
#[test]
fn an_access_waits_for_one_command_of_a_copy() {
    let hit = |burst: u32| {
        let mut spec = table_1();
        spec.backside.burst = burst;
        let mut bench = Bench::new(&spec);
        let other = 4 * 5;
        bench.cache.warm(other * PAGE, false);
        bench.at(Time::ZERO, signal(0));
        // The page comes a little after 50 us, and 64 lines of it take 768 ns at least.
        let at = Time::from_ns(50_200);
        bench.at(at, read(other));
        bench.ends()[1] - at
    };
    let line = cycles(LINE_CYCLES);
    let alone = cycles(2) + Time::from_ps(13_750) + cycles(2 * LINE_CYCLES + 2);
    for burst in [1, 2, 4] {
        let longest = alone + line.times(2 * u64::from(burst));
        assert!(hit(burst) >= alone && hit(burst) <= longest, "{burst}: {}", hit(burst));
    }
    assert!(hit(64) > alone + line.times(32), "{}", hit(64));
}

#[test]
fn page_tables_lie_in_rows_of_their_own() {
    let mut bench = Bench::new(&table_1());
    bench.cache.set_tables(100 * PAGE..108 * PAGE);
    assert!(bench.cache.is_cached(107 * PAGE) && !bench.cache.is_cached(108 * PAGE));
    let at = Time::from_us(1);
    // Two pages behind one controller share a row.
    bench.at(Time::ZERO, signal(100));
    bench.at(at, signal(104));
    let done = bench.run();
    let first = cycles(2) + Time::from_ps(13_750) + cycles(LINE_CYCLES + 1);
    assert_eq!((done[0].0, done[1].0 - at), (first, cycles(2 + LINE_CYCLES + 1)));
    assert!(done.iter().all(|(_, command)| command.absent == Absent::Signal));
    assert_eq!((bench.cache.stats.flat, bench.cache.stats.misses), (2, 0));

    let mut bench = Bench::new(&DramCacheSpec { partition: Partition::none, ..table_1() });
    bench.cache.set_tables(100 * PAGE..108 * PAGE);
    bench.at(Time::ZERO, signal(100));
    assert_eq!(bench.run()[0].1.absent, Absent::Signalled, "like data");
}

/// A page of a table enters the cache for its waiters, or for requesters that were signalled, and leaves when it has
/// been read.
#[test]
fn page_tables_that_are_not_cached_are_read_from_flash_each_time() {
    let us = Time::from_us;
    for (partition, fetches) in [(Partition::none, 2), (Partition::uncached, 4)] {
        let mut bench = Bench::new(&DramCacheSpec { partition, ..table_1() });
        bench.cache.set_tables(100 * PAGE..108 * PAGE);
        // Data, and a table: told, read, told again, read; data that wait are kept.
        bench.at(us(0), signal(100));
        bench.at(us(100), read(100));
        bench.at(us(200), read(100));
        bench.at(us(300), read(100));
        bench.at(us(400), read(7));
        bench.at(us(500), read(7));
        bench.run();
        let stats = bench.cache.stats;
        assert_eq!((stats.fetches, stats.drops), (fetches, 3 * u64::from(fetches == 4)), "{partition:?}");
        assert!(bench.cache.is_cached(7 * PAGE) && bench.cache.is_cached(100 * PAGE) == (fetches == 2));
    }
}

/// A mere probe is answered, and does not reach flash.
#[test]
fn a_probe_asks_flash_for_nothing() {
    let mut bench = Bench::new(&table_1());
    bench.at(Time::ZERO, line(5, false, Absent::Probe));
    bench.at(Time::from_us(1), read(5));
    bench.at(Time::from_us(100), line(5, false, Absent::Probe));
    let done = bench.run();
    assert_eq!((done[0].1.absent, done[2].1.absent), (Absent::Signalled, Absent::Probe));
    assert!(done[0].0 < Time::from_us(1));
    let stats = bench.cache.stats;
    assert_eq!((stats.probes, stats.misses, stats.fetches), (1, 1, 1));
    // The page arrives 50 us after the first waiting request, not after the probe.
    assert!(done[1].0 > Time::from_us(51));
}
