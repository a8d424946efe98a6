//! The switches that make a device work as MQSim does: each moves what it should, and nothing else.

use machine::run::{Plan, run_alone};
use serde_json::Value;

/// Runs a job on a system; the result document.
fn run(system: &str, set: &[&str], job: &str) -> Value {
    let plan = set.iter().fold(Plan::new(system, &format!("fio:{job}")), |plan, set| plan.set(set));
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{system}, {set:?}, {job}: {e}"));
    assert!(document.ok, "{system}, {set:?}, {job}: {:?}", document.checks);
    serde_json::to_value(document).expect("a document has a JSON form")
}

fn figure(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

/// Latencies of requests, by place.
fn times(document: &Value) -> [&Value; 3] {
    [&document["io"], &document["breakdown_ns"], &document["simulated_ns"]]
}

/// A device that was never written and reads as if it had been: the same as one that was written in order, to the
/// picosecond.
#[test]
fn reads_of_an_empty_device_take_as_long_as_of_a_full_one() {
    let jobs = [
        "rw=randread,bs=4k,iodepth=64,number_ios=3000",
        "rw=randread,bsrange=512-128k,iodepth=16,number_ios=1000",
    ];
    for (system, job) in [("d16", jobs[0]), ("d16", jobs[1]), ("pm9a3", jobs[0]), ("pm9a3", jobs[1])] {
        let full = run(system, &["flash.precondition={ sequential = { share = \"100%\" } }"], job);
        let as_if = run(system, &["flash.precondition=none", "flash.ftl.unwritten_read=as_written"], job);
        assert_eq!(times(&full), times(&as_if), "{system}, {job}");
        let units = |document: &Value, name: &str| figure(document, &format!("/flash/0/{name}"));
        assert_eq!(units(&full, "reads/host"), units(&as_if, "reads/host"));
        assert_eq!((units(&full, "unwritten_reads"), units(&as_if, "unwritten_reads") > 0.0), (0.0, true));
        assert_eq!(units(&as_if, "host_programs"), 0.0);
        let nothing = run(system, &["flash.precondition=none"], job);
        assert_eq!(units(&nothing, "reads/host"), 0.0);
    }
}

/// Pages are created in order, in each group: reading in order creates each where writing in order would have put it.
#[test]
fn reading_in_order_creates_pages_in_order() {
    let created = |job| times_of(&["flash.precondition=none", "flash.ftl.unwritten_read=created"], job);
    let as_written = |job| times_of(&["flash.precondition=none", "flash.ftl.unwritten_read=as_written"], job);
    let in_order = "rw=read,bs=4k,size=16m,iodepth=64,number_ios=4096";
    assert_eq!(created(in_order), as_written(in_order));
    // Out of order they lie closer together, and pair more often.
    let at_random = "rw=randread,bs=4k,iodepth=512,number_ios=4000";
    assert_ne!(created(at_random), as_written(at_random));
    // Read again, they are where they were.
    let twice = "rw=randread,bs=4k,size=4m,iodepth=1,number_ios=2048";
    assert_eq!(created(twice), as_written(twice));
}

fn times_of(set: &[&str], job: &str) -> [Value; 3] {
    times(&run("d16", set, job)).map(Value::clone)
}

/// A deallocated unit is known to hold nothing.
#[test]
fn deallocated_units_cost_nothing() {
    let set =
        ["flash.precondition={ sequential = { share = \"1%\" } }", "flash.ftl.unwritten_read=as_written"];
    let trims = run("d16", &set, "rw=trimwrite,bs=64k,size=1m,iodepth=1,number_ios=16");
    assert_eq!(figure(&trims, "/flash/0/reads/host"), 0.0);
}

/// Two dies of one plane that take turns are one die of two planes that never share a command.
#[test]
fn dies_that_take_turns_are_planes_that_do_not_pair() {
    let small = [
        "flash.geometry.channels=1",
        "flash.geometry.ways=2",
        "flash.precondition={ sequential = { share = \"100%\" } }",
    ];
    let of = |dies: &str, planes: &str, more: &[&str], job: &str| {
        run("d16", &[&small[..], &[dies, planes], more].concat(), job)
    };
    for job in [
        "rw=randread,bs=4k,iodepth=32,number_ios=2000",
        "rw=randrw,rwmixread=50,bs=4k,iodepth=32,number_ios=2000",
    ] {
        let turns =
            of("flash.geometry.dies=2", "flash.geometry.planes=1", &["flash.die.interleave=false"], job);
        let planes =
            of("flash.geometry.dies=1", "flash.geometry.planes=2", &["flash.die.multi_plane=off"], job);
        assert_eq!(times(&turns), times(&planes), "{job}");
        assert_eq!(turns["flash"][0]["utilisation"], planes["flash"][0]["utilisation"], "{job}");
        // Dies that work at the same time do more, and the planes of one die pair only with each other.
        let together = of("flash.geometry.dies=2", "flash.geometry.planes=1", &[], job);
        assert!(figure(&together, "/simulated_ns") < 0.7 * figure(&turns, "/simulated_ns"), "{job}");
        let pairs =
            of("flash.geometry.dies=2", "flash.geometry.planes=2", &["flash.die.interleave=false"], job);
        assert_eq!(figure(&turns, "/flash/0/multi_plane"), 0.0);
        assert!(figure(&pairs, "/flash/0/multi_plane") > 0.0);
    }
}

/// Nanoseconds from one write to the next where each waits for the program of the one before: command 295, address to
/// data 150, `bytes` at 333 MB/s, tPROG 750 us.
fn program_ns(bytes: f64) -> f64 {
    295.0 + 150.0 + bytes / 0.333 + 750_000.0
}

/// Nanoseconds a write of a closed loop at depth 1.
fn write_ns(throttle: &str, moves: &str, bytes: u32) -> f64 {
    let set = [
        "flash.ftl.mapping=table".to_owned(),
        format!("flash.buffer.throttle={throttle}"),
        format!("flash.buffer.moves={moves}"),
    ];
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    // Every unit once: nothing is merged, nothing is written again.
    let job = format!("rw=write:{},bs={bytes},iodepth=1,number_ios=400", 8192 - bytes);
    figure(&run("mqsim-default", &set, &job), "/simulated_ns") / 400.0
}

#[test]
fn a_throttle_holds_writes_back_until_flash_has_taken_others() {
    let near = |measured: f64, expected: f64| {
        assert!((measured / expected - 1.0).abs() < 2e-3, "{measured} ns, not {expected}");
    };
    near(write_ns("8KiB", "sectors", 8192), program_ns(8192.0));
    near(write_ns("512B", "sectors", 512), program_ns(512.0));
    near(write_ns("512B", "units", 512), program_ns(8192.0));
    // Without that, the buffer's memory is the slowest part.
    assert!(write_ns("256MiB", "sectors", 8192) < 50_000.0);
}

/// The more reads are looked at, the more find a partner.
#[test]
fn a_longer_search_finds_more_partners() {
    let pairs = |search: &str| {
        let set = ["flash.precondition={ sequential = { share = \"100%\" } }", search];
        figure(&run("d16", &set, "rw=randread,bs=4k,iodepth=2048,number_ios=20000"), "/flash/0/multi_plane")
    };
    // Each plane has some 32 reads waiting, of 128 page numbers: the chance that one of them fits is near 1/4.
    let (one, all) = (pairs("flash.die.partner_search=1"), pairs("flash.die.partner_search=64"));
    assert!(one < 20_000.0 / 128.0 * 1.3, "{one} pairs");
    assert!((3_000.0..6_000.0).contains(&all), "{all} pairs");
}

#[test]
fn rewrites_within_the_window_stay_in_the_buffer() {
    // One unit, written every 2 ms.
    let job = "rw=write,bs=8k,size=8k,io_size=80k,iodepth=1,rate_iops=500";
    let programs = |window: &[&str]| figure(&run("mqsim-default", window, job), "/flash/0/host_programs");
    // The first write of all is not in its window.
    assert_eq!(programs(&[]), 2.0);
    // A window ends with the first write after 5 ms: at 0, 6, 12 and 18 ms. The first write of all is flushed, and each
    // that follows an end: at 2, 8 and 14 ms.
    assert_eq!(programs(&["flash.buffer.keep_rewrites=5ms"]), 4.0);
    assert_eq!(programs(&["flash.buffer.keep_rewrites=1ms"]), 10.0);
}
