//! The shipped systems: they load, they run, their figures follow from their specs, and every number has a source.

use config::Diagnostic;
use machine::Spec;
use machine::run::{Plan, run_alone};
use requests::trace::{Remap, TraceOptions};
use serde_json::Value;
use spec::systems::SYSTEMS;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A file of the data sets, or `None` with a word on the terminal.
fn data(path: &str) -> Option<PathBuf> {
    let root =
        std::env::var_os("NANDSCAPE_DATA").map_or_else(|| repository().join("../shared/data"), PathBuf::from);
    let file = root.join(path);
    if !file.exists() {
        println!("skipped: no data");
        return None;
    }
    Some(file)
}

/// Runs on a device of which the first percent was written in order, and stays there; the result document.
fn run_job(system: &str, job: &str) -> Value {
    run_on(system, "1%", &[], &format!("fio:{job},size=1%"))
}

/// The drive with all blocks and pages alike, so that its parts add up: array times are means.
fn run_alike(system: &str, job: &str) -> Value {
    let alike = "flash.cell.spread={ read = \"0%\", program = \"0%\", erase = \"0%\" }";
    let set: &[&str] =
        if system == "pm9a3" { &[alike, "flash.cell.read=[\"45us\", \"45us\", \"45us\"]"] } else { &[alike] };
    run_on(system, "1%", set, &format!("fio:{job},size=1%"))
}

/// Runs on a device of which the first part was written in order; the result document.
fn run_on(system: &str, share: &str, set: &[&str], workload: &str) -> Value {
    let filled = format!("flash.precondition={{ sequential = {{ share = \"{share}\" }} }}");
    let mut plan = set.iter().fold(Plan::new(system, workload), |plan, key| plan.set(key)).set(&filled);
    plan.trace.remap = Remap::Error;
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{system}, {workload}: {e}"));
    assert!(document.ok, "{system}, {workload}: {:?}", document.checks);
    serde_json::to_value(document).expect("a document has a JSON form")
}

/// A figure of a result document, by its path.
fn figure(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

fn mean_ns(document: &Value, kind: &str) -> f64 {
    figure(document, &format!("/io/{kind}/latency_ns/mean"))
}

fn capacity(system: &str) -> u64 {
    machine::load(system, &[]).expect("a shipped system").device(1).expect("a device").capacity()
}

#[test]
fn every_system_runs_every_kind_of_request() {
    let jobs = [
        "rw=randread,bs=4k,iodepth=32,number_ios=1000",
        "rw=randwrite,bs=4k,iodepth=32,number_ios=1000",
        "rw=randrw,rwmixread=70,bsrange=512-64k,iodepth=16,number_ios=1000",
        "rw=read,bs=128k,iodepth=8,number_ios=100",
        "rw=write,bs=128k,iodepth=8,fsync=16,number_ios=100",
        "rw=randtrim,bs=64k,iodepth=4,number_ios=100",
    ];
    // Two platforms have a flash device that takes requests of a host too.
    for system in drives().chain(["hetero", "hybridgpu"]) {
        for job in jobs {
            let document = run_job(system, job);
            assert!(figure(&document, "/io/all/requests") >= 100.0, "{system}, {job}");
            let unwritten = figure(&document, "/flash/0/unwritten_reads");
            assert_eq!(unwritten, 0.0, "{system}, {job}: reads that cost nothing");
        }
    }
}

/// A graph program, which follows its data, and a dense one, side by side; every check of the result holds.
#[test]
fn every_platform_runs_programs() {
    assert_eq!(platforms().count(), 15);
    for system in platforms() {
        let mut plan = Plan::new(system, "bfs1:scale=8");
        plan.workloads.push("gaus:n=48".to_owned());
        plan.set = vec!["gpu.repeat=false".to_owned()];
        let document = run_alone(&plan).unwrap_or_else(|e| panic!("{system}: {e}"));
        assert!(document.ok, "{system}: {:?}", document.checks);
        let document = serde_json::to_value(document).expect("a document has a JSON form");
        // Two kernels of elimination, and a level of the search each.
        let kernels = |app: usize| {
            let list = document.pointer(&format!("/gpu/0/applications/{app}/kernels"));
            list.and_then(Value::as_array).map_or(0, Vec::len)
        };
        assert!(kernels(0) >= 3 && kernels(1) == 2, "{system}: {} and {}", kernels(0), kernels(1));
        assert!(figure(&document, "/gpu/0/ipc") > 0.0, "{system}");
    }
}

/// A program that reads and one that inserts, on caches so small that pages are missing; every check of the result holds.
#[test]
fn every_server_serves_jobs() {
    assert!(servers().count() >= 6);
    for (system, program) in servers().flat_map(|s| [(s, "tatp:size=64MiB"), (s, "tpcc:size=128MiB")]) {
        let mut plan = Plan::new(system, program).set("cpu.load.jobs=120").set("cpu.warmup.fixed.jobs=20");
        match system {
            "dram-only" => {}
            "os-swap" | "mqms-server" => plan = plan.set("swap.memory=2MiB").set("swap.free=64KiB"),
            _ => plan = plan.set("memory.dram_cache.sets=128"),
        }
        let document = run_alone(&plan).unwrap_or_else(|e| panic!("{system}: {e}"));
        assert!(document.ok, "{system}, {program}: {:?}", document.checks);
        let document = serde_json::to_value(document).expect("a document has a JSON form");
        assert!((80.0..=100.0).contains(&figure(&document, "/cpu/0/jobs")), "{system}, {program}");
        let spent = document.pointer("/cpu/0/time_share").and_then(Value::as_object).expect("a table");
        let sum: f64 = spent.values().filter_map(Value::as_f64).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{system}, {program}: {sum}");
        if system != "dram-only" {
            let fetched = match system {
                "os-swap" | "mqms-server" => "swap/faults",
                _ => "dram_cache/fetches",
            };
            assert!(figure(&document, &format!("/cpu/0/memory/{fetched}")) > 0.0, "{system}, {program}");
            assert!(figure(&document, "/flash/0/reads/host") > 0.0, "{system}, {program}");
        }
    }
}

/// Every folder is shipped, and whole.
#[test]
fn folders_and_list_agree() {
    let mut folders: Vec<String> = std::fs::read_dir(repository().join("systems"))
        .expect("the folder of systems")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    let names: Vec<&str> = SYSTEMS.iter().map(|(name, _)| *name).collect();
    assert_eq!(folders, names);
}

fn leaves(path: &str, value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, inner) in table {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(&path, inner, found);
            }
        }
        _ => found.push(path.into()),
    }
}

