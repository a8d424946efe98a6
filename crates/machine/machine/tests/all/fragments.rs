//! A request in fragments: its life is from its arrival to the completion of the fragment that completes last.

use config::Diagnostic;
use engine::Time;
use machine::{Loaded, Machine};
use proto::{IoOp, IoRequest};
use requests::inject::{HostCost, Injector, Next, Observer, Queues, Seen, Source};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

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
    let loaded = Loaded::load("d16", &set.map(str::to_owned)).expect("a system");
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
