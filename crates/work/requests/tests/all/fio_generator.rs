//! Behaviour of a generator between the injector and the clock.

use std::collections::BTreeSet;

use crate::fio_common::{CAPACITY, LATENCY, Run, chi_square, drive, run, run_file};
use engine::Time;
use proptest::prelude::*;
use proto::IoOp::{Flush, Read, Write};
use proto::IoRequest;
use requests::fio::parse_inline;
use requests::synth::{Generator, Job, Poll};

fn job(text: &str) -> Job {
    parse_inline(text).unwrap().jobs.remove(0).resolve(CAPACITY).unwrap()
}

fn started(text: &str) -> Generator {
    let mut generator = Generator::new(job(text), 1);
    generator.start(Time::ZERO, Time::ZERO);
    generator
}

fn requests(run: &Run) -> Vec<IoRequest> {
    run.requests().collect()
}

#[test]
fn the_short_way_draws_what_the_long_way_draws() {
    // A flush every 10^9 writes never happens, but keeps every poll on the slow path.
    for text in [
        "rw=randwrite,size=4m,iodepth=4",
        "rw=randrw,size=4m,rwmixread=30,bsrange=4k-32k,loops=2",
        "rw=randwrite,norandommap,size=1m,io_size=4m,number_ios=700",
        "rw=rw,bs=4k,8k,size=1m,runtime=1ms,time_based,iodepth=3",
        "rw=randtrimwrite,size=1m,loops=3,randrepeat=0",
    ] {
        let (short, long) = (run(text), run(&format!("{text},fsync=1000000000")));
        assert_eq!(short.issued, long.issued, "{text}");
    }
}

#[test]
fn a_clone_goes_on_as_the_original() {
    for text in [
        "rw=randread,bs=4k,size=1m,loops=2,randrepeat=0",
        "rw=randrw,bsrange=4k-16k,size=1m,rate_iops=50000,rate_process=poisson",
        "rw=randread,size=8m,random_distribution=zipf:1.1,percentage_random=60",
    ] {
        let mut original = started(text);
        let step = |generator: &mut Generator, i: u64| match generator.poll(Time::from_us(100 * i), 0) {
            Poll::Issue(request) => {
                generator.completed(request.op);
                Some(request)
            }
            _ => None,
        };
        for i in 0..100 {
            assert!(step(&mut original, i).is_some(), "{text}");
        }
        let mut copy = original.clone();
        let go_on = |generator: &mut Generator| (100..400).map(|i| step(generator, i)).collect::<Vec<_>>();
        assert_eq!(go_on(&mut original), go_on(&mut copy), "{text}");
    }
}

#[test]
fn the_same_seed_gives_the_same_stream_and_another_another() {
    let stream = |seed| requests(&drive(job("rw=randrw,size=1m"), seed, |_| LATENCY));
    assert_eq!(stream(3), stream(3));
    assert_ne!(stream(3), stream(4));
}

#[test]
fn a_blocking_fsync_holds_everything_back_and_a_queued_one_nothing() {
    let flush_is_slow = |r: &IoRequest| if r.op == Flush { Time::from_us(100) } else { LATENCY };
    let at_flush = |engine: &str| {
        let text = format!("rw=write,size=1m,iodepth=4,fsync=6,ioengine={engine}");
        let run = drive(job(&text), 1, flush_is_slow);
        let flush = run.issued.iter().position(|i| i.request.op == Flush).unwrap();
        (run.issued[flush].now, run.issued[flush + 1].now, run.issued[flush].outstanding)
    };
    // Four writes at 0, four completions at 10 us: two more writes, then the flush beside them.
    assert_eq!(at_flush("libaio"), (LATENCY, LATENCY + Time::from_us(100), 4));
    assert_eq!(at_flush("io_uring"), (LATENCY, LATENCY, 4));
}

#[test]
fn a_late_request_of_a_rate_counts_from_when_it_was_due() {
    // 1000 a second, but the device takes 10 ms each: request n is due after n ms and leaves after 10 n ms.
    let run = drive(job("rw=read,size=1m,rate_iops=1000"), 1, |_| Time::from_ms(10));
    for (n, issued) in run.issued.iter().enumerate() {
        assert_eq!(issued.request.at, Time::from_ms(n as u64));
        assert_eq!(issued.now, Time::from_ms(10 * n as u64));
    }
    // Without a cap a request is due when it leaves.
    assert!(crate::fio_common::run("rw=read,size=1m,iodepth=4").issued.iter().all(|i| i.request.at == i.now));
}

