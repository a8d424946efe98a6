//! Keys of states: the inputs of a drive's state and of a server's filled memory.

use super::{hex, version};
use crate::plan::Plan;
use crate::plan::workloads::files_of;
use compute::ooo::{CpuSpec, TableSharing, ThreadsSpec};
use mem::dram::DramSpec;
use mem::dram_cache::DramCacheSpec;
use mem::mmu::MmuSpec;
use mem::swap::SwapSpec;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use spec::precondition::{Precondition, trace};
use spec::{DriveSpec, Kind, Loaded, MemorySpec, Part, ServerSpec, StartSpec, stream};
use ssd::spec::FlashState;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Inputs that determine the state of a part before the first event of a run, as a tree of a spec's keys. Equal inputs
/// give states that are equal byte for byte.
#[derive(Clone, Debug)]
pub struct StateSpec {
    keys: Value,
    /// Name of the part, for messages only: a state does not depend on it. Empty for a state from a file.
    part: String,
    /// Tables of the spec that the keys are from, by their prefix here.
    tables: Vec<(&'static str, String)>,
}

impl PartialEq for StateSpec {
    fn eq(&self, other: &StateSpec) -> bool {
        self.keys == other.keys
    }
}

/// Key in which two states differ, with both values as JSON; `None` where it is not set.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Path of the key.
    pub key: String,
    /// Value on this side.
    pub ours: Option<String>,
    /// Value on the other side.
    pub theirs: Option<String>,
}

impl StateSpec {
    /// Inputs of a drive's state, by the drive's number; `None` if they cannot be known beforehand: preconditioning
    /// reads a trace that is not a regular file.
    ///
    /// # Panics
    /// If the drive does not exist.
    pub fn of(plan: &Plan, loaded: &Loaded, number: usize) -> Option<StateSpec> {
        // Each key of the plan is named, so that a new one does not compile until it is placed here.
        let Plan {
            seed,
            precondition: instead,
            // The spec contains their effect.
            system: _,
            text: _,
            set: _,
            // Used after the state.
            workloads: _,
            warmup: _,
            trace: _,
            queue_depth: _,
        } = plan;
        // Of the spec, only the drive matters: no command has come from a different part, and the device sees neither
        // names nor simulation settings.
        let part = &loaded.spec.flash[number];
        let DriveSpec { flash, precondition } = &part.spec;
        let precondition = precondition_of(instead.as_ref().unwrap_or(precondition))?;
        let flash = tree(&FlashState::from(flash));
        let keys =
            json!({ "device": stream(number), "seed": seed, "flash": flash, "precondition": precondition });
        Some(StateSpec::new(keys, &part.name, vec![("flash", part.table().to_owned())]))
    }

