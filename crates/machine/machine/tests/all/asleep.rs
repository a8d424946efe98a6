//! A link or a core that sleeps between requests: the first one after the idle time pays the exit latency.

use machine::run::{Plan, run_alone};

/// Means of latency, microseconds, of random reads of one unit on a drive whose dies all answer alike.
fn mean(set: &[&str], depth: u32, jobs: u32) -> f64 {
    let job = format!("fio:rw=randread,bs=4k,iodepth={depth},numjobs={jobs},norandommap=1,number_ios=2000");
    let plan = set.iter().fold(Plan::new("pm9a3", &job).set("host.thread=5us"), |plan, set| plan.set(set));
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{set:?}: {e}"));
    assert!(document.ok, "{set:?}: {:?}", document.checks);
    let read = document.io.kinds.read.as_ref().expect("it reads");
    read.latency_ns.mean.expect("requests") / 1e3
}

/// One request at a time answers later by the whole exit latency; several at a time, of which one is always under way, as ever.
#[test]
fn a_link_sleeps_between_single_requests_only() {
    let sleeps = ["flash.host.sleep={ exit = \"43us\" }"];
    assert!((mean(&sleeps, 1, 1) - mean(&[], 1, 1) - 43.0).abs() < 1e-6);
    let (awake, asleep) = (mean(&[], 8, 1), mean(&sleeps, 8, 1));
    assert!((asleep / awake - 1.0).abs() < 0.005, "{asleep}, {awake}");
    // The thread is back after 5 us: a link that waits for longer stays awake.
    let patient = ["flash.host.sleep={ after = \"6us\", exit = \"43us\" }"];
    assert_eq!(mean(&patient, 1, 1).to_bits(), mean(&[], 1, 1).to_bits());
}

/// Each thread has a core of its own: eight with one request each sleep as one does, and their requests keep the link awake.
#[test]
fn a_core_sleeps_whatever_others_do() {
    let (host, link) = (["host.sleep={ exit = \"43us\" }"], ["flash.host.sleep={ exit = \"43us\" }"]);
    assert!((mean(&host, 1, 1) - mean(&[], 1, 1) - 43.0).abs() < 1e-6);
    let awake = mean(&[], 1, 8);
    assert!((mean(&host, 1, 8) - awake - 43.0).abs() < 1.0);
    assert!((mean(&link, 1, 8) / awake - 1.0).abs() < 0.01);
}
