//! Blocks that differ: what that makes of latencies, against the distribution that they are drawn from.

use machine::run::{Plan, run_alone};
use serde_json::Value;

fn run(set: &[&str]) -> Value {
    let plan = Plan::new("d16", "fio:rw=randread,bs=4k,number_ios=20000");
    let plan = set.iter().fold(plan.set("flash.precondition=sequential"), |plan, set| plan.set(set));
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{set:?}: {e}"));
    assert!(document.ok, "{set:?}: {:?}", document.checks);
    let mut document = serde_json::to_value(document).expect("a document has a JSON form");
    for apart in ["spec", "spec_sha256", "run"] {
        document.as_object_mut().expect("a document is an object").remove(apart);
    }
    document
}

fn latency(document: &Value, which: &str) -> f64 {
    let path = format!("/io/read/latency_ns/{which}");
    document.pointer(&path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

/// A page of 4 KiB on its way: command, channel and host, and tR.
const REST: f64 = 295.0 + 50.0 + 5_120.0 + 257.0;
const SENSE: f64 = 50_000.0;

fn spread(read: &str) -> String {
    format!("flash.cell.spread={{ read = \"{read}\", program = \"10%\", erase = \"10%\" }}")
}

/// The sum of four uniform numbers is above `4 - x` with a probability of `x^4 / 24`, for `x` up to 1; its mean is 2 and its
/// variance a third. At 1 % that is 2.25 standard deviations.
#[test]
fn percentiles_are_those_of_the_spread() {
    let x = 0.24f64.sqrt().sqrt();
    let deviations = (2.0 - x) / (1.0f64 / 3.0).sqrt();
    let even = run(&[]);
    let spread = run(&[&spread("10%")]);
    let (p50, p99) = (latency(&spread, "p50"), latency(&spread, "p99"));
    let expected = (REST + SENSE * (1.0 + 0.1 * deviations)) / (REST + SENSE);
    assert!((p99 / p50 / expected - 1.0).abs() < 0.02, "{p50} and {p99}, expected a ratio of {expected}");
    assert!(p50 < p99 && latency(&even, "p99") < 1.001 * latency(&even, "p50"));
    // 20,000 reads over thousands of blocks: the mean of the blocks that were read stays where it was.
    let shift = latency(&spread, "mean") - latency(&even, "mean");
    assert!(shift.abs() < 0.1 * SENSE * 4.0 / 1_000f64.sqrt(), "{shift}");
    let furthest = latency(&spread, "max") - (REST + SENSE);
    assert!(furthest <= 0.1 * SENSE * 3.47, "{furthest}");
}

#[test]
fn no_spread_is_a_spread_of_zero() {
    let none = "flash.cell.spread={ read = \"0%\", program = \"0%\", erase = \"0%\" }";
    assert_eq!(run(&[none]), run(&[]));
}

#[test]
fn another_seed_draws_other_blocks() {
    let of = |seed: u64| {
        let mut plan = Plan::new("d16", "fio:rw=read,bs=4k,number_ios=500").set(&spread("10%"));
        plan = plan.set("flash.precondition=sequential");
        plan.seed = seed;
        latency(&serde_json::to_value(run_alone(&plan).expect("it runs")).expect("JSON"), "max")
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}
