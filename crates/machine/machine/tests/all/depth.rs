//! Throughput against queue depth, and who waits for a channel: laws of the arbiters.

use machine::run::{Plan, run_alone};
use serde_json::Value;

fn run(set: &[&str], jobs: &[&str]) -> Value {
    let mut plan = Plan::new("d16", "");
    plan.workloads = jobs.iter().map(|job| format!("fio:{job}")).collect();
    let plan = set.iter().fold(plan, |plan, set| plan.set(set));
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{set:?}, {jobs:?}: {e}"));
    assert!(document.ok, "{set:?}, {jobs:?}: {:?}", document.checks);
    serde_json::to_value(document).expect("a document has a JSON form")
}

fn figure(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

/// Of D16: command 295 ns (tCS 20, seven cycles of 25, tWB 100), tR, set-up of data 50 ns and 4 KiB at 800 MB/s.
const COMMAND_NS: f64 = 295.0;
const SENSE_NS: f64 = 50_000.0;
const DATA_NS: f64 = 50.0 + 5_120.0;
const DIES: f64 = 32.0;
const DIES_OF_A_CHANNEL: f64 = 4.0;

/// Random reads a second, without the luck of reads that pair.
fn reads(set: &[&str], depth: u32, requests: u32) -> f64 {
    let set = [&["flash.precondition=sequential", "flash.die.multi_plane=off"], set].concat();
    let job = format!("rw=randread,bs=4k,norandommap=1,iodepth={depth},number_ios={requests}");
    figure(&run(&set, &[&job]), "/io/read/iops")
}

/// D16 as it is shipped comes to 95 % of what its dies can do, and more outstanding reads never give less.
#[test]
fn random_reads_rise_with_depth_to_what_the_dies_can_do() {
    let limit = DIES / (COMMAND_NS + SENSE_NS + DATA_NS) * 1e9;
    let mut before = 0.0;
    for depth in [1, 4, 16, 64, 128, 256, 512, 1024, 4096] {
        let iops = reads(&[], depth, (depth * 40).clamp(3_000, 200_000));
        assert!(iops > 0.995 * before, "queue depth {depth}: {iops}, after {before}");
        assert!(iops < limit, "queue depth {depth}: {iops} of {limit}");
        before = iops;
    }
    assert!(before > 0.95 * limit, "{before} of {limit}");
}

/// What it is about: where data goes before commands, the dies of a channel come to work in step, and each waits until all have
/// handed out their data.
#[test]
fn data_before_commands_is_a_convoy() {
    let convoy = DIES / (SENSE_NS + DIES_OF_A_CHANNEL * (COMMAND_NS + DATA_NS)) * 1e9;
    for arbiter in ["fifo", "data_first"] {
        let iops = reads(&[&format!("flash.channel.arbiter={arbiter}")], 1024, 60_000);
        assert!((iops / convoy - 1.0).abs() < 0.03, "{arbiter}: {iops}, {convoy} in step");
    }
}

/// Commands of reads that go first starve neither programs nor erases: beside reads at depth, writes with collection
/// are served as well as where the channel is first come, first served.
#[test]
fn commands_that_go_first_starve_nobody() {
    let set = [
        "flash.geometry.channels=2",
        "flash.geometry.blocks=128",
        "flash.ftl.gc.start=6",
        "flash.ftl.gc.stop=8",
    ];
    let jobs = [
        "name=r,rw=randread,bs=4k,size=80%,norandommap=1,iodepth=512,number_ios=150000",
        "name=w,rw=randwrite,bs=4k,size=80%,norandommap=1,iodepth=16,number_ios=6000",
    ];
    let of = |arbiter: &str| {
        let arbiter = format!("flash.channel.arbiter={arbiter}");
        run(&[&set[..], &["flash.precondition.analytic.share=80%", &arbiter]].concat(), &jobs)
    };
    let (fair, ours) = (of("fifo"), of("command_first"));
    let both = |path: &str| (figure(&fair, path), figure(&ours, path));
    for path in ["/io/write/latency_ns/mean", "/io/write/latency_ns/p99", "/io/read/latency_ns/mean"] {
        let (fair, ours) = both(path);
        assert!(ours < 1.02 * fair, "{path}: {ours}, first come first served {fair}");
    }
    let (fair, ours) = both("/io/write/latency_ns/max");
    assert!(ours < 1.25 * fair, "longest write: {ours}, first come first served {fair}");
    // Collection keeps up: as many free blocks at least, and there are erases to go by.
    let (fair, ours) = both("/flash/0/free_blocks_min");
    assert!(ours >= fair - 1.0, "{ours} free blocks, first come first served {fair}");
    assert!(both("/flash/0/erases").1 > 20.0);
}

// A link or a core that sleeps between requests: the first one after the idle time pays the exit latency.

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
