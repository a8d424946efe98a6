//! Memory of servers that jobs have filled, and what these have changed of the program's data.

use super::{Files, found, run_with};
use machine::Loaded;
use machine::run::{Plan, run_alone};
use machine::state::{LAYOUT, Wanted, read};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A server of four cores with a small memory, and few jobs.
const SMALL: &[&str] = &[
    "flash.geometry.channels=4",
    "flash.geometry.dies=1",
    "flash.geometry.blocks=256",
    "cpu.cores=4",
    "fabric.mesh.rows=2",
    "fabric.mesh.columns=2",
    "l2.banks=4",
    "cpu.load.jobs=60",
    "cpu.warmup.fixed.jobs=0",
];
const CACHE: &str = "memory.dram_cache.sets=32";
const PAGED: [&str; 2] = ["swap.memory=4MiB", "swap.free=64KiB"];

fn plan(system: &str, program: &str, set: &[&str]) -> Plan {
    let set = SMALL.iter().chain(set);
    set.fold(Plan::new(system, program), |plan, set| plan.set(set))
}

fn fill_jobs(document: &Value) -> u64 {
    document["cpu"][0]["fill_jobs"].as_u64().unwrap_or_else(|| panic!("{}", document["cpu"]))
}

/// The figures of a run that makes the states and of one that takes them, which are the same.
fn made_and_taken(plan: &Plan) -> Value {
    let states = Files::default();
    let [made, taken] = [(); 2].map(|()| found(&run_with(plan, &states)));
    assert_eq!(*states.taken.borrow(), 2, "the server's memory and the drive");
    assert!(fill_jobs(&made) > 0);
    assert!(made == taken, "{:?} {:?}", plan.workloads, plan.set);
    made
}

#[test]
fn a_server_that_takes_its_memory_finds_what_one_that_fills_it_finds() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("lackey");
    let lines =
        (0..400).map(|n| format!("I  {:x},4\n L {:x},8\n", 0x40_0000 + n % 64 * 4, 0x10_0000 + n * 4200));
    std::fs::write(&trace, lines.collect::<String>()).expect("a file");
    let recorded = format!("{}:job=170", trace.display());
    let programs = ["swap", "rbt", "hash", "tatp", "tpcc", "silo", "masstree"];
    let programs = programs.map(|name| format!("{name}:size=128MiB,work=200"));
    for program in
        programs.iter().chain([&recorded, &"exponential:mean=200,touches=3,data=128MiB".to_owned()])
    {
        made_and_taken(&plan("astriflash", program, &[CACHE]));
    }
    made_and_taken(&plan("astriflash-nodp", &programs[3], &[CACHE]));
    made_and_taken(&plan("os-swap", &programs[1], &PAGED));
    let plan = plan("astriflash", &programs[3], &[CACHE, "sim.shadow=true"]);
    let alone = run_alone(&plan).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(found(&alone) == made_and_taken(&plan), "keeping a state changes nothing");
}

/// The SHA-256 of the states of this test, as `LAYOUT` 4 has them.
const FROZEN: (u32, &str) = (4, "79d55a8d478ac82158d042202ee4e6f28bfe454771b85b11edd3f4f1555d211a");

/// As of drives: what another build of the program makes otherwise must have another name.
#[test]
fn a_filled_memory_that_changes_has_another_layout() {
    let mut hash = Sha256::new();
    let mut add = |plan: Plan| {
        let states = Files::default();
        run_with(&plan, &states);
        let loaded = Loaded::load(&plan.system, &plan.set).expect("a spec");
        let wanted = Wanted::of(&plan, &loaded).expect("a server").all();
        let memory = wanted[0].as_ref().expect("no file").digest();
        let kept = read("a file", &states.files.borrow()[&memory]).expect("it is whole");
        hash.update(kept[0].state.bytes());
    };
    for program in ["swap", "rbt", "hash", "tatp", "tpcc", "silo", "masstree"] {
        add(plan("astriflash", &format!("{program}:size=128MiB,work=200"), &[CACHE]));
    }
    add(plan("os-swap", "tatp:size=128MiB,work=200", &PAGED));
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        (LAYOUT, hash.as_str()),
        FROZEN,
        "filling leaves something else, or writes it otherwise: raise LAYOUT in src/state/version.rs by one, and freeze it here and in main.rs"
    );
}

/// Keys of what stands around filled memory; those of which a state does not depend share one, and find what they find alone.
#[test]
fn runs_of_other_times_share_filled_memory() {
    let cache = [
        "cpu.clock=3GHz",
        "cpu.l1d.sets=16",
        "cpu.threads.switch=3us",
        "cpu.threads.pending=3",
        "cpu.load.jobs=50",
        "mmu.tlb.entries=64",
        "memory.dram_cache.admission=second_touch",
        "memory.dram_cache.misses.sets=2",
        "memory.dram_cache.evict_buffer=2",
        "memory.dram_cache.dram.bus.rate=800MT/s",
        "memory.dram_cache.frontside.command=9",
        "flash.cell.read=[\"9us\"]",
    ];
    let depends =
        ["memory.dram_cache.sets=16", "memory.dram_cache.replacement=srrip", "cpu.threads.count=48"];
    let program = "tatp:size=128MiB,work=200";
    let states = Files::default();
    for (n, set) in cache.iter().chain(&depends).enumerate() {
        let plan = plan("astriflash", program, &[CACHE, set]);
        let shared = found(&run_with(&plan, &states));
        assert!(shared == found(&run_alone(&plan).expect(set)), "{set}");
        // Of the first, drive and memory are made; of those that the memory depends on, that alone.
        let servers_made = 1 + (n + 1).saturating_sub(cache.len());
        assert_eq!(states.files.borrow().len(), 1 + servers_made, "{set}");
    }
    // Another seed of the run is another drive, and the same jobs before it.
    let seeded = Plan { seed: 2, ..plan("astriflash", program, &[CACHE]) };
    let before = states.files.borrow().len();
    assert!(found(&run_with(&seeded, &states)) == found(&run_alone(&seeded).expect("it runs")));
    assert_eq!(states.files.borrow().len(), before + 1);
}
