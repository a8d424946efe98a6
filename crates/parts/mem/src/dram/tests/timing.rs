//! Latencies by formula, and which commands overtake others.

use super::*;
use crate::dram::sched::{DramScheduler, fr_fcfs};
use crate::dram::{DramRefreshSpec, DramTimingSpec};
use config::units::{Bytes, Duration, TransferRate};
use proto::memory::Stage;

#[test]
fn an_access_costs_what_its_bank_makes_of_it() {
    for (name, spec) in presets::all() {
        let spec = plain(spec);
        let t = |duration: Duration| duration.time();
        let (rcd, cl, rp) = (t(spec.timing.rcd), t(spec.timing.cl), t(spec.timing.rp));
        let data = on_the_bus(&spec, 1);
        let late = Time::from_us(10);
        let mut bench = Bench::new(&spec);
        bench.at(Time::ZERO, read(row_of(&spec, 0, 0)));
        bench.at(late, read(row_of(&spec, 0, 0) + LINE));
        bench.at(late.times(2), read(row_of(&spec, 0, 1)));
        bench.at(late.times(3), read(row_of(&spec, 1, 7)));
        let ends = bench.run();
        assert_eq!(ends[0], rcd + cl + data, "{name}: closed");
        assert_eq!(ends[1] - late, cl + data, "{name}: row hit");
        assert_eq!(ends[2] - late.times(2), rp + rcd + cl + data, "{name}: row conflict");
        assert_eq!(ends[3] - late.times(3), rcd + cl + data, "{name}: another bank is closed");
        let stats = &bench.dram.stats;
        assert_eq!((stats.row_closed, stats.row_hits, stats.row_conflicts, stats.activations), (2, 1, 1, 3));
        assert_eq!((stats.reads, stats.read_bytes, stats.bus_busy), (4, 512, data.times(4)));
        let waited: u128 = bench.dram.tally.reads()[Stage::Memory as usize];
        let sum: Time = ends.iter().zip(0..).fold(Time::ZERO, |sum, (end, n)| sum + (*end - late.times(n)));
        assert_eq!(waited, u128::from(sum.ps()), "{name}");
    }
}

#[test]
fn the_latency_of_the_controller_adds_to_every_command_and_holds_up_none() {
    let spec = plain(presets::gddr5());
    let slow = DramSpec { latency: Duration::new(Time::from_ns(80)), ..spec.clone() };
    let ends = |spec: &DramSpec| {
        let mut bench = Bench::new(spec);
        (0..8).for_each(|n| bench.at(Time::ZERO, read(n * LINE)));
        bench.run()
    };
    let later: Vec<Time> = ends(&spec).into_iter().map(|end| end + Time::from_ns(80)).collect();
    assert_eq!(ends(&slow), later);
}

/// A row cycle: the second of two rows of one bank waits for tRAS, or for the read to be through, and for tRP.
#[test]
fn two_rows_of_a_bank_take_a_row_cycle() {
    let spec = plain(presets::ddr4());
    let t = &spec.timing;
    let mut bench = Bench::new(&spec);
    bench.at(Time::ZERO, read(row_of(&spec, 3, 0)));
    bench.at(Time::ZERO, read(row_of(&spec, 3, 1)));
    let ends = bench.run();
    // tRCD + the second of two bursts + tRTP is shorter than tRAS here.
    assert!(t.rcd.time() + t.ccd.time() + t.rtp.time() < t.ras.time());
    let cycle = t.ras.time() + t.rp.time();
    assert_eq!(ends[1] - ends[0], cycle);
    // A whole page keeps the row open beyond tRAS: 64 bursts, 32 lines.
    let mut bench = Bench::new(&spec);
    bench.at(Time::ZERO, lines(row_of(&spec, 3, 0), u32::MAX.into(), false));
    bench.at(Time::ZERO, read(row_of(&spec, 3, 1)));
    let ends = bench.run();
    let burst = Time::from_ps(on_the_bus(&spec, 1).ps() / 2);
    let precharge = t.rcd.time() + on_the_bus(&spec, 32) - burst + t.rtp.time();
    assert_eq!(ends[0], t.rcd.time() + t.cl.time() + on_the_bus(&spec, 32));
    assert_eq!(ends[1], precharge + t.rp.time() + t.rcd.time() + t.cl.time() + on_the_bus(&spec, 1));
}

