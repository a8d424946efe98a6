//! A shadow beside every shipped drive: nothing is lost, and neither it nor folding changes a result.

use machine::Loaded;
use machine::run::{Plan, run_alone};
use requests::trace::TraceOptions;
use serde_json::Value;
use spec::precondition::parse;
use spec::systems::SYSTEMS;

/// Overrides that make a system small enough for garbage collection to begin within the test.
fn small(system: &str) -> &'static [&'static str] {
    match system {
        // Their thresholds need many blocks a plane.
        "d16" => &["flash.geometry.pages=16"],
        "mqsim-default" => {
            &["flash.geometry.pages=16", "flash.geometry.dies=1", "flash.precondition=sequential"]
        }
        "pm9a3" => &["flash.geometry.blocks=128", "flash.geometry.pages=24"],
        // Their over-provisioning would be less than the required free space.
        "860-pro" | "9100-max" | "980-pro" | "d3-s4610" | "p3700" | "zn540" => {
            &["flash.geometry.blocks=128", "flash.geometry.pages=24", "flash.ftl.over_provisioning=20%"]
        }
        // Of so few blocks its cache takes a sixth.
        "evo-2tb" => {
            &["flash.geometry.blocks=128", "flash.geometry.pages=24", "flash.ftl.over_provisioning=30%"]
        }
        "flashabacus-simd" => &["flash.geometry.blocks=64", "flash.geometry.pages=24"],
        // Word lines of the drive hold 256 KiB, and its buffer is larger than such a drive.
        "p5316" => &[
            "flash.geometry.blocks=64",
            "flash.ftl.over_provisioning=20%",
            "flash.geometry.pages=24",
            "flash.buffer.capacity=4MiB",
            "flash.buffer.in_flight=1MiB",
        ],
        "pm9a3x4" => &["flash.count=2", "flash.geometry.blocks=128", "flash.geometry.pages=24"],
        "ssd256" => &["flash.geometry.dies=1", "flash.geometry.blocks=256", "flash.geometry.pages=24"],
        "z-ssd" => &["flash.geometry.blocks=64", "flash.geometry.pages=24"],
        // All of one family: its buffer is many times the drive otherwise.
        name if name.starts_with("fastdrain") => &[
            "flash.geometry.blocks=96",
            "flash.ftl.over_provisioning=30%",
            "flash.geometry.pages=24",
            "flash.buffer.capacity=4MiB",
            "flash.buffer.in_flight=1MiB",
        ],
        other => panic!("say how {other} becomes small"),
    }
}

/// Jobs that meet in the same units: parts of them and many at once, deallocations, and flushes.
const JOBS: [&str; 4] = [
    "fio:rw=randrw,rwmixread=60,bsrange=512-64k,iodepth=16,number_ios=1200,size=20%,norandommap=1,io_size=1g",
    "fio:rw=randwrite,bs=64k,iodepth=16,number_ios=1800,size=90%,norandommap=1,io_size=100g",
    "fio:rw=randtrim,bs=16k,iodepth=2,number_ios=200,size=20%,norandommap=1,io_size=1g",
    "fio:rw=write,bs=24k,iodepth=4,fsync=8,number_ios=200,size=20%,io_size=1g",
];

fn run(system: &str, set: &[&str]) -> Value {
    let one_channel = ["flash.geometry.channels=1", "flash.geometry.ways=1"];
    let set = one_channel.iter().chain(small(system)).chain(set).map(|key| (*key).to_owned()).collect();
    let plan = Plan {
        system: system.into(),
        text: None,
        set,
        workloads: JOBS.map(String::from).into(),
        seed: 1,
        precondition: None,
        warmup: None,
        trace: TraceOptions::default(),
        queue_depth: None,
    };
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{system}: {e}"));
    serde_json::to_value(document).expect("a document has a JSON form")
}

fn check<'a>(document: &'a Value, name: &str) -> &'a Value {
    let checks = document["checks"].as_array().expect("a list of checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name}"))
}

#[test]
fn every_system_keeps_its_data_under_a_shadow() {
    for (system, _) in SYSTEMS {
        let driven_by_requests = |loaded: &Loaded| {
            loaded.spec.gpu.is_empty() && loaded.spec.cpu.is_empty() && !loaded.spec.flash.is_empty()
        };
        if !machine::load(system, &[]).is_ok_and(|loaded| driven_by_requests(&loaded)) {
            continue;
        }
        let document = run(system, &["sim.shadow=true"]);
        assert_eq!(document["ok"], true, "{system}: {:#}", document["checks"]);
        for name in ["shadow_reads", "shadow_units", "valid_slots"] {
            assert_eq!(check(&document, name)["ok"], true, "{system}, {name}");
        }
        for (kind, least) in [("read", 400), ("write", 1_800), ("trim", 200), ("flush", 20)] {
            let done = document["io"][kind]["requests"].as_u64().unwrap_or(0);
            assert!(done >= least, "{system}: {done} requests of kind {kind}");
        }
        let erases = document.pointer("/flash/0/erases").and_then(Value::as_u64).unwrap_or(0);
        assert!(erases > 0, "{system}: nothing was erased");
        let on_demand = document.pointer("/spec/flash/ftl/mapping/demand").is_some();
        assert_eq!(document["checks"].to_string().contains("shadow_map"), on_demand, "{system}");

        let plain = run(system, &["sim.shadow=false"]);
        let unfolded = run(system, &["sim.fold=false"]);
        for part in ["simulated_ns", "io", "flash", "breakdown_ns"] {
            assert_eq!(document[part], plain[part], "{system}: a shadow changes {part}");
            assert_eq!(unfolded[part], plain[part], "{system}: folding changes {part}");
        }
    }
}