/// The systems that are like this, as their resolved specs say.
fn systems(alike: fn(&Spec) -> bool) -> impl Iterator<Item = &'static str> {
    let spec = |name: &str| machine::load(name, &[]).expect("a shipped system").spec;
    SYSTEMS.iter().map(|(name, _)| *name).filter(move |name| alike(&spec(name)))
}

/// The systems that are a drive alone.
fn drives() -> impl Iterator<Item = &'static str> {
    systems(|spec| {
        let processors = [spec.gpu.is_empty(), spec.cpu.is_empty(), spec.accelerator.is_empty()];
        processors.iter().all(|none| *none) && spec.coprocessor.is_empty()
    })
}

/// The systems that have a GPU with memory.
fn platforms() -> impl Iterator<Item = &'static str> {
    systems(|spec| !spec.gpu.is_empty() && !spec.memory.is_empty())
}

/// The systems that have a server's cores with memory.
fn servers() -> impl Iterator<Item = &'static str> {
    systems(|spec| !spec.cpu.is_empty() && !spec.memory.is_empty())
}

/// The calibration page has a row with a value and a source for each leaf of the spec.
#[test]
fn every_key_has_a_row() {
    for (system, spec) in SYSTEMS {
        let page = repository().join("systems").join(system).join("calibration.md");
        let page = std::fs::read_to_string(page).expect("a calibration page");
        let rows: Vec<Vec<&str>> = page
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let mut keys = Vec::new();
        leaves("", &spec.parse::<toml::Table>().expect("TOML").into(), &mut keys);
        for key in keys.iter().filter(|key| !["description", "inherits"].contains(&key.as_str())) {
            let last = key.rsplit('.').next().unwrap_or(key);
            let parent = key.strip_suffix(last).unwrap_or_default();
            // A row names a key by its path, or by its last component beside another's path, or it names the policy
            // that the key is a parameter of.
            let names = |cell: &str| {
                let has = |name: &str| cell.contains(&format!("`{name}`"));
                let policies = key.match_indices('.').skip(2).map(|(at, _)| &key[..at]);
                has(key) || (cell.contains(parent) && has(last)) || policies.into_iter().any(has)
            };
            let row = rows.iter().find(|row| names(row[0]));
            let row = row.unwrap_or_else(|| panic!("{system}: no row for `{key}`"));
            assert!(row.len() >= 3 && row[1..3].iter().all(|c| !c.is_empty()), "{system}: {row:?}");
        }
    }
}

