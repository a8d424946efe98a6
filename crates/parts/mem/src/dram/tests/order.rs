//! Who overtakes whom.

use super::*;
use crate::dram::sched::{DramScheduler, fr_fcfs};
use config::units::{Bytes, Duration, TransferRate};

fn scheduled(scheduler: DramScheduler) -> DramSpec {
    DramSpec { scheduler, ..plain(presets::gddr5()) }
}

fn capped(ns: u64) -> DramSpec {
    scheduled(DramScheduler::fr_fcfs(fr_fcfs::Params {
        age_cap: Duration::new(Time::from_ns(ns)),
        batch: 64,
    }))
}

/// Numbers of the commands in the order in which they are done.
fn order(bench: &mut Bench) -> Vec<u32> {
    bench.run();
    bench.outside.done.iter().map(|(_, command)| command.tag).collect()
}

#[test]
fn a_row_hit_goes_first_unless_in_order() {
    for (spec, expected) in [
        (capped(1_000), [0, 2, 3, 1]),
        // After 5 ns nobody overtakes: what comes 6 ns after the conflict does not.
        (capped(5), [0, 2, 1, 3]),
        (scheduled(DramScheduler::fcfs), [0, 1, 2, 3]),
    ] {
        let mut bench = Bench::new(&spec);
        bench.at(Time::ZERO, read(row_of(&spec, 0, 0)));
        bench.at(Time::from_ns(10), read(row_of(&spec, 0, 1)));
        bench.at(Time::from_ns(11), read(row_of(&spec, 0, 0) + LINE));
        bench.at(Time::from_ns(20), read(row_of(&spec, 0, 0) + 2 * LINE));
        assert_eq!(order(&mut bench), expected);
    }
}

#[test]
fn a_row_hit_does_not_go_first_once_the_row_is_being_closed() {
    let spec = capped(1_000);
    let mut bench = Bench::new(&spec);
    bench.at(Time::ZERO, read(row_of(&spec, 0, 0)));
    bench.at(Time::from_ns(500), read(row_of(&spec, 0, 1)));
    bench.at(Time::from_ns(501), read(row_of(&spec, 0, 0)));
    assert_eq!(order(&mut bench), [0, 1, 2]);
    assert_eq!(bench.dram.stats.row_conflicts, 2);
}

#[test]
fn a_ready_bank_goes_before_an_older_one_that_is_not_unless_in_order() {
    for (spec, expected) in [(capped(1_000), [0, 2, 1]), (scheduled(DramScheduler::fcfs), [0, 1, 2])] {
        let mut bench = Bench::new(&spec);
        bench.at(Time::ZERO, read(row_of(&spec, 0, 0)));
        bench.at(Time::from_ns(200), read(row_of(&spec, 1, 0)));
        bench.at(Time::from_ns(200), read(row_of(&spec, 0, 0) + LINE));
        assert_eq!(order(&mut bench), expected);
    }
}

/// A row that is wanted all the time: without the cap the other row would wait for the end of the stream.
#[test]
fn nobody_starves_behind_row_hits() {
    let spec = capped(300);
    let mut bench = Bench::new(&spec);
    let (other, hits) = (row_of(&spec, 0, 5), 400);
    // Hits come as fast as the bus takes them, four of them ahead.
    let data = on_the_bus(&spec, 1);
    for n in 0..hits {
        bench.at(data.times(n64(n).saturating_sub(4)), read(n64(n) % 32 * LINE));
    }
    bench.at(Time::from_ns(100), read(other));
    let ends = bench.run();
    let waited = ends[hits as usize] - Time::from_ns(100);
    let t = &spec.timing;
    let served = t.rp.time() + t.rcd.time() + t.cl.time() + data;
    // It is due after the cap; the one chosen before it, and what keeps the row open, come first.
    let cap = Time::from_ns(300);
    assert!(waited >= cap && waited <= cap + served + data.times(4) + t.rtp.time(), "{waited}");
}

