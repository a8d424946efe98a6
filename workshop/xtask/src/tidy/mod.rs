//! `cargo xtask tidy`: the rules of the repository that can be checked by a program, one file each.
//!
//! A rule is a function from the tree to findings, and one line in [`RULES`].

mod changelog;
mod families;
mod functions;
mod layers;
mod leftovers;
mod lengths;
mod links;
mod machine_paths;
mod modules;
mod prose;
mod rooms;
mod systems;
mod tree;
mod unsafety;
mod weight;

use anyhow::Result;
use tree::Tree;

/// Finding of a rule at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    severity: Severity,
    path: String,
    /// Line from 1; 0 for the whole file.
    line: usize,
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    /// Listed only.
    Note,
    /// Makes tidy fail.
    Fail,
}

impl Finding {
    fn fail(path: &str, line: usize, message: impl Into<String>) -> Self {
        Finding { severity: Severity::Fail, path: path.into(), line, message: message.into() }
    }

    fn note(path: &str, line: usize, message: impl Into<String>) -> Self {
        Finding { severity: Severity::Note, ..Finding::fail(path, line, message) }
    }
}

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: &[(&str, Rule)] = &[
    ("layers", layers::check),
    ("rooms", rooms::check),
    ("lengths", lengths::check),
    ("families", families::check),
    ("functions", functions::check),
    ("leftovers", leftovers::check),
    ("machine-paths", machine_paths::check),
    ("unsafety", unsafety::check),
    ("modules", modules::check),
    ("prose", prose::check),
    ("links", links::check),
    ("systems", systems::check),
    ("changelog", changelog::check),
    ("weight", weight::check),
];

/// Runs every rule on the files that git tracks or would add; returns false if one fails.
pub(crate) fn run() -> Result<bool> {
    let tree = Tree::read(&crate::workspace::root())?;
    let mut failures = 0;
    let mut notes = 0;
    for (rule, check) in RULES {
        for finding in check(&tree) {
            let kind = match finding.severity {
                Severity::Fail => {
                    failures += 1;
                    "fail"
                }
                Severity::Note => {
                    notes += 1;
                    "note"
                }
            };
            println!("{kind}: {rule}: {}:{}: {}", finding.path, finding.line, finding.message);
        }
    }
    println!("tidy: {} files, {} rules, {failures} failures, {notes} notes", tree.files.len(), RULES.len());
    Ok(failures == 0)
}

#[cfg(test)]
mod tests {
    /// A rule is a file and a line; a file without the line would never run.
    #[test]
    fn every_rule_file_is_in_the_list() {
        let helpers = ["mod", "tree", "mask"];
        let folder = crate::workspace::root().join("workshop/xtask/src/tidy");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().replace('_', "-"))
            .filter(|name| !helpers.contains(&name.as_str()))
            .collect();
        let mut listed: Vec<&str> = super::RULES.iter().map(|(name, _)| *name).collect();
        files.sort_unstable();
        listed.sort_unstable();
        assert_eq!(files, listed);
    }
}
