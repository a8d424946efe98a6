//! The generated pages of `docs/`: the binary's own lists of metrics, parameters, policies and systems, the last also in the README.

use crate::workspace;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The pages that `nandscape gen-docs DIR` must write.
pub(crate) const PAGES: [&str; 4] = ["metrics.md", "parameters.md", "policies.md", "systems.md"];

/// The table of the README that the command must write too, and the lines around it.
const TABLE: &str = "families.md";
const README: &str = "README.md";
const BEGIN: &str = "<!-- systems: written by `cargo xtask gen` -->\n";
const END: &str = "<!-- end of systems -->\n";

/// Writes the pages; always true.
pub(crate) fn write() -> Result<bool> {
    let docs = workspace::root().join("docs");
    fs::create_dir_all(&docs)?;
    let (pages, table) = generate(Command::new(workspace::release_binary()?))?;
    for (name, text) in pages {
        fs::write(docs.join(name), text)?;
        println!("wrote docs/{name}");
    }
    let readme = workspace::root().join(README);
    fs::write(&readme, spliced(&fs::read_to_string(&readme)?, &table)?)?;
    println!("wrote the systems of {README}");
    Ok(true)
}

/// Compares the committed pages with fresh ones and prints the first difference of each; returns false if one differs.
pub(crate) fn check() -> Result<bool> {
    let stale = stale_pages()?;
    for finding in &stale {
        println!("{finding}");
    }
    if stale.is_empty() {
        println!("docs: {} generated pages are fresh", PAGES.len());
    } else {
        println!("run `cargo xtask gen` and commit the pages");
    }
    Ok(stale.is_empty())
}

/// Findings: one line for each page that is missing or stale.
fn stale_pages() -> Result<Vec<String>> {
    let docs = workspace::root().join("docs");
    let (fresh, table) = generate(Command::new(workspace::release_binary()?))?;
    let mut found: Vec<String> = fresh.iter().filter_map(|(name, text)| compare(&docs, name, text)).collect();
    let readme = fs::read_to_string(workspace::root().join(README))?;
    if spliced(&readme, &table)? != readme {
        found.push(format!("{README}: its table of systems is stale"));
    }
    Ok(found)
}

/// The README with a fresh table of systems.
fn spliced(readme: &str, table: &str) -> Result<String> {
    let parts = readme.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.with_context(|| format!("{README} has no place for the table of systems"))?;
    Ok(format!("{head}{BEGIN}\n{table}\n{END}{tail}"))
}

/// Pages by name.
type Pages = Vec<(&'static str, String)>;

fn compare(docs: &Path, name: &str, fresh: &str) -> Option<String> {
    let Ok(committed) = fs::read_to_string(docs.join(name)) else {
        return Some(format!("docs/{name}: missing"));
    };
    if committed == fresh {
        return None;
    }
    let same = committed.lines().zip(fresh.lines()).take_while(|(old, new)| old == new).count();
    let old = committed.lines().nth(same).unwrap_or("(end of file)");
    let new = fresh.lines().nth(same).unwrap_or("(end of file)");
    Some(format!("docs/{name}:{}: stale\n  committed: {old}\n  generated: {new}", same + 1))
}

fn generate(mut binary: Command) -> Result<(Pages, String)> {
    let folder = tempfile::tempdir()?;
    let output = binary.arg("gen-docs").arg(folder.path()).output().context("nandscape did not start")?;
    if !output.status.success() {
        bail!(
            "`nandscape gen-docs DIR` failed ({}); the hidden subcommand writes {} into DIR\n{}",
            output.status,
            PAGES.join(", "),
            String::from_utf8_lossy(&output.stderr).trim_end()
        );
    }
    let read = |name: &'static str| {
        let text = fs::read_to_string(folder.path().join(name))
            .with_context(|| format!("`nandscape gen-docs DIR` exited well but wrote no {name}"))?;
        Ok((name, text))
    };
    Ok((PAGES.into_iter().map(read).collect::<Result<_>>()?, read(TABLE)?.1))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    /// A stand-in for the binary; in it `$1` is `gen-docs` and `$2` the folder.
    fn stand_in(body: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", body, "nandscape"]);
        command
    }

    #[test]
    fn a_binary_without_the_subcommand_is_named() {
        let error = generate(stand_in("echo unrecognized subcommand >&2; exit 2")).unwrap_err().to_string();
        assert!(error.contains("gen-docs") && error.contains("unrecognized subcommand"), "{error}");
    }

    #[test]
    fn a_missing_page_is_named() {
        let error = generate(stand_in("echo m > $2/metrics.md; echo p > $2/policies.md")).unwrap_err();
        assert!(error.to_string().contains("parameters.md"), "{error}");
    }

    #[test]
    fn a_stale_page_shows_its_first_difference() {
        let docs = tempfile::tempdir().unwrap();
        fs::write(docs.path().join("metrics.md"), "a\nb\n").unwrap();
        assert_eq!(compare(docs.path(), "metrics.md", "a\nb\n"), None);
        let finding = compare(docs.path(), "metrics.md", "a\nc\n").unwrap();
        assert!(finding.starts_with("docs/metrics.md:2: stale"), "{finding}");
        assert_eq!(compare(docs.path(), "policies.md", "").as_deref(), Some("docs/policies.md: missing"));
    }
}
