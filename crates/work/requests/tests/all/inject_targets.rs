//! Several targets of an injector: each has separate queues, and they are independent.

use config::units::Duration;
use config::{Diagnostic, SleepSpec};
use engine::{EventQueue, Time};
use proptest::prelude::*;
use proto::{Command, Completion, IoOp, IoRequest, Port, Status};
use requests::inject::{Event, HostCost, Injector, Next, Out, Queues, Source};
use std::collections::{BTreeMap, VecDeque};

engine::events! {
    enum Ev {
        Injector(Event),
        Done(u32),
    }
}

struct Side<'a>(&'a mut EventQueue<Ev>, &'a mut VecDeque<(u16, Command)>);

engine::context! {
    Side<'_>: Cx<Event, Out>,
    queue: |me| me.0,
    event: |_me, event| Ev::Injector(event),
    out: |me, out| {
        if let Out::Submit { target, command } = out {
            me.1.push_back((target, command));
        }
    },
}

/// Source that issues these requests at their times, then ends.
struct Script(VecDeque<IoRequest>);

impl Source for Script {
    fn poll(&mut self, now: Time, _: u32) -> Result<Next, Diagnostic> {
        Ok(match self.0.front() {
            Some(request) if request.at > now => Next::At(request.at),
            Some(_) => self.0.pop_front().map_or(Next::Done, Next::Issue),
            None => Next::Done,
        })
    }
    fn completed(&mut self, _: Time, _: &IoRequest) {}
    fn flows(&self) -> Vec<String> {
        vec!["script".into(); 8]
    }
}

/// Source that keeps a number of reads in flight, of each flow in turn, up to a total.
struct Closed {
    depth: u32,
    flows: u16,
    left: u64,
    threaded: bool,
}

impl Closed {
    fn new(depth: u32, flows: u16, left: u64) -> Closed {
        Closed { depth, flows, left, threaded: false }
    }
}

impl Source for Closed {
    fn poll(&mut self, now: Time, outstanding: u32) -> Result<Next, Diagnostic> {
        if self.left == 0 {
            return Ok(Next::Done);
        }
        if outstanding >= self.depth {
            return Ok(Next::Blocked);
        }
        self.left -= 1;
        Ok(Next::Issue(read(now, self.left * 4096, (self.left % u64::from(self.flows)) as u16)))
    }
    fn completed(&mut self, _: Time, _: &IoRequest) {}
    fn flows(&self) -> Vec<String> {
        vec!["closed".into(); self.flows.into()]
    }
    fn has_thread(&self, _: u16) -> bool {
        self.threaded
    }
}

fn read(at: Time, offset: u64, flow: u16) -> IoRequest {
    IoRequest { at, op: IoOp::Read, offset, bytes: 4096, flow, fua: false }
}

/// Commands seen by a target: time, queue, flow, offset.
type Log = Vec<(Time, u16, u16, u64)>;

/// Runs an injector in front of devices that take each command for a given time, all side by side.
struct Bench {
    injector: Injector,
    service: Vec<Box<dyn Fn(u64) -> Time>>,
    seen: Vec<Log>,
    /// Maximum that each target held in each of its queues.
    most: BTreeMap<(u16, u16), u64>,
}

impl Bench {
    fn run(
        sources: Vec<(Box<dyn Source>, u16)>,
        targets: Vec<Queues>,
        service: Vec<Box<dyn Fn(u64) -> Time>>,
    ) -> Bench {
        Bench::of(Injector::over(sources, targets, HostCost::default()), service)
    }

    fn of(injector: Injector, service: Vec<Box<dyn Fn(u64) -> Time>>) -> Bench {
        let seen = vec![Log::new(); service.len()];
        let mut bench = Bench { injector, service, seen, most: BTreeMap::new() };
        bench.drain();
        bench
    }

    fn drain(&mut self) {
        let (mut queue, mut sent) = (EventQueue::new(), VecDeque::new());
        let mut inside: BTreeMap<u32, (u16, u16)> = BTreeMap::new();
        self.injector.start(&mut Side(&mut queue, &mut sent));
        loop {
            while let Some((target, command)) = sent.pop_front() {
                let at = usize::from(target);
                self.seen[at].push((queue.now(), command.queue, command.flow, command.offset));
                assert_eq!(u16::from(command.placement), command.flow);
                assert!(inside.insert(command.tag, (target, command.queue)).is_none());
                queue.after((self.service[at])(command.offset), Ev::Done(command.tag));
                let held = inside.values().filter(|of| **of == (target, command.queue)).count() as u64;
                let most = self.most.entry((target, command.queue)).or_default();
                *most = held.max(*most);
            }
            for target in 0..self.injector.targets() {
                let held = inside.values().filter(|(of, _)| *of == target).count();
                assert_eq!(self.injector.in_device_of(target), held);
            }
            assert_eq!(self.injector.in_device(), inside.len());
            let Some(event) = queue.pop() else { break };
            let mut side = Side(&mut queue, &mut sent);
            match event {
                Ev::Injector(event) => self.injector.handle(event, &mut side),
                Ev::Done(tag) => {
                    inside.remove(&tag);
                    let (to, status) = (Port::default(), Status::Success);
                    self.injector.complete(
                        Completion { tag, to, status, errors: 0, buffer: proto::BufferState::Unknown },
                        &mut side,
                    );
                }
            }
        }
        assert!(self.injector.is_done() && self.injector.outstanding() == 0);
    }
}

