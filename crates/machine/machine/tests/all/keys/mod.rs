//! No dead options: every key of a spec, changed, moves a result in the way that its meaning predicts.
//!
//! A key is in one of three lists: the cases here, where a run is repeated with another value; the values that are
//! refused; or [`INERT`], with the reason why nothing moves and a test that nothing does. A new key without a place in
//! one of them fails [`every_key_has_its_case`].

mod accelerator;
mod array;
mod controllers;
mod coprocessor;
mod digests;
mod direct;
mod dram;
mod dram_cache;
mod energy;
mod errors;
mod ftl;
mod gpu;
mod group_flash;
mod host;
mod linux;
mod memories;
mod paging;
mod server;
mod state;
mod write_caches;

use digests::Digests;
use machine::result::spec_digest;
use machine::run::{Plan, run_alone};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A key, and what its values make of a short run.
pub(crate) struct Case {
    /// The key.
    key: &'static str,
    /// Further overrides that make the key matter.
    context: &'static [&'static str],
    /// The workloads.
    jobs: &'static [&'static str],
    /// Values, as TOML or text.
    values: &'static [&'static str],
    /// Predicted effect.
    predicted: Predicted,
}

/// Effect of a row of values on the result.
pub(crate) enum Predicted {
    /// A metric that rises from value to value.
    Rises(&'static str),
    /// A metric that falls from value to value.
    Falls(&'static str),
    /// No two results are the same.
    Differ,
    /// The energy of the part of this name rises from value to value, and nothing else is another.
    Spends(&'static str),
    /// All but the first are refused, each in a diagnostic with these words.
    RefusedAfterFirst(&'static str),
}

/// A system, and lists of values that make it small: cases are run on it.
struct Bench {
    system: &'static str,
    set: &'static [&'static [&'static str]],
}

/// A device of 16 MiB in 2 channels of 2 dies of 2 planes, written once in order.
const DRIVE: Bench = Bench { system: "d16", set: &[SMALL_DRIVE] };
const SMALL_DRIVE: &[&str] = &[
    "flash.geometry.channels=2",
    "flash.geometry.ways=2",
    "flash.geometry.blocks=32",
    "flash.geometry.pages=16",
    "flash.ftl.gc.start=3",
    "flash.ftl.gc.stop=4",
    "flash.ftl.gc.hard=1",
    "flash.ftl.over_provisioning=25%",
    "flash.precondition=sequential",
];
/// Applications side by side on every multiprocessor, four blocks each.
const BESIDE: &[&str] = &["gpu.resident.blocks=4", "gpu.kernels=shared", "gpu.repeat=false"];
/// A GPU with DRAM.
const GPU: Bench = Bench { system: "ideal", set: &[BESIDE] };
/// Caches that hold next to nothing in front of 8 MiB of flash in 4 packages of 4 planes, with block-table entries of
/// 1 MiB.
const DIRECT: Bench = Bench { system: "zng-base", set: &[BESIDE, SMALL_FLASH] };
/// As [`DIRECT`], with registers that hand dirty pages to the shared cache.
const REDIRECTED: Bench =
    Bench { system: "zng", set: &[BESIDE, SMALL_FLASH, &["memory.direct.transfer=lines"]] };
const SMALL_FLASH: &[&str] = &[
    "memory.direct.array.merge_reads=false",
    "memory.direct.geometry.channels=4",
    "memory.direct.geometry.dies=1",
    "memory.direct.geometry.planes=4",
    "memory.direct.geometry.blocks=16",
    "memory.direct.geometry.pages=16",
    "memory.direct.mapping.group=16",
    "memory.direct.mapping.data_blocks=8",
    "memory.direct.mapping.log_share=4",
    "memory.direct.controller.count=4",
    "memory.direct.network={ mesh = { rows = 2, columns = 2 } }",
    "mmu.table.block.reach=1MiB",
    "gpu.l1.sets=1",
    "gpu.l1.ways=1",
    "l2.sets=4",
    "l2.ways=4",
];
/// Caches and buffers that hold next to nothing in front of an SSD engine and a device of 32 MiB.
const ENGINE: Bench = Bench {
    system: "hybridgpu",
    set: &[
        BESIDE,
        &[
            "gpu.l1.sets=1",
            "gpu.l1.ways=1",
            "l2.sets=4",
            "l2.ways=4",
            "flash.geometry.channels=2",
            "flash.geometry.dies=2",
            "flash.geometry.planes=2",
            "flash.geometry.blocks=64",
            "flash.geometry.pages=16",
            "flash.ftl.gc.start=5",
            "flash.ftl.gc.stop=6",
            "memory.engine.read_buffer.capacity=64KiB",
            "memory.engine.write_buffer.capacity=64KiB",
        ],
    ],
};
/// Caches that hold next to nothing in front of a drive of 32 MiB with a GPU inside.
const INSIDE: Bench = Bench {
    system: "mqms",
    set: &[&[
        "gpu.l1.sets=1",
        "gpu.l1.ways=1",
        "l2.sets=4",
        "l2.ways=4",
        "flash.geometry.channels=2",
        "flash.geometry.ways=1",
        "flash.geometry.planes=2",
        "flash.geometry.blocks=32",
        "flash.geometry.pages=16",
        "flash.ftl.gc.start=3",
        "flash.ftl.gc.stop=4",
        "flash.ftl.gc.hard=1",
        "flash.ftl.over_provisioning=25%",
        "memory.initiator.gather.capacity=32KiB",
    ]],
};
/// A host with 64 MiB for its page cache.
const HOST: Bench = Bench { system: "pm9a3", set: &[&["host.linux.memory=64MiB"]] };
/// Three drives of [`DRIVE`]'s size as one.
const STRIPED: Bench = Bench { system: "tests/keys/striped.toml", set: &[] };
/// A GPU with DRAM and flash side by side, caches that hold next to nothing in front of them.
const PLACED: Bench = Bench {
    system: "zng-gddr",
    set: &[
        BESIDE,
        &[
            "gpu.l1.sets=1",
            "gpu.l1.ways=1",
            "l2.sets=4",
            "l2.ways=4",
            "nand.direct.geometry.channels=4",
            "nand.direct.geometry.dies=1",
            "nand.direct.geometry.planes=4",
            "nand.direct.geometry.blocks=128",
            "nand.direct.geometry.pages=16",
            "nand.direct.mapping.group=16",
            "nand.direct.mapping.data_blocks=64",
            "nand.direct.mapping.log_share=4",
            "nand.direct.controller.count=4",
            "nand.direct.network={ mesh = { rows = 2, columns = 2 } }",
        ],
    ],
};
/// A GPU with a DRAM cache over flash as memory.
const CACHED: Bench = Bench { system: "zng-cached", set: &[BESIDE] };
/// A GPU that faults page by page.
const PAGED: Bench = Bench { system: "hetero", set: &[BESIDE, &["paging.granule=4KiB"]] };

/// A server of four cores with a small shared cache, and a short run of it.
const SMALL_SERVER: &[&str] = &[
    "cpu.cores=4",
    "fabric.mesh.rows=2",
    "fabric.mesh.columns=2",
    "l2.banks=4",
    "l2.sets=16",
    "cpu.load.jobs=200",
    "cpu.warmup.fixed.jobs=0",
];
/// Server with small caches and all data in DRAM.
const SERVER: Bench =
    Bench { system: "dram-only", set: &[SMALL_SERVER, &["cpu.l1d.sets=16", "cpu.l1i.sets=16"]] };
/// With 4 MiB of DRAM cache, which nothing but a fixed time is behind.
const CACHE: Bench = Bench {
    system: "astriflash",
    set: &[SMALL_SERVER, &["memory.dram_cache.sets=64", "memory.dram_cache.backing=fixed"]],
};
/// With an operating system that has 1 MiB.
const SWAPPED: Bench = Bench {
    system: "os-swap",
    set: &[SMALL_SERVER, &["swap.memory=1MiB", "swap.free=64KiB", "flash.geometry.blocks=256"]],
};

/// An accelerator with 16 MiB of memory over 128 MiB of flash on two dies.
const ACCELERATOR: Bench = Bench {
    system: "flashabacus",
    set: &[&[
        "group_flash.groups.geometry.packages=2",
        "group_flash.groups.geometry.dies=1",
        "group_flash.groups.geometry.blocks=32",
        "group_flash.groups.geometry.pages=32",
        "accelerator.memory.size=16MiB",
        "accelerator.sample=16384",
    ]],
};

/// A host with 64 MiB for its page cache, and a coprocessor with 16 MiB of memory.
const COPROCESSOR: Bench = Bench {
    system: "flashabacus-simd",
    set: &[&["host.linux.memory=64MiB", "coprocessor.memory.size=16MiB", "coprocessor.sample=16384"]],
};

/// One request at a time.
pub(crate) const ONE_READ: &[&str] = &["fio:rw=randread,bs=4k,iodepth=1,number_ios=200"];
pub(crate) const ONE_WRITE: &[&str] = &["fio:rw=randwrite,bs=4k,iodepth=1,number_ios=200"];
/// Enough at a time to have queues.
pub(crate) const READ: &[&str] = &["fio:rw=randread,bs=4k,iodepth=32,number_ios=2000"];
pub(crate) const LARGE_READ: &[&str] = &["fio:rw=read,bs=64k,iodepth=4,number_ios=150"];
/// Twice the device, so that space must be reclaimed.
pub(crate) const OVERWRITE: &[&str] = &["fio:rw=randwrite,bs=4k,iodepth=16,number_ios=6000,norandommap=1"];
/// Some units are written much more often than others.
pub(crate) const SKEWED: &[&str] =
    &["fio:rw=randwrite,bs=4k,iodepth=16,random_distribution=zipf:1.1,randrepeat=0,loops=4"];
/// A run long enough that wear shows.
pub(crate) const LONG_SKEWED: &[&str] =
    &["fio:rw=randwrite,bs=4k,iodepth=16,random_distribution=zipf:1.1,randrepeat=0,loops=8"];
pub(crate) const MIXED: &[&str] =
    &["fio:rw=randrw,rwmixread=50,bs=4k,iodepth=32,norandommap=1,randrepeat=0,loops=2"];

/// Short programs of a GPU: elimination, a graph of 512 vertices, a layer of a neural network.
pub(crate) const GAUS: &[&str] = &["gaus:n=64"];
pub(crate) const TWO_GAUS: &[&str] = &["gaus:n=64,pivots=8", "gaus:n=64,pivots=8"];
pub(crate) const BFS: &[&str] = &["bfs1:scale=9"];
pub(crate) const BACK: &[&str] = &["back:n=1024"];
pub(crate) const LONG_BACK: &[&str] = &["back:n=4096"];
pub(crate) const GRAM: &[&str] = &["gram:n=64"];
pub(crate) const THREE: &[&str] = &["back:n=512", "back:n=512", "back:n=512"];

/// Short jobs of a server, with little besides their data.
pub(crate) const TATP: &[&str] = &["tatp:size=64MiB,work=2000"];
pub(crate) const TPCC: &[&str] = &["tpcc:size=128MiB,work=2000"];
pub(crate) const SILO: &[&str] = &["silo:size=256MiB,work=2000"];
pub(crate) const SWAP: &[&str] = &["swap:size=64MiB,work=0"];

/// The policies of families that several keys choose from: each key has a case with all of them.
pub(crate) const REPLACEMENT: &[&str] = &["lru", "fifo", "random", "tree_plru", "srrip"];
pub(crate) const DRAM_SCHEDULER: &[&str] = &["fr_fcfs", "fcfs"];

/// Keys that change nothing, and why they exist.
const INERT: [(&str, &str); 4] = [
    ("description", "names the system in `list` and `explain`"),
    ("sim.fold", "how the simulation works, not what it finds: folding saves events"),
    ("sim.explain", "an observer: it adds what slow requests waited for and changes no other figure"),
    ("sim.shadow", "an observer: it adds its own checks and changes no other figure"),
];

/// The cases of drives, and of GPUs.
const DRIVES: &[(&Bench, &[Case])] = &[
    (&DRIVE, array::CASES),
    (&DRIVE, errors::CASES),
    (&DRIVE, ftl::CASES),
    (&DRIVE, host::CASES),
    (&DRIVE, write_caches::REGISTERS),
    (&DRIVE, write_caches::SLC),
    (&DRIVE, state::CASES),
    (&DRIVE, paging::DRIVE),
    (&DRIVE, energy::DRIVE),
    (&STRIPED, memories::STRIPED),
];
const GPUS: &[(&Bench, &[Case])] = &[
    (&GPU, gpu::CASES),
    (&GPU, memories::L2),
    (&GPU, dram::CASES),
    (&DIRECT, direct::CASES),
    (&REDIRECTED, direct::REDIRECTED),
    (&ENGINE, controllers::ENGINE),
    (&INSIDE, controllers::INITIATOR),
    (&PAGED, paging::CASES),
    (&GPU, paging::GPU),
    (&INSIDE, paging::INSIDE),
    (&PAGED, paging::PAGED),
    (&CACHED, paging::CACHED),
    (&PLACED, memories::PLACEMENT),
    (&GPU, energy::GPU),
    (&DIRECT, energy::DIRECT),
    (&PAGED, energy::PAGED),
];
/// The cases of hosts.
const HOSTS: &[(&Bench, &[Case])] = &[(&HOST, linux::CASES), (&HOST, energy::HOST)];
/// The cases of servers.
const SERVERS: &[(&Bench, &[Case])] = &[
    (&SERVER, server::CASES),
    (&CACHE, dram_cache::CASES),
    (&SWAPPED, paging::OF_SERVER),
    (&SWAPPED, paging::SWAPPED),
    (&SERVER, energy::SERVER),
    (&CACHE, energy::CACHE),
];
/// The cases of accelerators.
const ACCELERATORS: &[(&Bench, &[Case])] = &[
    (&ACCELERATOR, accelerator::CASES),
    (&ACCELERATOR, group_flash::CASES),
    (&ACCELERATOR, errors::GROUPS),
    (&ACCELERATOR, energy::ACCELERATOR),
];
/// The cases of coprocessors.
const COPROCESSORS: &[(&Bench, &[Case])] =
    &[(&COPROCESSOR, coprocessor::CASES), (&COPROCESSOR, energy::COPROCESSOR)];

fn cases() -> impl Iterator<Item = &'static Case> {
    let all = DRIVES.iter().chain(GPUS).chain(HOSTS).chain(SERVERS).chain(ACCELERATORS).chain(COPROCESSORS);
    all.flat_map(|(_, cases)| *cases)
}

impl Bench {
    /// A run of these workloads with these values set.
    fn plan(&self, set: &[&str], jobs: &[&str]) -> Plan {
        let mut plan = Plan::new(self.system, jobs[0]);
        plan.workloads = jobs.iter().map(|job| (*job).to_owned()).collect();
        let all = self.set.iter().copied().flatten().chain(set);
        plan.set = all.map(|assignment| (*assignment).to_owned()).collect();
        plan
    }
}

/// The result document of a run, or the diagnostic.
fn run(plan: &Plan) -> Result<Value, String> {
    let document = run_alone(plan).map_err(|diagnostic| diagnostic.to_string())?;
    assert!(document.ok, "{:?}: {:?}", plan.set, document.checks);
    Ok(serde_json::to_value(document).expect("a document has a JSON form"))
}

/// Results of a run: the document without the spec, the program's version and the cost.
fn found(mut document: Value) -> Value {
    let all = document.as_object_mut().expect("a document is an object");
    for apart in ["spec", "spec_sha256", "version", "run", "workload"] {
        all.remove(apart);
    }
    document
}

/// A figure by its path. A breakdown leaves out what took no time.
fn figure(document: &Value, path: &str) -> f64 {
    let found = document.pointer(path);
    if found.is_none() && path.starts_with("/breakdown_ns/") {
        return 0.0;
    }
    found.and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

/// Results by the digest of their spec and their workloads: cases share the run with the value that is set anyway.
type Runs = BTreeMap<(String, &'static [&'static str]), Result<Value, String>>;

fn hold(bench: &Bench, case: &Case, runs: &mut Runs, digests: &mut Digests) -> Result<(), String> {
    let Case { key, context, jobs, values, predicted } = case;
    let results: Vec<Result<Value, String>> = values
        .iter()
        .map(|value| {
            let own = format!("{key}={value}");
            let set: Vec<&str> = context.iter().copied().chain([own.as_str()]).collect();
            let plan = bench.plan(&set, jobs);
            let Ok(loaded) = plan.load() else { return run(&plan).map(found) };
            let known = runs.entry((spec_digest(&loaded.spec), jobs));
            known.or_insert_with(|| run(&plan).map(found)).clone()
        })
        .collect();
    let name = format!("{} {} {} {}", bench.system, assigned(key, values), context.join(" "), jobs.join(" "));
    digests.insert(name, digests::digest(results.iter().flatten()));
    let good = |n: usize| results[n].as_ref().map_err(|e| format!("{key}={}: {e}", values[n]));
    let steps = 1..values.len();
    match predicted {
        Predicted::Rises(path) | Predicted::Falls(path) => {
            let falls = matches!(predicted, Predicted::Falls(_));
            for n in steps {
                let (before, after) = (figure(good(n - 1)?, path), figure(good(n)?, path));
                if if falls { after >= before } else { after <= before } {
                    return Err(format!(
                        "{key}: {path} is {before} at {} and {after} at {}",
                        values[n - 1],
                        values[n]
                    ));
                }
            }
        }
        Predicted::Differ => {
            for n in steps {
                for m in 0..n {
                    if good(m)? == good(n)? {
                        return Err(format!("{key}: {} and {} are the same", values[m], values[n]));
                    }
                }
            }
        }
        Predicted::Spends(part) => {
            for n in steps {
                energy::rises(good(n - 1)?, good(n)?, part).map_err(|fault| format!("{key}: {fault}"))?;
            }
        }
        Predicted::RefusedAfterFirst(words) => {
            good(0)?;
            for n in steps {
                match &results[n] {
                    Ok(_) => return Err(format!("{key}={} is not refused", values[n])),
                    Err(text) if !text.contains(words) => return Err(format!("no `{words}` in\n{text}")),
                    Err(_) => {}
                }
            }
        }
    }
    Ok(())
}

/// A key and its values, in one line.
fn assigned(key: &str, values: &[&str]) -> String {
    format!("{key}={}", values.join("|")).replace('\n', " ")
}

/// Errors in the cases of these lists, and changes since their results were frozen under this name.
fn faults(name: &str, lists: &[(&Bench, &'static [Case])]) -> String {
    let (mut runs, mut digests) = (Runs::new(), Digests::new());
    let mut faults = Vec::new();
    for (bench, cases) in lists {
        faults.extend(cases.iter().filter_map(|case| hold(bench, case, &mut runs, &mut digests).err()));
    }
    faults.extend(digests::compare(name, &digests).err());
    faults.join("\n")
}

#[test]
fn every_key_of_a_drive_moves_what_it_should() {
    assert_eq!(faults("drives", DRIVES), "");
}

#[test]
fn every_key_of_a_gpu_moves_what_it_should() {
    assert_eq!(faults("gpus", GPUS), "");
}

#[test]
fn every_key_of_a_host_moves_what_it_should() {
    assert_eq!(faults("hosts", HOSTS), "");
}

#[test]
fn every_key_of_a_server_moves_what_it_should() {
    assert_eq!(faults("servers", SERVERS), "");
}

#[test]
fn every_key_of_an_accelerator_moves_what_it_should() {
    assert_eq!(faults("accelerators", ACCELERATORS), "");
}

#[test]
fn every_key_of_a_coprocessor_moves_what_it_should() {
    assert_eq!(faults("coprocessors", COPROCESSORS), "");
}

#[test]
fn every_key_has_its_case() {
    let mut known: BTreeSet<String> = INERT.iter().map(|(key, _)| (*key).to_owned()).collect();
    for case in cases() {
        known.insert(case.key.to_owned());
    }
    let keys: BTreeSet<String> = machine::catalogue::params().into_iter().map(|p| p.key).collect();
    let missing: Vec<_> = keys.difference(&known).collect();
    assert!(missing.is_empty(), "keys without a case: {missing:?}");
    let gone: Vec<_> = known.difference(&keys).collect();
    assert!(gone.is_empty(), "cases without a key: {gone:?}");
}

/// Choices that a key refuses, and why.
const REFUSED: &[(&str, &str, &str, &str)] =
    &[("zng-base", "memory.direct.array.scheduler", "in_order", "planes behind a network have none")];

#[test]
fn what_a_key_refuses_is_refused() {
    for (system, key, choice, why) in REFUSED {
        let mut plan = Plan::new(system, "bfs1");
        plan.set = vec![format!("{key}={choice}")];
        let told = run_alone(&plan).expect_err("it is refused").to_string();
        assert!(told.contains(why) && told.contains(key), "{told}");
    }
}

/// Every choice of a policy family is a value of a case of each key that chooses from it.
#[test]
fn every_choice_has_its_case() {
    let instances =
        machine::catalogue::families().iter().flat_map(|of| of.keys.iter().map(|key| (key, of.family)));
    for (key, family) in instances {
        let values: Vec<_> = cases().filter(|c| c.key == key).flat_map(|c| c.values.to_vec()).collect();
        let refused = |name: &str| REFUSED.iter().any(|(_, of, choice, _)| of == key && *choice == name);
        for entry in family.entries.iter().filter(|entry| !refused(entry.name)) {
            assert!(values.iter().any(|v| v.contains(entry.name)), "{key}: no case has `{}`", entry.name);
        }
    }
}

/// Takes out what slow requests waited for.
fn without_tails(io: &mut Value) {
    let Some(kinds) = io.as_object_mut() else { return };
    kinds.remove("slowest");
    for kind in kinds.values_mut().filter_map(Value::as_object_mut) {
        kind.remove("tail");
    }
}

#[test]
fn inert_keys_change_nothing() {
    for (bench, jobs) in [(&DRIVE, MIXED), (&ENGINE, BFS), (&DIRECT, BFS)] {
        for (key, values) in [
            ("description", ["a", "b"]),
            ("sim.explain", ["true", "false"]),
            ("sim.fold", ["true", "false"]),
            ("sim.shadow", ["true", "false"]),
        ] {
            let of = |value: &str| {
                let own = format!("{key}={value}");
                let mut document = found(run(&bench.plan(&[&own], jobs)).expect("it runs"));
                if key == "sim.shadow" {
                    document.as_object_mut().expect("an object").remove("checks");
                }
                if key == "sim.explain" {
                    without_tails(&mut document["io"]);
                }
                document
            };
            assert_eq!(of(values[0]), of(values[1]), "{}: {key}", bench.system);
        }
    }
}
