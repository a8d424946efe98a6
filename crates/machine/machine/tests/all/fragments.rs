//! A request in fragments: its life is from its arrival to the completion of the fragment that completes last.

use config::Diagnostic;
use engine::Time;
use machine::{
    Machine,
    source::{FioSource, Replay, TraceSource},
};
use proto::{IoOp, IoRequest};
use requests::fio;
use requests::inject::{HostCost, Injector, Next, Observer, Queues, Seen, Source};
use requests::trace::{TraceOptions, TraceReader};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::{cell::RefCell, io::Write};

/// Says these, then that nothing follows.
struct Script(VecDeque<Next>);

impl Source for Script {
    fn poll(&mut self, now: Time, _: u32) -> Result<Next, Diagnostic> {
        match self.0.front() {
            Some(Next::Issue(request) | Next::Part(request)) if request.at > now => Ok(Next::At(request.at)),
            Some(_) => Ok(self.0.pop_front().unwrap_or(Next::Done)),
            None => Ok(Next::Done),
        }
    }
    fn completed(&mut self, _: Time, _: &IoRequest) {}
    fn flows(&self) -> Vec<String> {
        vec!["script".into()]
    }
}

struct Notes(Rc<RefCell<Vec<Seen>>>);

impl Observer for Notes {
    fn completed(&mut self, seen: &Seen, _: Option<&proto::Account>) {
        self.0.borrow_mut().push(*seen);
    }
}

fn write(at: u64, offset: u64, bytes: u64) -> IoRequest {
    IoRequest { at: Time::from_us(at), op: IoOp::Write, offset, bytes, flow: 0, fua: false }
}

/// Runs a script with a submission queue of `depth` entries.
fn run(script: impl IntoIterator<Item = Next>, depth: u32) -> (Machine, Vec<Seen>) {
    let set = [
        "flash.geometry.blocks=64",
        "flash.geometry.pages=16",
        "flash.ftl.gc.start=3",
        "flash.ftl.gc.stop=4",
        "flash.ftl.gc.hard=1",
        "flash.ftl.over_provisioning=25%",
    ];
    let loaded = machine::load("d16", &set.map(str::to_owned)).expect("a system");
    let device = loaded.device(1).expect("a device");
    let source = Script(script.into_iter().collect());
    let cost = HostCost { submit: Time::from_ns(700), complete: Time::from_ns(300), ..HostCost::default() };
    let mut injector = Injector::new(vec![Box::new(source)], Queues { count: 1, depth }, cost);
    let seen = Rc::new(RefCell::new(Vec::new()));
    injector.observer = Some(Box::new(Notes(seen.clone())));
    let mut machine = Machine::new(device, injector, None);
    machine.run(&AtomicBool::new(false), |_| {});
    let seen = seen.borrow().clone();
    (machine, seen)
}

#[test]
fn its_latency_ends_with_the_last_fragment() {
    let [a, b, c] = [write(5, 0, 4096), write(5, 1 << 20, 256 << 10), write(5, 3 << 20, 8192)];
    let later = write(9, 2 << 20, 4096);
    for depth in [1, 2, 64] {
        let (_, apart) = run([a, b, c, later].map(Next::Issue), depth);
        let script = [Next::Part(a), Next::Part(b), Next::Issue(c), Next::Issue(later)];
        let (machine, whole) = run(script, depth);
        // The device sees the same commands: what each of them takes is known from the run in which they are requests.
        let of = |offset: u64| *apart.iter().find(|s| s.request.offset == offset).expect("it has completed");
        let ends = [a, b, c].map(|request| of(request.offset).completed);
        let last = ends.into_iter().max().expect("three");
        let one = whole.iter().find(|seen| seen.request.offset == 0).expect("the request");
        assert_eq!(
            (one.completed, one.request.bytes, one.request.at),
            (last, 4096 + (256 << 10) + 8192, Time::from_us(5))
        );
        assert_eq!(one.submitted, of(0).submitted);
        assert_eq!((whole.len(), machine.injector.requests), (2, 2));
        assert_eq!(
            (machine.injector.issued, machine.injector.completed, machine.injector.outstanding()),
            (4, 4, 0)
        );
        let split = &machine.injector.split;
        assert_eq!((split.requests.write.requests, split.fragments.write.requests), (1, 3));
        let sum: u64 = ends.iter().map(|end| (*end - Time::from_us(5)).ps()).sum();
        assert_eq!(split.fragments.write.latency.sum(), u128::from(sum));
        assert_eq!(machine.injector.flows[0].write.requests, 2);
    }
}

// Sources say which share of their work is done.

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