#[test]
fn a_poisson_process_waits_for_nothing_but_the_depth() {
    // M/D/infinity: with rate 1000 and 10 ms service the mean in flight is 10 and varies like a Poisson variable.
    let run = drive(job("rw=randread,size=64m,iodepth=1000,rate_iops=1000,rate_process=poisson"), 1, |_| {
        Time::from_ms(10)
    });
    let others: Vec<f64> = run.issued.iter().skip(100).map(|i| i.outstanding as f64 - 1.0).collect();
    let mean = others.iter().sum::<f64>() / others.len() as f64;
    let variance = others.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / others.len() as f64;
    assert!((mean - 10.0).abs() < 0.4 && (variance - 10.0).abs() < 1.0, "{mean} {variance}");
    assert!(run.issued.iter().all(|i| i.request.at == i.now));
    let narrow = drive(job("rw=randread,size=16m,iodepth=4,rate_iops=1000,rate_process=poisson"), 1, |_| {
        Time::from_ms(10)
    });
    assert_eq!(narrow.depth(), 4);
}

#[test]
fn rates_of_their_own_override_the_mix() {
    // fio: a direction that is ahead of its rate yields to the other.
    let capped = run("rw=randrw,rwmixread=50,size=16m,rate_iops=2000,1000,iodepth=8");
    let shares = capped.count(Read) as f64 / capped.count(Write) as f64;
    assert!((shares - 2.0).abs() < 0.02, "{shares}");
    // A cap on writes only leaves reads as fast as the device.
    let half = run("rw=randrw,rwmixread=50,size=16m,rate_iops=,1000,");
    let span = half.ended.as_s_f64();
    assert!((half.count(Write) as f64 - 1000.0 * span).abs() <= 2.0);
    assert!(half.count(Read) as f64 > 0.9 * span / LATENCY.as_s_f64());
}

#[test]
fn a_pause_starts_when_the_queue_is_empty() {
    let slow = |r: &IoRequest| Time::from_us(10 + r.offset / 4096 % 4 * 10);
    let run = drive(
        job("rw=read,size=64k,iodepth=4,thinktime=1ms,thinktime_blocks=4,thinktime_blocks_type=issue"),
        1,
        slow,
    );
    // Four requests of 10 to 40 us, then a millisecond.
    let times: Vec<Time> = run.issued.iter().map(|i| i.now).collect();
    for (n, time) in times.iter().enumerate() {
        assert_eq!(*time, Time::from_us(1040 * (n as u64 / 4)));
    }
}

#[test]
fn a_pause_is_not_lateness() {
    let run = run("rw=read,size=64k,rate_iops=10000,thinktime=1ms");
    assert!(run.issued.iter().all(|i| i.now == i.request.at));
}

#[test]
fn requests_before_the_end_of_the_ramp_do_not_count() {
    // 10 us each: 100 in the ramp of 1 ms, then the count starts again.
    let run = run("rw=read,size=64m,number_ios=150,ramp_time=1ms");
    assert_eq!((run.data().count(), run.ramp_until), (250, Time::from_ms(1)));
    // As in fio 3.33, a job ends if it reaches its number within the ramp.
    assert_eq!(crate::fio_common::run("rw=read,size=64m,number_ios=50,ramp_time=1ms").data().count(), 50);
    // Bytes do count in the ramp, as in fio.
    assert_eq!(crate::fio_common::run("rw=read,size=400k,ramp_time=100us").data().count(), 100);
    // The runtime starts when the ramp ends.
    assert_eq!(crate::fio_common::run("rw=read,runtime=1ms,ramp_time=1ms").data().count(), 200);
}

#[test]
fn runtime_ends_a_waiting_job_and_its_last_flush_still_comes() {
    let run = run("rw=write,rate_iops=100,runtime=25ms,end_fsync=1");
    let times: Vec<Time> = run.issued.iter().map(|i| i.now).collect();
    assert_eq!(times, [0, 10, 20, 25].map(Time::from_ms));
    assert_eq!(run.issued[3].request.op, Flush);
}

#[test]
fn the_queue_drains_between_passes() {
    let run = run("rw=randread,size=64k,iodepth=8,loops=3");
    let alone: Vec<usize> = (0..48).filter(|&i| run.issued[i].outstanding == 1).collect();
    assert_eq!(alone, [0, 16, 32]);
}

