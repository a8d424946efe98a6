//! Reads in order, with registers, shared sensings and look-ahead, against sums and the law that they make true;
//! and planes that read independently, against sums and dies in their place.

use machine::result::{Document, human};
use machine::run::{Plan, run_alone};
use serde_json::Value;

fn ran(system: &str, set: &[&str], job: &str) -> Document {
    let plan = set.iter().fold(Plan::new(system, &format!("fio:{job}")), |plan, set| plan.set(set));
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{system}, {set:?}, {job}: {e}"));
    assert!(document.ok, "{system}, {set:?}, {job}: {:?}", document.checks);
    document
}

fn json(document: &Document) -> Value {
    serde_json::to_value(document).expect("a document has a JSON form")
}

fn run(system: &str, set: &[&str], job: &str) -> Value {
    json(&ran(system, set, job))
}

fn figure(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

fn is_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1.0, "{found}, not {expected}");
}

const REGISTERS: &str = "flash.die.register_reads=true";
const JOINS: &str = "flash.die.join_reads=true";
/// Four map units a page, in order on one die.
const ONE_DIE: [&str; 5] = [
    "flash.precondition=sequential",
    "flash.geometry.channels=1",
    "flash.geometry.ways=1",
    "flash.geometry.planes=1",
    "flash.geometry.page_size=16KiB",
];
const FOUR: &str = "rw=read,bs=4k,number_ios=4";

// A read of D16 takes a command of 295 ns, tR 50 us, 50 ns and 4 KiB at 800 MB/s on the channel, and 257 ns to the host. A
// change of column takes seven cycles of 25 ns, tCS 20 ns and tCCS 300 ns in place of command and tR.
const COMMAND: f64 = 295.0;
const COLUMN: f64 = 495.0;
const SENSE: f64 = 50_000.0;
const SET_UP: f64 = 50.0;
const UNIT: f64 = 5_120.0;
const HOST: f64 = 257.0;