/// IDEMA LBA1-03: a drive of `gb` gigabytes has 97,696,368 + 1,953,504 (gb - 50) sectors of 512 B.
#[test]
fn capacities_are_those_on_the_label() {
    let idema = |gb: u64| (97_696_368 + 1_953_504 * (gb - 50)) * 512;
    let close = |system: &str, expected: u64| {
        let error = capacity(system).abs_diff(expected) as f64 / expected as f64;
        assert!(error < 1e-5, "{system}: {} B, not {expected}", capacity(system));
    };
    close("pm9a3", idema(3840));
    close("z-ssd", idema(800));
    // MQSim with its own ssdconfig.xml: 998,579,840 sectors.
    close("mqsim-default", 998_579_840 * 512);
}

/// Link bandwidth left by acknowledgements and flow control: 57.88 of 62.96 Gb/s (Neugebauer et al., SIGCOMM 2018).
const LEFT: f64 = 57.88 / 62.96;

/// Nanoseconds of a 4 KiB read on an idle drive behind PCIe of four lanes with payloads of 256 B and headers of 24 B.
fn idle_read_ns(lane: f64, command_us: f64, sense_us: f64, bytes_per_us: f64) -> f64 {
    // Toggle: chip enable 20 ns, seven cycles of 25 ns, 100 ns to busy; 20 ns + 30 ns before data.
    let (command, data) = (20.0 + 7.0 * 25.0 + 100.0, 50.0);
    let flash = command + sense_us * 1e3 + data + 4096.0 / bytes_per_us * 1e3;
    let link = (4096.0 + 16.0) / (4.0 * lane * 256.0 / 280.0 * LEFT);
    // One way each: doorbell, fetch and its answer, the completion.
    4.0 * 250.0 + command_us * 1e3 + flash + link
}

#[test]
fn an_idle_read_takes_the_sum_of_its_parts() {
    let job = "rw=randread,bs=4k,iodepth=1,number_ios=500";
    // Generations 3 and 4: 8 and 16 GT/s with 128b/130b coding.
    let pm9a3 = idle_read_ns(16.0 / 8.0 * 128.0 / 130.0, 5.55, 45.0, 1200.0);
    let z_ssd = idle_read_ns(8.0 / 8.0 * 128.0 / 130.0, 6.66, 3.0, 1600.0);
    for (system, expected) in [("pm9a3", pm9a3), ("z-ssd", z_ssd)] {
        let mean = mean_ns(&run_alike(system, job), "read");
        assert!((mean - expected).abs() < 5.0, "{system}: {mean} ns, not {expected}");
    }
}

/// MQSim with its ssdconfig.xml, the map cached: a read of one page 102,434 ns, a write into the cache 43,542 ns.
#[test]
fn an_idle_page_takes_as_long_as_in_mqsim() {
    for (rw, name, expected) in [("randread", "read", 102_434.0), ("randwrite", "write", 43_542.0)] {
        let job = format!("fio:rw={rw},bs=8k,iodepth=1,number_ios=500,size=1%");
        let document = run_on("mqsim-default", "1%", &["flash.ftl.mapping=table"], &job);
        let mean = mean_ns(&document, name);
        assert!((mean / expected - 1.0).abs() < 1e-3, "{rw}: {mean} ns, not {expected}");
    }
}

/// The slowest part bounds the throughput, and a deep queue comes near it.
#[test]
fn saturated_drives_reach_their_slowest_part() {
    let near = |system: &str, job: &str, name: &str, bound: f64| {
        let rate = figure(&run_alike(system, job), &format!("/io/{name}/bandwidth_bytes_per_s"));
        assert!(rate <= bound * 1.001, "{system}, {job}: {rate} above {bound}");
        assert!(rate >= bound * 0.9, "{system}, {job}: {rate} far below {bound}");
    };
    let lane = 128.0 / 130.0 * 256.0 / 280.0 * LEFT * 1e9;
    let read = "rw=read,bs=128k,iodepth=64,number_ios=2000";
    let write = "rw=write,bs=128k,iodepth=64,number_ios=6000";
    near("pm9a3", read, "read", 8.0 * lane);
    near("z-ssd", read, "read", 4.0 * lane);
    near("z-ssd", write, "write", 4.0 * lane);
    // Its 4.9 W are 49 of the 64 dies at 100 mW: two planes, three pages of 16 KiB a plane in 1.2 ms; what the buffer
    // holds at the end comes on top.
    let dies = 49.0 * 2.0 * 3.0 * 16384.0 / 1.2e-3;
    let (all, held) = (6000.0 * 131_072.0, 64.0 * 1_048_576.0);
    near("pm9a3", write, "write", dies * all / (all - held));
    // Controller cores: five, at so much a command.
    let random = "rw=randread,bs=4k,iodepth=512,number_ios=30000";
    near("pm9a3", random, "read", 5.0 / 5.55e-6 * 4096.0);
    near("z-ssd", random, "read", 5.0 / 6.66e-6 * 4096.0);
}

