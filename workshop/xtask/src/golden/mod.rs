//! `cargo xtask golden`: small runs whose whole result is committed.
//!
//! A case is `tests/golden/NAME.toml`; its result is `NAME.json`, with a digest that shows an edit by hand. Of the many runs
//! that move every key of a spec, digests alone are committed, in `keys/`; their own test compares them.

mod case;
mod diff;
mod record;

use crate::workspace;
use anyhow::{Context, Result, bail};
use case::Case;
use record::Record;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How many differing leaves of one case are printed.
const MOST_LEAVES: usize = 40;

/// Runs every case; with `bless` rewrites the committed results. False if a result differs.
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

/// Has the test of keys write the digests of its runs, which `cargo test` compares.
fn keys() -> Result<()> {
    let status = Command::new("cargo")
        .args(["test", "--quiet", "-p", "nandscape-machine", "--test", "keys", "every_key_of"])
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

/// The case files, in order of name.
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
    let document = serde_json::from_slice(&output.stdout).context("stdout is no JSON document")?;
    Ok(Record::new(document))
}

/// What differs from the committed result; empty if nothing.
fn judge(committed: &Path, fresh: &Record) -> Result<Vec<String>> {
    let Ok(text) = fs::read_to_string(committed) else {
        return Ok(vec!["no committed result".into()]);
    };
    let committed = Record::parse(&text).with_context(|| format!("{}", committed.display()))?;
    if committed.digest() == fresh.digest() {
        return Ok(Vec::new());
    }
    let mut lines = diff::leaves(committed.document(), fresh.document());
    let more = lines.len().saturating_sub(MOST_LEAVES);
    lines.truncate(MOST_LEAVES);
    if more > 0 {
        lines.push(format!("and {more} more leaves"));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
