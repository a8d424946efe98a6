//! Sources say which share of their work is done.

use engine::Time;
use machine::source::{FioSource, Replay, TraceSource};
use requests::fio;
use requests::inject::{Next, Source};
use requests::trace::{TraceOptions, TraceReader};
use std::io::Write;

fn job(text: &str) -> FioSource {
    FioSource::new(&fio::parse_inline(text).expect("a job"), 1 << 24, 1).expect("a job that fits")
}

/// Issues and completes `count` requests at `now`.
fn take(source: &mut impl Source, now: Time, count: usize) {
    for _ in 0..count {
        match source.poll(now, 0) {
            Ok(Next::Issue(request)) => source.completed(now, &request),
            other => panic!("{other:?}"),
        }
    }
}

fn near(share: Option<f64>, expected: f64) {
    let share = share.expect("a share");
    assert!((share - expected).abs() < 1e-9, "{share}, not {expected}");
}

#[test]
fn by_requests_by_bytes_and_by_passes() {
    let mut requests = job("fio:rw=randread,bs=4k,number_ios=200");
    take(&mut requests, Time::ZERO, 50);
    near(requests.progress(), 0.25);
    let mut bytes = job("fio:rw=read,bs=4k,size=1m");
    take(&mut bytes, Time::ZERO, 64);
    near(bytes.progress(), 64.0 * 4096.0 / 1048576.0);
    take(&mut bytes, Time::ZERO, 192);
    assert_eq!(bytes.poll(Time::ZERO, 0), Ok(Next::Done));
    near(bytes.progress(), 1.0);
    let mut passes = job("fio:rw=write,bs=4k,size=1m,loops=4");
    take(&mut passes, Time::ZERO, 256);
    near(passes.progress(), 0.25);
}

#[test]
fn by_the_clock() {
    let mut clock = job("fio:rw=randread,bs=4k,time_based=1,runtime=10ms");
    take(&mut clock, Time::ZERO, 1000);
    near(clock.progress(), 0.0);
    take(&mut clock, Time::from_ms(4), 1);
    near(clock.progress(), 0.4);
}

#[test]
fn clones_count_alike() {
    let mut clones = job("fio:rw=read,bs=4k,size=1m,numjobs=2,number_ios=100");
    take(&mut clones, Time::ZERO, 100);
    near(clones.progress(), 0.5);
}

#[test]
fn a_trace_by_its_bytes_or_by_the_requests_asked_for() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let requests = 200_000;
    (0..requests).for_each(|n| writeln!(file, "{} 0 {} 8 1", 1000 * n, 8 * n).expect("a line"));
    let open = |options: &TraceOptions| TraceReader::open(file.path(), options).expect("a trace");
    let plain = TraceOptions { sort_window: 100, ..TraceOptions::default() };
    let mut source = TraceSource::new("t".into(), open(&plain), Replay::Closed { depth: 1 });
    take(&mut source, Time::ZERO, requests / 2);
    let share = source.progress().expect("a share");
    // Later lines are longer, and the reader is ahead by a buffer.
    assert!((0.4..0.6).contains(&share), "{share}");
    let some = TraceOptions { max_requests: Some(1000), ..plain };
    let mut source = TraceSource::new("t".into(), open(&some), Replay::Closed { depth: 1 });
    take(&mut source, Time::ZERO, 500);
    near(source.progress(), 0.5);
}
