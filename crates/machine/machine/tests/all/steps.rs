//! A run in steps comes to what a run in one piece comes to, whatever is looked at meanwhile.

use engine::Time;
use machine::result::Document;
use machine::run::{Observers, Outside, Plan, Policies, Session, run_alone};
use std::sync::atomic::AtomicBool;

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
