//! States of servers' memory, damaged and signed again, and what becomes of a run that begins with one.

use machine::run::{Outside, Plan, run};
use machine::state::{Found, Place, State, StateSpec, States};
use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

/// What stands in front of the bytes: the server that they are for, by its place among them.
const FIRST: u8 = 0xf0;

/// A server of four cores, whose jobs are few.
const SMALL: [&str; 10] = [
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
/// A DRAM cache, and an operating system's memory, each with every program that changes its data.
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
    SMALL.iter().chain(set).fold(plan, |plan, assignment| plan.set(assignment))
}

/// Holds the state of a server's memory, or takes it; those of drives are made.
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

/// A run that begins with a state, or makes it: whether it is taken, and the checks that fail.
fn run_with(plan: &Plan, states: &OfMemory) -> Option<Vec<String>> {
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &AtomicBool::new(false),
        watch: &mut |_| {},
        states: Some(states),
    };
    let document = run(plan, &mut outside).ok()?;
    Some(document.checks.into_iter().filter(|check| !check.ok).map(|check| check.name).collect())
}

/// The server that bytes are for, and the state.
fn split(bytes: &[u8]) -> Option<(Plan, OfMemory)> {
    let (first, state) = bytes.split_first()?;
    let server = SERVERS.get(usize::from(first.checked_sub(FIRST)?))?;
    Some((plan(*server), OfMemory(RefCell::new(Some(state.to_vec())))))
}

/// A run that begins with the state is refused, or sound to its end. Nothing if the bytes are for no server.
///
/// # Panics
/// If a run that takes it is not sound.
pub(super) fn hold(bytes: &[u8]) {
    if let Some((plan, states)) = split(bytes)
        && let Some(failed) = run_with(&plan, &states)
    {
        assert!(failed.is_empty(), "{:?}: {failed:?}", plan.workloads);
    }
}

/// Whether a server takes the state.
pub(super) fn reads(bytes: &[u8]) -> bool {
    split(bytes).is_some_and(|(plan, states)| run_with(&plan, &states).is_some())
}

/// A state of each server.
///
/// # Panics
/// If one has none.
pub(super) fn examples() -> Vec<Vec<u8>> {
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
