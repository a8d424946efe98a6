//! fio jobs through the kernel of a host: mappings, schedulers, batches.

use machine::run::{Plan, run_alone};
use serde_json::Value;

fn run(system: &str, jobs: &[&str], set: &[&str]) -> (Value, Vec<String>) {
    let mut plan = Plan::new(system, "");
    plan.workloads = jobs.iter().map(|job| format!("fio:bs=4k,{job}")).collect();
    let plan = set.iter().fold(plan, |plan, set| plan.set(set));
    let document = run_alone(&plan).unwrap_or_else(|fault| panic!("{jobs:?}, {set:?}: {fault}"));
    assert!(document.ok, "{jobs:?}: {:?}", document.checks);
    let warnings = document.warnings.clone();
    (serde_json::to_value(document).expect("a document has a JSON form"), warnings)
}

fn figure(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}: {document}"))
}

const MEMORY: &str = "host.linux.memory=1GiB";

/// The first pass reads each page of the mapping alone, the second finds all of them in memory: no command reaches the drive, and a request takes what
/// a copy takes.
#[test]
fn a_mapping_reads_each_page_once() {
    let job = "rw=randread,size=8m,ioengine=mmap";
    let (once, _) = run("pm9a3", &[job], &[MEMORY]);
    let (twice, _) = run("pm9a3", &[&format!("{job},loops=2")], &[MEMORY]);
    assert_eq!(figure(&once, "/io/read/requests"), 2048.0);
    assert_eq!(figure(&twice, "/io/read/requests"), 4096.0);
    let read = "/flash/host_reads";
    assert_eq!(figure(&once, read), figure(&twice, read));
    // 4 KiB at 19.5 GB/s.
    let shortest = figure(&twice, "/io/read/latency_ns/min");
    assert!((shortest - 210.0).abs() < 1.0, "{shortest}");
    assert!(figure(&once, "/io/read/latency_ns/min") > 10_000.0);
    // Read in order, 256 KiB come with a fault.
    let (ahead, _) = run("pm9a3", &["rw=read,size=8m,ioengine=mmap"], &[MEMORY]);
    assert!(figure(&ahead, "/io/read/latency_ns/p50") < 1_000.0);
    assert!(figure(&ahead, "/io/read/iops") > 8.0 * figure(&once, "/io/read/iops"));
}

/// Stores are written back at the latest when a flush asks for it; without a host there is nothing to map.
#[test]
fn a_mapping_is_written_back() {
    let (document, _) = run("pm9a3", &["rw=randwrite,size=8m,ioengine=mmap,end_fsync=1"], &[MEMORY]);
    assert_eq!(figure(&document, "/io/write/requests"), 2048.0);
    assert_eq!(figure(&document, "/io/flush/requests"), 1.0);
    assert!(figure(&document, "/flash/host_write_bytes") >= (8 << 20) as f64);
}

/// The scheduler of a job is that of the spec's key, whatever the spec says; requests that go straight to the drive say that they pass none.
#[test]
fn a_job_sets_the_scheduler_of_its_drive() {
    let job = "rw=randrw,ioengine=libaio,iodepth=64,size=64m,number_ios=3000,direct=1";
    let scheduled = |name: &str| format!("{job},ioscheduler={name}");
    let io = |(document, _): (Value, Vec<String>)| document.pointer("/io").expect("io").clone();
    let narrow = [MEMORY, "flash.host.nvme.queues=1", "flash.host.nvme.depth=8"];
    let none = io(run("pm9a3", &[job], &narrow));
    let set = [&narrow[..], &["host.linux.block.scheduler={ mq_deadline = {} }"]].concat();
    let deadline = io(run("pm9a3", &[job], &set));
    assert_ne!(none, deadline);
    assert_eq!(io(run("pm9a3", &[&scheduled("mq-deadline")], &narrow)), deadline);
    assert_eq!(io(run("pm9a3", &[&scheduled("none")], &set)), none);
    // Without a kernel.
    let (_, warnings) = run("pm9a3", &[&scheduled("mq-deadline")], &[]);
    let said = "job: `ioscheduler` changes nothing here: requests go straight to the drive";
    assert!(warnings.iter().any(|warning| warning.starts_with(said)), "{warnings:?}");
    // Two jobs, two workloads: one drive.
    let mut plan = Plan::new("pm9a3", "").set(MEMORY);
    plan.workloads = ["kyber", "none"].map(|name| format!("fio:bs=4k,{}", scheduled(name))).to_vec();
    let fault = run_alone(&plan).expect_err("two schedulers");
    assert!(fault.to_string().contains("a drive has one"), "{fault}");
}

/// A call for eight requests takes less of a core than eight calls.
#[test]
fn batches_save_calls_of_the_kernel() {
    let job = "rw=randread,ioengine=libaio,iodepth=32,size=64m,number_ios=4000,direct=1";
    let batch = "iodepth_batch_submit=8,iodepth_batch_complete_min=8,iodepth_batch_complete_max=8";
    let system = |job: &str| figure(&run("pm9a3", &[job], &[MEMORY]).0, "/host/cores/system_s");
    let (alone, batched) = (system(job), system(&format!("{job},{batch}")));
    // 150 ns a call, of which seven of eight are saved.
    assert!(alone - batched > 4000.0 * 150e-9 * 7.0 / 8.0, "{batched} s against {alone} s");
}
