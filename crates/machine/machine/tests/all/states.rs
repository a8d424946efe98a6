//! States before a run: a run that takes one finds what a run that makes it finds, byte for byte. So it is for
//! memory of servers that jobs have filled.

use machine::Loaded;
use machine::result::Document;
use machine::run::{Outside, Plan, run, run_alone};
use machine::state::{Found, Kept, LAYOUT, Place, State, StateSpec, States, Wanted, agree, read, write};
use serde_json::Value;
use sha2::{Digest, Sha256};
use spec::precondition::{Precondition, apply, parse};
use ssd::Device;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

/// Files in memory.
#[derive(Default)]
struct Files {
    files: RefCell<BTreeMap<String, Vec<u8>>>,
    taken: RefCell<u32>,
}

impl States for Files {
    fn find<'a>(&'a self, wanted: &StateSpec, _: &AtomicBool) -> Result<Found<'a>, config::Diagnostic> {
        match self.files.borrow().get(&wanted.digest()) {
            Some(file) => {
                *self.taken.borrow_mut() += 1;
                Ok(Found::There(read("a file", file)?.remove(0).of("a file", wanted)?))
            }
            None => Ok(Found::Absent(Some(Box::new(Awaited { files: self, wanted: wanted.clone() })))),
        }
    }
}

struct Awaited<'a> {
    files: &'a Files,
    wanted: StateSpec,
}

impl Place for Awaited<'_> {
    fn keep(self: Box<Self>, state: &State) {
        let Awaited { files, wanted } = *self;
        let digest = wanted.digest();
        files.files.borrow_mut().insert(digest, write(&[Kept { spec: wanted, state: state.clone() }]));
    }
}

fn run_with(plan: &Plan, states: &Files) -> Document {
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &AtomicBool::new(false),
        watch: &mut |_| {},
        states: Some(states),
    };
    run(plan, &mut outside).unwrap_or_else(|fault| panic!("{:?}: {fault}", plan.set))
}

/// The document without what it cost to find it.
fn found(document: &Document) -> Value {
    let mut document = serde_json::to_value(document).expect("a document has a JSON form");
    assert!(document.as_object_mut().expect("an object").remove("run").is_some());
    document
}

const STATES: [&str; 8] = [
    "none",
    "sequential:share=90%",
    "interleaved:share=90%",
    "uniform:share=80%,invalid=2%",
    "zipf:share=90%,writes=1.5",
    "steady:share=90%",
    "analytic:share=90%",
    "trace:file=tests/keys/near.trace,format=mqsim,share=50%",
];

const SMALL_D16: &[&str] = &[
    "flash.geometry.channels=2",
    "flash.geometry.ways=2",
    "flash.geometry.blocks=40",
    "flash.geometry.pages=16",
    "flash.ftl.gc.start=3",
    "flash.ftl.gc.stop=4",
    "flash.ftl.gc.hard=1",
    "flash.ftl.over_provisioning=30%",
];
const SMALL_PM9A3: &[&str] = &[
    "flash.geometry.channels=2",
    "flash.geometry.ways=1",
    "flash.geometry.blocks=96",
    "flash.geometry.pages=96",
];
const SMALL_MQSIM: &[&str] = &[
    "flash.geometry.channels=2",
    "flash.geometry.ways=1",
    "flash.geometry.dies=1",
    "flash.geometry.blocks=64",
    "flash.geometry.pages=16",
    "flash.ftl.gc.start=4",
    "flash.ftl.gc.stop=5",
    "flash.ftl.gc.hard=2",
    "flash.ftl.over_provisioning=30%",
    "flash.ftl.mapping.demand.capacity=4KiB",
    "flash.buffer.capacity=1MiB",
    "flash.buffer.in_flight=1MiB",
    "flash.buffer.keep_rewrites=1ms",
];
/// Blocks wear level, and fail: from the factory and soon.
const WORN: &[&str] = &[
    "flash.ftl.wear.static_gap=3",
    "flash.bad_blocks={ factory = \"2%\", grown = { endurance = 200, shape = 4.0 } }",
    "flash.ftl.over_provisioning=45%",
    "flash.ftl.gc.victim=random",
    "flash.ftl.placements=2",
    "flash.geometry.blocks=64",
];

