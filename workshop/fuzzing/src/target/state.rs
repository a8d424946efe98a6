//! States of drives and of server memory: damaged files, damaged contents with a valid checksum, and runs that begin
//! with such a state.

use super::Target;
use ftl::page_map::functional::{FunctionalWriter, Placement};
use machine::Loaded;
use machine::run::{Outside, Plan};
use machine::state::{Found, Kept, Place, State, StateSpec, States, read, write};
use proto::Lpn;
use spec::precondition::{Precondition, apply, parse};
use ssd::Device;
use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

pub(super) const TARGET: Target = Target {
    name: "state",
    about: "states of drives after preconditioning",
    run,
    examples,
    reads,
    cases: 400,
};

/// Device of 256 KiB.
const SMALL: [&str; 8] = [
    "flash.geometry.channels=1",
    "flash.geometry.ways=1",
    "flash.geometry.planes=1",
    "flash.geometry.blocks=16",
    "flash.geometry.pages=4",
    "flash.ftl.gc.start=2",
    "flash.ftl.gc.stop=3",
    "flash.ftl.over_provisioning=50%",
];

fn loaded() -> &'static Loaded {
    static LOADED: OnceLock<Loaded> = OnceLock::new();
    LOADED.get_or_init(|| {
        let set: Vec<String> = SMALL.into_iter().chain(["flash.ftl.gc.hard=1"]).map(str::to_owned).collect();
        machine::load("d16", &set).expect("a spec")
    })
}

/// Reads the bytes as a file, and as contents with a valid checksum: refused or accepted, never a panic.
fn run(bytes: &[u8]) {
    match read("state", bytes) {
        Ok(kept) => kept.into_iter().for_each(|kept| _ = loads(kept.state)),
        Err(fault) => assert!(!fault.what.is_empty() && fault.place.is_some() && fault.help.is_some()),
    }
    loads(State::from_bytes(bytes.to_vec()));
}

fn loads(state: State) -> bool {
    let mut device = loaded().device(1).expect("a device");
    state.load(&Precondition::none, &mut device).is_ok()
}

/// Files, and their contents.
fn examples() -> Vec<Vec<u8>> {
    let loaded = loaded();
    let (mut all, mut kept) = (Vec::new(), Vec::new());
    for text in ["none", "sequential", "steady:share=60%"] {
        let precondition = parse(text).expect("a state");
        let flash = loaded.drive().expect("a drive").flash;
        let mut device = loaded.device(1).expect("a device");
        let report = apply(&precondition, flash, &mut device.ftl, 1).expect("a state");
        let state = State::save(&report, &device);
        let plan = Plan { precondition: Some(precondition), ..Plan::new("d16", "") };
        let spec = StateSpec::of(&plan, loaded, 0).expect("no trace");
        all.push(state.bytes().to_vec());
        kept.push(Kept { spec, state });
        all.push(write(&kept[kept.len() - 1..]));
    }
    all.push(write(&kept));
    all
}

fn reads(bytes: &[u8]) -> bool {
    read("state", bytes).is_ok() || loads(State::from_bytes(bytes.to_vec()))
}

/// Prefix of the bytes: the index of their server.
const FIRST: u8 = 0xf0;

/// Server of four cores with few jobs.
const SMALL_SERVER: [&str; 10] = [
    "flash.geometry.channels=4",
    "flash.geometry.dies=1",
    "flash.geometry.blocks=256",
    "cpu.cores=4",
    "fabric.mesh.rows=2",
    "fabric.mesh.columns=2",
    "l2.banks=4",
    "cpu.load.jobs=8",
    "cpu.warmup.fixed.jobs=0",
    "cpu.fill_jobs=200",
];

/// DRAM cache and operating system memory, each with every program that changes its data.
const SERVERS: [(&str, &[&str], &str); 9] = [
    ("astriflash", CACHE, "rbt"),
    ("astriflash", CACHE, "hash"),
    ("astriflash", CACHE, "tatp"),
    ("astriflash", CACHE, "swap"),
    ("astriflash", FIFO, "silo"),
    ("astriflash", CACHE, "masstree"),
    ("astriflash", CACHE, "tpcc"),
    ("os-swap", PAGED, "rbt"),
    ("os-swap", PAGED, "tatp"),
];

