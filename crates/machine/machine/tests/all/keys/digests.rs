//! Digests: that of a state leaves keys out, those that preconditioning does not see; each key of `flash` is changed here. That of the
//! documents of every case is frozen.

use super::{Bench, Case, DRIVES, INSIDE, controllers};
use machine::Loaded;
use machine::run::Plan;
use machine::state::{State, StateSpec};
use serde_json::Value;
use spec::precondition::{Precondition, apply, parse};
use ssd::Device;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// States that ask much of a device: collection, wear and frontiers in step; a fill.
const STATES: [&str; 2] = ["zipf:share=70%,writes=1", "interleaved"];

/// A value of a case, whose device is to be brought into a state.
struct Tried {
    value: String,
    plan: Plan,
    loaded: Loaded,
    digest: String,
}

/// The values of a case that are not refused.
fn tried(bench: &Bench, case: &Case, state: &str) -> Vec<Tried> {
    let of = |value: &&str| {
        let own = format!("{}={value}", case.key);
        let set = bench.set.iter().copied().flatten().chain(case.context).copied().chain([own.as_str()]);
        let mut plan = set.fold(Plan::new(bench.system, ""), |plan, set| plan.set(set));
        plan.precondition = Some(parse(state).expect("a state"));
        let loaded = machine::load(&plan.system, &plan.set).ok()?;
        let digest = StateSpec::of(&plan, &loaded, 0).expect("no trace").digest();
        Some(Tried { value: own, plan, loaded, digest })
    };
    case.values.iter().filter_map(of).collect()
}

impl Tried {
    fn device(&self) -> Device {
        self.loaded.device(self.plan.seed).expect("a device")
    }

    fn precondition(&self) -> &Precondition {
        self.plan.precondition.as_ref().expect("it was given")
    }

    /// The device that makes its state, and the state; `None` where it does not fit.
    fn made(&self) -> Option<(Device, State)> {
        let mut device = self.device();
        let flash = self.loaded.drive().expect("a drive").flash;
        let report = apply(self.precondition(), flash, &mut device.ftl, self.plan.seed).ok()?;
        device.format_map();
        let state = State::save(&report, &device);
        Some((device, state))
    }
}

fn whole(device: &Device) -> Vec<u8> {
    let mut bytes = Vec::new();
    device.save(&mut bytes).expect("an idle device");
    bytes
}

/// Returns whether values of a case share a digest; a fault if their states are not the same byte for byte, or a device
/// that takes the state of another value is not the one that makes its own.
fn shares(bench: &Bench, case: &Case) -> Result<bool, String> {
    let mut shared = false;
    for state in STATES {
        let mut tried = tried(bench, case, state).into_iter();
        while let Some(first) = tried.next() {
            let alike: Vec<&Tried> =
                tried.as_slice().iter().filter(|other| other.digest == first.digest).collect();
            let Some((_, state)) = (if alike.is_empty() { None } else { first.made() }) else { continue };
            for other in alike {
                let Some((made, own)) = other.made() else {
                    return Err(format!(
                        "{}: the state is not reached, though that of {} is",
                        other.value, first.value
                    ));
                };
                let mut taking = other.device();
                state.load(other.precondition(), &mut taking).map_err(|fault| fault.to_string())?;
                if own != state || whole(&made) != whole(&taking) {
                    return Err(format!("{} and {}: one digest, two states", first.value, other.value));
                }
                shared = true;
            }
        }
    }
    Ok(shared)
}

/// Keys that share a state, as `flash/src/spec/state.rs` has them.
#[test]
fn the_same_digest_is_the_same_state() {
    let drives = DRIVES.iter().map(|(bench, cases)| (*bench, *cases));
    let cases = drives.chain([(&INSIDE, controllers::INITIATOR)]).flat_map(|(bench, cases)| {
        cases.iter().filter(|case| case.key.starts_with("flash.")).map(move |case| (bench, case))
    });
    let (mut seen, mut sharing, mut faults) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (bench, case) in cases {
        seen.insert(case.key.to_owned());
        match shares(bench, case) {
            Ok(true) => drop(sharing.insert(case.key)),
            Ok(false) => {}
            Err(fault) => faults.push(fault),
        }
    }
    assert_eq!(faults.join("\n"), "");
    let keys = machine::catalogue::params().into_iter().map(|param| param.key);
    let unseen: Vec<_> = keys.filter(|key| key.starts_with("flash.") && !seen.contains(key)).collect();
    assert!(unseen.is_empty(), "keys that no case changes here: {unseen:?}");
    // The keys that sweeps vary most.
    for key in ["flash.cell.read", "flash.channel.rate", "flash.die.scheduler", "flash.buffer.capacity"] {
        assert!(sharing.contains(key), "{key} has a state for each value");
    }
    let apart = ["flash.geometry.blocks", "flash.ftl.gc.victim", "flash.ftl.over_provisioning"];
    assert!(apart.iter().all(|key| !sharing.contains(key)), "{sharing:?}");
}

// Frozen results of every case: a digest of its documents. It shows that a change to the code's shape has changed no
// result; it does not show that a result is right.

/// The variable that has the digests written instead of compared: `cargo xtask golden --bless` sets it.
const BLESS: &str = "NANDSCAPE_BLESS";

/// Digests by case.
pub(crate) type Digests = BTreeMap<String, u64>;

/// A digest of documents without their cost and their warnings: FNV-1a, 64 bit, parameters from draft-eastlake-fnv, section 5.
pub(crate) fn digest<'a>(documents: impl Iterator<Item = &'a Value>) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    documents.fold(0xcbf2_9ce4_8422_2325, |hash, document| {
        // Warnings are words: a better wording is not another result.
        let mut document = document.clone();
        document.as_object_mut().map(|table| table.remove("warnings"));
        document.to_string().as_bytes().iter().fold(hash, step)
    })
}

/// Compares digests with the committed ones, or writes them.
///
/// # Errors
/// The cases whose digest is another one.
pub(crate) fn compare(name: &str, digests: &Digests) -> Result<(), String> {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../../tests/golden/keys/{name}.txt"));
    let text: String = digests.iter().map(|(case, digest)| format!("{digest:016x} {case}\n")).collect();
    if std::env::var_os(BLESS).is_some() {
        return std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()));
    }
    let committed = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let differing: Vec<&str> =
        text.lines().filter(|line| !committed.lines().any(|old| old == *line)).collect();
    let gone = committed.lines().filter(|old| {
        let case = old.split_once(' ').map_or(*old, |(_, case)| case);
        !digests.contains_key(case)
    });
    let lines: Vec<String> = differing
        .iter()
        .map(|line| format!("other results: {line}"))
        .chain(gone.map(|line| format!("no such case any more: {line}")))
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    let remedy =
        "if the change is meant: `cargo xtask golden --bless`, and `Results change: yes` in CHANGELOG.md";
    Err(format!("{}\n{} of {}; {remedy}", lines.join("\n"), lines.len(), digests.len()))
}
