//! What whole systems spend: energy changes nothing else, is proportional to its constants, and is power times time where a power is constant.

use machine::Warmup;
use machine::result::Document;
use machine::run::{Plan, run_alone};
use serde_json::Value;
use toml::Table;

/// A system, its workload, and what keeps the run short.
struct Case {
    system: &'static str,
    workload: &'static str,
    set: &'static [&'static str],
}

const fn case(system: &'static str, workload: &'static str, set: &'static [&'static str]) -> Case {
    Case { system, workload, set }
}

const LITTLE: &[&str] = &["flash.precondition={ sequential = { share = \"1%\" } }"];
const JOBS: &[&str] = &["cpu.load.jobs=200", "cpu.warmup.fixed.jobs=50"];
const BUFFERED: &str = "fio:rw=randrw,bs=4k,size=16m,number_ios=400,fsync=16,direct=0";

/// One of each kind of part, all of whose parts tell.
const WHOLE: &[Case] = &[
    case("pm9a3", "fio:rw=randrw,bs=16k,iodepth=32,number_ios=2000,size=1%", LITTLE),
    case("z-ssd", "fio:rw=randrw,bs=16k,iodepth=32,number_ios=2000,size=1%", LITTLE),
    case("fastdrain", BUFFERED, LITTLE),
    case("ideal", "bfs1:scale=8", &[]),
    case("hetero", "back:n=1024", LITTLE),
    case("hybridgpu", "back:n=1024", LITTLE),
    case("zng", "back:n=1024", &[]),
    case("dram-only", "tatp:size=64MiB", JOBS),
    case(
        "astriflash",
        "tatp:size=64MiB",
        &["cpu.load.jobs=200", "cpu.warmup.fixed.jobs=50", "memory.dram_cache.sets=128"],
    ),
    case(
        "os-swap",
        "tatp:size=64MiB",
        &["cpu.load.jobs=200", "cpu.warmup.fixed.jobs=50", "swap.memory=2MiB", "swap.free=64KiB"],
    ),
    case("flashabacus", "atax:m=512,n=512,instances=3", &["accelerator.sample=16384"]),
    case("flashabacus-simd", "atax:m=512,n=512,instances=3", &["coprocessor.sample=16384"]),
];

impl Case {
    fn plan(&self, system: &str) -> Plan {
        self.set.iter().fold(Plan::new(system, self.workload), |plan, key| plan.set(key))
    }

    fn run(&self, system: &str) -> Document {
        let document = run_alone(&self.plan(system)).unwrap_or_else(|fault| panic!("{system}: {fault}"));
        assert!(document.ok, "{system}: {:?}", document.checks);
        document
    }

    /// The system in a file of its own, with its tables `energy` as they are made here.
    fn run_changed(&self, change: fn(&mut Table)) -> Document {
        let mut spec: Table =
            machine::load(self.system, &[]).expect("a system").to_toml().parse().expect("TOML");
        change(&mut spec);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("system.toml");
        std::fs::write(&file, spec.to_string()).expect("a file");
        self.run(&file.display().to_string())
    }
}

/// Applies something to every table `energy`: whether the table stays.
fn tables(spec: &mut Table, change: &dyn Fn(&mut toml::Value) -> bool) {
    if spec.get_mut("energy").is_some_and(|energy| !change(energy)) {
        spec.remove("energy");
    }
    spec.iter_mut().filter_map(|(_, inner)| inner.as_table_mut()).for_each(|table| tables(table, change));
}

/// Twice a quantity such as `1.8uJ`, or all of those in a table or an array.
fn double(value: &mut toml::Value) {
    match value {
        toml::Value::Table(table) => table.iter_mut().for_each(|(_, inner)| double(inner)),
        toml::Value::Array(list) => list.iter_mut().for_each(double),
        toml::Value::String(text) => {
            let unit = text.find(|c: char| c.is_alphabetic()).expect("a unit");
            let number: f64 = text[..unit].trim().parse().expect("a number");
            *text = format!("{}{}", 2.0 * number, &text[unit..]);
        }
        other => panic!("{other} is not a quantity"),
    }
}