const CACHE: &[&str] = &["memory.dram_cache.sets=8"];

const FIFO: &[&str] = &["memory.dram_cache.sets=8", "memory.dram_cache.replacement=fifo"];

const PAGED: &[&str] = &["swap.memory=1MiB", "swap.free=64KiB"];

fn plan((system, set, program): (&str, &[&str], &str)) -> Plan {
    let plan = Plan::new(system, &format!("{program}:size=128MiB,work=20"));
    SMALL_SERVER.iter().chain(set).fold(plan, |plan, assignment| plan.set(assignment))
}

/// Store that provides the state of a server's memory, or keeps it; those of drives are made.
struct OfMemory(RefCell<Option<Vec<u8>>>);

impl States for OfMemory {
    fn find<'a>(&'a self, wanted: &StateSpec, _: &AtomicBool) -> Result<Found<'a>, config::Diagnostic> {
        if wanted.is_of_a_drive() {
            return Ok(Found::Absent(None));
        }
        Ok(match self.0.borrow().clone() {
            Some(bytes) => Found::There(State::from_bytes(bytes)),
            None => Found::Absent(Some(Box::new(Awaited(self)))),
        })
    }
}

struct Awaited<'a>(&'a OfMemory);

impl Place for Awaited<'_> {
    fn keep(self: Box<Self>, state: &State) {
        self.0.0.replace(Some(state.bytes().to_vec()));
    }
}

/// Runs with a state, or makes it; returns whether it was accepted, and the failed checks.
fn run_with(plan: &Plan, states: &OfMemory) -> Option<Vec<String>> {
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &AtomicBool::new(false),
        watch: &mut |_| {},
        states: Some(states),
    };
    let document = machine::run::run(plan, &mut outside).ok()?;
    Some(document.checks.into_iter().filter(|check| !check.ok).map(|check| check.name).collect())
}

/// Server and state in the bytes.
fn split(bytes: &[u8]) -> Option<(Plan, OfMemory)> {
    let (first, state) = bytes.split_first()?;
    let server = SERVERS.get(usize::from(first.checked_sub(FIRST)?))?;
    Some((plan(*server), OfMemory(RefCell::new(Some(state.to_vec())))))
}

/// Checks that a run that begins with the state is refused, or sound to its end. Bytes for no server are ignored.
///
/// # Panics
/// A run that accepts it is not sound.
pub(super) fn hold_filled(bytes: &[u8]) {
    if let Some((plan, states)) = split(bytes)
        && let Some(failed) = run_with(&plan, &states)
    {
        assert!(failed.is_empty(), "{:?}: {failed:?}", plan.workloads);
    }
}

/// Returns whether a server accepts the state.
pub(super) fn reads_filled(bytes: &[u8]) -> bool {
    split(bytes).is_some_and(|(plan, states)| run_with(&plan, &states).is_some())
}

/// State of each server.
///
/// # Panics
/// A server has no state.
pub(super) fn filled_examples() -> Vec<Vec<u8>> {
    let example = |(first, server): (u8, &(&str, &[&str], &str))| {
        let states = OfMemory(RefCell::new(None));
        let failed = run_with(&plan(*server), &states).unwrap_or_else(|| panic!("{server:?} does not run"));
        assert!(failed.is_empty(), "{server:?}: {failed:?}");
        let mut bytes = vec![first];
        bytes.extend(states.0.into_inner().expect("a server has filled its memory"));
        bytes
    };
    (FIRST..).zip(&SERVERS).map(example).collect()
}

pub(super) const SIGNED: Target = Target {
    name: "signed_state",
    about: "states of drives and of servers' memory, damaged and signed again: what takes one works",
    run: run_signed,
    examples: signed_examples,
    reads: reads_signed,
    cases: 500,
};

/// Device of 256 KiB.
const SMALL_DRIVE: [&str; 9] = [
    "flash.geometry.channels=1",
    "flash.geometry.ways=1",
    "flash.geometry.planes=2",
    "flash.geometry.blocks=16",
    "flash.geometry.pages=4",
    "flash.ftl.gc.start=2",
    "flash.ftl.gc.stop=3",
    "flash.ftl.gc.hard=1",
    "flash.ftl.over_provisioning=60%",
];