/// Reads and writes are equal with a newly made state and with a loaded one, under a shadow.
fn same_with_and_without(system: &str, set: &[&[&str]], state: &str) {
    let job = "fio:rw=randrw,rwmixread=50,bs=4k,iodepth=8,number_ios=1500,norandommap=1,size=60%";
    let mut plan = set.iter().copied().flatten().fold(Plan::new(system, job), |plan, set| plan.set(set));
    plan = plan.set("sim.shadow=true");
    plan.precondition = Some(parse(state).expect("a state"));
    let states = Files::default();
    let alone = run_alone(&plan).unwrap_or_else(|fault| panic!("{system} {state}: {fault}"));
    let [made, taken] = [(); 2].map(|()| run_with(&plan, &states));
    assert_eq!(*states.taken.borrow(), 1, "{system} {state}");
    assert!(alone.ok, "{system} {state}: {:?}", alone.checks);
    assert_eq!(found(&alone), found(&made), "{system} {state}: making it to keep it");
    assert_eq!(found(&alone), found(&taken), "{system} {state}: taking it");
}

#[test]
fn a_run_that_takes_a_state_finds_what_one_that_makes_it_finds() {
    for state in STATES {
        same_with_and_without("d16", &[SMALL_D16], state);
        same_with_and_without("pm9a3", &[SMALL_PM9A3], state);
        same_with_and_without("mqsim-default", &[SMALL_MQSIM], state);
        // The theory covers neither bad blocks nor random victims behind placements.
        if !state.starts_with("analytic") {
            same_with_and_without("d16", &[SMALL_D16, WORN], state);
        }
    }
}

fn device(loaded: &Loaded, precondition: &Precondition) -> (Device, State) {
    let mut device = loaded.device(1).expect("a device");
    let flash = &loaded.spec.flash[0].spec.flash;
    let report = apply(precondition, flash, &mut device.ftl, 1).expect("a state");
    device.format_map();
    let state = State::save(&report, &device);
    (device, state)
}

fn whole(device: &Device) -> Vec<u8> {
    let mut bytes = Vec::new();
    device.save(&mut bytes).expect("an idle device");
    bytes
}

/// A state holds the translation layer; this shows that preconditioning changes nothing else.
#[test]
fn a_device_that_takes_a_state_is_the_device_that_made_it_in_every_byte() {
    for (system, set) in [("d16", SMALL_D16), ("pm9a3", SMALL_PM9A3), ("mqsim-default", SMALL_MQSIM)] {
        let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        let loaded = machine::load(system, &set).expect("a spec");
        for text in STATES {
            let precondition = parse(text).expect("a state");
            let (made, state) = device(&loaded, &precondition);
            let mut taken = loaded.device(1).expect("a device");
            state.load(&precondition, &mut taken).expect("its own state");
            assert!(whole(&made) == whole(&taken), "{system} {text}");
        }
    }
}

/// The states of the drives of a system of two, of which the second is larger.
fn two(seed: u64) -> (Vec<Option<StateSpec>>, Vec<Kept>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("two.toml");
    let small: String = SMALL_D16.iter().map(|set| format!("{}\n", &set["flash.".len()..])).collect();
    let text = |gap| {
        let small = small.replace('%', "%\"").replace("ing=", "ing=\"");
        format!(
            "inherits = \"d16\"\n[flash]\n{small}[large]\nkind = \"flash\"\ninherits = \"d16.flash\"\n{small}{gap}"
        )
    };
    std::fs::write(&path, text("ftl.wear.static_gap = 3\n")).expect("a file");
    let plan = Plan { seed, ..Plan::new(&path.display().to_string(), "") };
    let loaded = machine::load(&plan.system, &[]).expect("a spec");
    let wanted: Vec<_> = (0..2).map(|number| StateSpec::of(&plan, &loaded, number)).collect();
    let kept = wanted.iter().flatten().zip(["none", "sequential:share=90%"]).map(|(spec, text)| {
        let (_, state) = device(&loaded, &parse(text).expect("a state"));
        Kept { spec: spec.clone(), state }
    });
    (wanted.clone(), kept.collect())
}

/// Any change of any byte, and any cut, is told; nothing is loaded.
fn refuses_what_it_is_not(file: &[u8]) {
    let refused = |bytes: &[u8]| {
        let fault = read("f", bytes).err().expect("it is not whole");
        assert!(fault.help.is_some() && fault.place.is_some_and(|place| place.source == "f"));
        fault.what
    };
    for cut in (0..file.len()).step_by(7).chain([file.len() - 1]) {
        let what = refused(&file[..cut]);
        assert!(what.contains("cut short") || cut == 0, "{cut}: {what}");
    }
    for at in (0..file.len()).step_by(5) {
        let mut bytes = file.to_vec();
        bytes[at] ^= 0x10;
        let what = refused(&bytes);
        assert!(what.contains("damaged") || what.contains("not a saved state"), "{at}: {what}");
    }
}

#[test]
fn a_file_that_is_not_what_was_written_is_refused() {
    let (wanted, kept) = two(1);
    for states in [&kept[..1], &kept[..]] {
        let file = write(states);
        let read = read("f", &file).expect("it is whole");
        assert!(agree("f", &read, &wanted[..states.len()]).is_ok());
        assert!(read.iter().zip(states).all(|(read, kept)| read.state == kept.state));
        refuses_what_it_is_not(&file);
    }
    let (others, _) = two(2);
    let fault = agree("f", &kept[..1], &others[..1]).expect_err("another seed");
    assert!(fault.what.contains("`seed` is 1 there and 2 here"), "{fault}");
}