    pub(super) fn new(keys: Value, part: &str, tables: Vec<(&'static str, String)>) -> StateSpec {
        StateSpec { keys, part: part.to_owned(), tables }
    }

    /// Restores a key from a file.
    pub(super) fn from_keys(keys: Value) -> StateSpec {
        StateSpec::new(keys, "", Vec::new())
    }

    /// Returns whether the state is of a drive, not of a server's memory.
    pub fn is_of_a_drive(&self) -> bool {
        self.keys.get("device").is_some()
    }

    /// Returns the tree, as it goes into a file.
    pub(super) fn keys(&self) -> &Value {
        &self.keys
    }

    /// Returns the name of the part.
    pub fn part(&self) -> &str {
        &self.part
    }

    /// Translates a key of the tree to the spec of this machine.
    pub(super) fn key_of_spec(&self, key: &str) -> String {
        let renamed = self.tables.iter().find_map(|(kind, table)| {
            let rest = key.strip_prefix(kind)?.strip_prefix('.')?;
            Some(format!("{table}.{rest}"))
        });
        renamed.unwrap_or_else(|| key.to_owned())
    }

    /// Name of the state: a SHA-256 of all its inputs, the program's version included.
    pub fn digest(&self) -> String {
        let all = json!({ "version": version(), "keys": self.keys });
        hex(&Sha256::digest(all.to_string().as_bytes()))
    }

    /// Keys in which two states differ, in alphabetical order.
    pub fn differences(&self, theirs: &StateSpec) -> Vec<Difference> {
        let mut found = Vec::new();
        compare("", Some(&self.keys), Some(&theirs.keys), &mut found);
        found
    }
}

/// Parameters of preconditioning; for a trace, the content of its files in place of their names.
fn precondition_of(precondition: &Precondition) -> Option<Value> {
    let Precondition::trace(params) = precondition else { return Some(tree(precondition)) };
    let trace::Params { file, format, remap, share, passes } = params;
    let files = requests::trace::parts(Path::new(file)).ok()?;
    let files: Option<Vec<String>> = files.iter().map(hash_of_file).collect();
    Some(json!({ "trace": {
        "file": files?, "format": format, "remap": remap, "share": tree(share), "passes": passes,
    } }))
}

pub(super) fn hash_of_file(path: &PathBuf) -> Option<String> {
    let mut file = File::open(path).ok().filter(|_| path.is_file())?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hex(&hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// Spec types came out of a TOML file: they have a JSON form.
pub(super) fn tree(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn compare(path: &str, ours: Option<&Value>, theirs: Option<&Value>, found: &mut Vec<Difference>) {
    if ours == theirs {
        return;
    }
    if let (Some(Value::Object(ours)), Some(Value::Object(theirs))) = (ours, theirs)
        && alike(ours, theirs)
    {
        let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        for name in names {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            compare(&path, ours.get(name), theirs.get(name), found);
        }
        return;
    }
    let text = |value: Option<&Value>| value.filter(|value| !value.is_null()).map(Value::to_string);
    found.push(Difference { key: path.to_owned(), ours: text(ours), theirs: text(theirs) });
}

/// Returns whether two tables have keys in common: two choices between policies have none.
fn alike(ours: &Map<String, Value>, theirs: &Map<String, Value>) -> bool {
    ours.keys().any(|name| theirs.contains_key(name))
}

/// Memory that jobs fill before the run.
enum Filled<'a> {
    Cache(&'a Part<MemorySpec>, &'a DramCacheSpec),
    Paged(&'a Part<SwapSpec>),
}

/// Filled memory of the server with this number, if any.
fn filled(loaded: &Loaded, number: usize) -> Option<Filled<'_>> {
    let spec = &loaded.spec;
    let cpu = spec.cpu.get(number)?;
    let memory = spec.l2[cpu.link("l2")?.number].link("memory")?;
    let part = (memory.kind == Kind::Memory).then(|| &spec.memory[memory.number]);
    match part.and_then(|part| Some((part, part.spec.filled()?))) {
        Some((part, cache)) => Some(Filled::Cache(part, cache)),
        None => cpu.link("swap").map(|swap| Filled::Paged(&spec.swap[swap.number])),
    }
}

/// Returns whether the server with this number begins with memory that jobs have filled.
pub(super) fn is_filled(loaded: &Loaded, number: usize) -> bool {
    filled(loaded, number).is_some()
}

impl StateSpec {
    /// Inputs of a server's filled memory, by its number, with its program; `None` if they cannot be known beforehand:
    /// the program is in a file that cannot be read twice.
    pub(super) fn of_memory(plan: &Plan, loaded: &Loaded, number: usize, program: &str) -> Option<StateSpec> {
        // Each key is named, so that a new one does not compile until it is placed here.
        let Plan {
            // The spec contains their effect, and the program is one of the workloads.
            system: _,
            text: _,
            set: _,
            workloads: _,
            // A program has its own seed; nothing else draws.
            seed: _,
            // Only for drives.
            precondition: _,
            trace: _,
            queue_depth: _,
            // Used after the state.
            warmup: _,
        } = plan;
        let cpu = &loaded.spec.cpu[number];
        let ServerSpec {
            cores:
                CpuSpec {
                    cores,
                    tables,
                    threads: ThreadsSpec { count, switch: _, pending: _, miss: _, scheduler: _ },
                    // Jobs are executed one after another, without time and without caches.
                    clock: _,
                    width: _,
                    window: _,
                    store_buffer: _,
                    ports: _,
                    flush: _,
                    quantum: _,
                    l1i: _,
                    l1d: _,
                    tlb: _,
                    load: _,
                    energy: _,
                },
            start: StartSpec { fill_jobs, warmup: _ },
        } = &cpu.spec;
        let mmu = &loaded.spec.mmu[cpu.link("mmu")?.number];
        // Place of the page tables, which may be in the cache.
        let MmuSpec { table, clock: _, tlb: _, walkers: _ } = &mmu.spec;
        let (kind, memory, part) = match filled(loaded, number)? {
            Filled::Cache(part, spec) => ("memory", json!({ "dram_cache": cache(spec) }), part.table()),
            Filled::Paged(part) => ("swap", paged(&part.spec), part.table()),
        };
        let files = files_of(program).ok()?.into_iter().chain(programs::service::file_of(program));
        let files: Option<Vec<String>> = files.map(|file| hash_of_file(&file)).collect();
        let mut keys = json!({
            "server": number,
            "program": program,
            "files": files?,
            "cpu": { "cores": cores, "threads": { "count": count }, "fill_jobs": fill_jobs },
            "mmu": { "table": tree(table) },
            kind: memory,
        });
        if *tables != TableSharing::shared {
            keys["cpu"]["tables"] = tree(tables);
        }
        let tables =
            vec![("cpu", cpu.table().to_owned()), ("mmu", mmu.table().to_owned()), (kind, part.to_owned())];
        Some(StateSpec::new(keys, &cpu.name, tables))
    }
}

/// Settings of a DRAM cache that decide which pages it can hold, and which make room.
fn cache(spec: &DramCacheSpec) -> Value {
    let DramCacheSpec {
        sets,
        ways,
        replacement,
        partition,
        dram:
            DramSpec {
                controllers,
                interleave: _,
                latency: _,
                bus: _,
                banks: _,
                timing: _,
                refresh: _,
                scheduler: _,
                energy: _,
            },
        // Filling admits every page.
        admission: _,
        frontside: _,
        backside: _,
        misses: _,
        evict_buffer: _,
        backing: _,
    } = spec;
    json!({
        "sets": sets,
        "ways": ways,
        "replacement": tree(replacement),
        "partition": tree(partition),
        "dram": { "controllers": controllers },
    })
}

/// Settings that decide how many pages the operating system holds, and keeps free.
fn paged(spec: &SwapSpec) -> Value {
    let SwapSpec {
        memory,
        free,
        fault: _,
        submit: _,
        complete: _,
        select: _,
        lock: _,
        shootdown: _,
        backing: _,
    } = spec;
    json!({ "memory": tree(memory), "free": tree(free) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[&str]) -> StateSpec {
        let plan = set.iter().fold(Plan::new("d16", ""), |plan, set| plan.set(set));
        let loaded = crate::load(&plan.system, &plan.set).expect("a spec");
        StateSpec::of(&plan, &loaded, 0).expect("nothing is read")
    }

    #[test]
    fn times_are_left_out_and_shapes_are_not() {
        let d16 = of(&[]);
        assert_eq!(d16.digest(), of(&["flash.cell.read=[\"3us\"]", "flash.channel.rate=400MT/s"]).digest());
        let wider = of(&["flash.geometry.channels=4"]);
        assert_ne!(d16.digest(), wider.digest());
        let difference = |key: &str, ours: &str, theirs: &str| Difference {
            key: key.to_owned(),
            ours: Some(ours.to_owned()),
            theirs: Some(theirs.to_owned()),
        };
        assert_eq!(d16.differences(&d16), []);
        assert_eq!(d16.differences(&wider), [difference("flash.geometry.channels", "8", "4")]);
        let choices = of(&["flash.ftl.gc.victim={ d_choices = { d = 4 } }"]);
        let further = of(&["flash.ftl.gc.victim={ d_choices = { d = 5 } }"]);
        assert_eq!(choices.differences(&further), [difference("flash.ftl.gc.victim.d_choices.d", "4", "5")]);
        let victim = difference("flash.ftl.gc.victim", "\"greedy\"", "{\"d_choices\":{\"d\":4}}");
        assert_eq!(d16.differences(&choices), [victim]);
    }

    #[test]
    fn the_seed_and_the_content_of_a_trace_count() {
        let loaded = crate::load("d16", &[]).expect("a spec");
        let of = |plan: &Plan| StateSpec::of(plan, &loaded, 0);
        let plan = Plan::new("d16", "");
        let seeded = Plan { seed: 2, ..plan.clone() };
        assert_ne!(of(&plan), of(&seeded));
        let folder = tempfile::tempdir().expect("a folder");
        let traced = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            let file = path.display().to_string();
            let params = trace::Params { file, ..trace::Params::default() };
            Plan { precondition: Some(Precondition::trace(params)), ..plan.clone() }
        };
        assert_eq!(of(&traced("a", "0 0 0 8 0\n")), of(&traced("b", "0 0 0 8 0\n")));
        assert_ne!(of(&traced("a", "0 0 0 8 0\n")), of(&traced("b", "0 0 8 8 0\n")));
        let absent = trace::Params { file: "absent".into(), ..trace::Params::default() };
        assert_eq!(of(&Plan { precondition: Some(Precondition::trace(absent)), ..plan }), None);
    }
}

#[cfg(test)]
mod filled_tests {
    use super::*;

    fn of(system: &str, program: &str, set: &[&str]) -> Option<StateSpec> {
        let plan = set.iter().fold(Plan::new(system, program), |plan, set| plan.set(set));
        let loaded = crate::load(&plan.system, &plan.set).expect("a spec");
        filled(&loaded, 0)?;
        StateSpec::of_memory(&plan, &loaded, 0, program)
    }

    #[test]
    fn times_are_left_out_and_what_pages_there_are_is_not() {
        let base = of("astriflash", "tatp", &[]).expect("filled");
        let later = ["cpu.clock=3GHz", "memory.dram_cache.frontside.command=9", "flash.cell.read=[\"3us\"]"];
        assert_eq!(base.digest(), of("astriflash", "tatp", &later).expect("filled").digest());
        let differs = |program: &str, set: &str, key: &str| {
            let other = of("astriflash", program, &[set]).expect("filled");
            let keys: Vec<String> = base.differences(&other).into_iter().map(|found| found.key).collect();
            assert_eq!(keys, [key]);
        };
        differs("tatp", "memory.dram_cache.sets=1000", "memory.dram_cache.sets");
        differs("tatp", "memory.dram_cache.replacement=srrip", "memory.dram_cache.replacement");
        differs("tatp", "cpu.threads.count=48", "cpu.threads.count");
        differs("tatp", "cpu.fill_jobs=7", "cpu.fill_jobs");
        differs("silo", "cpu.width=3", "program");
        let paged = of("os-swap", "tatp", &[]).expect("filled");
        let less = of("os-swap", "tatp", &["swap.memory=1GiB"]).expect("filled");
        assert_eq!(paged.differences(&less)[0].key, "swap.memory");
        assert!(of("dram-only", "tatp", &[]).is_none());
    }

    #[test]
    fn the_content_of_a_program_s_file_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("popularity");
        let digest = |text: &str| {
            std::fs::write(&path, text).expect("a file");
            let program = format!("tatp:popularity={}", path.display());
            of("astriflash", &program, &[]).expect("filled").digest()
        };
        assert_eq!(digest("a\nb\n"), digest("a\nb\n"));
        assert_ne!(digest("a\nb\n"), digest("a\na\n"));
        assert!(of("astriflash", "tatp:popularity=no/such", &[]).is_none());
    }
}