fn always(us: u64) -> Box<dyn Fn(u64) -> Time> {
    Box::new(move |_| Time::from_us(us))
}

fn closed(depth: u32, flows: u16, left: u64) -> Box<dyn Source> {
    Box::new(Closed::new(depth, flows, left))
}

#[test]
fn targets_do_not_hold_each_other_up() {
    let (slow, fast) = (Queues { count: 1, depth: 1 }, Queues { count: 2, depth: 4 });
    let both = Bench::run(
        vec![(closed(32, 1, 100), 0), (closed(32, 2, 4000), 1)],
        vec![slow, fast],
        vec![always(100), always(10)],
    );
    // One at a time for 100 us each; eight at a time for 10 us each.
    let ends: Vec<Time> = both.injector.flows.iter().map(|flow| flow.span.last_completion).collect();
    assert_eq!(ends, [Time::from_us(100 * 100), Time::from_us(4000 / 8 * 10), Time::from_us(4000 / 8 * 10)]);
    assert_eq!(both.most, BTreeMap::from([((0, 0), 1), ((1, 0), 4), ((1, 1), 4)]));
    assert_eq!([0, 1].map(|target| both.injector.answered_in_window_of(target)), [100, 4000]);
    assert_eq!(both.injector.answered_in_window(), 4100);

    let alone = Bench::run(vec![(closed(32, 2, 4000), 0)], vec![fast], vec![always(10)]);
    assert_eq!(alone.seen[0], both.seen[1]);
    let alone = Bench::run(vec![(closed(32, 1, 100), 0)], vec![slow], vec![always(100)]);
    assert_eq!(alone.seen[0], both.seen[0]);
}

#[test]
fn equal_loads_on_equal_targets_give_equal_figures() {
    let queues = Queues { count: 4, depth: 2 };
    let uneven = || -> Box<dyn Fn(u64) -> Time> { Box::new(|offset| Time::from_ns(700 + offset % 977)) };
    let sources = (0..3).map(|target| (closed(16, 4, 1500), target)).collect();
    let bench = Bench::run(sources, vec![queues; 3], vec![uneven(), uneven(), uneven()]);
    assert!(bench.seen[0] == bench.seen[1] && bench.seen[1] == bench.seen[2]);
    // The flows of a target are assigned to its queues in turn, whatever flows have appeared elsewhere in between.
    for target in 0..3 {
        assert_eq!((0..4).map(|queue| bench.most[&(target, queue)]).collect::<Vec<_>>(), [2; 4]);
    }
    for flow in 0..4 {
        let [a, b] = [0, 8].map(|first| &bench.injector.flows[first + flow].read);
        assert_eq!((a.requests, a.latency.sum()), (b.requests, b.latency.sum()));
        assert!(a.requests > 0 && a.latency.sum() > 0);
    }
}

#[test]
fn the_window_is_that_of_every_target() {
    let sources: Vec<(Box<dyn Source>, u16)> = vec![(closed(1, 1, 3), 0), (closed(1, 1, 5), 1)];
    let mut bench = Bench::run(sources, vec![Queues::UNBOUNDED; 2], vec![always(1), always(1)]);
    assert_eq!([0, 1].map(|target| bench.injector.answered_in_window_of(target)), [3, 5]);
    bench.injector.reset(Time::from_us(9));
    assert_eq!([0, 1].map(|target| bench.injector.answered_in_window_of(target)), [0, 0]);
    assert_eq!(bench.injector.answered_in_window(), 0);
}

/// A thread needs 3 us per request. One at a time: a request takes as long as without it, and the next comes 3 us
/// later. Eight at a time: the thread is the limit, and the latency is the time of the others' turns, by Little's
/// law.
#[test]
fn a_thread_sees_and_issues_one_request_after_the_other() {
    let cost = HostCost { thread: Time::from_us(3), ..HostCost::default() };
    let run = |depth: u32, threaded: bool| {
        let source = Closed { threaded, ..Closed::new(depth, 1, 1000) };
        let queues = vec![Queues::UNBOUNDED];
        let bench = Bench::of(Injector::over(vec![(Box::new(source), 0)], queues, cost), vec![always(10)]);
        let flow = bench.injector.flows[0].clone();
        (flow.span.last_completion, flow.read.latency.mean().expect("requests"))
    };
    let us = |us: u64| us as f64 * 1e6;
    assert_eq!(run(1, true), (Time::from_us(999 * 13 + 10), us(10)));
    let (end, mean) = run(8, true);
    assert_eq!(end, Time::from_us(10 + 999 * 3));
    // In the steady state 8 requests share 3 us each: 24 us per cycle, of which the thread's own turn is not latency.
    assert!((mean / us(21) - 1.0).abs() < 0.01, "{mean}");
    assert_eq!(run(1, false), (Time::from_us(10 * 1000), us(10)));
}

