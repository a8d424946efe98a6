//! Runs that are ended from outside: before anything was simulated there is no result, from then on there is one of a part.

use engine::Time;
use machine::precondition::parse;
use machine::result::Document;
use machine::run::{Observers, Outside, Plan, Policies, Session, Stage, run, run_alone, run_observed};
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs a plan with a stop at the `nth` stage that `is` it; which stages there were, by name.
fn stopped(plan: &Plan, is: impl Fn(&Stage<'_>) -> bool, nth: u32) -> (Option<Document>, Vec<&'static str>) {
    let (stop, mut seen, mut stages) = (AtomicBool::new(false), 0, Vec::new());
    let mut watch = |stage: Stage<'_>| {
        let name = match stage {
            Stage::Reading(_) => "reading",
            Stage::Building => "building",
            Stage::Preconditioning(_) => "preconditioning",
            Stage::Running(_) => "running",
            Stage::Checking => "checking",
        };
        if stages.last() != Some(&name) {
            stages.push(name);
        }
        seen += u32::from(is(&stage));
        if seen == nth {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &stop,
        watch: &mut watch,
        states: None,
    };
    let document = run_observed(plan, &mut outside, Observers::default()).expect("the plan is usable");
    (document, stages)
}

fn plan(state: &str) -> Plan {
    let mut plan = Plan::new("d16", "fio:rw=randrw,bs=4k,iodepth=8,number_ios=200000,norandommap=1");
    plan.precondition = Some(parse(state).expect("a state"));
    plan
}

/// Two dozen drive writes of 16 GiB would be a hundred million writes: it ends long before, or this test never does.
#[test]
fn every_state_that_takes_long_is_given_up() {
    for state in ["zipf:writes=1000", "steady:tolerance=0.001%", "uniform", "analytic"] {
        let small = plan(state).set("flash.geometry.page_size=4KiB").set("flash.ftl.map_unit=4KiB");
        let (document, stages) = stopped(&small, |stage| matches!(stage, Stage::Preconditioning(_)), 3);
        assert!(document.is_none(), "{state}: nothing was simulated");
        assert_eq!(stages, ["reading", "building", "preconditioning"], "{state}");
    }
}

#[test]
fn a_stop_before_the_first_event_leaves_no_result() {
    for name in ["reading", "building", "preconditioning"] {
        let is = |stage: &Stage<'_>| match name {
            "reading" => matches!(stage, Stage::Reading(_)),
            "building" => matches!(stage, Stage::Building),
            _ => matches!(stage, Stage::Preconditioning(_)),
        };
        let (document, stages) = stopped(&plan("sequential"), is, 1);
        assert!(document.is_none() && stages.last() == Some(&name), "{name}: {stages:?}");
    }
}

#[test]
fn a_stop_after_the_first_event_leaves_the_result_of_a_part() {
    let (document, stages) = stopped(&plan("none"), |stage| matches!(stage, Stage::Running(_)), 2);
    let document = document.expect("simulated time has passed");
    assert_eq!(stages, ["reading", "building", "preconditioning", "running", "checking"]);
    assert!(document.partial && !document.ok && document.simulated_ns > 0.0);
    assert!(!document.is_stuck(), "it did not end by itself");
    let failed: Vec<&str> = document.checks.iter().filter(|c| !c.ok).map(|c| c.name.as_str()).collect();
    assert_eq!(failed, ["no work is left"]);
    let requests = document.io.kinds.all.requests;
    assert!(requests > 0 && requests < 200_000, "{requests}");
}

/// All work was done, and nobody has looked at what the shadow knows.
#[test]
fn a_stop_in_the_last_checks_is_told() {
    let mut plan = plan("none").set("sim.shadow=true");
    plan.workloads = vec!["fio:rw=write,bs=4k,number_ios=100".to_owned()];
    let (document, _) = stopped(&plan, |stage| matches!(stage, Stage::Checking), 1);
    let document = document.expect("all was simulated");
    assert!(!document.partial && !document.ok);
    let failed = document.checks.iter().find(|check| !check.ok).expect("one fails");
    assert_eq!((failed.name.as_str(), failed.detail.contains("interrupted")), ("shadow_units", true));
}