/// Pieces of 8 KiB that requests touch: reads, writes, and writes that cover their page only in part.
fn pieces(trace: &str) -> (u64, u64, u64) {
    let (mut reads, mut writes, mut partial) = (0, 0, 0);
    for line in trace.lines().filter(|line| !line.is_empty()) {
        let fields: Vec<u64> = line.split_whitespace().map(|f| f.parse().expect("a number")).collect();
        let (mut at, end) = (fields[2], fields[2] + fields[3]);
        while at < end {
            let next = ((at / 16 + 1) * 16).min(end);
            match fields[4] {
                0 => {
                    writes += 1;
                    partial += u64::from(next - at < 16);
                }
                _ => reads += 1,
            }
            at = next;
        }
    }
    (reads, writes, partial)
}

#[test]
fn mqsims_own_trace_touches_the_pages_it_names() {
    let Some(file) = data("block_io/mqsim/tpcc-small.trace") else { return };
    let (reads, writes, partial) = pieces(&std::fs::read_to_string(&file).expect("the trace"));
    // As MQSim counts them.
    assert_eq!((reads, writes, partial), (8241, 5152, 4553));
    let trace = TraceOptions { format: Some("mqsim".into()), remap: Remap::Error, ..TraceOptions::default() };
    let plan = Plan { trace, ..Plan::new("mqsim-default", &file.to_string_lossy()) };
    let document = run_alone(&plan).expect("the trace runs");
    assert!(document.ok, "{:?}", document.checks);
    let document = serde_json::to_value(document).expect("a document has a JSON form");
    let of = |path: &str| figure(&document, &format!("/flash/0/{path}"));
    let mqsim = |metric: &str| mqsim("tpcc-small.trace", "shipped-ssdconfig", metric);
    assert_eq!(of("reads/host"), mqsim("page_reads_user"));
    assert_eq!(of("reads/rmw"), mqsim("page_reads_rmw"));
    assert_eq!(of("host_programs"), mqsim("page_programs_user"));
    assert_eq!(
        (of("reads/gc"), of("gc_programs"), of("mapping_programs"), of("erases")),
        (0.0, 0.0, 0.0, 0.0)
    );
    let near = |measured: f64, expected: f64, share: f64| {
        assert!((measured / expected - 1.0).abs() < share, "{measured}, not {expected}");
    };
    // Which look-ups meet a read of their page under way depends on nanoseconds.
    near(of("reads/mapping"), mqsim("page_reads_mapping"), 0.005);
    let means = ["read", "write"].map(|kind| mqsim(&format!("{kind}_response_mean")));
    near(mean_ns(&document, "read"), means[0], 0.05);
    near(mean_ns(&document, "write"), means[1], 0.05);
    near(mean_ns(&document, "all"), (4381.0 * means[0] + 2618.0 * means[1]) / 6999.0, 0.05);
    near(of("multi_plane"), mqsim("read_commands_two_plane") + mqsim("program_commands_two_plane"), 0.1);
}

/// A figure that was measured with MQSim.
fn mqsim(workload: &str, device: &str, metric: &str) -> f64 {
    let table = repository().join("tests/differential/mqsim.csv");
    let table = std::fs::read_to_string(table).expect("the table of figures");
    let name = format!("{workload},{device},{metric},");
    let value = table.lines().find_map(|line| line.strip_prefix(&name)?.split(',').next()?.parse().ok());
    value.unwrap_or_else(|| panic!("no figure {name}"))
}

fn rejected(system: &str, set: &str) -> Diagnostic {
    match machine::load(system, &[set.into()]) {
        Ok(_) => panic!("{system} accepts {set}"),
        Err(diagnostic) => diagnostic,
    }
}

