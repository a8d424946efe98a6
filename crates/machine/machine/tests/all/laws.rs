//! Throughput and latency against the laws that they follow: queue depth and the arbiters of a channel, blocks that
//! differ, and a drive behind SATA with 32 commands at once and one wire for both ways.

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

/// Where data goes before commands, the dies of a channel come to work in step, and each waits until all have handed out
/// their data.
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

fn run_at_random(set: &[&str]) -> Value {
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

fn read_latency(document: &Value, which: &str) -> f64 {
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
    let even = run_at_random(&[]);
    let spread = run_at_random(&[&spread("10%")]);
    let (p50, p99) = (read_latency(&spread, "p50"), read_latency(&spread, "p99"));
    let expected = (REST + SENSE * (1.0 + 0.1 * deviations)) / (REST + SENSE);
    assert!((p99 / p50 / expected - 1.0).abs() < 0.02, "{p50} and {p99}, expected a ratio of {expected}");
    assert!(p50 < p99 && read_latency(&even, "p99") < 1.001 * read_latency(&even, "p50"));
    // 20,000 reads over thousands of blocks: the mean of the blocks that were read stays where it was.
    let shift = read_latency(&spread, "mean") - read_latency(&even, "mean");
    assert!(shift.abs() < 0.1 * SENSE * 4.0 / 1_000f64.sqrt(), "{shift}");
    let furthest = read_latency(&spread, "max") - (REST + SENSE);
    assert!(furthest <= 0.1 * SENSE * 3.47, "{furthest}");
}

#[test]
fn no_spread_is_a_spread_of_zero() {
    let none = "flash.cell.spread={ read = \"0%\", program = \"0%\", erase = \"0%\" }";
    assert_eq!(run_at_random(&[none]), run_at_random(&[]));
}

#[test]
fn another_seed_draws_other_blocks() {
    let of = |seed: u64| {
        let mut plan = Plan::new("d16", "fio:rw=read,bs=4k,number_ios=500").set(&spread("10%"));
        plan = plan.set("flash.precondition=sequential");
        plan.seed = seed;
        read_latency(&serde_json::to_value(run_alone(&plan).expect("it runs")).expect("JSON"), "max")
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

const LINK: &str = "flash.host.link={ sata = { generation = 3, latency = \"100ns\" } }";

const AHCI: &str = "flash.host.ahci={ slots = 32, command = \"500ns\", interrupt = \"2us\" }";

/// The flash of a PM9A3 behind SATA in place of PCI Express.
fn run_on_sata(set: &[&str], job: &str) -> Value {
    let plan = Plan::new("pm9a3", &format!("fio:{job}")).set(LINK).set(AHCI);
    let plan = set.iter().fold(plan, |plan, set| plan.set(set));
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{set:?}, {job}: {e}"));
    assert!(document.ok, "{set:?}, {job}: {:?}", document.checks);
    serde_json::to_value(document).expect("a document has a JSON form")
}

fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() < share, "{found}, not {expected}");
}

/// Time of `frames` frames with `dwords` Dwords in all: 8 more around each, 254 of 256 of 600 MB/s, four latencies of 100 ns a frame.
fn wire_ns(frames: f64, dwords: f64) -> f64 {
    (dwords + 8.0 * frames) * 4.0 / (0.6 * 254.0 / 256.0) + frames * 400.0
}

/// Requests without a slot wait at the host: 64 outstanding are as good as 32, and with four slots as good as four.
#[test]
fn more_than_the_slots_bring_nothing() {
    let iops = |set: &[&str], depth: u32| {
        let document = run_on_sata(set, &format!("rw=randread,bs=4k,iodepth={depth},number_ios=20000"));
        (figure(&document, "/io/read/iops"), figure(&document, "/io/read/slat_ns/mean"))
    };
    let ((at_4, _), (at_32, wait_32), (at_64, wait_64)) = (iops(&[], 4), iops(&[], 32), iops(&[], 64));
    near(at_64, at_32, 0.002);
    assert!(at_4 < 0.9 * at_32, "{at_4}, {at_32}");
    assert_eq!(wait_32, 0.0);
    // Half of them wait, each as long as 32 take.
    near(wait_64, 32.0 / at_64 * 1e9, 0.01);
    near(iops(&["flash.host.ahci.slots=4"], 64).0, at_4, 0.002);
}

/// A 4 KiB read: command, its answer, DMA Setup, Data, Set Device Bits.
#[test]
fn small_reads_are_at_the_rate_of_their_frames() {
    let document = run_on_sata(&[], "rw=randread,bs=4k,iodepth=32,number_ios=20000");
    let each = wire_ns(5.0, 5.0 + 5.0 + 7.0 + 1025.0 + 2.0);
    near(figure(&document, "/io/read/iops"), 1e9 / each, 0.01);
    let busy = figure(&document, "/flash/0/utilisation/link");
    assert!(busy > 0.98 && busy <= 1.0, "{busy}");
}

/// 128 KiB: eight pages of 16 KiB with a DMA Setup and two Data FIS each; a write has one DMA Setup, and DMA Activate before all but
/// the first of 16. Half of each share the wire, and it is busy for the sum.
#[test]
fn large_requests_share_one_wire() {
    let command = (3.0, 5.0 + 5.0 + 2.0);
    let read = wire_ns(24.0 + command.0, 8.0 * (7.0 + 2.0 * 2049.0) + command.1);
    let write = wire_ns(32.0 + command.0, 7.0 + 16.0 * 2049.0 + 15.0 + command.1);
    let rate = |ns: f64| 131_072.0 / ns * 1e9;
    let all = "/io/all/bandwidth_bytes_per_s";
    for (kind, expected) in [
        ("randread", rate(read)),
        ("randwrite", rate(write)),
        ("randrw,rwmixread=50", rate((read + write) / 2.0)),
    ] {
        let document = run_on_sata(&[], &format!("rw={kind},bs=128k,iodepth=32,number_ios=4000"));
        near(figure(&document, all), expected, 0.02);
        let busy = figure(&document, "/flash/0/utilisation/link");
        assert!(busy > 0.97 && busy <= 1.0, "{kind}: {busy}");
    }
    near(rate(read), 562.6e6, 0.001);
}

/// A link that sends both ways at once has no share of its own.
#[test]
fn only_half_duplex_is_told() {
    let plan = Plan::new("pm9a3", "fio:rw=randread,bs=4k,number_ios=10");
    let document =
        serde_json::to_value(run_alone(&plan).expect("it runs")).expect("a document has a JSON form");
    assert!(document.pointer("/flash/0/utilisation/die").is_some());
    assert_eq!(document.pointer("/flash/0/utilisation/link"), None);
}

#[test]
fn links_and_queues_that_do_not_go_together_are_refused() {
    for (set, key, said) in [
        (vec![AHCI], "flash.host.ahci", "`ahci` needs a `sata` link"),
        (vec![LINK], "flash.host.nvme", "does not carry NVMe queues"),
        (vec![LINK, AHCI, "flash.host.ahci.slots=33"], "flash.host.ahci.slots", "1 to 32"),
        (
            vec!["flash.host.link={ sata = { generation = 4, latency = \"0ns\" } }", AHCI],
            "flash.host.link.sata.generation",
            "1 to 3",
        ),
        (
            vec!["flash.host.link.pcie.flow_control=51%"],
            "flash.host.link.pcie.flow_control",
            "allowed are 0 % to 50 %",
        ),
    ] {
        let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
        let told = machine::load("pm9a3", &set).map(|_| ()).expect_err("it is refused");
        assert!(told.also.is_empty(), "{told}");
        let told = told.to_string();
        assert!(told.contains(key) && told.contains(said), "no `{said}` of {key} in\n{told}");
    }
    // In one file, none is on top.
    let text = "inherits = 'pm9a3'\n[flash.host]\nlink = { sata = { generation = 3, latency = '0ns' } }\n\
                ahci = { slots = 32, command = '0ns', interrupt = '0ns' }\nnvme.queues = 4\n";
    let told = machine::from_text("mine.toml", text, &[]).map(|_| ()).expect_err("it is refused");
    assert!(told.also.is_empty() && told.to_string().contains("both `nvme` and `ahci`"), "{told}");
}

/// An inherited queue is replaced, as an alternative of a choice is.
#[test]
fn a_queue_replaces_one_that_is_inherited() {
    let text = "inherits = 'pm9a3'\n[flash.host]\nlink = { sata = { generation = 3, latency = '0ns' } }\n\
                ahci = { slots = 32, command = '0ns', interrupt = '0ns' }\n";
    let loaded = machine::from_text("mine.toml", text, &[]).expect("it loads");
    let host = &loaded.drive().expect("a drive").flash.host;
    assert!(host.nvme.is_none());
    assert_eq!(host.queues(), Some((1, 32)));
}
