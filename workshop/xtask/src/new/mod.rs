//! `cargo xtask new FAMILY NAME`: the file of a new policy, its lines in the family's list, and a test that fails until the policy
//! decides as its source says.
//!
//! What a family is made of is read from the tree: where its list is, what it has, which keys choose from it, where these keys
//! have their cases. Only the text to begin with is written here, one for each family in [`TEMPLATES`].

mod cases;
mod family;
mod list;
#[cfg(test)]
mod tests;

use crate::workspace;
use anyhow::{Context, Result, bail};
use family::Family;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a new policy's file begins as, by family. `{{Type}}` is the policy's type, `{{fill_in}}` what its test says.
const TEMPLATES: &[(&str, &str)] = &[
    ("AdmissionPolicy", include_str!("templates/admission.txt")),
    ("Allocation", include_str!("templates/allocation.txt")),
    ("Arbitration", include_str!("templates/arbitration.txt")),
    ("DramScheduler", include_str!("templates/dram_scheduler.txt")),
    ("EvictionPolicy", include_str!("templates/eviction.txt")),
    ("PageAdmission", include_str!("templates/page_admission.txt")),
    ("PlacementPolicy", include_str!("templates/placement.txt")),
    ("Prefetching", include_str!("templates/prefetching.txt")),
    ("ReplacementPolicy", include_str!("templates/replacement.txt")),
    ("Scheduling", include_str!("templates/die_scheduling.txt")),
    ("ThreadScheduling", include_str!("templates/thread_scheduling.txt")),
    ("VictimPolicy", include_str!("templates/victim.txt")),
    ("WarpScheduling", include_str!("templates/warp_scheduling.txt")),
];

/// Words that no module can be named by: Rust's, and those that folders of families have.
const TAKEN: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false",
    "fn", "for", "gen", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
    "return", "self", "static", "struct", "super", "testing", "tests", "trait", "true", "type", "unsafe",
    "use", "where", "while",
];

/// A policy to be made.
struct Plan {
    family: Family,
    name: String,
    /// The file of the policy and what it begins as; what the file of the list becomes.
    file: String,
    text: String,
    list: String,
}

/// Makes a policy and says what is left to do; always true.
pub(crate) fn run(family: &str, name: &str) -> Result<bool> {
    let root = workspace::root();
    let plan = plan(&root, family, name)?;
    fs::write(root.join(&plan.file), &plan.text).with_context(|| plan.file.clone())?;
    fs::write(root.join(&plan.family.list), &plan.list).with_context(|| plan.family.list.clone())?;
    // The length of the name may move a line break; whoever has no rustfmt has it told by CI.
    let _ = Command::new("rustfmt").args(["--edition", "2024", &plan.file]).current_dir(&root).status();
    print!("{}", plan.steps(&root, family)?);
    Ok(true)
}

fn plan(root: &Path, wanted: &str, name: &str) -> Result<Plan> {
    let family = family::find(root, wanted)?;
    let Some((_, template)) = TEMPLATES.iter().find(|(of, _)| *of == family.name) else {
        bail!("{}", without_template(&family));
    };
    check_name(&family, name)?;
    let folder = family.list.rsplit_once('/').map_or("", |(folder, _)| folder);
    let file = format!("{folder}/{name}.rs");
    if root.join(&file).exists() {
        bail!("{file} is there already; a policy `{name}` needs a file of its own");
    }
    let kind = kind(name, template);
    let text =
        template.replace("{{Type}}", &kind).replace("{{fill_in}}", &fill_in(&family, name, &kind, &file));
    let before = fs::read_to_string(root.join(&family.list)).with_context(|| family.list.clone())?;
    let list = list::with(&before, &family, name, &kind)?;
    Ok(Plan { family, name: name.into(), file, text, list })
}

/// What the test of a new policy says while it has no example, as the inside of a literal of the template.
fn fill_in(family: &Family, name: &str, kind: &str, file: &str) -> String {
    let steps = [
        format!("`{name}` decides nothing of its own yet. Fill in:"),
        format!("1. its rule and its state: `impl ... for {kind}` in {file};"),
        format!("2. its source, above `{kind}` and above `{name}` in the list of {};", family.list),
        "3. a worked example of the source, line by line: `example`, just above this test.".into(),
        "Each place is marked FIXME, which `cargo xtask tidy` refuses.".into(),
    ];
    steps.join("\\n\\\n             ")
}

/// The type of a policy: its name in capitals, and something more if the template uses that word for another thing.
fn kind(name: &str, template: &str) -> String {
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    let kind: String = name.split('_').filter(|part| !part.is_empty()).map(capital).collect();
    let mut words = template.split(|c: char| !c.is_alphanumeric() && c != '_');
    if words.any(|word| word == kind) { format!("{kind}Policy") } else { kind }
}

fn check_name(family: &Family, name: &str) -> Result<()> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_word) {
        bail!("`{name}` names no policy: a name has the letters a to z, digits and `_`, a letter first");
    }
    if TAKEN.contains(&name) {
        bail!("`{name}` names no policy: the word has a meaning in Rust or in the folders of families");
    }
    if family.entries.iter().any(|entry| entry == name) {
        bail!("{} has a policy `{name}` already: {}", family.name, family.list);
    }
    Ok(())
}

fn without_template(family: &Family) -> String {
    let names: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).collect();
    let why = match &family.object {
        Some(object) => format!("write its file beside its list by the trait of `{object}`"),
        None => {
            "it only chooses: a policy of it is an entry of its list, and what the part does with it".into()
        }
    };
    format!(
        "{} has nothing to begin with: {why} ({})\nfamilies that have: {}",
        family.name,
        family.list,
        names.join(", ")
    )
}

impl Plan {
    /// What was made, and what is left to do for a policy of the family or key that was asked for.
    fn steps(&self, root: &Path, wanted: &str) -> Result<String> {
        let Plan { family, name, file, .. } = self;
        let package = family.package(root)?;
        let keys = &family.keys;
        // What was asked for, if it was a key.
        let key =
            keys.iter().find(|key| key.ends_with(wanted)).or(keys.first()).map_or("KEY", String::as_str);
        let cases = cases::places(root, keys, &family.entries)?;
        let mut text = format!("made {file}\nlisted it in {}\n\n{} has so far:\n", family.list, family.name);
        for (policy, doc) in family.entries.iter().zip(&family.docs) {
            text += &format!("  {policy}: {doc}\n");
        }
        text += "\nleft to do:\n";
        let mut steps = vec![
            format!("fill it in until this passes: cargo test -p {package} --lib {}", family.module()),
            format!("try it: cargo run --release -- run SYSTEM --workload WORKLOAD --set {key}={name}"),
        ];
        steps.push(format!("its case: add \"{name}\" to\n   {}", cases.join("\n   ")));
        steps.push(
            "cargo fmt --all; cargo xtask tidy; cargo xtask gen (docs/policies.md, docs/parameters.md)"
                .into(),
        );
        steps.push("cargo xtask golden --bless (freezes what its case finds); a line in CHANGELOG.md".into());
        for (n, step) in steps.iter().enumerate() {
            text += &format!("{}. {step}\n", n + 1);
        }
        text += &format!(
            "\nA policy with parameters has a `Params` in its file and `{name}({name}::Params)` in the list: see one that has, such as\n\
             crates/parts/ftl/src/page_map/gc/d_choices.rs. Each parameter is a key, with a case of its own.\n"
        );
        Ok(text)
    }
}