/// A core sleeps after 8 us without work, and needs 40 us to wake. One request of 10 us at a time: each is seen 40 us
/// late. Two at a time with 3 us of thread for each: the core waits 7 us between its rounds, and stays awake.
#[test]
fn a_core_that_has_slept_sees_its_completion_later() {
    let run = |depth: u32, threaded: bool, after: u64| {
        let sleep =
            SleepSpec { after: Duration::new(Time::from_us(after)), exit: Duration::new(Time::from_us(40)) };
        let cost = HostCost { thread: Time::from_us(3), sleep: Some(sleep), ..HostCost::default() };
        let source = Closed { threaded, ..Closed::new(depth, 1, 1000) };
        let sources: Vec<(Box<dyn Source>, u16)> = vec![(Box::new(source), 0)];
        let bench = Bench::of(Injector::over(sources, vec![Queues::UNBOUNDED], cost), vec![always(10)]);
        let flow = bench.injector.flows[0].clone();
        (flow.span.last_completion, flow.read.latency.mean().expect("requests"))
    };
    let us = |us: u64| us as f64 * 1e6;
    assert_eq!(run(1, true, 8), (Time::from_us(999 * 53 + 50), us(50)));
    assert_eq!(run(1, true, 11), (Time::from_us(999 * 13 + 10), us(10)));
    // A flow without a thread has no core.
    assert_eq!(run(1, false, 8), (Time::from_us(10 * 1000), us(10)));
    let (end, mean) = run(2, true, 8);
    // The first two find it asleep; then a round takes 13 us for two requests.
    assert_eq!(end, Time::from_us(53 + 499 * 13));
    assert!((mean / us(10) - 1.0).abs() < 0.01, "{mean}");
}

#[test]
#[should_panic(expected = "target 2 of 2")]
fn a_target_that_is_none_is_refused() {
    let _ = Injector::over(vec![(closed(1, 1, 1), 2)], vec![Queues::UNBOUNDED; 2], HostCost::default());
}

/// Returns the commands of one target by the definition of the rule: the n-th flow that appears has queue n modulo
/// their count; a queue takes its requests in the order of arrival, each when an entry is free, which it keeps until
/// it is done.
fn by_rule(arrivals: &[IoRequest], queues: Queues, service: impl Fn(u64) -> Time) -> Log {
    let mut order = Vec::new();
    let mut entries = vec![vec![Time::ZERO; queues.depth as usize]; queues.count.into()];
    let mut log = Log::new();
    for request in arrivals {
        if !order.contains(&request.flow) {
            order.push(request.flow);
        }
        let flow = order.iter().position(|flow| *flow == request.flow).expect("it is there") as u16;
        let entries = &mut entries[usize::from(flow % queues.count)];
        let free = entries.iter_mut().min().expect("at least one entry");
        let begin = request.at.max(*free);
        *free = begin + service(request.offset);
        log.push((begin, flow % queues.count, flow, request.offset));
    }
    log
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn each_target_goes_by_the_rule_alone(
        arrivals in prop::collection::vec((0u64..3000, 0u16..8, 0u16..2), 1..120),
        counts in (1u16..5, 1u16..5),
        depths in (1u32..4, 1u32..4),
    ) {
        let queues = [Queues { count: counts.0, depth: depths.0 }, Queues { count: counts.1, depth: depths.1 }];
        let service = |offset: u64| Time::from_ps(150_000 * (1 + offset % 7) + offset);
        let mut at = 0;
        let requests: Vec<(IoRequest, u16)> = arrivals.iter().enumerate().map(|(n, (gap, flow, target))| {
            at += gap * 100;
            (read(Time::from_ps(at), n as u64, *flow), *target)
        }).collect();
        let of = |target: u16| -> Vec<IoRequest> {
            requests.iter().filter(|(_, to)| *to == target).map(|(request, _)| *request).collect()
        };
        let sources = [0, 1].map(|target| -> (Box<dyn Source>, u16) { (Box::new(Script(of(target).into())), target) });
        let bench = Bench::run(sources.into(), queues.to_vec(), vec![Box::new(service), Box::new(service)]);
        for target in [0u16, 1] {
            let mut seen = bench.seen[usize::from(target)].clone();
            let mut expected = by_rule(&of(target), queues[usize::from(target)], service);
            expected.sort_unstable();
            seen.sort_unstable();
            prop_assert_eq!(&seen, &expected);
        }
    }
}
