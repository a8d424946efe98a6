//! fio's options in a run: what is inert is listed in the result, what is unsupported is refused by name. Jobs on
//! hosts: mappings, schedulers, batches, lists of drives.

use machine::plan::workloads::{self, Opened, WorkloadOptions};
use machine::result::{Document, FlashResult, human};
use machine::run::{Plan, run_alone};
use requests::fio::{Class, options};
use requests::trace::TraceOptions;
use serde_json::Value;

fn plan(job: &str) -> Plan {
    Plan::new("d16", job).set("flash.precondition=none")
}

#[test]
fn every_inert_option_is_listed_in_the_result_and_changes_nothing() {
    let plain = "fio:rw=randwrite,bs=4k,iodepth=4,number_ios=200";
    let inert: Vec<&str> = options().filter(|row| row.class == Class::Inert).map(|row| row.name).collect();
    assert!(inert.len() > 100);
    let all = inert.iter().fold(plain.to_owned(), |job, name| format!("{job},{name}=1"));
    let with = run_alone(&plan(&all)).unwrap_or_else(|fault| panic!("{fault}"));
    let without = run_alone(&plan(plain)).unwrap_or_else(|fault| panic!("{fault}"));
    for name in inert {
        let said = format!("`{name}` has no effect here: ");
        assert!(with.warnings.iter().any(|warning| warning.contains(&said)), "{name}");
    }
    assert!(!without.warnings.iter().any(|warning| warning.contains("has no effect here")));
    let io = |document| serde_json::to_value(document).expect("a document has a JSON form");
    assert_eq!(io(&with.io), io(&without.io));
}

#[test]
fn every_unsupported_option_is_refused_by_name() {
    for row in options().filter(|row| row.class == Class::Unsupported) {
        let job = format!("fio:rw=randread,bs=4k,{}=7", row.name);
        let fault = run_alone(&plan(&job)).map(|_| ()).expect_err(row.name);
        assert!(fault.what.contains(row.name) && fault.what.contains(row.doc), "{fault}");
        assert_eq!(fault.place.as_ref().map(|place| place.source.as_str()), Some("--workload"), "{fault}");
    }
}

/// Warnings about probable mistakes reach the user, once for all clones of a job.
#[test]
fn what_a_job_will_not_do_is_said() {
    let options = WorkloadOptions {
        trace: TraceOptions::default(),
        queue_depth: None,
        capacity: 16 << 20,
        file_bytes: Ok(0),
        kernel: None,
        behind: None,
        seed: 1,
    };
    let said = |job: &str| {
        let Ok(Opened::Requests(opened)) = workloads::open(job, &options) else { panic!("a good job") };
        opened.warnings.join("; ")
    };
    // A pass over 1 MiB has 256 blocks of 4 KiB.
    for rw in ["write", "randwrite", "randread", "randrw"] {
        let short = said(&format!("fio:rw={rw},bs=4k,size=1m,number_ios=257"));
        assert!(
            short.contains("number_ios is 257") && short.contains("at most 256 requests"),
            "{rw}: {short}"
        );
        assert_eq!(said(&format!("fio:rw={rw},bs=4k,size=1m,number_ios=256")), "");
    }
    let clones = said("fio:rw=randwrite,bs=4k,size=1m,loops=3,numjobs=3");
    assert_eq!(clones.matches("each pass repeats the block order of the first").count(), 1, "{clones}");
    assert!(
        clones.contains("write amplification stays near 1") && clones.contains("randrepeat=0"),
        "{clones}"
    );
    let reads = said("fio:rw=randread,bs=4k,size=1m,loops=3");
    assert!(reads.contains("each pass repeats") && !reads.contains("amplification"), "{reads}");
    for fresh in ["randrepeat=0", "randseed=7", "norandommap=1,randrepeat=0"] {
        assert_eq!(said(&format!("fio:rw=randwrite,bs=4k,size=1m,loops=3,{fresh}")), "", "{fresh}");
    }
    // In order, passes are the same by definition.
    assert_eq!(said("fio:rw=write,bs=4k,size=1m,loops=3"), "");
}

