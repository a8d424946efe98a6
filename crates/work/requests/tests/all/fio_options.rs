//! A change of every honoured option, and the change it must make in the requests.

use std::collections::BTreeSet;

use crate::fio_common::{LATENCY, Run, run, run_file};
use engine::Time;
use proto::IoOp::{self, Flush, Read, Trim, Write};
use proto::file::{Advice, Way};
use requests::fio::{Class, Scheduler, options, parse_inline};

/// An option, a job without it, the addition, and the condition on the two runs.
type Case = (&'static str, &'static str, &'static str, fn(&Run, &Run) -> bool);

fn sizes(run: &Run) -> BTreeSet<u64> {
    run.data().map(|r| r.bytes).collect()
}
fn distinct(run: &Run) -> usize {
    run.offsets().into_iter().collect::<BTreeSet<u64>>().len()
}
fn ops(run: &Run) -> BTreeSet<IoOp> {
    run.requests().map(|r| r.op).collect()
}
fn share(run: &Run, condition: impl Fn(u64) -> bool) -> f64 {
    run.data().filter(|r| condition(r.offset)).count() as f64 / run.data().count() as f64
}
/// Returns the share of requests that start where the previous one ended.
fn sequential(run: &Run) -> f64 {
    let all: Vec<_> = run.data().collect();
    all.windows(2).filter(|w| w[1].offset == w[0].offset + w[0].bytes).count() as f64 / (all.len() - 1) as f64
}
/// Returns true if the second half repeats the first.
fn repeats(run: &Run) -> bool {
    let offsets = run.offsets();
    offsets[..offsets.len() / 2] == offsets[offsets.len() / 2..]
}
fn second(run: &Run, n: usize) -> Time {
    run.issued[n].now
}
fn near(measured: f64, expected: f64, within: f64) -> bool {
    (measured - expected).abs() <= within
}
/// Returns the share of requests to the most requested of `n` blocks of 4 KiB.
fn hottest(run: &Run, n: usize) -> f64 {
    let mut counts = vec![0u32; n];
    run.offsets().iter().for_each(|offset| counts[(offset / 4096) as usize] += 1);
    counts.iter().max().copied().unwrap_or(0) as f64 / run.data().count() as f64
}

const K: u64 = 1024;

const SHAPE: &[Case] = &[
    ("name", "size=64k", "name=reader", |a, b| a.job.name == "job" && b.job.name == "reader"),
    ("kb_base", "size=64k", "kb_base=1000", |a, b| {
        a.data().count() == 16 && b.data().count() == 64_000 / 4096
    }),
    ("rw", "size=64k", "rw=trimwrite", |a, b| ops(a) == [Read].into() && ops(b) == [Write, Trim].into()),
    ("rw_sequencer", "rw=randread:4,size=1m,norandommap", "rw_sequencer=identical", |a, b| {
        let groups = |run: &Run| run.offsets().chunks(4).filter(|c| c.iter().all(|o| *o == c[0])).count();
        groups(a) == 0 && groups(b) == 64 && near(sequential(a), 0.75, 0.03)
    }),
    ("bs", "size=64k", "bs=8k", |a, b| {
        (a.data().count(), b.data().count()) == (16, 8) && sizes(b) == [8 * K].into()
    }),
    ("bsrange", "size=8m", "bsrange=4k-16k", |a, b| {
        sizes(a) == [4 * K].into() && sizes(b) == [4 * K, 8 * K, 12 * K, 16 * K].into()
    }),
    ("bssplit", "size=8m", "bssplit=4k/75:32k/25", |a, b| {
        let large = b.data().filter(|r| r.bytes == 32 * K).count() as f64 / b.data().count() as f64;
        sizes(a) == [4 * K].into() && near(large, 0.25, 0.06)
    }),
    (
        "bs_is_seq_rand",
        "rw=randread,bs=4k,64k,percentage_random=50,norandommap,size=8m",
        "bs_is_seq_rand=1",
        |a, b| sizes(a) == [4 * K].into() && sizes(b) == [4 * K, 64 * K].into(),
    ),
    ("ba", "rw=randread,bs=4k,size=8m,norandommap", "ba=16k", |a, b| {
        a.offsets().iter().any(|o| o % (16 * K) != 0) && b.offsets().iter().all(|o| o % (16 * K) == 0)
    }),
    ("size", "bs=4k", "size=64k", |a, b| a.bytes() == 64 << 20 && b.bytes() == 64 * K),
    ("io_size", "size=64k", "io_size=160k", |a, b| {
        (a.bytes(), b.bytes()) == (64 * K, 160 * K) && b.offsets().iter().all(|&o| o < 64 * K)
    }),
    ("offset", "size=64k", "offset=25%", |a, b| (a.offsets()[0], b.offsets()[0]) == (0, 16 << 20)),
    ("offset_align", "offset=1%,size=64k", "offset_align=1m", |a, b| {
        // 1 % of 64 MiB is 671088.64 bytes, rounded up to 4 KiB, or to 1 MiB.
        (a.offsets()[0], b.offsets()[0]) == (164 * 4096, 1 << 20)
    }),
    ("number_ios", "size=64k", "number_ios=5", |a, b| (a.data().count(), b.data().count()) == (16, 5)),
    ("loops", "size=64k", "loops=3", |a, b| (a.data().count(), b.data().count()) == (16, 48)),
    ("rwmixread", "rw=randrw,size=16m", "rwmixread=80", |a, b| {
        let reads = |run: &Run| run.count(Read) as f64 / run.data().count() as f64;
        near(reads(a), 0.5, 0.04) && near(reads(b), 0.8, 0.04)
    }),
    ("rwmixwrite", "rw=randrw,size=16m", "rwmixwrite=80", |_, b| {
        near(b.count(Write) as f64 / b.data().count() as f64, 0.8, 0.04)
    }),
    ("percentage_random", "rw=randread,size=8m,norandommap", "percentage_random=20", |a, b| {
        sequential(a) < 0.01 && near(sequential(b), 0.8, 0.05)
    }),
    (
        "random_distribution",
        "rw=randwrite,size=4m,io_size=64m,norandommap",
        "random_distribution=zipf:1.2",
        |a, b| {
            // 1 / H(1024, 1.2) = 0.2314, from the sum itself.
            let zeta: f64 = (1..=1024).map(|k| libm::pow(k as f64, -1.2)).sum();
            hottest(a, 1024) < 0.01 && near(hottest(b, 1024), 1.0 / zeta, 0.02)
        },
    ),
    ("norandommap", "rw=randread,size=4m", "norandommap", |a, b| {
        // With replacement, 1 - 1/e of the blocks are touched.
        distinct(a) == 1024 && near(distinct(b) as f64 / 1024.0, 0.632, 0.05)
    }),
    ("randseed", "rw=randread,size=4m", "randseed=99", |a, b| a.offsets() != b.offsets()),
    ("randrepeat", "rw=randread,size=4m,loops=2", "randrepeat=0", |a, b| repeats(a) && !repeats(b)),
    ("fsync", "rw=write,size=64k", "fsync=4", |a, b| (a.count(Flush), b.count(Flush)) == (0, 3)),
    ("fdatasync", "rw=write,size=64k", "fdatasync=4", |a, b| (a.count(Flush), b.count(Flush)) == (0, 3)),
    ("end_fsync", "rw=write,size=64k", "end_fsync=1", |a, b| {
        a.count(Flush) == 0 && b.requests().last().is_some_and(|r| r.op == Flush)
    }),
    ("fsync_on_close", "rw=write,size=64k", "fsync_on_close=1", |a, b| {
        a.count(Flush) == 0 && b.requests().last().is_some_and(|r| r.op == Flush)
    }),
    ("sync", "rw=rw,size=1m", "sync=dsync", |a, b| {
        a.requests().all(|r| !r.fua) && b.requests().all(|r| r.fua == (r.op == Write))
    }),
];

const TIMING: &[Case] = &[
    ("ioengine", "iodepth=8,size=1m", "ioengine=psync", |a, b| (a.depth(), b.depth()) == (8, 1)),
    ("iodepth", "size=1m", "iodepth=8", |a, b| {
        // Little: 256 requests of 10 us, one or eight at a time.
        (a.depth(), b.depth()) == (1, 8) && a.ended == LATENCY.times(256) && b.ended == LATENCY.times(32)
    }),
    ("iodepth_low", "size=1m,iodepth=8", "iodepth_low=2", |a, b| {
        // Requests 8 to 15: as soon as one has ended, or when two are left; on this kind of drive, these are at once.
        (a.issued[8].outstanding, b.issued[8].outstanding) == (8, 3)
    }),
    ("direct", "iodepth=8,size=1m,direct=1", "direct=0", |a, b| (a.depth(), b.depth()) == (8, 1)),
    ("hipri", "ioengine=io_uring,direct=1", "hipri=1", |_, _| {
        let ways = |text| {
            let ways = parse_inline(text).expect("a good job").ways(true).expect("through a kernel");
            ways.map(|ways| ways.into_iter().map(|(way, _)| way).collect::<Vec<_>>())
        };
        let ring = "fio:rw=read,bs=4k,ioengine=io_uring,direct=1";
        ways(ring) == Some(vec![Way::Uring])
            && ways("fio:rw=read,bs=4k,ioengine=io_uring,direct=1,hipri=1") == Some(vec![Way::Polled])
    }),
    ("buffered", "iodepth=8,size=1m", "buffered=1", |a, b| (a.depth(), b.depth()) == (8, 1)),
    ("runtime", "size=64m", "runtime=1ms", |a, b| {
        a.ended > Time::from_ms(100) && b.ended == Time::from_ms(1) && b.data().count() == 100
    }),
    ("time_based", "size=64k,runtime=1ms", "time_based", |a, b| {
        (a.data().count(), b.data().count()) == (16, 100)
    }),
    ("ramp_time", "size=64k,runtime=1ms", "ramp_time=2ms", |a, b| {
        (a.ramp_until, b.ramp_until) == (Time::ZERO, Time::from_ms(2))
    }),
    ("startdelay", "size=64k", "startdelay=3ms", |a, b| {
        (a.issued[0].now, b.issued[0].now) == (Time::ZERO, Time::from_ms(3))
    }),
    ("rate", "size=1m", "rate=4m", |a, b| {
        // 4 KiB at 4 MiB/s: one in 1024th of a second, the first at once.
        second(a, 1) == LATENCY
            && second(b, 1) == Time::from_ps(976_562_500)
            && second(b, 255).ps() == 255 * 976_562_500
    }),
    ("rate_iops", "size=1m", "rate_iops=1000", |a, b| {
        second(a, 1) == LATENCY && second(b, 1) == Time::from_ms(1) && second(b, 255) == Time::from_ms(255)
    }),
    ("rate_process", "size=64m,iodepth=64,rate_iops=1000", "rate_process=poisson", |a, b| {
        let gaps = |run: &Run| -> Vec<f64> {
            run.issued.windows(2).map(|w| w[1].now.since(w[0].now).as_s_f64() * 1e3).collect()
        };
        // Exponential gaps: mean 1 ms, standard deviation 1 ms; over 16383 gaps both within 4 %.
        let (even, random) = (gaps(a), gaps(b));
        let mean = random.iter().sum::<f64>() / random.len() as f64;
        let variance = random.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / random.len() as f64;
        even.iter().all(|g| near(*g, 1.0, 1e-9)) && near(mean, 1.0, 0.04) && near(variance, 1.0, 0.08)
    }),
    ("thinktime", "size=64k", "thinktime=90", |a, b| {
        second(a, 1) == LATENCY && second(b, 1) == Time::from_us(100)
    }),
    ("thinktime_blocks", "size=64k,thinktime=90", "thinktime_blocks=4", |a, b| {
        second(a, 4) == Time::from_us(400)
            && second(b, 3) == Time::from_us(30)
            && second(b, 4) == Time::from_us(130)
    }),
    (
        "thinktime_blocks_type",
        "size=64k,iodepth=8,thinktime=90,thinktime_blocks=4",
        "thinktime_blocks_type=issue",
        |a, b| {
            // Completions are only counted once the queue is full; issues are counted immediately.
            second(a, 4) == Time::ZERO && second(b, 3) == Time::ZERO && second(b, 4) == Time::from_us(100)
        },
    ),
    ("thinktime_iotime", "size=64k,thinktime=90us", "thinktime_iotime=30us", |a, b| {
        second(a, 1) == Time::from_us(100)
            && second(b, 2) == Time::from_us(20)
            && second(b, 3) == Time::from_us(120)
    }),
];

/// Options that change jobs, not the requests of one, tested by name below; and effects of an injector only, in
/// `fio_batches`.
const WHOLE: &[&str] = &[
    "numjobs",
    "offset_increment",
    "stonewall",
    // In `fio_files.rs`.
    "filename",
    "filename_format",
    "directory",
    "nrfiles",
    "filesize",
    "openfiles",
    "file_service_type",
    // In `machine/tests/all/fio.rs`: they concern a whole run.
    "max_latency",
    "rate_min",
    "rate_iops_min",
    "rate_cycle",
    "ioscheduler",
    "fadvise_hint",
    "iodepth_batch",
    "iodepth_batch_complete_min",
    "iodepth_batch_complete_max",
];

#[test]
fn every_honoured_option_does_what_it_says() {
    for (option, base, change, holds) in SHAPE.iter().chain(TIMING) {
        assert!(change.starts_with(option), "{option}: {change}");
        let (without, with) = (run(base), run(&format!("{base},{change}")));
        assert!(holds(&without, &with), "{base} against {change}:\n{:?}\n{:?}", head(&without), head(&with));
    }
}

fn head(run: &Run) -> Vec<(Time, IoOp, u64, u64)> {
    run.issued.iter().take(12).map(|i| (i.now, i.request.op, i.request.offset, i.request.bytes)).collect()
}

#[test]
fn every_honoured_option_is_tested() {
    let tested: BTreeSet<&str> =
        SHAPE.iter().chain(TIMING).map(|c| c.0).chain(WHOLE.iter().copied()).collect();
    let honoured: BTreeSet<&str> =
        options().filter(|row| row.class == Class::Honoured).map(|row| row.name).collect();
    assert_eq!(tested, honoured);
}

#[test]
fn clones_share_the_region_unless_the_offset_grows() {
    let groups = run_file(
        "[global]\nfilename=/dev/nvme0n1\n[a]\nsize=64k\nnumjobs=3\n[b]\nsize=64k\nnumjobs=2\noffset=1m\noffset_increment=2m\n",
    );
    let runs = &groups[0];
    assert_eq!(runs.iter().map(|r| r.offsets()[0]).collect::<Vec<_>>(), [0, 0, 0, 1 << 20, 3 << 20]);
    assert_eq!(runs.iter().map(|r| r.job.flow).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(runs.iter().map(|r| r.job.clone).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
    assert!(runs.iter().all(|r| r.requests().all(|q| q.flow == r.job.flow)));
}

#[test]
fn clones_draw_different_numbers() {
    let groups = run_file(
        "[global]\nfilename=/dev/nvme0n1\n[a]\nrw=randread\nsize=1m\nnumjobs=2\n[seeded]\nrw=randread\nsize=1m\nrandseed=3\nnumjobs=2\n",
    );
    let offsets: Vec<_> = groups[0].iter().map(Run::offsets).collect();
    for (i, one) in offsets.iter().enumerate() {
        assert!(offsets[..i].iter().all(|other| other != one));
    }
}

/// A job passes the advice of `rw` to the kernel unless `fadvise_hint` gives a different one, as in fio, whose
/// default is 1.
#[test]
fn hints_are_those_of_the_job() {
    let advice = |text: &str| {
        let jobs = parse_inline(&format!("fio:bs=4k,{text}")).expect(text);
        jobs.ways(false).expect(text).map(|ways| ways[0])
    };
    for (text, way, said) in [
        ("rw=randread,ioengine=mmap", Way::Mapped, Advice::Random),
        ("rw=read,ioengine=mmap,direct=0", Way::Mapped, Advice::Sequential),
        ("rw=read,ioengine=mmap,direct=1", Way::Mapped, Advice::Sequential),
        ("rw=read,ioengine=mmap,fadvise_hint=0", Way::Mapped, Advice::Normal),
        ("rw=read,ioengine=mmap,fadvise_hint=random", Way::Mapped, Advice::Random),
        ("rw=randrw,ioengine=mmap,fadvise_hint=1", Way::Mapped, Advice::Random),
        ("rw=read,direct=0", Way::Buffered, Advice::Sequential),
        ("rw=randread,direct=0", Way::Buffered, Advice::Random),
        ("rw=read,direct=0,fadvise_hint=1", Way::Buffered, Advice::Sequential),
        ("rw=read,direct=0,fadvise_hint=none", Way::Buffered, Advice::Normal),
    ] {
        assert_eq!(advice(text), Some((way, said)), "{text}");
    }
    assert_eq!(advice("rw=read"), None);
    let run = run("size=1m,iodepth=8,ioengine=mmap");
    assert_eq!(run.depth(), 1);
    let warned = |text: &str, what: &str| {
        let jobs = parse_inline(text).expect(text);
        let job = jobs.jobs[0].resolve(crate::fio_common::CAPACITY).expect(text);
        let all = jobs.notes.warnings.iter().chain(&job.warnings);
        assert!(all.clone().any(|said| said.contains(what)), "{text}: {:?}", all.collect::<Vec<_>>());
    };
    warned("fio:rw=read,bs=4k,fadvise_hint=1", "fadvise_hint has no effect");
    warned("fio:rw=write,bs=4k,ioengine=mmap,sync=1", "sync has no effect");
    warned("fio:rw=write,bs=4k,ioengine=mmap,iodepth=4", "iodepth has no effect");
    warned("fio:rw=write,bs=4k,ioengine=mmap,direct=1", "msync after each write");
}

/// Current and former names in Linux; a drive has one of them.
#[test]
fn schedulers_are_those_of_the_block_layer() {
    let jobs = |text: &str| requests::fio::parse_text("t.fio", text);
    for (name, scheduler) in [
        ("none", Scheduler::None),
        ("noop", Scheduler::None),
        ("mq-deadline", Scheduler::MqDeadline),
        ("deadline", Scheduler::MqDeadline),
        ("kyber", Scheduler::Kyber),
    ] {
        let jobs = jobs(&format!("[a]\nioscheduler={name}\n[b]\n[c]\nioscheduler={name}\n")).unwrap();
        assert_eq!(jobs.scheduler(), Ok(Some(scheduler)));
        let said: Vec<String> = jobs.unscheduled().collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("a: `ioscheduler` has no effect here: "), "{said:?}");
    }
    assert_eq!(jobs("[a]\n").unwrap().scheduler(), Ok(None));
    let fault = jobs("[a]\nioscheduler=mq-deadlin\n").unwrap_err();
    assert_eq!(fault.nearest.as_deref(), Some("mq-deadline"), "{fault}");
    assert!(jobs("[a]\nioscheduler=bfq\n").unwrap_err().what.contains("not modelled"));
    let fault = jobs("[a]\nioscheduler=kyber\n[b]\nioscheduler=none\n").unwrap().scheduler().unwrap_err();
    assert!(
        fault.what.contains("jobs `a` and `b` set different schedulers") && fault.place.is_some(),
        "{fault}"
    );
}

#[test]
fn stonewalls_part_groups() {
    let text = "[a]\n[b]\n[c]\nstonewall\n[d]\n[e]\nstonewall=1\n[f]\nstonewall=0\n";
    let jobs = requests::fio::parse_text("t.fio", text).unwrap();
    let names: Vec<Vec<&str>> =
        jobs.groups().iter().map(|group| group.iter().map(|job| job.name.as_str()).collect()).collect();
    assert_eq!(names, [vec!["a", "b"], vec!["c", "d"], vec!["e", "f"]]);
}

#[test]
fn a_seed_of_its_own_makes_a_job_independent_of_the_run() {
    let offsets = |text: &str, seed| {
        let job = parse_inline(text).unwrap().jobs.remove(0).resolve(crate::fio_common::CAPACITY).unwrap();
        crate::fio_common::drive(job, seed, |_| LATENCY).offsets()
    };
    assert_ne!(offsets("rw=randread,size=1m", 1), offsets("rw=randread,size=1m", 2));
    assert_eq!(offsets("rw=randread,size=1m,randseed=5", 1), offsets("rw=randread,size=1m,randseed=5", 2));
}

#[test]
fn zones_take_their_share() {
    let run = run("rw=randread,bs=4k,size=64m,random_distribution=zoned:60/10:40/50");
    let third =
        |low: u64, high: u64| share(&run, |offset| (low..high).contains(&(offset * 100 / (64 << 20))));
    assert!(near(third(0, 10), 0.6, 0.02) && near(third(10, 60), 0.4, 0.02) && third(61, 100) == 0.0);
}
