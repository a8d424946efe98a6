//! States of drives: files that are damaged, and what is damaged inside files whose checksum is right.

use super::Target;
use machine::Loaded;
use machine::precondition::{Precondition, apply, parse};
use machine::run::Plan;
use machine::state::{Kept, State, StateSpec, read, write};
use std::sync::OnceLock;

pub(super) const TARGET: Target = Target {
    name: "state",
    about: "states of drives after preconditioning",
    run,
    examples,
    reads,
    cases: 1_000,
};

/// A device of 256 KiB.
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
        Loaded::load("d16", &set).expect("a spec")
    })
}

/// The bytes as a file, and as what stands in one behind a checksum that is right: refused or taken, never a panic.
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

/// Files, and what stands in them.
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
