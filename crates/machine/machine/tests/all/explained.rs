//! Waits of requests, and their blockers, compared with a separate count from the tenures of all commands of the run.

use machine::result::Document;
use machine::run::{Observers, Outside, Plan, run_observed};
use nand::dies::observe::{Observer as CommandObserver, Tenure};
use nand::dies::op::Class;
use proto::{Account, ByHolder, Holder, IoOp};
use requests::inject::{Observer, Seen};
use ssd::device::milestone;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

type Accounts = Vec<(Seen, Option<Account>)>;

#[derive(Clone, Default)]
struct Notes {
    requests: Rc<RefCell<Accounts>>,
    tenures: Rc<RefCell<Vec<Tenure>>>,
}

impl Observer for Notes {
    fn completed(&mut self, seen: &Seen, account: Option<&Account>) {
        self.requests.borrow_mut().push((*seen, account.copied()));
    }
}

impl CommandObserver for Notes {
    fn ended(&mut self, tenure: &Tenure) {
        self.tenures.borrow_mut().push(*tenure);
    }
}

fn run(plan: &Plan, notes: &Notes) -> Document {
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &AtomicBool::new(false),
        watch: &mut |_| {},
        states: None,
    };
    let observers = Observers {
        requests: Some(Box::new(notes.clone())),
        commands: vec![Box::new(notes.clone())],
        ..Observers::default()
    };
    run_observed(plan, &mut outside, observers).expect("the plan is usable").expect("nothing stops it")
}

/// A small drive that collects all the time, and a mixed load beyond what it can serve.
fn plan() -> Plan {
    let mut plan = Plan::new(
        "d16",
        "fio:rw=randrw,rwmixread=60,bsrange=4k-16k,iodepth=48,number_ios=30000,norandommap=1",
    );
    plan.precondition = Some(spec::precondition::parse("steady").expect("a state"));
    plan.set("flash.geometry.blocks=64").set("flash.ftl.gc.start=3").set("flash.ftl.gc.stop=4")
}

fn holder(class: Class) -> Holder {
    match class {
        Class::GcRead => Holder::CollectionRead,
        Class::GcProgram => Holder::CollectionProgram,
        Class::HostProgram => Holder::HostProgram,
        Class::Erase => Holder::Erase,
        class if class.is_waited_read() => Holder::HostRead,
        class => panic!("{class:?} in a run without a map cache"),
    }
}

/// Holders between two times, from spans with one holder each.
fn held(spans: impl Iterator<Item = (u64, u64, Class)>, from: u64, to: u64) -> ByHolder {
    let mut by = [0; Holder::COUNT];
    for (start, end, class) in spans {
        by[holder(class) as usize] += end.min(to).saturating_sub(start.max(from));
    }
    by[Holder::Nobody as usize] = to - from - by.iter().sum::<u64>();
    by
}

#[test]
fn who_was_in_the_way_is_what_the_tenures_say() {
    let notes = Notes::default();
    let document = run(&plan(), &notes);
    assert!(document.is_sound());
    // They are noted in the order of their ends: those that overlap a span lie together.
    let tenures = notes.tenures.borrow();
    let longest = tenures.iter().map(|t| (t.ended - t.started).ps()).max().unwrap_or(0);
    let around = |from: u64, to: u64| {
        let first = tenures.partition_point(|t| t.ended.ps() <= from);
        tenures[first..].iter().take_while(move |t| t.ended.ps() < to + longest)
    };
    let (mut looked_at, mut waited_for_data) = (0, 0);
    for (seen, account) in notes.requests.borrow().iter() {
        let account = account.expect("the drive gives an account");
        let waits = &account.waits;
        let inside: u64 = waits.iter().sum();
        assert_eq!(inside, (seen.answered - seen.submitted).ps(), "milestones tile the time in the device");
        if seen.request.op != IoOp::Read {
            continue;
        }
        let place = account.place.expect("it has been read from somewhere");
        let from = seen.submitted.ps()
            + [milestone::SUBMISSION, milestone::CONTROLLER].map(|n| waits[n]).iter().sum::<u64>();
        let to = from + waits[milestone::DIE_WAIT];
        let spans = around(from, to).filter(|t| t.die == place.die);
        let of_die = held(spans.map(|t| (t.started.ps(), t.ended.ps(), t.class)), from, to);
        assert_eq!(account.die, of_die, "request {}", seen.id);
        let from = to + waits[milestone::ARRAY];
        let to = from + waits[milestone::CHANNEL_WAIT];
        let on_channel = around(from, to).filter(|t| t.channel == place.channel);
        let spans = on_channel
            .flat_map(|t| [(t.started.ps(), t.sent.ps(), t.class), (t.moved.ps(), t.ended.ps(), t.class)]);
        assert_eq!(account.channel, held(spans, from, to), "request {}", seen.id);
        looked_at += 1;
        waited_for_data += u32::from(to > from);
    }
    assert!(
        looked_at > 10_000 && waited_for_data > 100,
        "{looked_at} reads, {waited_for_data} waited for a channel"
    );
}