/// MQMS's drive has 8.6e9 map units of 512 B. A look at each of them takes minutes.
#[test]
fn the_last_look_of_a_shadow_costs_what_was_touched() {
    let mut plan = Plan::new("mqms", "fio:rw=randwrite,bs=4k,iodepth=4,number_ios=200");
    plan = plan.set("sim.shadow=true");
    let document = machine::run::run_alone(&plan).expect("it can run");
    assert!(document.ok, "{:?}", document.checks);
    assert!(document.checks.iter().any(|check| check.name == "shadow_units"));
}

#[test]
fn run_without_observers_refuses_what_was_not_begun() {
    let stop = AtomicBool::new(true);
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &stop,
        watch: &mut |_| {},
        states: None,
    };
    let fault = run(&plan("none"), &mut outside).expect_err("it was stopped before it began");
    assert!(fault.what.contains("before anything was simulated"), "{fault}");
}

/// Also of what a core waits for at the end, though it has retired nothing since: all of its time so far, if it waits for its first line.
#[test]
fn a_server_that_is_ended_accounts_for_all_of_its_time() {
    for end in ["2ns", "123ns", "5311ns"] {
        let plan = Plan::new("dram-only", "tatp:size=64MiB").set("cpu.warmup.fixed.jobs=0");
        let document =
            run_alone(&plan.set(&format!("sim.until={end}"))).unwrap_or_else(|fault| panic!("{fault}"));
        assert!(document.ok, "{end}: {:?}", document.checks);
        let shares = &document.cpu[0].time_share;
        assert!((shares.values().sum::<f64>() - 1.0).abs() < 1e-9, "{end}: {shares:?}");
        if end == "2ns" {
            assert_eq!(shares["retiring"], 0.0, "{shares:?}");
        }
    }
}

// A run in steps comes to what a run in one piece comes to, whatever is looked at meanwhile.

fn without_run(document: &Document) -> serde_json::Value {
    let mut all = serde_json::to_value(document).unwrap();
    all.as_object_mut().unwrap().remove("run");
    all
}

fn in_steps(plan: &Plan, step: Time) -> (Document, u32) {
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &AtomicBool::new(false),
        watch: &mut |_| {},
        states: None,
    };
    let opened = Session::open(plan, &mut outside, Observers::default(), Policies::default());
    let mut session = opened.unwrap().expect("nobody stops it");
    let (mut pause, mut pauses) = (Time::ZERO, 0);
    while session.end().is_none() {
        pause += step;
        session.run(&mut outside, pause).unwrap();
        if session.end().is_none() {
            assert!(session.machine().now() >= pause);
            assert!(session.document(&mut outside).partial);
            pauses += 1;
        }
    }
    (session.document(&mut outside), pauses)
}

fn check(plan: &Plan, step: Time) {
    let whole = run_alone(plan).unwrap();
    let (steps, pauses) = in_steps(plan, step);
    assert!(pauses > 20, "{pauses} pauses");
    assert!(whole.ok);
    assert_eq!(without_run(&whole), without_run(&steps));
}

#[test]
fn requests_with_collection() {
    let plan = Plan::new("d16", "fio:rw=randrw,bs=4k,iodepth=32,number_ios=20000")
        .set("flash.geometry.channels=2")
        .set("flash.geometry.ways=1")
        .set("flash.geometry.blocks=64")
        .set("flash.geometry.pages=32")
        .set("flash.ftl.gc.start=3")
        .set("flash.ftl.gc.stop=4")
        .set("flash.ftl.gc.hard=1")
        .set("flash.precondition=steady");
    check(&plan, Time::from_us(777));
}

/// The warm-up of a server is over at a look between slices, which a pause must not move.
#[test]
fn a_server_whose_warm_up_is_looked_for() {
    let plan =
        Plan::new("dram-only", "tatp:size=64MiB").set("cpu.load.jobs=2000").set("cpu.warmup=\"detected\"");
    check(&plan, Time::from_us(7));
}

/// Reads of page groups that would be one event have pauses between their pages.
#[test]
fn an_accelerator_that_reads() {
    let plan = Plan::new("flashabacus", "atax:m=8192,n=8192,instances=2").set("accelerator.sample=16384");
    check(&plan, Time::from_ms(3));
}