#[test]
fn a_bank_recovers_from_a_write() {
    for (name, spec) in presets::all() {
        let spec = plain(spec);
        let t = &spec.timing;
        let mut bench = Bench::new(&spec);
        bench.at(Time::ZERO, write(row_of(&spec, 0, 0)));
        bench.at(Time::ZERO, read(row_of(&spec, 0, 1)));
        let ends = bench.run();
        let written = t.rcd.time() + t.cwl.time() + on_the_bus(&spec, 1);
        assert_eq!(ends[0], written, "{name}");
        let precharge = (written + t.wr.time()).max(t.ras.time());
        assert_eq!(
            ends[1],
            precharge + t.rp.time() + t.rcd.time() + t.cl.time() + on_the_bus(&spec, 1),
            "{name}"
        );
    }
}

#[test]
fn the_bus_turns_around() {
    let spec = plain(presets::ddr4());
    let t = &spec.timing;
    let late = Time::from_us(1);
    let data = on_the_bus(&spec, 1);
    // The row is open; then a read, a write and a read of it come at once.
    let mut bench = Bench::new(&spec);
    bench.at(Time::ZERO, read(0));
    bench.at(late, read(LINE));
    bench.at(late, write(2 * LINE));
    let ends = bench.run();
    assert_eq!(ends[1], late + t.cl.time() + data);
    assert_eq!(ends[2], ends[1] + t.turnaround.time() + data, "write data follow read data after the gap");
    let mut bench = Bench::new(&spec);
    bench.at(Time::ZERO, read(0));
    bench.at(late, write(LINE));
    bench.at(late, read(2 * LINE));
    let ends = bench.run();
    assert_eq!(ends[1], late + t.cwl.time() + data);
    assert_eq!(ends[2], ends[1] + t.wtr.time() + t.cl.time() + data, "a column read waits for tWTR");
    assert_eq!(bench.dram.stats.turnarounds, 2);
}

#[test]
fn activations_keep_their_distance() {
    let mut spec = plain(presets::ddr3_buffer());
    spec.scheduler = DramScheduler::fcfs;
    // So fast a bus that only the activations hold up.
    spec.bus.rate = TransferRate::new(100_000_000_000);
    spec.timing.ccd = Duration::new(Time::ZERO);
    let (rrd, faw) = (spec.timing.rrd.time(), spec.timing.faw.time());
    assert!(faw > rrd.times(4), "the window binds");
    let mut bench = Bench::new(&spec);
    (0..6).for_each(|bank| bench.at(Time::ZERO, read(row_of(&spec, bank, 0))));
    let ends = bench.run();
    let starts: Vec<Time> = ends.iter().map(|end| *end - ends[0]).collect();
    assert_eq!(starts, [Time::ZERO, rrd, rrd.times(2), rrd.times(3), faw, faw + rrd]);
}

#[test]
fn a_refresh_closes_the_rows_and_keeps_the_banks_busy() {
    let spec = DramSpec { refresh: presets::ddr4().refresh, ..plain(presets::ddr4()) };
    let refresh = spec.refresh.clone().expect("DDR4 is refreshed");
    let (interval, duration) = (refresh.interval.time(), refresh.duration.time());
    let t = &spec.timing;
    let closed = t.rcd.time() + t.cl.time() + on_the_bus(&spec, 1);
    let mut bench = Bench::new(&spec);
    let times = [
        interval - Time::from_ns(200),
        // In the middle of a refresh, and after one that no access has waited for.
        interval + Time::from_ns(100),
        interval.times(7) + duration + Time::from_ns(5),
        // Just before a refresh: the row is opened again afterwards.
        interval.times(9) - Time::from_ns(4),
    ];
    for at in times {
        bench.at(at, read(0));
    }
    let ends = bench.run();
    assert_eq!(ends[0] - times[0], closed);
    assert_eq!(ends[1], interval + duration + closed);
    assert_eq!(ends[2] - times[2], closed);
    // Activated 4 ns before the refresh, the bank is precharged tRAS and tRP later; only then the refresh begins.
    let begun = times[3] + t.ras.time() + t.rp.time();
    assert_eq!(ends[3], begun + duration + closed);
    assert_eq!((bench.dram.stats.row_closed, bench.dram.stats.activations), (4, 5));
}