/// Mean of the slowest `n` of a list.
fn slowest(latencies: &mut [f64], n: usize) -> f64 {
    latencies.sort_by(|a, b| b.total_cmp(a));
    latencies[..n].iter().sum::<f64>() / n as f64
}

#[test]
fn a_tail_is_that_of_the_sorted_requests() {
    let notes = Notes::default();
    let document = run(&plan(), &notes);
    for (kind, op) in [("read", IoOp::Read), ("write", IoOp::Write)] {
        let result = document.io.kinds.get(kind).expect("both kinds");
        let mut latencies: Vec<f64> = notes
            .requests
            .borrow()
            .iter()
            .filter(|(seen, _)| seen.request.op == op)
            .map(|(seen, _)| seen.latency().as_ns_f64())
            .collect();
        assert!(!result.tail.is_empty());
        for tail in &result.tail {
            let n = (latencies.len() as f64 * tail.slowest).round() as usize;
            assert_eq!((tail.requests, tail.covered), (n as u64, 1.0));
            // The row that is needed in part is 1/32 wide.
            let mean = slowest(&mut latencies, n);
            assert!(
                (tail.latency_ns_mean / mean - 1.0).abs() < 1.0 / 32.0,
                "{} for {mean}",
                tail.latency_ns_mean
            );
            let sum = |of: &serde_json::Map<String, serde_json::Value>| -> f64 {
                of.values().filter_map(serde_json::Value::as_f64).sum()
            };
            let part =
                |name: &str| tail.breakdown_ns.get(name).and_then(serde_json::Value::as_f64).unwrap_or(0.0);
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.max(1.0);
            assert!(near(sum(&tail.breakdown_ns), tail.latency_ns_mean));
            assert!(near(sum(&tail.blocked_ns.die), part("die_wait")));
            assert!(near(sum(&tail.blocked_ns.channel), part("channel_wait")));
        }
    }
    let mut all: Vec<f64> =
        notes.requests.borrow().iter().map(|(seen, _)| seen.latency().as_ns_f64()).collect();
    all.sort_by(|a, b| b.total_cmp(a));
    let found: Vec<f64> = document.io.slowest.iter().map(|slow| slow.latency_ns).collect();
    assert_eq!(found, all[..found.len()]);
}

/// Everything but what it cost, and the spec with its digest, which say that it was off.
fn figures(document: &Document) -> serde_json::Value {
    let mut value = serde_json::to_value(document).expect("a document is JSON");
    let table = value.as_object_mut().expect("a table");
    ["run", "spec", "spec_sha256"].into_iter().for_each(|name| drop(table.remove(name)));
    let io = table.get_mut("io").and_then(serde_json::Value::as_object_mut).expect("requests");
    io.remove("slowest");
    for kind in ["all", "read", "write"] {
        drop(io.get_mut(kind).and_then(serde_json::Value::as_object_mut).map(|kind| kind.remove("tail")));
    }
    value
}

#[test]
fn nothing_else_depends_on_whether_it_is_kept() {
    let on = run(&plan(), &Notes::default());
    let off = run(&plan().set("sim.explain=false"), &Notes::default());
    assert!(
        off.io.slowest.is_empty() && off.io.kinds.all.tail.is_empty() && !on.io.kinds.all.tail.is_empty()
    );
    assert_eq!(figures(&on), figures(&off));
}

/// Where suspends and planes that read by themselves interleave what holds a die, waits still are whole: the device's own assertions
/// hold, and every part of a tail sums.
#[test]
fn waits_are_whole_where_reads_interrupt_and_planes_read_by_themselves() {
    let suspends =
        ["flash.die.suspend.program=true", "flash.die.suspend.erase=true", "flash.die.suspend.limit=8"];
    let planes = ["flash.die.independent_reads=true"];
    for set in [&suspends[..], &planes[..], &[suspends.as_slice(), &planes].concat()] {
        let notes = Notes::default();
        let document = run(&set.iter().fold(plan(), |plan, set| plan.set(set)), &notes);
        assert!(document.is_sound());
        for (seen, account) in notes.requests.borrow().iter() {
            let account = account.expect("the drive gives an account");
            assert_eq!(account.waits.iter().sum::<u64>(), (seen.answered - seen.submitted).ps());
            assert_eq!(account.die.iter().sum::<u64>(), account.waits[milestone::DIE_WAIT]);
            assert_eq!(account.channel.iter().sum::<u64>(), account.waits[milestone::CHANNEL_WAIT]);
        }
    }
}
