//! fio jobs on hosts: mappings, schedulers, batches, lists of drives.

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
    let read = "/host/0/drives/0/block/requests/0";
    assert_eq!((figure(&once, read), figure(&twice, read)), (2048.0, 2048.0));
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
    let units =
        figure(&document, "/flash/0/host_programs") + figure(&document, "/flash/0/buffered_bytes") / 4096.0;
    assert!(units >= 2048.0, "{units} units of 4 KiB have come to the drive");
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
    let system = |job: &str| {
        let (document, _) = run("pm9a3", &[job], &[MEMORY]);
        let seconds = 4000.0 / figure(&document, "/io/read/iops");
        8.0 * seconds * figure(&document, "/host/0/cores/system_share")
    };
    let (alone, batched) = (system(job), system(&format!("{job},{batch}")));
    // 150 ns a call, of which seven of eight are saved.
    assert!(alone - batched > 4000.0 * 150e-9 * 7.0 / 8.0, "{batched} s against {alone} s");
}

/// The drives of a list are served in turn, whatever the size of a request: each gets as many bytes, at its own addresses. Those that no job names
/// get none.
#[test]
fn a_list_of_drives_is_the_drives_behind_a_stripe() {
    let names = |count: usize| (0..count).map(|n| format!("/dev/nvme{n}n1")).collect::<Vec<_>>().join(":");
    let read = |document: &Value| -> Vec<f64> {
        // Counted in map units of 4 KiB.
        (0..4).map(|drive| 4096.0 * figure(document, &format!("/flash/{drive}/reads/host"))).collect()
    };
    // 4 KiB, a chunk of 128 KiB, and several chunks.
    for (bs, bytes) in [("4k", 4096.0), ("128k", 131_072.0), ("1m", 1_048_576.0)] {
        for (drives, depth) in [(2, 1), (4, 16)] {
            let job =
                format!("rw=randread,bs={bs},iodepth={depth},filename={},number_ios=400", names(drives));
            let (document, _) = run("pm9a3x4", &[&job], &[]);
            let each = 400.0 * bytes / drives as f64;
            let expected: Vec<f64> = (0..4).map(|drive| if drive < drives { each } else { 0.0 }).collect();
            assert_eq!(read(&document), expected, "{job}");
            assert_eq!(figure(&document, "/io/read/requests"), 400.0);
        }
    }
    // `size` is divided among them, and `sequential` ends one before the next.
    let job = format!(
        "rw=randread,bs=64k,filename={},size=8m,number_ios=96,file_service_type=sequential",
        names(2)
    );
    let (document, _) = run("pm9a3x4", &[&job], &[]);
    // What a drive has read ahead is not counted; in turn, each would have 3 MiB.
    let mebibytes: Vec<f64> = read(&document).iter().map(|bytes| bytes / 1_048_576.0).collect();
    assert!((3.5..=4.0).contains(&mebibytes[0]) && (1.5..=2.0).contains(&mebibytes[1]), "{mebibytes:?}");
    assert_eq!(mebibytes[2..], [0.0, 0.0]);
}

/// One diagnostic where a list cannot be gone over.
#[test]
fn a_list_of_drives_needs_a_stripe() {
    let refused = |system: &str, job: &str, set: &[&str], what: &str| {
        let mut plan = Plan::new(system, "");
        plan.workloads = vec![format!("fio:rw=read,bs=4k,size=1m,{job}")];
        let plan = set.iter().fold(plan, |plan, set| plan.set(set));
        let fault = run_alone(&plan).expect_err(job);
        assert!(fault.what.contains(what), "{fault}");
    };
    let two = "filename=/dev/nvme0n1:/dev/nvme1n1";
    refused("pm9a3", two, &[], "names 2 drives, and the workload goes to one");
    refused("pm9a3x4", &format!("{two},direct=0"), &[], "the kernel of the host has one");
    let five = "filename=/dev/a:/dev/b:/dev/c:/dev/d:/dev/e";
    refused("pm9a3x4", five, &[], "names 5 drives, and 4 are behind the stripe");
    refused("pm9a3x4", "filename=/dev/nvme0n1:file", &[], "1 devices and 1 other files");
}
