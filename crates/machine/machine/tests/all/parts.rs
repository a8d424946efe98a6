//! Parts by name: what names mean, and what they do not.

use machine::result::Document;
use machine::run::{Plan, run_alone};
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;

/// A drive of 16 MiB in 2 channels of 2 dies of 2 planes.
pub(crate) const SMALL: &str = "
geometry = { channels = 2, ways = 2, blocks = 32, pages = 16 }
ftl = { gc = { start = 3, stop = 4, hard = 1 }, over_provisioning = '25%' }
precondition = 'sequential'
";

/// A machine in a file, and workloads for it.
pub(crate) struct Bench {
    _folder: TempDir,
    path: PathBuf,
}

impl Bench {
    pub(crate) fn new(text: &str) -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, text).expect("a file");
        Bench { path, _folder: folder }
    }

    fn plan(&self, workloads: &[&str]) -> Plan {
        let mut plan = Plan::new(&self.path.to_string_lossy(), "");
        plan.workloads = workloads.iter().map(|text| (*text).to_owned()).collect();
        plan
    }

    /// A run whose checks all hold.
    pub(crate) fn run(&self, workloads: &[&str]) -> Document {
        let document = run_alone(&self.plan(workloads)).unwrap_or_else(|fault| panic!("{fault}"));
        let failed: Vec<_> = document.checks.iter().filter(|check| !check.ok).collect();
        assert!(document.ok, "{failed:#?}");
        document
    }

    /// The diagnostic of a run that is refused.
    pub(crate) fn refused(&self, workloads: &[&str]) -> String {
        match run_alone(&self.plan(workloads)) {
            Ok(_) => panic!("it is not refused"),
            Err(fault) => fault.to_string(),
        }
    }
}

