//! Planes that read independently, against sums and against dies in their place.

use machine::run::{Plan, run_alone};
use serde_json::Value;

fn run(system: &str, set: &[&str], job: &str) -> Value {
    let plan = set.iter().fold(Plan::new(system, &format!("fio:{job}")), |plan, set| plan.set(set));
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{system}, {set:?}, {job}: {e}"));
    assert!(document.ok, "{system}, {set:?}, {job}: {:?}", document.checks);
    serde_json::to_value(document).expect("a document has a JSON form")
}

fn figure(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

const INDEPENDENT: &str = "flash.die.independent_reads=true";

/// One die of two planes; pages in order lie on its planes in turn.
const ONE_DIE: [&str; 4] = [
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
        let mut set = ONE_DIE.to_vec();
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
        ("flash.die.interleave=false", "one command at a time"),
        ("flash.die.scheduler=in_order", "in order of arrival"),
    ] {
        let plan = Plan::new("d16", "randread").set(INDEPENDENT).set(other);
        let fault = run_alone(&plan).map(|_| ()).expect_err("it is refused");
        assert!(fault.what.contains(said) && fault.help.is_some(), "{fault}");
    }
}