fn n64(n: u32) -> u64 {
    u64::from(n)
}

/// Reads all the time: writes wait for the end of a batch, not for the end of the reads, and then go one after the other.
#[test]
fn nobody_starves_behind_the_other_direction() {
    let spec = capped(300);
    let mut bench = Bench::new(&spec);
    let data = on_the_bus(&spec, 1);
    for n in 0..400 {
        bench.at(data.times(n64(n).saturating_sub(4)), read(row_of(&spec, 0, 0) + n64(n) % 32 * LINE));
    }
    for n in 0..4 {
        bench.at(Time::from_ns(100), write(row_of(&spec, 1, 0) + n * LINE));
    }
    bench.run();
    let writes: Vec<usize> = bench
        .dram
        .transfers
        .iter()
        .enumerate()
        .filter(|(_, (_, transfer))| transfer.write)
        .map(|(n, _)| n)
        .collect();
    assert_eq!(writes, [64, 65, 66, 67]);
    assert_eq!(bench.dram.stats.turnarounds, 2);
}

/// Reads and writes that came by turns go by batches: 256 of each in batches of 64.
#[test]
fn a_bus_that_is_wanted_in_both_directions_carries_batches() {
    let spec = capped(1_000_000);
    let mut bench = Bench::new(&spec);
    for n in 0..256 {
        bench.at(Time::ZERO, read(row_of(&spec, 0, 0) + n % 32 * LINE));
        bench.at(Time::ZERO, write(row_of(&spec, 1, 0) + n % 32 * LINE));
    }
    bench.run();
    let batches: Vec<usize> =
        bench.dram.transfers.chunk_by(|a, b| a.1.write == b.1.write).map(<[_]>::len).collect();
    assert_eq!(batches, [64; 8]);
}

#[test]
fn every_policy_keeps_its_contract() {
    for form in DramScheduler::all_defaults() {
        let policy = form.build(&());
        let mut before = (true, true);
        for amount in [0, 1, 10, 100, 999, 1_000, 10_000, 1_000_000] {
            let now = (policy.row_hit_passes(Time::from_ns(amount)), policy.direction_passes(amount));
            assert!(now.0 <= before.0 && now.1 <= before.1, "{}: yes again at {amount}", form.name());
            assert!(policy.banks_pass() || now == (false, false), "{}", form.name());
            before = now;
        }
        assert!(!policy.row_hit_passes(Time::MAX) && !policy.direction_passes(u64::MAX), "{}", form.name());
    }
}

#[test]
fn what_cannot_be_built_names_its_key() {
    let bad = |change: &dyn Fn(&mut DramSpec)| {
        let mut spec = presets::gddr5();
        change(&mut spec);
        Dram::new(&spec, LINE).err().expect("cannot be built").key
    };
    assert_eq!(bad(&|s| s.controllers = 0), "controllers");
    assert_eq!(bad(&|s| s.interleave = Bytes::new(200)), "interleave");
    assert_eq!(bad(&|s| s.bus.width = 12), "bus.width");
    assert_eq!(bad(&|s| s.bus.rate = TransferRate::new(0)), "bus.rate");
    assert_eq!(bad(&|s| s.bus.burst = 6), "bus.burst");
    assert_eq!(bad(&|s| s.banks.count = 65), "banks.count");
    assert_eq!(bad(&|s| s.banks.count = 12), "banks.hash");
    assert_eq!(bad(&|s| s.banks.row = Bytes::new(0)), "banks.row");
    assert_eq!(
        bad(&|s| s.refresh.as_mut().expect("refreshed").duration = Duration::new(Time::from_us(4))),
        "refresh.duration"
    );
}

#[test]
#[should_panic(expected = "more than 2 commands")]
fn more_commands_than_the_sources_can_have_are_a_fault_of_the_machine() {
    let mut bench = Bench::new(&presets::gddr5());
    bench.dram.bound(2);
    (0..3).for_each(|n| bench.at(Time::ZERO, read(n * LINE)));
    bench.run();
}