fn energy(document: &Document) -> &machine::result::EnergyResult {
    document.energy.as_ref().expect("the parts tell")
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// All but energy and its checks, the spec and what the run cost.
fn other(document: &Document) -> Value {
    let mut value = serde_json::to_value(document).expect("a document has a JSON form");
    let all = value.as_object_mut().expect("an object");
    for apart in ["energy", "system", "spec", "spec_sha256", "run"] {
        all.remove(apart);
    }
    let checks = all.get_mut("checks").and_then(Value::as_array_mut).expect("a list");
    checks.retain(|check| {
        !check["name"].as_str().is_some_and(|name| name.contains("energy") || name.contains("spends"))
    });
    value
}

#[test]
fn energy_changes_nothing_else_and_is_proportional_to_its_constants() {
    for case in WHOLE {
        let name = case.system;
        let document = case.run(name);
        let found = energy(&document);
        assert_eq!(found.missing, Vec::<String>::new(), "{name}");
        let total = found.total.as_ref().expect("all tell");
        assert!(total.energy_j > 0.0 && total.power_w_max >= total.power_w_mean, "{name}");
        let parts: f64 = found.parts.iter().map(|part| part.energy_j).sum();
        let integral: f64 = total.power_series.iter().map(|w| w.power_w * w.width_ns * 1e-9).sum();
        assert!(
            close(parts, total.energy_j) && close(integral, total.energy_j),
            "{name}: {parts}, {integral}"
        );
        assert!(total.power_series.len() <= 256, "{name}");
        assert!(close(total.power_w_mean * found.measured_ns * 1e-9, total.energy_j), "{name}");

        let twice = case.run_changed(|spec| {
            tables(spec, &|energy| {
                double(energy);
                true
            });
        });
        for (one, two) in found.parts.iter().zip(&energy(&twice).parts) {
            assert!(
                one.energy_j > 0.0 && close(2.0 * one.energy_j, two.energy_j),
                "{name}: {one:?}, {two:?}"
            );
        }
        let without = case.run_changed(|spec| tables(spec, &|_| false));
        assert!(without.energy.is_none(), "{name}");
        assert_eq!(other(&document), other(&without), "{name}");
        assert_eq!(other(&document), other(&twice), "{name}");
    }
}

/// A link is on and a chip is on for the whole of the measured window, and for nothing before it.
#[test]
fn a_constant_power_is_spent_in_the_measured_window_alone() {
    let case = &WHOLE[0];
    let mut plan = case.plan(case.system);
    let whole = run_alone(&plan).expect("it runs");
    plan.warmup = Some(Warmup::Requests(1000));
    let cut = run_alone(&plan).expect("it runs");
    assert!(cut.ok && energy(&cut).measured_ns < 0.9 * energy(&whole).measured_ns);
    for document in [&whole, &cut] {
        let found = energy(document);
        let on = found.parts[0].activities.iter().find(|of| of.activity == "link on").expect("an activity");
        // 0.3 W.
        assert!(close(on.energy_j, 0.3 * found.measured_ns * 1e-9), "{found:?}");
        let total = found.total.as_ref().expect("all tell");
        let requests = document.io.kinds.all.requests as f64;
        assert!(close(total.request_j.expect("requests") * requests, total.energy_j));
        assert_eq!(total.job_j, None);
    }
    assert_eq!((whole.io.kinds.all.requests, cut.io.kinds.all.requests), (2000, 1000));
}

/// Optane's modules have no constants: GPU and memory have no total.
#[test]
fn what_nobody_knows_has_no_total() {
    let document = run_alone(&Plan::new("optane", "back:n=512")).expect("it runs");
    let found = energy(&document);
    assert_eq!(found.missing, ["memory"]);
    assert!(found.total.is_none() && found.parts.len() == 1);
    let none = run_alone(&Plan::new("d16", "fio:rw=randread,bs=4k,number_ios=10")).expect("it runs");
    assert!(none.energy.is_none() && none.ok);
}

// A GPU inside a drive: what turns it back into what it is compared with, and who else uses the drive.

const OFF: [&str; 3] =
    ["flash.ftl.allocation=striped", "flash.ftl.map_unit=16KiB", "memory.initiator.entrance=host"];

fn run(system: &str, set: &[&str], workloads: &[&str]) -> Value {
    let mut plan = Plan::new(system, "");
    plan.workloads = workloads.iter().map(|text| (*text).to_owned()).collect();
    plan.set = set.iter().map(|text| (*text).to_owned()).collect();
    let document = run_alone(&plan).expect("it runs");
    assert!(document.ok, "{:?}", document.checks);
    serde_json::to_value(document).expect("a document has a JSON form")
}

/// Results of a run, without its inputs and its cost.
fn found(mut document: Value) -> Value {
    let all = document.as_object_mut().expect("a document is an object");
    for apart in ["system", "spec", "spec_sha256", "run"] {
        all.remove(apart);
    }
    document
}

/// Bit for bit: every figure of the document. One switch turned back alone leaves a difference, so that the comparison can fail.
#[test]
fn with_every_switch_off_mqms_is_the_baseline() {
    // More than caches hold, so that it writes to flash.
    let workload = ["back:n=16384"];
    let baseline = found(run("mqsim-macsim", &[], &workload));
    assert_eq!(found(run("mqms", &OFF, &workload)), baseline);
    for left_on in OFF {
        let off: Vec<&str> = OFF.into_iter().filter(|set| *set != left_on).collect();
        assert_ne!(found(run("mqms", &off, &workload)), baseline, "{left_on}");
    }
}

/// The host keeps its queues: both are flows of the same drive, and each waits for the other.
#[test]
fn host_and_gpu_share_the_drive() {
    const HOST: &str = "fio:name=host,rw=randread,bs=4k,iodepth=64,number_ios=20000";
    const GPU: &str = "back:n=4096";
    let together = run("mqms", &[], &[GPU, HOST]);
    let flows = together["io"]["flows"].as_array().expect("a list");
    let names: Vec<&str> = flows.iter().filter_map(|flow| flow["name"].as_str()).collect();
    assert_eq!(names, ["host", "gpu:back"]);
    let requests = |document: &Value, flow: usize| document["io"]["flows"][flow]["all"]["requests"].as_u64();
    assert_eq!(requests(&together, 0), Some(20_000));
    let all = together["io"]["all"]["requests"].as_u64();
    assert_eq!(all, requests(&together, 0).zip(requests(&together, 1)).map(|(a, b)| a + b));
    let mean = |document: &Value, flow: usize| {
        document["io"]["flows"][flow]["read"]["latency_ns"]["mean"].as_f64().expect("it reads")
    };
    let (gpu, host) = (run("mqms", &[], &[GPU]), run("mqms", &[], &[HOST]));
    assert!(mean(&together, 1) > mean(&gpu, 0), "the GPU waits for the host's reads");
    assert!(mean(&together, 0) > mean(&host, 0), "the host waits for the GPU's");
}