/// Small blocks of which each holds units of many translation pages. Once, writing those back took what collection had
/// gained, and no request was answered any more.
#[test]
fn collection_does_not_feed_itself_with_translation_pages() {
    let set =
        ["flash.geometry.channels=1", "flash.geometry.ways=1", "flash.geometry.pages=16", "sim.shadow=true"];
    let plan = Plan {
        system: "mqsim-default".into(),
        text: None,
        set: set.map(String::from).into(),
        workloads: vec!["fio:rw=randwrite,bs=8k,iodepth=16,number_ios=20000".into()],
        seed: 1,
        precondition: Some(parse("steady:share=100%").expect("a state of the device")),
        warmup: None,
        trace: TraceOptions::default(),
        queue_depth: None,
    };
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{e}"));
    let document = serde_json::to_value(document).expect("a document has a JSON form");
    assert_eq!(document["ok"], true, "{:#}", document["checks"]);
    assert_eq!(document["io"]["write"]["requests"], 20_000);
    let erases = document.pointer("/flash/0/erases").and_then(Value::as_u64).unwrap_or(0);
    assert!(erases > 0, "nothing was erased");
}

fn alone(set: &[&str], job: &str) -> Value {
    let plan = Plan {
        system: "d16".into(),
        text: None,
        set: set.iter().map(|key| (*key).to_owned()).collect(),
        workloads: vec![job.into()],
        seed: 1,
        precondition: None,
        warmup: None,
        trace: TraceOptions::default(),
        queue_depth: None,
    };
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{e}"));
    serde_json::to_value(document).expect("a document has a JSON form")
}

fn failed(document: &Value) -> Vec<&Value> {
    let checks = document["checks"].as_array().expect("a list of checks");
    checks.iter().filter(|check| check["ok"] != true).collect()
}

/// Writes in order dirty every entry of a translation page, so that it is written back without having been read. Some of
/// them have gone to flash once already: they are news no longer, and yet memory has them.
#[test]
fn a_translation_page_that_memory_has_whole_is_written_without_being_read() {
    let mapping = "flash.ftl.mapping={demand={capacity=\"16KiB\",cached_entry=\"8B\",stored_entry=\"4B\",\
                   read=\"512B\",granularity=\"entry\"}}";
    let document = alone(&[mapping, "sim.shadow=true"], "fio:rw=write,bs=4k,iodepth=32,number_ios=12000");
    assert_eq!(failed(&document), Vec::<&Value>::new());
}

/// The shadow of the lines of a GPU's and of a server's shared cache.
#[test]
fn a_shadow_of_lines_changes_nothing() {
    let caches = ["gpu.l1.sets=1", "gpu.l1.ways=1", "l2.sets=4", "l2.ways=4"];
    let server = ["cpu.cores=4", "fabric.mesh.rows=2", "fabric.mesh.columns=2", "l2.banks=4", "l2.sets=16"];
    let short = ["cpu.load.jobs=100", "cpu.warmup.fixed.jobs=0"];
    let cases: [(&str, &str, Vec<&str>); 3] = [
        ("ideal", "back:n=1024", caches.to_vec()),
        ("hybridgpu", "bfs1:scale=8", caches.to_vec()),
        ("dram-only", "tatp:size=64MiB,work=2000", [&server[..], &short].concat()),
    ];
    for (system, workload, set) in cases {
        let run = |shadow: &str| {
            let plan = Plan::new(system, workload).set(shadow);
            let plan = set.iter().fold(plan, |plan, assignment| plan.set(assignment));
            let document = run_alone(&plan).unwrap_or_else(|e| panic!("{system}: {e}"));
            serde_json::to_value(document).expect("a document has a JSON form")
        };
        let (on, off) = (run("sim.shadow=true"), run("sim.shadow=false"));
        assert_eq!(failed(&on), Vec::<&Value>::new(), "{system}");
        assert!(on["checks"].to_string().contains("no stored line is lost"), "{system}");
        for part in ["simulated_ns", "io", "gpu", "cpu", "flash", "breakdown_ns"] {
            assert_eq!(on[part], off[part], "{system}: a shadow changes {part}");
        }
    }
}