#[test]
fn a_command_is_done_with_its_last_line() {
    let spec = presets::gddr5();
    let mut bench = Bench::new(&spec);
    bench.at(Time::ZERO, lines(0, u32::MAX.into(), false));
    let ends = bench.run();
    // 4 KiB in 16 chunks of 256 B over six controllers.
    let mut by_controller = [0; 6];
    for chunk in 0..16 {
        by_controller[chunk % 6] += 2;
    }
    assert_eq!(by_controller, [6, 6, 6, 6, 4, 4]);
    let t = &spec.timing;
    assert_eq!(ends[0], t.rcd.time() + t.cl.time() + on_the_bus(&spec, 6));
    assert_eq!(bench.dram.stats.row_closed, 6, "lines of one row are one access");
    assert_eq!(bench.dram.stats.read_bytes, 4096);
    for controller in 0..6 {
        assert_eq!(bench.dram.controller_of(u64::from(controller) * 256 + 1536 * 5 + 17), controller);
    }
}

/// Lines of 64 B: 3.334 ns each on the 19.2 GB/s of DDR4-2400, one burst of eight.
#[test]
fn lines_may_be_short() {
    let spec = plain(presets::ddr4());
    let t = &spec.timing;
    let first = t.rcd.time() + t.cl.time();
    let mut bench = Bench::of_lines(&spec, 64);
    bench.at(Time::ZERO, lines(0, u64::MAX, false));
    assert_eq!(bench.run(), [first + Time::from_ps(64 * 3_334)]);
    assert_eq!((bench.dram.stats.read_bytes, bench.dram.stats.activations), (PAGE, 1));
    // The last line of a page is line 63; it says itself what becomes of it if it is absent, which nothing here is.
    let mut bench = Bench::of_lines(&spec, 64);
    bench.at(Time::ZERO, MemCommand { absent: Absent::Signal, ..lines(PAGE, 1 << 63, false) });
    assert_eq!(bench.run(), [first + Time::from_ps(3_334)]);
    assert_eq!(bench.outside.done[0].1.absent, Absent::Signal);
    assert_eq!(bench.dram.stats.read_bytes, 64);
    // This GDDR5 moves 64 B in a burst: half of that cannot be a line.
    let gddr5 = presets::gddr5();
    assert!(gddr5.check(64).is_ok());
    assert_eq!(gddr5.check(32).expect_err("half a burst").key, "bus.burst");
}

/// Refreshes of 350 ns come every 4 us: a time of 3 us fits between two of them, and one of 4 us does not.
#[test]
fn times_that_leave_no_access_between_refreshes_are_refused() {
    let us = |us: u64| Duration::new(Time::from_us(us));
    let refresh = DramRefreshSpec { interval: us(4), duration: Duration::new(Time::from_ns(350)) };
    let base = DramSpec { refresh: Some(refresh), ..presets::ddr4() };
    assert_eq!(base.check(64), Ok(()));
    type Of = fn(&mut DramTimingSpec) -> &mut Duration;
    let times: [(&str, Of); 6] = [
        ("rcd", |timing| &mut timing.rcd),
        ("ras", |timing| &mut timing.ras),
        ("rtp", |timing| &mut timing.rtp),
        ("wr", |timing| &mut timing.wr),
        ("rrd", |timing| &mut timing.rrd),
        ("faw", |timing| &mut timing.faw),
    ];
    for (key, time) in times {
        let mut spec = base.clone();
        *time(&mut spec.timing) = us(3);
        assert_eq!(spec.check(64), Ok(()), "{key}");
        *time(&mut spec.timing) = us(4);
        let error = spec.check(64).expect_err(key);
        assert_eq!(error.key, format!("timing.{key}"));
        assert!(error.what.contains("(`refresh.interval`)"), "{}", error.what);
        // The largest time of all is a sum that saturates.
        *time(&mut spec.timing) = Duration::new(Time::MAX);
        assert_eq!(spec.check(64).expect_err(key).key, format!("timing.{key}"));
        spec.refresh = None;
        assert_eq!(spec.check(64), Ok(()), "without refresh every time will do: {key}");
    }
}

// Overtaking of commands.

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
        // After 5 ns nothing overtakes: a command 6 ns after the conflict does not.
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