fn on_one_die(set: &[&'static str], job: &str) -> Value {
    let all: Vec<&str> = ONE_DIE.iter().chain(set).copied().collect();
    run("d16", &all, job)
}

#[test]
fn a_page_in_a_register_takes_a_change_of_column() {
    let first = COMMAND + SENSE + SET_UP + UNIT + HOST;
    let without = on_one_die(&[], FOUR);
    is_near(figure(&without, "/io/read/latency_ns/min"), first);
    let with = on_one_die(&[REGISTERS], FOUR);
    is_near(figure(&with, "/io/read/latency_ns/max"), first);
    is_near(figure(&with, "/io/read/latency_ns/min"), COLUMN + SET_UP + UNIT + HOST);
    assert_eq!(figure(&with, "/flash/0/sensing/sensed"), 1.0);
    assert_eq!(figure(&with, "/flash/0/sensing/register_hits"), 3.0);
}

#[test]
fn reads_of_a_page_share_its_sensing_and_leave_together() {
    let job = format!("{FOUR},iodepth=4");
    let in_turn = 4.0 * (COMMAND + SENSE + SET_UP + UNIT) + HOST;
    is_near(figure(&on_one_die(&[], &job), "/io/read/latency_ns/max"), in_turn);
    // All four come to the host's link at once.
    let shared = on_one_die(&[JOINS], &job);
    is_near(figure(&shared, "/io/read/latency_ns/max"), COMMAND + SENSE + SET_UP + 4.0 * UNIT + 4.0 * HOST);
    assert_eq!(figure(&shared, "/flash/0/sensing/joined"), 3.0);
}

const BUFFER: &str = "flash.buffer={ capacity = \"1MiB\", reads = false, writes = true, high = \"50%\", low = \"25%\", \
     in_flight = \"128KiB\", protected = true, eviction = \"lru\", admission = \"writes_only\", moves = \"units\", \
     bandwidth = \"4.096GB/s\", latency = \"1us\" }";

/// A stream that is read ahead far enough comes from the buffer: its access takes 1 us and 4 KiB at 4.096 GB/s.
#[test]
fn a_stream_is_found_in_the_buffer() {
    let ahead = "flash.buffer.look_ahead=sequential";
    let set = ["flash.precondition=sequential", BUFFER, ahead, "flash.geometry.page_size=16KiB"];
    let stream = ran("d16", &set, "rw=read,bs=4k,number_ios=2000");
    let document = json(&stream);
    is_near(figure(&document, "/io/read/latency_ns/p50"), 1_000.0 + 1_000.0 + HOST);
    let of = |name: &str| figure(&document, &format!("/flash/0/look_ahead/{name}"));
    // All but the three that show the stream, and some more at its beginning.
    assert!(of("used") > 1_900.0, "{}", document["flash"][0]["look_ahead"]);
    assert_eq!((of("dropped"), of("wasted")), (0.0, 0.0));
    assert!(human(&stream).contains("were read ahead"), "{}", human(&stream));
    // Random reads are not a stream.
    let random = ran("d16", &set, "rw=randread,bs=4k,number_ios=2000");
    assert_eq!(figure(&json(&random), "/flash/0/look_ahead/issued"), 0.0);
    assert!(!human(&random).contains("were read ahead"), "{}", human(&random));
}

/// Units written during their read-ahead hold the host's data: the shadow compares every unit.
#[test]
fn streams_among_writes_get_what_was_written() {
    let set = [
        "flash.geometry.blocks=64",
        "flash.geometry.pages=48",
        "flash.ftl.gc.start=4",
        "flash.ftl.gc.stop=5",
        "sim.shadow=true",
    ];
    let mut plan = Plan::new("pm9a3", "fio:rw=read,bs=4k,iodepth=16,number_ios=4000,size=16m");
    plan.workloads.push("fio:rw=randwrite,bs=4k,iodepth=4,number_ios=2000,size=16m,norandommap=1".into());
    plan.set = set.map(str::to_owned).into();
    let document = run_alone(&plan).expect("it runs");
    assert!(document.ok, "{:?}", document.checks);
    let document = serde_json::to_value(document).expect("a document has a JSON form");
    assert!(figure(&document, "/flash/0/look_ahead/used") > 100.0);
    assert!(figure(&document, "/flash/0/look_ahead/dropped") > 0.0);
}

/// The law: on a drive with these mechanisms, whose data lies in order over all dies, sequential reads are at least as
/// fast as random ones.
#[test]
fn reads_in_order_keep_up_with_reads_anywhere() {
    for block in ["512", "4k", "16k", "64k", "128k"] {
        for depth in [1, 2, 8, 32, 256] {
            let number = (depth * 12).clamp(300, 1_500);
            let [ordered, random] = ["read", "randread"].map(|rw| {
                let job = format!("rw={rw},bs={block},iodepth={depth},number_ios={number},norandommap=1");
                figure(&run("pm9a3", &[], &job), "/io/all/iops")
            });
            assert!(ordered >= 0.95 * random, "{block} at depth {depth}: {ordered} against {random}");
        }
    }
}

const INDEPENDENT: &str = "flash.die.independent_reads=true";

/// One die of two planes; pages in order lie on its planes in turn.
const TWO_PLANES: [&str; 4] = [
    "flash.geometry.channels=1",
    "flash.geometry.ways=1",
    "flash.geometry.planes=2",
    "flash.ftl.stripe=PCWD",
];

/// The latency of the later of two reads, one on each plane, which come together. Alone a read of D16 takes a command of 295
/// ns, tR 50 us, 50 ns and 4 KiB at 800 MB/s on the channel, and 257 ns to the host.
#[test]
fn two_planes_sense_at_the_same_time_and_share_the_channel() {
    let latest = |independent: bool| {
        let mut set = TWO_PLANES.to_vec();
        set.push("flash.die.multi_plane=off");
        set.extend(independent.then_some(INDEPENDENT));
        figure(&run("d16", &set, "rw=read,bs=4k,iodepth=2,number_ios=2"), "/io/read/latency_ns/max")
    };
    let (command, sense, data, host) = (295.0, 50_000.0, 50.0 + 5_120.0, 257.0);
    let together = command + sense + 2.0 * data + host;
    let in_turn = 2.0 * (command + sense + data) + host;
    for (latest, expected) in [(latest(true), together), (latest(false), in_turn)] {
        assert!((latest - expected).abs() < 1.0, "{latest}, not {expected}");
    }
}

/// Without anything but reads a plane that reads on its own is a die: as many dies of one plane give the same throughput.
#[test]
fn planes_read_as_dies_do() {
    let job = "rw=randread,bs=4k,iodepth=32,number_ios=20000";
    let planes = run("pm9a3", &["flash.geometry.planes=2", INDEPENDENT], job);
    let dies = run(
        "pm9a3",
        &["flash.geometry.ways=16", "flash.geometry.planes=1", "flash.die.independent_reads=false"],
        job,
    );
    let [planes, dies] = [planes, dies].map(|document| figure(&document, "/io/all/iops"));
    assert!((planes / dies - 1.0).abs() < 0.01, "{planes} and {dies}");
}

/// Programs take the whole die, whoever reads: as many pages are programmed in as many commands.
#[test]
fn writes_are_as_they_were() {
    let job = "rw=randwrite,bs=4k,iodepth=64,number_ios=40000";
    let [with, without] = ["true", "false"].map(|on| {
        let document = run("pm9a3", &[&format!("flash.die.independent_reads={on}")], job);
        [
            document["io"].clone(),
            document["simulated_ns"].clone(),
            document["flash"][0]["multi_plane"].clone(),
        ]
    });
    assert_eq!(with, without);
}

/// Folding stages changes nothing, with reads beside programs that they interrupt.
#[test]
fn folding_changes_nothing() {
    let job = "rw=randrw,rwmixread=70,bs=4k,iodepth=64,number_ios=20000";
    let [folded, whole] = ["true", "false"].map(|fold| {
        let document = run("pm9a3", &[INDEPENDENT, &format!("sim.fold={fold}")], job);
        assert!(figure(&document, "/flash/0/suspends") > 0.0);
        [
            document["io"].clone(),
            document["simulated_ns"].clone(),
            document["flash"][0]["utilisation"].clone(),
        ]
    });
    assert_eq!(folded, whole);
}

#[test]
fn where_planes_cannot_read_independently_is_said() {
    for (other, said) in [
        ("flash.die.interleave=false", "several commands at a time"),
        ("flash.die.scheduler=in_order", "may reorder operations"),
    ] {
        let plan = Plan::new("d16", "randread").set(INDEPENDENT).set(other);
        let fault = run_alone(&plan).map(|_| ()).expect_err("it is refused");
        assert!(fault.what.contains(said) && fault.help.is_some(), "{fault}");
    }
}
