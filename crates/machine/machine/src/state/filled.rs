//! What a server's filled memory depends on.

use super::spec::{StateSpec, hash_of_file, tree};
use crate::plan::Plan;
use crate::plan::workloads::files_of;
use crate::spec::{Kind, Loaded, MemorySpec, Part, ServerSpec, StartSpec};
use compute::ooo::{CpuSpec, TableSharing, ThreadsSpec};
use mem::dram::DramSpec;
use mem::dram_cache::DramCacheSpec;
use mem::mmu::MmuSpec;
use mem::swap::SwapSpec;
use serde_json::{Value, json};

/// Memory that jobs fill before the run.
enum Filled<'a> {
    Cache(&'a Part<MemorySpec>, &'a DramCacheSpec),
    Paged(&'a Part<SwapSpec>),
}

/// The memory of the server of this number that is filled, if any is.
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

/// Whether the server of this number begins with memory that jobs have filled.
pub(super) fn is_filled(loaded: &Loaded, number: usize) -> bool {
    filled(loaded, number).is_some()
}

impl StateSpec {
    /// What the filled memory of a server depends on, by its number, with its program; `None` if that cannot be known beforehand: the program
    /// is in a file that cannot be read twice.
    pub(super) fn of_memory(plan: &Plan, loaded: &Loaded, number: usize, program: &str) -> Option<StateSpec> {
        // Each key is named, so that a new one does not compile until it is placed here.
        let Plan {
            // The spec is what they have come to, and the program is one of the workloads.
            system: _,
            text: _,
            set: _,
            workloads: _,
            // A program has a seed of its own; nothing else draws.
            seed: _,
            // Those of drives.
            precondition: _,
            trace: _,
            queue_depth: _,
            // What comes after.
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
        // Where the page tables lie, which may be in the cache.
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

/// Which pages a DRAM cache can hold, and which make room.
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
        // Filling takes whatever it asks for.
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

/// How many pages the operating system holds, and keeps free.
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

    fn of(system: &str, program: &str, set: &[&str]) -> Option<StateSpec> {
        let plan = set.iter().fold(Plan::new(system, program), |plan, set| plan.set(set));
        let loaded = Loaded::load(&plan.system, &plan.set).expect("a spec");
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