#[test]
fn time_based_passes_each_cover_every_block_in_a_new_order() {
    let run = run("rw=randread,size=256k,time_based,runtime=10ms");
    let offsets = run.offsets();
    assert_eq!(offsets.len(), 1000);
    let mut orders = BTreeSet::new();
    for pass in offsets.chunks_exact(64) {
        assert_eq!(pass.iter().collect::<BTreeSet<_>>().len(), 64);
        orders.insert(pass.to_vec());
    }
    assert_eq!(orders.len(), 15);
}

#[test]
fn directions_of_different_sizes_keep_their_own_maps() {
    let run = run("rw=randrw,bs=4k,64k,size=4m");
    for (op, unit) in [(Read, 4096), (Write, 65_536)] {
        let offsets: Vec<u64> = run.data().filter(|r| r.op == op).map(|r| r.offset).collect();
        assert!(offsets.len() > 20 && offsets.iter().all(|o| o % unit == 0));
        assert_eq!(offsets.iter().collect::<BTreeSet<_>>().len(), offsets.len(), "{op:?} twice");
    }
}

#[test]
fn start_delays_count_from_the_start_of_the_workload() {
    let mut late = Generator::new(job("size=64k,startdelay=2ms"), 1);
    late.start(Time::from_ms(1), Time::from_ms(10));
    assert_eq!(late.started(), Time::from_ms(10));
    let mut early = Generator::new(job("size=64k,startdelay=2ms"), 1);
    early.start(Time::from_ms(1), Time::from_ms(1));
    assert_eq!(early.started(), Time::from_ms(3));
    assert_eq!(early.poll(Time::from_ms(1), 0), Poll::At(Time::from_ms(3)));
    let groups = run_file("[a]\nstartdelay=1ms-5ms\nsize=64k\nnumjobs=50\n");
    let starts: BTreeSet<Time> = groups[0].iter().map(|r| r.started).collect();
    assert_eq!(starts.len(), 50);
    assert!(starts.iter().all(|s| (Time::from_ms(1)..=Time::from_ms(5)).contains(s)));
    let spread = starts.last().unwrap().since(*starts.first().unwrap());
    assert!(spread > Time::from_ms(3), "{spread}");
}

#[test]
fn draws_with_replacement_are_uniform() {
    let run = run("rw=randwrite,size=4m,norandommap,io_size=1000m");
    let mut counts = vec![0.0; 1024];
    run.offsets().iter().for_each(|offset| counts[(offset / 4096) as usize] += 1.0);
    // 1023 degrees of freedom: the 99.99 % point is 1200.
    let chi = chi_square(&counts, &[250.0; 1024]);
    assert!(chi < 1200.0, "{chi}");
}

#[test]
fn the_first_block_of_a_covering_job_is_uniform_over_seeds() {
    let mut counts = [0.0; 16];
    for seed in 0..16_000 {
        let mut generator = Generator::new(job("rw=randread,size=64k"), seed);
        generator.start(Time::ZERO, Time::ZERO);
        let Poll::Issue(request) = generator.poll(Time::ZERO, 0) else { panic!("nothing to issue") };
        counts[(request.offset / 4096) as usize] += 1.0;
    }
    // 15 degrees of freedom: the 99.99 % point is 44.3.
    let chi = chi_square(&counts, &[1000.0; 16]);
    assert!(chi < 44.3, "{chi}");
}

#[test]
fn a_device_of_64_tib_needs_no_memory_for_its_map() {
    let job = parse_inline("rw=randread,bs=4k,iodepth=32").unwrap().jobs.remove(0).resolve(64 << 40).unwrap();
    let run = crate::fio_common::drive_some(job, 1, 100_000);
    let offsets: BTreeSet<u64> = run.offsets().into_iter().collect();
    assert_eq!(offsets.len(), 100_000);
    assert!(*offsets.last().unwrap() > 63 << 40);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn requests_of_any_sizes_cover_every_block_exactly_once(
        blocks in 1u64..300,
        large in 2u64..9,
        larger in 9u64..40,
        weight in 1u32..98,
        mixed: bool,
        loops in 1u64..4,
    ) {
        let text = format!(
            "rw={},size={},loops={loops},bssplit=4k/1:{}k/{weight}:{}k/",
            if mixed { "randrw" } else { "randread" }, blocks * 4096, 4 * large, 4 * larger,
        );
        let run = run(&text);
        let mut touched = vec![0; blocks as usize];
        for request in run.data() {
            let blocks = request.offset / 4096..(request.offset + request.bytes) / 4096;
            blocks.for_each(|block| touched[block as usize] += 1);
        }
        prop_assert!(touched.iter().all(|&n| n == loops), "{}: {:?}", text, touched);
    }
}
