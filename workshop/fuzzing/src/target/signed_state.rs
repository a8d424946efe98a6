//! States that are damaged behind a checksum that is right, and what becomes of a drive that is in one.

use super::{Target, filled};
use ftl::page_map::functional::{FunctionalWriter, Placement};
use machine::Loaded;
use machine::precondition::{Precondition, apply, parse};
use machine::run::Plan;
use machine::state::{Kept, State, StateSpec, read, write};
use proto::Lpn;
use ssd::Device;
use std::sync::OnceLock;

pub(super) const TARGET: Target = Target {
    name: "signed_state",
    about: "states of drives and of servers' memory, damaged and signed again: what takes one works",
    run,
    examples,
    reads,
    cases: 1_500,
};

/// A device of 256 KiB.
const SMALL: [&str; 9] = [
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
/// What else each device has: nothing; lists by wear; a map on flash; lists by placement.
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
            let set: Vec<String> = SMALL.iter().chain(more.iter()).map(|set| (*set).to_owned()).collect();
            Loaded::load("d16", &set).expect("a spec")
        };
        MORE.iter().map(of).collect()
    })
}

/// What stands in a file, signed: read as it is, and loaded by a device or refused; one that is loaded can be written, and its state is one.
fn run(bytes: &[u8]) {
    let kept = read("state", &signed(bytes)).expect("the checksum is right");
    assert!(kept.len() == 1 && kept[0].state.bytes() == bytes);
    filled::hold(bytes);
    for loaded in all() {
        let Some(mut device) = loads(loaded, bytes) else { continue };
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

fn loads(loaded: &Loaded, bytes: &[u8]) -> Option<Device> {
    let mut device = loaded.device(1).expect("a device");
    let state = State::from_bytes(bytes.to_vec());
    state.load(&Precondition::none, &mut device).is_ok().then_some(device)
}

/// Overwrites all of it three times, and deallocates some. A state may leave no space: that is an error, and no panic.
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

fn examples() -> Vec<Vec<u8>> {
    let mut states = filled::examples();
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

fn reads(bytes: &[u8]) -> bool {
    all().iter().any(|loaded| loads(loaded, bytes).is_some()) || filled::reads(bytes)
}