#[test]
fn a_file_of_other_drives_is_refused_with_the_drive_that_differs() {
    let (wanted, kept) = two(1);
    let refused = |kept: &[Kept], wanted: &[Option<StateSpec>], said: &str| {
        let fault = agree("f", kept, wanted).expect_err(said);
        assert!(fault.what.contains(said) && fault.help.is_some(), "{fault}");
    };
    refused(&kept[..1], &wanted, "drives are 1 there and 2 here (`flash`, `large`)");
    refused(&kept, &wanted[..1], "drives are 2 there and 1 here (`flash`)");
    refused(&[], &wanted, "drives are 0 there and 2 here");
    refused(&kept, &[wanted[0].clone(), None], "the inputs of a state are not known");
    let (mut others, _) = two(1);
    let mut keys = Plan::new("d16", "");
    keys.set = SMALL_D16.iter().map(|set| (*set).to_owned()).collect();
    let loaded = machine::load("d16", &keys.set).expect("a spec");
    others[1] = StateSpec::of(&keys, &loaded, 0);
    refused(&kept, &others, "`flash`: f is the state of a different machine: ");
}

/// A head that promises other states than those that follow, under a checksum that is right.
#[test]
fn a_head_that_promises_something_else_is_refused() {
    let (_, kept) = two(1);
    let file = write(&kept);
    let from = b"nandscape state\n".len();
    let length = u32::from_le_bytes(file[from..from + 4].try_into().expect("four bytes")) as usize;
    let (head, rest) = file[from + 4..file.len() - 32].split_at(length);
    let head: Value = serde_json::from_slice(head).expect("JSON");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut head = head.clone();
        change(&mut head);
        let head = head.to_string();
        let mut file =
            [b"nandscape state\n", &(head.len() as u32).to_le_bytes()[..], head.as_bytes()].concat();
        file.extend_from_slice(rest);
        let sum = Sha256::digest(&file);
        file.extend_from_slice(&sum);
        read("f", &file)
    };
    assert_eq!(with(&|_| ()).map(|kept| kept.len()).map_err(|fault| fault.what), Ok(2));
    let refused = |change: &dyn Fn(&mut Value), said: &str| {
        let fault = with(change).err().expect(said);
        assert!(fault.what.contains(said), "{fault}");
    };
    refused(
        &|head| _ = head["states"].as_array_mut().expect("a list").pop(),
        "more data than its header lists",
    );
    refused(&|head| head["states"][0]["bytes"] = u64::MAX.into(), "it has fewer than");
    let twice = |head: &mut Value| {
        let one = head["states"][0].clone();
        head["states"].as_array_mut().expect("a list").push(one);
    };
    refused(&twice, "it has fewer than");
    refused(&|head| head["states"] = 7.into(), "its header is malformed");
    refused(
        &|head| head["version"] = "0.0.1 (states 1)".into(),
        "saved by version 0.0.1 (states 1); this is",
    );
}

/// The SHA-256 of all states of drives of this test, as `LAYOUT` 4 has them.
const FROZEN: (u32, &str) = (4, "2434f39b5fbb69bc8ab7257039947077bc108b988699f6a5289cacc32f86578d");

/// A folder of states outlives a build of the program: what another build makes otherwise must have another name.
#[test]
fn a_state_that_changes_has_another_layout() {
    let mut hash = Sha256::new();
    for (system, set) in [("d16", SMALL_D16), ("mqsim-default", SMALL_MQSIM)] {
        let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
        let loaded = machine::load(system, &set).expect("a spec");
        for text in STATES {
            hash.update(device(&loaded, &parse(text).expect("a state")).1.bytes());
        }
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        (LAYOUT, hash.as_str()),
        FROZEN,
        "preconditioning leaves something else, or writes it otherwise: raise LAYOUT in src/state/version.rs by one, and freeze it here and in filled.rs"
    );
}

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
const FROZEN_MEMORY: (u32, &str) = (4, "79d55a8d478ac82158d042202ee4e6f28bfe454771b85b11edd3f4f1555d211a");

/// As of drives: a state that a different build of the program makes differently must have a different name.
#[test]
fn a_filled_memory_that_changes_has_another_layout() {
    let mut hash = Sha256::new();
    let mut add = |plan: Plan| {
        let states = Files::default();
        run_with(&plan, &states);
        let loaded = machine::load(&plan.system, &plan.set).expect("a spec");
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
        FROZEN_MEMORY,
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
