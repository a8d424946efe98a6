//! `cargo xtask golden`: small runs whose whole result is committed.
//!
//! A case is `tests/golden/NAME.toml`; its result is `NAME.json`, with a digest that shows an edit by hand. Of the many
//! runs that move every key of a spec, digests alone are committed, in `keys/`; their own test compares them.

use crate::workspace;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum number of differing leaves printed for a case.
const MOST_LEAVES: usize = 40;

/// Runs every case; `bless` rewrites the committed results. Returns false if a result differs.
pub(crate) fn run(bless: bool) -> Result<bool> {
    let cases = cases(&workspace::root().join("tests/golden"))?;
    if cases.is_empty() {
        println!("golden: no cases in tests/golden");
        return Ok(true);
    }
    let binary = workspace::release_binary()?;
    let mut differing = 0;
    for path in &cases {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let fresh = result(&binary, path).with_context(|| format!("golden case {name}"))?;
        let committed = path.with_extension("json");
        if bless {
            fs::write(&committed, fresh.to_text())?;
            println!("{name}: blessed, digest {}", fresh.digest());
        } else {
            let lines = judge(&committed, &fresh)?;
            differing += usize::from(!lines.is_empty());
            let verdict = if lines.is_empty() { "same" } else { "DIFFERS" };
            println!("{name}: {verdict}, digest {}", fresh.digest());
            lines.iter().for_each(|line| println!("  {line}"));
        }
    }
    println!("golden: {} cases, {differing} differ", cases.len());
    if bless {
        keys()?;
    }
    if differing > 0 {
        println!(
            "if the change is meant: `cargo xtask golden --bless`, and `Results change: yes` in CHANGELOG.md"
        );
    }
    Ok(differing == 0)
}

/// Makes the test of keys write the digests of its runs, which `cargo test` compares.
fn keys() -> Result<()> {
    let status = Command::new("cargo")
        .args(["test", "--quiet", "-p", "nandscape-machine", "--test", "all", "every_key_of"])
        .env("NANDSCAPE_BLESS", "1")
        .current_dir(workspace::root())
        .status()
        .context("cargo did not start")?;
    if !status.success() {
        bail!("the test of keys failed ({status})");
    }
    println!("tests/golden/keys: blessed");
    Ok(())
}

/// Case files, in order of name.
fn cases(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    let mut cases: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    cases.sort();
    Ok(cases)
}

fn result(binary: &Path, path: &Path) -> Result<Record> {
    let case = Case::parse(&fs::read_to_string(path)?)?;
    let output = Command::new(binary)
        .args(case.arguments())
        .current_dir(workspace::root())
        .output()
        .context("nandscape did not start")?;
    if !output.status.success() {
        bail!("nandscape failed ({})\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let document = serde_json::from_slice(&output.stdout).context("stdout is not a JSON document")?;
    Ok(Record::new(document))
}

/// Differences from the committed result; empty if there are none.
fn judge(committed: &Path, fresh: &Record) -> Result<Vec<String>> {
    let Ok(text) = fs::read_to_string(committed) else {
        return Ok(vec!["no committed result".into()]);
    };
    let committed = Record::parse(&text).with_context(|| format!("{}", committed.display()))?;
    if committed.digest() == fresh.digest() {
        return Ok(Vec::new());
    }
    let mut lines = leaves(committed.document(), fresh.document());
    let more = lines.len().saturating_sub(MOST_LEAVES);
    lines.truncate(MOST_LEAVES);
    if more > 0 {
        lines.push(format!("and {more} more leaves"));
    }
    Ok(lines)
}

// A golden case: one run of the shipped binary.

/// Contents of `tests/golden/NAME.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Shipped system or TOML file, relative to the root of the workspace.
    system: String,
    /// Value of `--workload`.
    workload: String,
    /// Further arguments of `nandscape run`.
    #[serde(default)]
    args: Vec<String>,
}

impl Case {
    fn parse(text: &str) -> Result<Case> {
        Ok(toml::from_str(text)?)
    }

    /// Command line, without the binary.
    fn arguments(&self) -> Vec<&str> {
        let mut arguments = vec!["run", &self.system, "--workload", &self.workload];
        arguments.extend(self.args.iter().map(String::as_str));
        arguments.push("--json");
        arguments
    }
}

// Two documents, leaf by leaf.

/// One line for each leaf that differs: `path: old -> new`, numbers with their relative change.
fn leaves(old: &Value, new: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    walk("", Some(old), Some(new), &mut lines);
    lines
}

fn walk(path: &str, old: Option<&Value>, new: Option<&Value>, lines: &mut Vec<String>) {
    match (old, new) {
        (Some(old), Some(new)) if old == new => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                walk(&inner, old.get(key), new.get(key), lines);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                walk(&format!("{path}[{index}]"), old.get(index), new.get(index), lines);
            }
        }
        _ => lines.push(format!("{path}: {} -> {}{}", show(old), show(new), change(old, new))),
    }
}

fn show(value: Option<&Value>) -> String {
    value.map_or("(absent)".into(), Value::to_string)
}