/// A document of a job file on a small drive.
fn of_file(text: &str, more: &[&str]) -> machine::result::Document {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("j.fio");
    std::fs::write(&path, text).expect("a file");
    let plan = more.iter().fold(plan(&path.display().to_string()), |plan, set| plan.set(set));
    run_alone(&plan).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Jobs with files of their own do as the same jobs do at offsets one behind the other: figures and write amplification.
#[test]
fn files_of_their_own_are_offsets_one_behind_the_other() {
    let common = "ioengine=libaio\ndirect=1\niodepth=8\nrw=write\nbs=64k\nsize=4m\n";
    let own = of_file(&format!("[global]\n{common}[a]\n[b]\nnumjobs=2\n"), &[]);
    let apart = of_file(
        &format!("[global]\nfilename=/dev/nvme0n1\n{common}[a]\n[b]\noffset=4m\n[b]\noffset=8m\n"),
        &[],
    );
    let shared = of_file(&format!("[global]\nfilename=f\n{common}[a]\n[b]\nnumjobs=2\n"), &[]);
    let flash = |document: &machine::result::Document| serde_json::to_value(&document.flash).expect("JSON");
    assert_eq!(flash(&own), flash(&apart));
    assert_eq!(own.io.kinds.all.iops, apart.io.kinds.all.iops);
    // Jobs of one file share its blocks.
    assert_eq!((shared.io.files.len(), shared.io.files[0].bytes), (1, 4 << 20));
    let files: Vec<_> = own
        .io
        .files
        .iter()
        .map(|file| (file.name.as_str(), file.files, file.offset_bytes, file.bytes))
        .collect();
    assert_eq!(files, [("a.0.0", 1, 0, 4 << 20), ("b.0.0", 2, 4 << 20, 8 << 20)]);
    let page = machine::result::human(&own);
    assert!(page.contains("laid out") && page.contains("a.0.0") && page.contains("8 MiB"), "{page}");
    assert!(apart.io.files.is_empty() && !machine::result::human(&apart).contains("laid out"));
}

/// Buffered reads of fresh files all miss: each job brings its own pages, and no job reads those of another.
#[test]
fn buffered_files_of_their_own_share_no_pages() {
    let text = |name: &str| {
        format!(
            "[global]\n{name}\nioengine=psync\ndirect=0\nrw=randread\nbs=4k\nsize=1m\n[a]\nnumjobs=3\n[b]\n"
        )
    };
    let pages = |name: &str| {
        let document = of_file(&text(name), &[]);
        assert!(document.ok, "{:?}", document.checks);
        let cache = &document.host[0].page_cache;
        (cache.pages, cache.misses + cache.read_ahead)
    };
    // 4 jobs with 256 pages each, every page brought once; or 256 pages for all.
    assert_eq!((pages(""), pages("filename=f")), ((1024, 1024), (256, 256)));
}

/// fio's `max_latency` and rate floors end a job; here the result says that they would have.
#[test]
fn guards_that_would_have_ended_a_job_are_said() {
    let said = |more: &str| {
        let job = format!("fio:rw=randread,bs=4k,iodepth=4,number_ios=200,{more}");
        run_alone(&plan(&job)).unwrap_or_else(|fault| panic!("{fault}")).warnings.join("\n")
    };
    let tripped = said("max_latency=1us");
    assert!(tripped.contains("fio would have ended it") && tripped.contains("max_latency"), "{tripped}");
    for passed in ["max_latency=10s", "max_latency=0", "rate_min=1g", "rate_iops_min=100000000"] {
        assert!(!said(passed).contains("would have ended"), "{passed}");
    }
}

/// "Average bandwidth for `rate_min` and `rate_iops_min` over this number of milliseconds." Of 100 reads a second, those of a pause from 3.5 to
/// 5 s come in one burst after it: 50 in the fourth second, none in the fifth, and 100 a second over all.
#[test]
fn rate_floors_are_judged_cycle_by_cycle() {
    let said = |more: &str| {
        let job = format!(
            "fio:rw=randread,bs=4k,iodepth=64,rate_iops=100,thinktime=1500ms,thinktime_blocks=350,thinktime_blocks_type=issue,number_ios=690,{more}"
        );
        run_alone(&plan(&job)).unwrap_or_else(|fault| panic!("{fault}")).warnings.join("\n")
    };
    let iops = said("rate_iops_min=60");
    assert!(iops.contains("would have ended") && iops.contains("50 IOPS in cycle 4, 3s to 4s"), "{iops}");
    // 50 x 4096 B in the second, of 60 x 4096.
    let bytes = said("rate_min=240k");
    assert!(bytes.contains("would have ended") && bytes.contains("204800 B/s in cycle 4"), "{bytes}");
    // Two seconds: 150 reads from 2 to 4 s are 75 a second. From 4 to 6 s the 150 of the burst and 100 more come.
    assert!(!said("rate_iops_min=70,rate_cycle=2000").contains("reached"));
    let two = said("rate_iops_min=80,rate_cycle=2000");
    assert!(two.contains("75 IOPS in cycle 2, 2s to 4s"), "{two}");
    // The cycle that is under way when the job ends does not count, nor, beside `rate_min`, does `rate_iops_min`.
    assert!(!said("rate_iops_min=80,rate_min=1,rate_cycle=2000").contains("reached"));
    // `__check_min_rate` lets a job settle for two seconds.
    let early = said("rate_iops_min=101,runtime=2500ms");
    assert!(early.contains("100 IOPS in cycle 1") && !early.contains("would have ended"), "{early}");
}

// Write amplification and what is still in the buffer.

const UNIT: u64 = 4096;

/// A drive with a buffer whose flush commands reach flash.
fn run(job: &str, more: &[&str]) -> Document {
    let plan = Plan::new("pm9a3", job).set("flash.buffer.protected=false");
    let plan = more.iter().fold(plan, |plan, set| plan.set(set));
    let document = run_alone(&plan).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(document.ok, "{:?}", document.checks);
    document
}

fn flash(document: &Document) -> &FlashResult {
    &document.flash[0]
}

fn written(document: &Document) -> u64 {
    document.io.kinds.get("write").expect("writes").bytes
}

/// No unit twice: what was written is on flash or in the buffer, and the page says which figure it prints.
#[test]
fn what_is_written_is_programmed_or_still_buffered() {
    let document = run("fio:rw=randwrite,bs=4k,iodepth=32,number_ios=5000", &[]);
    let f = flash(&document);
    assert!(f.buffered_bytes > 0);
    assert_eq!(written(&document), f.host_programs * UNIT + f.buffered_bytes);
    let so_far = f.host_programs as f64 / 5000.0;
    assert_eq!(f.write_amplification, Some(so_far));
    assert_eq!(f.flushed_write_amplification, Some(1.0));
    let megabytes = f.buffered_bytes as f64 / 1e6;
    let said = format!(
        "write amplification {so_far:.3} so far, 1.000 once the {megabytes:.1} MB still in the buffer are on flash;"
    );
    assert!(human(&document).contains(&said), "{}", human(&document));
}

/// A flush at the end is the independent account.
#[test]
fn a_flush_at_the_end_gives_what_was_foretold() {
    // Part writes and rewrites, some of them in the buffer.
    let job =
        "fio:rw=randwrite,bssplit=4k/60:512/30:32k/10,iodepth=16,number_ios=6000,size=16m,norandommap=1";
    let (open, flushed) = (run(job, &[]), run(&format!("{job},end_fsync=1"), &[]));
    assert!(flash(&open).buffered_bytes > 0);
    assert_eq!(flash(&flushed).buffered_bytes, 0);
    assert_eq!(flash(&flushed).flushed_write_amplification, flash(&flushed).write_amplification);
    let foretold = flash(&open).flushed_write_amplification.expect("writes");
    let came = flash(&flushed).write_amplification.expect("writes");
    assert!((foretold / came - 1.0).abs() < 1e-9, "{foretold} foretold, {came} came");
    assert!(flash(&open).write_amplification.expect("writes") < 0.9 * came);
}

/// With collections each unit in the buffer brings its share of moves along.
#[test]
fn a_flush_at_the_end_under_collection_is_foretold_nearly() {
    let small = [
        "flash.geometry.blocks=24",
        "flash.geometry.pages=48",
        "flash.geometry.channels=2",
        "flash.geometry.ways=2",
        "flash.ftl.over_provisioning=60%",
        "flash.buffer.capacity=8MiB",
        "flash.buffer.in_flight=2MiB",
        "flash.precondition.sequential.share=100%",
    ];
    let job = "fio:rw=randwrite,bs=4k,iodepth=32,number_ios=20000,norandommap=1,loops=3";
    let (open, flushed) = (run(job, &small), run(&format!("{job},end_fsync=1"), &small));
    assert!(flash(&flushed).gc_programs > 0, "nothing was collected");
    let foretold = flash(&open).flushed_write_amplification.expect("writes");
    let came = flash(&flushed).write_amplification.expect("writes");
    assert!((foretold / came - 1.0).abs() < 0.02, "{foretold} foretold, {came} came");
    let so_far = flash(&open).write_amplification.expect("writes");
    assert!(came - foretold < came - so_far, "{so_far} so far, {foretold} foretold, {came} came");
    // A window that begins with a full buffer is not charged for what it found there.
    let mut late = Plan::new("pm9a3", &format!("{job},end_fsync=1")).set("flash.buffer.protected=false");
    late = small.iter().fold(late, |plan, set| plan.set(set));
    late.warmup = Some(machine::Warmup::Requests(40_000));
    let late = run_alone(&late).unwrap_or_else(|fault| panic!("{fault}"));
    let f = flash(&late);
    let ftl = f.ftl_write_amplification.expect("programs");
    let own = f.flushed_write_amplification.expect("writes") / ftl;
    assert!(f.write_amplification.expect("writes") > f.flushed_write_amplification.expect("writes"));
    // Hardly a unit is overwritten in the buffer: each write of the window is one program of the host.
    assert!((0.5..=1.001).contains(&own), "{own}");
}

fn run_on_host(system: &str, jobs: &[&str], set: &[&str]) -> (Value, Vec<String>) {
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
    let (once, _) = run_on_host("pm9a3", &[job], &[MEMORY]);
    let (twice, _) = run_on_host("pm9a3", &[&format!("{job},loops=2")], &[MEMORY]);
    assert_eq!(figure(&once, "/io/read/requests"), 2048.0);
    assert_eq!(figure(&twice, "/io/read/requests"), 4096.0);
    let read = "/host/0/drives/0/block/requests/0";
    assert_eq!((figure(&once, read), figure(&twice, read)), (2048.0, 2048.0));
    // 4 KiB at 19.5 GB/s.
    let shortest = figure(&twice, "/io/read/latency_ns/min");
    assert!((shortest - 210.0).abs() < 1.0, "{shortest}");
    assert!(figure(&once, "/io/read/latency_ns/min") > 10_000.0);
    // Read in order, 256 KiB come with a fault.
    let (ahead, _) = run_on_host("pm9a3", &["rw=read,size=8m,ioengine=mmap"], &[MEMORY]);
    assert!(figure(&ahead, "/io/read/latency_ns/p50") < 1_000.0);
    assert!(figure(&ahead, "/io/read/iops") > 8.0 * figure(&once, "/io/read/iops"));
}

/// Stores are written back at the latest when a flush asks for it; without a host there is nothing to map.
#[test]
fn a_mapping_is_written_back() {
    let (document, _) = run_on_host("pm9a3", &["rw=randwrite,size=8m,ioengine=mmap,end_fsync=1"], &[MEMORY]);
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
    let none = io(run_on_host("pm9a3", &[job], &narrow));
    let set = [&narrow[..], &["host.linux.block.scheduler={ mq_deadline = {} }"]].concat();
    let deadline = io(run_on_host("pm9a3", &[job], &set));
    assert_ne!(none, deadline);
    assert_eq!(io(run_on_host("pm9a3", &[&scheduled("mq-deadline")], &narrow)), deadline);
    assert_eq!(io(run_on_host("pm9a3", &[&scheduled("none")], &set)), none);
    // Without a kernel.
    let (_, warnings) = run_on_host("pm9a3", &[&scheduled("mq-deadline")], &[]);
    let said = "job: `ioscheduler` has no effect here: requests go straight to the drive";
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
        let (document, _) = run_on_host("pm9a3", &[job], &[MEMORY]);
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
            let (document, _) = run_on_host("pm9a3x4", &[&job], &[]);
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
    let (document, _) = run_on_host("pm9a3x4", &[&job], &[]);
    // Data that a drive has read ahead are not counted; in turn, each would have 3 MiB.
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
    refused("pm9a3", two, &[], "names 2 drives, but the workload goes to one");
    refused("pm9a3x4", &format!("{two},direct=0"), &[], "the kernel of the host has one");
    let five = "filename=/dev/a:/dev/b:/dev/c:/dev/d:/dev/e";
    refused("pm9a3x4", five, &[], "names 5 drives, but 4 are behind the stripe");
    refused("pm9a3x4", "filename=/dev/nvme0n1:file", &[], "1 devices and 1 other files");
}