#[test]
fn bad_overrides_are_explained() {
    let cases = [
        ("flash.geometry.blocks=8", "too little over-provisioning"),
        ("flash.geometry.page_size=1000B", "not a multiple of 512 B"),
        ("flash.channel.rate=9000MT/s", "whose limit is"),
        ("flash.cell.read=[\"1us\", \"2us\", \"3us\", \"4us\", \"5us\"]", "has 5 values"),
        ("flash.ftl.map_unit=3KiB", "power of two"),
        ("flash.ftl.gc.hard=0", "hard limit of 0"),
        ("flash.ftl.over_provisioning=0%", "too little over-provisioning"),
        ("flash.host.controller.cores=0", "is 0"),
    ];
    for system in drives() {
        for (set, expected) in cases {
            let message = rejected(system, set).to_string();
            let key = set.split('=').next().unwrap_or_default();
            assert!(message.contains(expected), "{system}, {set}: {message}");
            // A contradiction may be reported at the other key that it involves.
            assert!(message.contains(key) || message.contains("flash.ftl."), "{system}, {set}: {message}");
        }
    }
    for system in ["pm9a3", "z-ssd", "mqsim-default", "d16"] {
        let message = rejected(system, "flash.host.nvme.queues=0").to_string();
        assert!(message.contains("is 0"), "{system}: {message}");
    }
    for system in ["pm9a3", "z-ssd", "mqsim-default"] {
        let message = rejected(system, "flash.buffer.in_flight=1KiB").to_string();
        assert!(message.contains("less than one program unit"), "{message}");
        let message = rejected(system, "flash.buffer.low=90%").to_string();
        assert!(message.contains("the watermarks cross"), "{message}");
    }
    let message = rejected("pm9a3", "flash.ftl.map_unit=32KiB").to_string();
    assert!(message.contains("cannot be combined with word lines"), "{message}");
}

#[test]
fn misspelt_overrides_name_the_right_spelling() {
    let cases = [
        ("flash.geometry.chanels=8", "channels"),
        ("flash.ftl.allocation=round_robbin", "round_robin"),
        ("flash.die.suspend.latensy=1us", "latency"),
        ("flash.host.nvme.queue=4", "queues"),
        ("flash.precondition=sequental", "sequential"),
    ];
    let of_a_gpu = [
        ("gpu.l1.sest=8", "sets"),
        ("gpu.scheduler=greedy_then_older", "greedy_then_oldest"),
        ("mmu.walker=8", "walkers"),
        ("network.witdh=8B", "width"),
        ("l2.replacement=lur", "lru"),
        ("l2.prefetch=dynamik", "dynamic"),
    ];
    let drives = drives().flat_map(|system| cases.map(|case| (system, case)));
    let platforms = platforms().flat_map(|system| of_a_gpu.map(|case| (system, case)));
    for (system, (set, expected)) in drives.chain(platforms) {
        let diagnostic = rejected(system, set);
        assert_eq!(diagnostic.nearest.as_deref(), Some(expected), "{system}, {set}: {diagnostic}");
    }
}

/// Reads that come at random see what a die does for as long as it does it (R. Wolff, Operations Research 30(2), 1982): the share
/// that comes to a die at work for collection is the share of time that its reads, programs and erases take.
#[test]
fn reads_at_random_meet_collection_as_long_as_it_takes() {
    let set = [
        "flash.geometry.channels=1",
        "flash.geometry.ways=1",
        "flash.geometry.planes=1",
        "flash.geometry.blocks=128",
        "flash.geometry.pages=32",
        "flash.ftl.over_provisioning=30%",
    ];
    for rate in [100, 300] {
        let job = "rw=randrw,rwmixread=70,bs=4k,norandommap=1,iodepth=64,number_ios=60000,loops=100,rate_process=poisson";
        let document = run_on("d16", "100%", &set, &format!("fio:{job},rate_iops={rate}"));
        let flash = |path: &str| figure(&document, &format!("/flash/0/{path}"));
        let (reads, programs) = (flash("reads/gc"), flash("gc_programs"));
        // 4 KiB at 800 MB/s is 5.12 us of the channel, during which the die has its register full.
        let busy = reads * 55.12 + programs * 605.12 + flash("erases") * 3000.0;
        let expected = busy * 1e3 / figure(&document, "/simulated_ns");
        let share = flash("reads/behind_gc_share");
        assert!(
            (0.1..0.9).contains(&expected) && (share / expected - 1.0).abs() < 0.03,
            "{share} {expected}"
        );
    }
    let quiet = run_on("d16", "100%", &set, "fio:rw=randread,bs=4k,number_ios=1000");
    assert_eq!(figure(&quiet, "/flash/0/reads/behind_gc"), 0.0);
}