fn change(old: Option<&Value>, new: Option<&Value>) -> String {
    match (old.and_then(Value::as_f64), new.and_then(Value::as_f64)) {
        (Some(old), Some(new)) if old != 0.0 => format!(" ({:+.3} %)", (new / old - 1.0) * 100.0),
        _ => String::new(),
    }
}

// A result as it is committed: without what differs from run to run, and with a digest.

/// Volatile fields: the cost of the run and the version of the program, not the simulation.
const DROPPED: [&str; 2] = ["run", "version"];

struct Record {
    document: Value,
}

impl Record {
    /// Drops the volatile fields of a result document.
    fn new(mut document: Value) -> Record {
        if let Value::Object(fields) = &mut document {
            for name in DROPPED {
                fields.remove(name);
            }
        }
        Record { document }
    }

    /// Reads a committed file; fails if its digest is not that of its result.
    fn parse(text: &str) -> Result<Record> {
        let mut file: Value = serde_json::from_str(text)?;
        let stated = file["digest"].as_str().context("no digest")?.to_string();
        let record = Record { document: file["result"].take() };
        if record.digest() != stated {
            bail!("edited by hand: the digest says {stated}, the result gives {}", record.digest());
        }
        Ok(record)
    }

    fn to_text(&self) -> String {
        format!("{:#}\n", json!({ "digest": self.digest(), "result": self.document }))
    }

    fn document(&self) -> &Value {
        &self.document
    }

    /// FNV-1a, 64 bit, of the compact text; the keys of an object are in order.
    fn digest(&self) -> String {
        format!("{:016x}", fnv1a(self.document.to_string().as_bytes()))
    }
}

/// Parameters from draft-eastlake-fnv, section 5.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_changed_leaf_and_a_missing_file_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        let record =
            |reads| Record::new(serde_json::json!({ "io": { "reads": reads }, "run": { "wall_s": 1.5 } }));
        assert_eq!(judge(&path, &record(1)).unwrap(), ["no committed result"]);
        fs::write(&path, record(1).to_text()).unwrap();
        assert_eq!(judge(&path, &record(1)).unwrap(), [""; 0]);
        assert_eq!(judge(&path, &record(2)).unwrap().len(), 1);
    }

    #[test]
    fn many_leaves_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        let record = |value: u64| Record::new(serde_json::json!(vec![value; MOST_LEAVES + 3]));
        fs::write(&path, record(1).to_text()).unwrap();
        let lines = judge(&path, &record(2)).unwrap();
        assert_eq!(lines.len(), MOST_LEAVES + 1);
        assert_eq!(lines[MOST_LEAVES], "and 3 more leaves");
    }

    #[test]
    fn a_case_is_a_command_line() {
        let case =
            Case::parse("system = \"d16\"\nworkload = \"fio:rw=read\"\nargs = [\"--seed\", \"7\"]").unwrap();
        let expected = ["run", "d16", "--workload", "fio:rw=read", "--seed", "7", "--json"];
        assert_eq!(case.arguments(), expected);
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        assert!(Case::parse("system = \"d16\"\nworkloads = \"x\"").is_err());
        assert!(Case::parse("system = \"d16\"").is_err());
    }

    #[test]
    fn every_kind_of_difference_is_one_line() {
        let old = json!({ "io": { "mean": 200, "max": 9 }, "flash": [{ "name": "a" }, 1], "gone": true, "zero": 0 });
        let new =
            json!({ "io": { "mean": 201, "max": 9 }, "flash": [{ "name": "b" }], "new": null, "zero": 1 });
        assert_eq!(
            leaves(&old, &new),
            [
                "flash[0].name: \"a\" -> \"b\"",
                "flash[1]: 1 -> (absent)",
                "gone: true -> (absent)",
                "io.mean: 200 -> 201 (+0.500 %)",
                "zero: 0 -> 1",
                "new: (absent) -> null",
            ]
        );
        assert_eq!(leaves(&old, &old), [""; 0]);
    }

    /// Test vectors of draft-eastlake-fnv, appendix C.
    #[test]
    fn fnv1a_vectors() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn only_the_simulated_part_counts() {
        let result = |wall: f64, version: &str, seconds: f64, erases: u64| {
            let precondition = json!({ "kind": "steady" });
            let run = json!({ "wall_s": wall, "precondition_cpu_s": seconds });
            Record::new(
                json!({ "run": run, "version": version, "precondition": precondition, "erases": erases }),
            )
        };
        let digest = result(1.0, "0.1.0", 2.0, 3).digest();
        assert_eq!(digest, result(9.0, "0.2.0", 8.0, 3).digest());
        assert_ne!(digest, result(1.0, "0.1.0", 2.0, 4).digest());
    }

    #[test]
    fn the_order_of_keys_does_not_count() {
        let digest = |text| Record::new(serde_json::from_str(text).unwrap()).digest();
        assert_eq!(digest(r#"{"a":1,"b":2}"#), digest(r#"{"b":2,"a":1}"#));
    }

    #[test]
    fn a_file_round_trips_and_an_edit_shows() {
        let record = Record::new(json!({ "mean": 0.1 + 0.2, "p99": null, "reads": u64::MAX }));
        let text = record.to_text();
        assert_eq!(Record::parse(&text).unwrap().digest(), record.digest());
        assert!(Record::parse(&text.replace("null", "1")).is_err());
    }
}
