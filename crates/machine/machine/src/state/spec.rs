//! What a state depends on.

use super::{hex, version};
use crate::plan::Plan;
use crate::precondition::{Precondition, trace};
use crate::spec::{DriveSpec, Loaded, stream};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use ssd::spec::FlashState;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// All that decides the state of a part before the first event of a run, as a tree of a spec's keys. Two runs with equal ones have
/// states that are equal byte for byte.
#[derive(Clone, Debug)]
pub struct StateSpec {
    keys: Value,
    /// What the user calls the part: for telling, as a state does not depend on it; nothing of one in a file.
    part: String,
    /// The tables of the spec that the keys are of, by what they begin with here.
    tables: Vec<(&'static str, String)>,
}

impl PartialEq for StateSpec {
    fn eq(&self, other: &StateSpec) -> bool {
        self.keys == other.keys
    }
}

/// A key in which two states differ, with both values as JSON; `None` where it is not set.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its path.
    pub key: String,
    /// In the one.
    pub ours: Option<String>,
    /// In the other.
    pub theirs: Option<String>,
}

impl StateSpec {
    /// What the state of a drive of a plan depends on, by the drive's number; `None` if it cannot be known beforehand: preconditioning
    /// reads a trace that is no regular file.
    ///
    /// # Panics
    /// If there is no such drive.
    pub fn of(plan: &Plan, loaded: &Loaded, number: usize) -> Option<StateSpec> {
        // Each key of the plan is named, so that a new one does not compile until it is placed here.
        let Plan {
            seed,
            precondition: instead,
            // The spec is what they have come to.
            system: _,
            text: _,
            set: _,
            // What comes after.
            workloads: _,
            warmup: _,
            trace: _,
            queue_depth: _,
        } = plan;
        // Of the spec, the drive alone: no command has come from another part, and neither a text nor how the simulation works is
        // seen by the device.
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

    /// As it stands in a file.
    pub(super) fn from_keys(keys: Value) -> StateSpec {
        StateSpec::new(keys, "", Vec::new())
    }

    /// Whether it is that of a drive, and not of a server's memory.
    pub fn is_of_a_drive(&self) -> bool {
        self.keys.get("device").is_some()
    }

    /// As it goes into a file.
    pub(super) fn keys(&self) -> &Value {
        &self.keys
    }

    /// What the user calls the part.
    pub fn part(&self) -> &str {
        &self.part
    }

    /// A key of the tree as the spec of this machine has it.
    pub(super) fn key_of_spec(&self, key: &str) -> String {
        let renamed = self.tables.iter().find_map(|(kind, table)| {
            let rest = key.strip_prefix(kind)?.strip_prefix('.')?;
            Some(format!("{table}.{rest}"))
        });
        renamed.unwrap_or_else(|| key.to_owned())
    }

    /// The name of the state: a SHA-256 of all that it depends on, the program's version included.
    pub fn digest(&self) -> String {
        let all = json!({ "version": version(), "keys": self.keys });
        hex(&Sha256::digest(all.to_string().as_bytes()))
    }

    /// The keys in which they differ, in alphabetical order.
    pub fn differences(&self, theirs: &StateSpec) -> Vec<Difference> {
        let mut found = Vec::new();
        compare("", Some(&self.keys), Some(&theirs.keys), &mut found);
        found
    }
}

/// The state's parameters; of a trace, the content of its files in place of their names.
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

/// Whether they are tables with keys in common: two choices between policies have none.
fn alike(ours: &Map<String, Value>, theirs: &Map<String, Value>) -> bool {
    ours.keys().any(|name| theirs.contains_key(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[&str]) -> StateSpec {
        let plan = set.iter().fold(Plan::new("d16", ""), |plan, set| plan.set(set));
        let loaded = Loaded::load(&plan.system, &plan.set).expect("a spec");
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
        let loaded = Loaded::load("d16", &[]).expect("a spec");
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