/// A document without what tells machines apart that do the same: the spec, names, and what the run cost.
pub(crate) fn found(document: &Document) -> Value {
    fn nameless(value: &mut Value) {
        match value {
            Value::Object(table) => {
                table.remove("name");
                table.remove("drive");
                table.values_mut().for_each(nameless);
            }
            Value::Array(items) => items.iter_mut().for_each(nameless),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(document).expect("a document has a JSON form");
    let all = value.as_object_mut().expect("an object");
    for apart in ["system", "spec", "spec_sha256", "run", "workload", "checks"] {
        all.remove(apart);
    }
    nameless(&mut value);
    value
}

pub(crate) fn figure(document: &Document, path: &str) -> f64 {
    let value = serde_json::to_value(document).expect("a document has a JSON form");
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

// Several parts of a kind in one machine.

const HEAD: &str = "description = 'mine'\n[host]\ninherits = 'd16'\n[sim]\ninherits = 'd16'\n";

fn array(count: u32, chunk: &str) -> String {
    format!(
        "{HEAD}[ssd]\nkind = 'flash'\ncount = {count}\ninherits = 'd16.flash'{SMALL}\
         [array]\nkind = 'stripe'\ndrives = 'ssd'\nchunk = '{chunk}'\nsubmit = '0us'\n"
    )
}

/// Four drives serve four times as many random reads as one, as long as each has a queue as deep: a bound, and a stripe of equal
/// drives comes near it.
#[test]
fn a_stripe_of_four_serves_four_times_as_much() {
    let job = |depth: u32| format!("fio:rw=randread,bs=4k,iodepth={depth},number_ios=20000,norandommap=1");
    let one = Bench::new(&array(1, "64KiB")).run(&[&job(64)]);
    let four = Bench::new(&array(4, "64KiB")).run(&[&job(256)]);
    let iops = |document| figure(document, "/io/read/iops");
    let times = iops(&four) / iops(&one);
    assert!((3.6..=4.05).contains(&times), "{times} times as many");
    // Commands of a chunk or less are one command of one drive, and spread evenly.
    assert_eq!(figure(&four, "/stripe/0/parts"), figure(&four, "/stripe/0/commands"));
    for member in 0..4 {
        let share =
            figure(&four, &format!("/stripe/0/members/{member}/bytes")) / figure(&four, "/io/read/bytes");
        assert!((share - 0.25).abs() < 0.01, "member {member}: {share}");
    }
}

/// A request of 256 KiB over chunks of 64 KiB is a command for each of four drives; all of its bytes come to them.
#[test]
fn a_large_request_goes_to_all_members() {
    let document = Bench::new(&array(4, "64KiB")).run(&["fio:rw=read,bs=256k,iodepth=4,number_ios=40"]);
    assert_eq!(figure(&document, "/stripe/0/commands"), 40.0);
    assert_eq!(figure(&document, "/stripe/0/parts"), 160.0);
    let units: f64 = (0..4).map(|drive| figure(&document, &format!("/flash/{drive}/reads/host"))).sum();
    assert_eq!(units, 40.0 * 64.0);
    assert!(figure(&document, "/stripe/0/straggling_ns") >= 0.0);
}

/// Writes with barriers: a flush waits for every drive, and trims leave nothing behind.
#[test]
fn every_kind_of_request_goes_through_a_stripe() {
    let bench = Bench::new(&array(3, "4KiB"));
    bench.run(&["fio:rw=randwrite,bs=12k,iodepth=8,fsync=8,number_ios=600"]);
    bench.run(&["fio:rw=randtrim,bs=64k,iodepth=4,number_ios=60"]);
    bench
        .run(&["fio:rw=randrw,bs=4k,iodepth=8,number_ios=600", "fio:rw=read,bs=32k,iodepth=2,number_ios=60"]);
}

/// A GPU and a server in one machine, with a drive that the one reaches from inside and the other as a host: both do what they do, and
/// each is slower beside the other than alone.
#[test]
fn a_gpu_and_a_server_share_a_drive() {
    let small = "[flash.geometry]\nchannels = 2\nways = 1\nplanes = 2\nblocks = 256\npages = 16\n\
        [flash.ftl]\nover_provisioning = '25%'\n[flash.ftl.gc]\nstart = 3\nstop = 4\nhard = 1\n\
        [gpu.l1]\nsets = 1\nways = 1\n[l2]\nsets = 4\nways = 4\n[memory.initiator.gather]\ncapacity = '32KiB'\n\
        [cpu]\ncores = 4\nfill_jobs = 20000\nwarmup = { fixed = { jobs = 0 } }\n[cpu.load]\njobs = 300\n\
        [fabric.mesh]\nrows = 2\ncolumns = 2\n[cpu_l2]\nbanks = 4\nsets = 4\n[swap]\nmemory = '1MiB'\nfree = '64KiB'\n";
    let bench = Bench::new(&format!("inherits = 'mqms-server'\n{small}"));
    let (program, service) = ("gpu=back:n=4096", "cpu=tatp:size=32MiB,work=1000");
    let both = bench.run(&[program, service]);
    let (gpu, cpu) = (bench.run(&[program]), bench.run(&[service]));
    assert_eq!((gpu.cpu.len(), cpu.gpu.len(), both.gpu.len(), both.cpu.len()), (0, 0, 1, 1));
    for path in ["/gpu/0/warp_instructions", "/gpu/0/applications/0/footprint_bytes"] {
        assert_eq!(figure(&both, path), figure(&gpu, path), "{path}");
    }
    assert_eq!(figure(&both, "/cpu/0/jobs"), 300.0);
    assert!(
        figure(&both, "/cpu/0/memory/swap/faults") > 0.0 && figure(&both, "/io/flows/0/read/requests") > 0.0
    );
    assert!(figure(&both, "/gpu/0/ipc") < figure(&gpu, "/gpu/0/ipc"), "the GPU does not feel the server");
    let service = "/cpu/0/service_ns/mean";
    assert!(figure(&both, service) > figure(&cpu, service), "the server does not feel the GPU");
}

/// Programs of two GPUs with nothing in common but the clock: each does exactly what it does alone.
#[test]
fn two_gpus_with_memories_of_their_own_do_not_meet() {
    let second = "[mmu2]\nkind = 'mmu'\ninherits = 'ideal.mmu'\n[network2]\nkind = 'network'\ninherits = 'ideal.network'\n\
        [shared2]\nkind = 'l2'\ninherits = 'ideal.l2'\nmemory = 'dram2'\n[dram2]\nkind = 'memory'\ninherits = 'ideal.memory'\n\
        [gpu2]\nkind = 'gpu'\ninherits = 'ideal.gpu'\nmmu = 'mmu2'\nnetwork = 'network2'\nl2 = 'shared2'\n";
    let links = "[gpu]\nmmu = 'mmu'\nnetwork = 'network'\nl2 = 'l2'\n[l2]\nmemory = 'memory'\n";
    let bench = Bench::new(&format!("inherits = 'ideal'\n{links}{second}"));
    let both = bench.run(&["gpu=gaus:n=48", "gpu2=bfs1:scale=8"]);
    let (first, other) = (bench.run(&["gpu=gaus:n=48"]), bench.run(&["gpu2=bfs1:scale=8"]));
    let same = |path: &str, one: &_, at: usize| {
        assert_eq!(
            figure(&both, &path.replace('*', &at.to_string())),
            figure(one, &path.replace('*', "0")),
            "{path}"
        );
    };
    for path in
        ["/gpu/*/ipc", "/gpu/*/read_latency_ns/mean", "/gpu/*/memory/row_hit_share", "/gpu/*/l2/hit_share"]
    {
        same(path, &first, 0);
        same(path, &other, 1);
    }
    assert!(figure(&both, "/breakdown_ns/gpu.load/memory") > 0.0, "each has its own");
}

// A name is for people: it decides nothing.

const WRITES: &str = "fio:rw=randwrite,bs=4k,iodepth=16,number_ios=3000,norandommap=1";

const READS: &str = "fio:rw=randread,bs=4k,iodepth=32,number_ios=2000";

fn drive(name: &str) -> String {
    let kind = if name == "flash" { "" } else { "kind = 'flash'\ninherits = 'd16.flash'" };
    format!("inherits = '{}'\n[{name}]\n{kind}{SMALL}", if kind.is_empty() { "d16" } else { "bare" })
}

/// D16 without its drive: what a machine needs whose drive has another name.
fn bare(text: &str) -> String {
    let head = "description = 'mine'\n[host]\ninherits = 'd16'\n[sim]\ninherits = 'd16'\n";
    text.replace("inherits = 'bare'\n", head)
}

#[test]
fn a_drive_by_another_name_does_the_same() {
    let named = Bench::new(&bare(&drive("flash")));
    let renamed = Bench::new(&bare(&drive("archive")));
    for job in [READS, WRITES] {
        let (one, other) = (named.run(&[job]), renamed.run(&[job]));
        assert_eq!(found(&one), found(&other));
        assert_eq!((one.flash[0].name.as_str(), other.flash[0].name.as_str()), ("flash", "archive"));
    }
}

#[test]
fn a_gpu_and_what_is_around_it_by_other_names_do_the_same() {
    let small = "[big.l1]\nsets = 1\nways = 1\n";
    let renamed = "description = 'mine'
        [sim]\ninherits = 'ideal'
        [big]\nkind = 'gpu'\ninherits = 'ideal.gpu'
        [walks]\nkind = 'mmu'\ninherits = 'ideal.mmu'
        [wires]\nkind = 'network'\ninherits = 'ideal.network'
        [shared]\nkind = 'l2'\ninherits = 'ideal.l2'
        [gddr]\nkind = 'memory'\ninherits = 'ideal.memory'\n";
    let one = Bench::new(&format!("inherits = 'ideal'\n{}", small.replace("big", "gpu"))).run(&["gaus:n=48"]);
    let other = Bench::new(&format!("{renamed}{small}")).run(&["gaus:n=48"]);
    assert_eq!(found(&one), found(&other));
    assert_eq!((other.gpu[0].name.as_str(), other.gpu[0].memory.name.as_str()), ("big", "gddr"));
}

/// Unused parts change nothing, wherever they are declared: neither another drive nor a GPU without programs.
#[test]
fn idle_parts_change_nothing() {
    let alone = Bench::new(&bare(&drive("flash"))).run(&[WRITES]);
    let beside = bare(&drive("flash")) + &format!("\n[idle]\nkind = 'flash'\ninherits = 'd16.flash'{SMALL}");
    let with_drive = Bench::new(&beside).run(&[&format!("flash={WRITES}")]);
    let gpu = "[gpu]\ninherits = 'ideal'\n[mmu]\ninherits = 'ideal'\n[network]\ninherits = 'ideal'\n\
               [l2]\ninherits = 'ideal'\n[memory]\ninherits = 'ideal'\n";
    let with_gpu = Bench::new(&(bare(&drive("flash")) + gpu)).run(&[WRITES]);
    assert_eq!(found(&alone), found(&with_gpu));
    let (alone, with_drive) = (found(&alone), found(&with_drive));
    assert_eq!((&alone["io"], &alone["flash"][0]), (&with_drive["io"], &with_drive["flash"][0]));
    assert_eq!(with_drive["flash"][1]["host_programs"], 0);
}

/// Two drives that are alike, under loads that are alike, do the same; each by itself does it too.
#[test]
fn equal_drives_under_equal_loads_agree() {
    let text = bare("inherits = 'bare'\n")
        + &format!("[ssd]\nkind = 'flash'\ncount = 2\ninherits = 'd16.flash'{SMALL}");
    let both = Bench::new(&text).run(&[&format!("ssd.0={WRITES}"), &format!("ssd.1={WRITES}")]);
    // Both are looked at when one of them answers, and at that instant the other is an answer behind.
    let drive_of = |outcome: &_, number: usize| {
        let mut drive = found(outcome)["flash"][number].clone();
        drive.as_object_mut().expect("an object").remove("series");
        drive
    };
    let (first, second) = (drive_of(&both, 0), drive_of(&both, 1));
    assert_eq!(first, second);
    let flows = found(&both)["io"]["flows"].clone();
    assert_eq!(flows[0]["write"]["latency_ns"], flows[1]["write"]["latency_ns"]);
    let alone = Bench::new(&bare(&drive("flash"))).run(&[WRITES]);
    assert_eq!(drive_of(&alone, 0), first);
    assert!(figure(&both, "/flash/1/write_amplification") > 1.0, "both were at work");
}

/// A later drive has random streams of its own.
#[test]
fn a_second_drive_draws_for_itself() {
    let spread = "cell = { spread = { read = '0%', program = '5%', erase = '0%' } }\n";
    let text = bare("inherits = 'bare'\n")
        + &format!("[ssd]\nkind = 'flash'\ncount = 2\ninherits = 'd16.flash'{SMALL}{spread}");
    let both = Bench::new(&text).run(&[&format!("ssd.0={WRITES}"), &format!("ssd.1={WRITES}")]);
    let flows = found(&both)["io"]["flows"].clone();
    assert_ne!(flows[0]["write"]["latency_ns"], flows[1]["write"]["latency_ns"]);
}

/// Parts of a kind stand in the order of the text, whatever they are called and whatever they inherit.
#[test]
fn parts_are_in_the_order_of_the_file() {
    let drive = |name: &str| format!("[{name}]\nkind = 'flash'\ninherits = 'd16.flash'{SMALL}");
    for names in [["zebra", "ant", "mule"], ["ant", "mule", "zebra"], ["mule", "zebra", "ant"]] {
        let text = bare("inherits = 'bare'\n") + &names.map(drive).concat();
        let bench = Bench::new(&text);
        let loaded = machine::load(&bench.path.to_string_lossy(), &[]).expect("a machine");
        let found: Vec<&str> = loaded.spec.flash.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(found, names);
        let document = bench.run(&[&format!("{}={READS}", names[1])]);
        assert_eq!(document.io.flows[0].drive.as_deref(), Some(names[1]));
    }
}

/// The resolved spec of a machine with names reads back as the same machine.
#[test]
fn a_resolved_spec_is_the_same_machine() {
    let text = bare("inherits = 'bare'\n")
        + &format!("[ssd]\nkind = 'flash'\ncount = 2\ninherits = 'd16.flash'{SMALL}")
        + "[array]\nkind = 'stripe'\ndrives = 'ssd'\nchunk = '64KiB'\nsubmit = '0us'\n";
    let bench = Bench::new(&text);
    let loaded = machine::load(&bench.path.to_string_lossy(), &[]).expect("a machine");
    let again = Bench::new(&loaded.to_toml());
    let reloaded = machine::load(&again.path.to_string_lossy(), &[]).expect("the same machine");
    assert_eq!(loaded.spec.to_json(), reloaded.spec.to_json());
    assert_eq!(found(&bench.run(&[READS])), found(&again.run(&[READS])));
}

// Errors in names and links are reported once, with their place and the fix.

const DRIVE: &str = "inherits = 'd16'\n";

const JOB: &str = "fio:rw=randread,bs=4k,number_ios=10";

fn refused(text: &str, workloads: &[&str], words: &[&str]) {
    let shown = Bench::new(text).refused(workloads);
    for word in words {
        assert!(shown.contains(word), "no `{word}` in\n{shown}");
    }
    assert!(shown.contains("mine.toml") || shown.contains("--workload"), "no place in\n{shown}");
}

#[test]
fn links_to_nothing_or_to_the_wrong_kind() {
    refused(
        "inherits = 'd16'\n[host]\ndrives = 'flahs'\n",
        &[JOB],
        &["the part `flahs` does not exist", "did you mean `flash`"],
    );
    let wrong = "inherits = 'ideal'\n[l2]\nmemory = 'mmu'\n";
    refused(wrong, &["gaus:n=16"], &["`mmu` is a part of the kind `mmu`", "`memory` or `placement`"]);
    refused("inherits = 'd16'\n[host]\ndrives = 7\n", &[JOB], &["must be the name of one part, or a list"]);
    refused("inherits = 'd16'\n[host]\ndrives = ['flash', 'flash']\n", &[JOB], &["`flash` is named twice"]);
    let inert = "inherits = 'ideal'\n[memory]\ndrive = 'memory'\n";
    refused(inert, &["gaus:n=16"], &["this kind of memory uses no drive", "leave it out"]);
}

#[test]
fn what_could_mean_several_must_be_said() {
    let two = "inherits = 'ideal'\n[spare]\nkind = 'memory'\ninherits = 'ideal.memory'\n";
    refused(two, &["gaus:n=16"], &["`l2.memory` is not set", "allowed: memory, spare", "beside `spare` at"]);
    let group = "inherits = 'hybridgpu'\n[flash]\ncount = 2\n[memory]\ndrive = 'flash'\n";
    refused(group, &["gaus:n=16"], &["`flash` names 2 parts, and this link needs one"]);
    let drives = "inherits = 'd16'\n[flash]\ncount = 2\n";
    refused(drives, &[JOB], &["2 parts can run it", "--workload flash.0=fio"]);
}

#[test]
fn parts_that_nobody_uses_or_too_many_do() {
    let unused = "inherits = 'd16'\n[spare]\nkind = 'l2'\ninherits = 'ideal.l2'\n";
    refused(unused, &[JOB], &["the part `spare` is unused", "`gpu`, `cpu`"]);
    let shared = "inherits = 'ideal'\n[gpu]\ncount = 2\n";
    refused(
        shared,
        &["gpu.0=gaus:n=16"],
        &["`gpu.0` and `gpu.1` both use the part `mmu`, which can serve only one"],
    );
    let array =
        "[flash]\ncount = 2\n[array]\nkind = 'stripe'\ndrives = 'flash'\nchunk = '64KiB'\nsubmit = '0us'\n";
    let both = format!("{DRIVE}{array}[host]\ndrives = ['array', 'flash.1']\n");
    refused(
        &both,
        &["array=fio:rw=read,number_ios=1"],
        &["uses `flash.1`, which is a member of the stripe `array`"],
    );
}

#[test]
fn circles_of_memories() {
    let circle = "inherits = 'astriflash'\n[l2]\nmemory = 'memory'\n[memory]\nmemory = 'other'\n\
        [memory.dram_cache]\nbacking = 'memory'\n[other]\nkind = 'memory'\ninherits = 'astriflash.memory'\nmemory = 'memory'\n\
        [other.dram_cache]\nbacking = 'memory'\n";
    refused(circle, &["tatp"], &["depends on itself"]);
}

#[test]
fn kinds_counts_and_names() {
    refused(
        "inherits = 'd16'\n[spare]\nkind = 'flahs'\n",
        &[JOB],
        &["unknown kind of part", "did you mean `flash`"],
    );
    refused("inherits = 'd16'\n[spare]\nways = 3\n", &[JOB], &["unknown key `spare`", "kind = \"flash\""]);
    refused(
        "inherits = 'd16'\n[falsh]\nways = 3\n",
        &[JOB],
        &["unknown key `falsh`", "did you mean `flash`"],
    );
    refused(
        "inherits = 'd16'\n[host]\nkind = 'gpu'\n",
        &[JOB],
        &["a part named `host` must be of that kind"],
    );
    refused("inherits = 'd16'\n[flash]\ncount = 0\n", &[JOB], &["0 parts; allowed are 1 to 256"]);
    let dotted = "inherits = 'd16'\n['my drive']\nkind = 'flash'\ninherits = 'd16.flash'\n";
    refused(dotted, &[JOB], &["`my drive` is not a valid name for a part"]);
    let misspelt =
        "inherits = 'd16'\n[spare]\nkind = 'flash'\ninherits = 'd16.flash'\n[spare.geometry]\nchanels = 3\n";
    refused(
        misspelt,
        &[JOB],
        &["unknown key `chanels`", "did you mean `channels`", "spare.geometry.chanels"],
    );
    let limit = "inherits = 'd16'\n[spare]\nkind = 'flash'\ninherits = 'd16.flash'\n[spare.geometry]\nplanes = 100000\n";
    refused(limit, &[JOB], &["spare.geometry.planes"]);
    let missing = "inherits = 'd16'\n[spare]\nkind = 'flash'\n";
    refused(missing, &[JOB], &["keys are missing", "spare.geometry.channels", "spare.precondition"]);
}

/// Keys of an earlier layout are refused with the place where they stand now.
#[test]
fn keys_that_have_moved() {
    refused(
        "inherits = 'd16'\nprecondition = 'none'\n",
        &[JOB],
        &["`precondition` is now `flash.precondition`"],
    );
    refused(
        "inherits = 'zng'\n[memory.direct.array]\norder = 'fifo'\n",
        &["betw"],
        &["`memory.direct.array.order` is now `memory.direct.array.scheduler`", "`fifo` is `oldest` there"],
    );
    refused("inherits = 'dram-only'\n[cpu.0]\ncores = 4\n", &["tatp"], &["`cpu.0` is now `cpu`"]);
}

#[test]
fn workloads_for_parts_that_do_not_take_them() {
    refused(DRIVE, &[&format!("flsh={JOB}")], &["no part `flsh` takes a workload", "did you mean `flash`"]);
    refused("inherits = 'ideal'\n", &["l2=gaus:n=16"], &["no part `l2` takes a workload", "gpu"]);
    let both = "inherits = 'hetero'\n";
    let shown = Bench::new(both).refused(&[&format!("gpu={JOB}")]);
    assert!(shown.contains("is a load of requests, and `gpu` cannot run it"), "{shown}");
}

#[test]
fn placements_with_a_hole() {
    let map = |more: &str| {
        format!(
            "inherits = 'ideal'\n[l2]\nmemory = 'map'\n[map]\nkind = 'placement'\ntargets = ['memory', 'slow']\n\
             latency = '0ns'\npolicy = 'ranges'\n{more}\n[slow]\nkind = 'memory'\ninherits = 'optane.memory'\n"
        )
    };
    refused(&map("sizes = ['1MiB']"), &["gaus:n=16"], &["1 sizes for 2 memories", "map.sizes"]);
    refused(&map("sizes = ['4KiB', '4KiB']"), &["gaus:n=48"], &["a placement with a hole", "map.sizes"]);
    refused(
        &map("sizes = ['5KiB', '4KiB']"),
        &["gaus:n=48"],
        &["not a multiple of the page size", "map.sizes"],
    );
}