/// Options of each device: none; lists by wear; mapping on flash; lists by placement.
const MORE: [&[&str]; 4] = [
    &[],
    &["flash.ftl.wear.dynamic=true", "flash.ftl.wear.static_gap=2"],
    &[
        "flash.ftl.mapping={ demand = { capacity = \"4KiB\", granularity = \"entry\", cached_entry = \"8B\", stored_entry = \"4B\", read = \"512B\" } }",
    ],
    &["flash.ftl.placements=2", "flash.ftl.gc.streams=isolated", "flash.ftl.gc.victim=marginal_gain"],
];

fn all() -> &'static [Loaded] {
    static LOADED: OnceLock<Vec<Loaded>> = OnceLock::new();
    LOADED.get_or_init(|| {
        let of = |more: &&[&str]| {
            let set: Vec<String> =
                SMALL_DRIVE.iter().chain(more.iter()).map(|set| (*set).to_owned()).collect();
            machine::load("d16", &set).expect("a spec")
        };
        MORE.iter().map(of).collect()
    })
}

/// Signed contents of a file: read, and loaded by a device or refused. A loaded device can be written, and its state is
/// valid.
fn run_signed(bytes: &[u8]) {
    let kept = read("state", &signed(bytes)).expect("the checksum is right");
    assert!(kept.len() == 1 && kept[0].state.bytes() == bytes);
    hold_filled(bytes);
    for loaded in all() {
        let Some(mut device) = loads_signed(loaded, bytes) else { continue };
        churn(&mut device);
        device.ftl.reset_counters();
        let mut again = Vec::new();
        device.save_preconditioned(&mut again).expect("at rest");
        let mut fresh = loaded.device(1).expect("a device");
        fresh.load_preconditioned(&mut again.as_slice()).expect("what a device has come to is a state");
    }
}

fn signed(bytes: &[u8]) -> Vec<u8> {
    static SPEC: OnceLock<StateSpec> = OnceLock::new();
    let plan = Plan { precondition: Some(Precondition::none), ..Plan::new("d16", "") };
    let spec = SPEC.get_or_init(|| StateSpec::of(&plan, &all()[0], 0).expect("no trace"));
    write(&[Kept { spec: spec.clone(), state: State::from_bytes(bytes.to_vec()) }])
}

fn loads_signed(loaded: &Loaded, bytes: &[u8]) -> Option<Device> {
    let mut device = loaded.device(1).expect("a device");
    let state = State::from_bytes(bytes.to_vec());
    state.load(&Precondition::none, &mut device).is_ok().then_some(device)
}

/// Overwrites everything three times, and deallocates some. A state may leave no space: that is an error, not a panic.
fn churn(device: &mut Device) {
    let ftl = &mut device.ftl;
    let units = ftl.logical();
    let mut writer = FunctionalWriter::new(ftl, Placement::InTurn);
    for turn in 0..3 * units {
        let lpn = Lpn(turn * 7 % units);
        if turn % 11 == 0 {
            writer.trim(ftl, lpn);
        } else if writer.write(ftl, lpn).is_err() {
            return;
        }
    }
    // What waits is padded, if there is space.
    let _ = writer.finish(ftl);
}

fn signed_examples() -> Vec<Vec<u8>> {
    let mut states = filled_examples();
    for loaded in all() {
        for text in ["none", "sequential:share=90%", "uniform:share=60%,invalid=2%", "steady:share=60%"] {
            let precondition = parse(text).expect("a state");
            let flash = loaded.drive().expect("a drive").flash;
            let mut device = loaded.device(1).expect("a device");
            let report = apply(&precondition, flash, &mut device.ftl, 1).expect("a state");
            device.format_map();
            states.push(State::save(&report, &device).bytes().to_vec());
        }
    }
    states
}

fn reads_signed(bytes: &[u8]) -> bool {
    all().iter().any(|loaded| loads_signed(loaded, bytes).is_some()) || reads_filled(bytes)
}
