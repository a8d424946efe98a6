//! Machines near the shipped ones: the first byte chooses a small system, the others choose policies and change values.
//! A machine that loads runs with its shadow, every check holds, and its metrics agree; half of them run again without
//! folded events, with equal results.

use super::Target;
use super::identities;
use super::platforms::{PLATFORMS, Platform};
use machine::Loaded;
use machine::catalogue::families;
use machine::result::Document;
use machine::run::{Plan, check, run_for};
use toml::{Table, Value};

pub(super) const TARGET: Target = Target {
    name: "machine",
    about: "specs of whole machines, run with a shadow",
    run,
    examples,
    reads,
    cases: 200,
};

/// Number of progress checks after which a run is ended.
const LOOKS: u32 = 6;
/// Maximum number of pages of a device: tables of larger ones take memory.
const PAGES: u64 = 1 << 20;
/// First byte from which a machine runs a second time, without folded events.
const UNFOLDED: u8 = 128;
/// Override that ends a run.
const UNTIL: &str = "sim.until=";
/// Maximum number of overrides.
const OVERRIDES: usize = 4;

/// Possible changes of a spec value.
enum Choice {
    /// One of the policies of a family.
    Policy(Vec<&'static str>),
    /// Current value, modified.
    Value(Value),
}

/// Every key of a resolved spec with its possible changes.
fn choices(table: &Table, prefix: &str, into: &mut Vec<(String, Choice)>) {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        if let Some(listed) = families().iter().find(|listed| listed.keys.contains(&key)) {
            let plain = listed.family.entries.iter().filter(|entry| entry.parameters.is_none());
            into.push((key, Choice::Policy(plain.map(|entry| entry.name).collect())));
        } else if let Some(table) = value.as_table() {
            choices(table, &format!("{key}."), into);
        } else {
            into.push((key, Choice::Value(value.clone())));
        }
    }
}

/// Neighbour of a number, or an extreme value.
fn near(number: u64, how: u8) -> u64 {
    match how % 8 {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => number / 2,
        4 => number.saturating_mul(2),
        5 => number.saturating_sub(1),
        6 => number + 1,
        _ => 7,
    }
}

impl Choice {
    /// Text of an override; `None` if a value cannot be changed in this way.
    fn take(&self, how: u8) -> Option<String> {
        match self {
            Choice::Policy(names) => Some((*names.get(usize::from(how) % names.len().max(1))?).to_owned()),
            Choice::Value(Value::Boolean(on)) => Some((!on).to_string()),
            Choice::Value(Value::Integer(number)) => Some(near(number.unsigned_abs(), how).to_string()),
            Choice::Value(Value::String(text)) => {
                let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
                let number = text[..text.len() - unit.len()].parse().ok()?;
                Some(format!("{}{unit}", near(number, how)))
            }
            Choice::Value(_) => None,
        }
    }
}

/// Platform with everything that can be changed in it.
fn resolved(platform: &Platform) -> Vec<(String, Choice)> {
    let set: Vec<String> = platform.set.iter().map(|text| (*text).to_owned()).collect();
    let loaded = machine::load(platform.system, &set).unwrap_or_else(|fault| panic!("{fault}"));
    let mut all = Vec::new();
    choices(&table(&loaded), "", &mut all);
    all
}

fn table(loaded: &Loaded) -> Table {
    loaded.to_toml().parse().expect("a resolved spec is TOML")
}

/// Run described by the bytes: the first byte chooses a platform, each three more a key and its value, and a remaining
/// one when it ends.
fn plan(bytes: &[u8]) -> Option<Plan> {
    let (which, rest) = bytes.split_first()?;
    let platform = &PLATFORMS[usize::from(*which) % PLATFORMS.len()];
    let mut plan = Plan::new(platform.system, platform.workloads[0]);
    plan.workloads = platform.workloads.iter().map(|text| (*text).to_owned()).collect();
    plan.set = platform.set.iter().map(|text| (*text).to_owned()).collect();
    let keys = if rest.is_empty() { Vec::new() } else { resolved(platform) };
    for chosen in rest.chunks_exact(3).take(OVERRIDES) {
        let (key, choice) = &keys[usize::from(u16::from_le_bytes([chosen[0], chosen[1]])) % keys.len()];
        plan.set.extend(choice.take(chosen[2]).map(|value| format!("{key}={value}")));
    }
    let end = rest.chunks_exact(3).remainder().first();
    plan.set.extend(end.map(|byte| format!("{UNTIL}{}ns", 700 * (u32::from(*byte) + 1).pow(2))));
    Some(plan)
}

/// Number of pages of every device of a spec.
fn pages(spec: &Table) -> u64 {
    let at = |path: &[&str]| {
        path.iter().try_fold(Value::Table(spec.clone()), |value, key| value.get(key).cloned())
    };
    [&["flash", "geometry"][..], &["group_flash", "groups", "geometry"], &["memory", "direct", "geometry"]]
        .into_iter()
        .filter_map(at)
        .filter_map(|geometry| {
            let counts = geometry.as_table()?.iter().filter_map(|(_, value)| value.as_integer());
            Some(counts.fold(1_u64, |all, count| all.saturating_mul(count.unsigned_abs())))
        })
        .fold(0, u64::saturating_add)
}

fn run(bytes: &[u8]) {
    let Some(plan) = plan(bytes) else { return };
    let loaded = match machine::load(&plan.system, &plan.set) {
        Ok(loaded) => loaded,
        Err(fault) => {
            assert!(!fault.what.is_empty() && fault.place.is_some(), "{:?}: {fault}", plan.set);
            return;
        }
    };
    if pages(&table(&loaded)) > PAGES {
        return;
    }
    match run_for(&plan, LOOKS) {
        Ok(document) => {
            assert!(holds(&plan, &document), "{:?}: {:?}", plan.set, document.checks);
            identities::hold(&serde_json::to_value(&document).expect("a document has a JSON form"));
            if document.ok && bytes[0] >= UNFOLDED {
                folding_changes_nothing(plan, &document);
            }
        }
        Err(fault) => assert!(!fault.what.is_empty(), "{:?}: {fault}", plan.set),
    }
}

/// Returns whether every check holds, except that of a warm-up longer than the run.
fn holds(plan: &Plan, document: &Document) -> bool {
    let is_timed = plan.set.iter().any(|set| set.starts_with(UNTIL));
    let is_short = |name: &str| is_timed && name == "the warm-up leaves something to measure";
    document.is_sound() || document.checks.iter().all(|check| check.ok || is_short(&check.name))
}

/// Checks that a run without folded events gives the same, unless it ends earlier.
fn folding_changes_nothing(mut plan: Plan, folded: &Document) {
    plan.set.push("sim.fold=false".to_owned());
    match run_for(&plan, 4 * LOOKS) {
        Ok(each) if each.ok => assert_eq!(found(folded), found(&each), "{:?}", plan.set),
        Ok(each) => assert!(holds(&plan, &each), "{:?}: {:?}", plan.set, each.checks),
        Err(fault) => panic!("{:?}: {fault}", plan.set),
    }
}

/// Result of a run: the document without the spec and the cost of the run.
fn found(document: &Document) -> serde_json::Value {
    let mut all = serde_json::to_value(document).expect("a document has a JSON form");
    let fields = all.as_object_mut().expect("a document is an object");
    for apart in ["spec", "spec_sha256", "run"] {
        fields.remove(apart);
    }
    all
}

/// Each platform unchanged, and with overrides as material for damage.
fn examples() -> Vec<Vec<u8>> {
    let count = PLATFORMS.len() as u8;
    let twice = UNFOLDED.next_multiple_of(count);
    (0..count)
        .chain(twice..twice + count)
        .flat_map(|which| {
            (0..=OVERRIDES as u8).map(move |n| [vec![which], vec![255 - n; 3 * usize::from(n)]].concat())
        })
        .collect()
}

/// Returns whether the platform accepts its workloads; overrides may be refused.
fn reads(bytes: &[u8]) -> bool {
    plan(&bytes[..1]).is_some_and(|plan| check(&plan).is_ok())
}
