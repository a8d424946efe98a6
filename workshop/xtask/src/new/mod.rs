//! `cargo xtask new FAMILY NAME`: creates the file of a new policy, its lines in the family's list, and a test that
//! fails until the policy is filled in.
//!
//! Families are read from the tree: their lists, their policies, the keys that choose from them, and the test cases of
//! these keys. Only the initial text is defined here, one template per family in [`TEMPLATES`].

mod family;

use crate::workspace;
use anyhow::{Context, Result, bail};
use family::Family;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Initial text of a new policy's file, by family. `{{Type}}` is the policy's type, `{{fill_in}}` the message of its
/// test.
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

/// Words that cannot name a module: Rust keywords, and names used in the folders of families.
const TAKEN: &[&str] = &[
    "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum", "extern", "false",
    "fn", "for", "gen", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut", "pub", "ref",
    "return", "self", "static", "struct", "super", "testing", "tests", "trait", "true", "type", "unsafe",
    "use", "where", "while",
];

/// Policy to be created.
struct Plan {
    family: Family,
    name: String,
    /// Path and initial text of the policy's file, and the new text of the list's file.
    file: String,
    text: String,
    list: String,
}

/// Creates a policy and prints the remaining steps; always true.
pub(crate) fn run(family: &str, name: &str) -> Result<bool> {
    let root = workspace::root();
    let plan = plan(&root, family, name)?;
    fs::write(root.join(&plan.file), &plan.text).with_context(|| plan.file.clone())?;
    fs::write(root.join(&plan.family.list), &plan.list).with_context(|| plan.family.list.clone())?;
    // The length of the name may move a line break; without rustfmt, CI reports it.
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
        bail!("{file} already exists; a policy `{name}` needs a file of its own");
    }
    let kind = kind(name, template);
    let text =
        template.replace("{{Type}}", &kind).replace("{{fill_in}}", &fill_in(&family, name, &kind, &file));
    let before = fs::read_to_string(root.join(&family.list)).with_context(|| family.list.clone())?;
    let list = family::with_entry(&before, &family, name, &kind)?;
    Ok(Plan { family, name: name.into(), file, text, list })
}

/// Message of a new policy's test, in the form of a literal of the template.
fn fill_in(family: &Family, name: &str, kind: &str, file: &str) -> String {
    let steps = [
        format!("`{name}` does not decide anything yet. Fill in:"),
        format!("1. its rule and its state: `impl ... for {kind}` in {file};"),
        format!("2. its source, above `{kind}` and above `{name}` in the list of {};", family.list),
        "3. a worked example of the source, line by line: `example`, just above this test.".into(),
        "Each place is marked FIXME, which `cargo xtask tidy` refuses.".into(),
    ];
    steps.join("\\n\\\n             ")
}

/// Type name of a policy: its name in camel case, with a suffix if the template uses that word for something else.
fn kind(name: &str, template: &str) -> String {
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    let kind: String = name.split('_').filter(|part| !part.is_empty()).map(capital).collect();
    let mut words = template.split(|c: char| !c.is_alphanumeric() && c != '_');
    if words.any(|word| word == kind) { format!("{kind}Policy") } else { kind }
}

fn check_name(family: &Family, name: &str) -> Result<()> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_word) {
        bail!("`{name}` is not a policy name: use the letters a to z, digits and `_`, a letter first");
    }
    if TAKEN.contains(&name) {
        bail!("`{name}` is not a policy name: the word is reserved in Rust or in the folders of families");
    }
    if family.entries.iter().any(|entry| entry == name) {
        bail!("{} already has a policy `{name}`: {}", family.name, family.list);
    }
    Ok(())
}

fn without_template(family: &Family) -> String {
    let names: Vec<&str> = TEMPLATES.iter().map(|(name, _)| *name).collect();
    let why = match &family.object {
        Some(object) => format!("write its file beside its list by the trait of `{object}`"),
        None => {
            "it only chooses: a policy is an entry of its list, and the behaviour of the component for it"
                .into()
        }
    };
    format!(
        "{} has no template: {why} ({})\nfamilies with a template: {}",
        family.name,
        family.list,
        names.join(", ")
    )
}

impl Plan {
    /// Describes what was created, and the remaining steps for a policy of the requested family or key.
    fn steps(&self, root: &Path, wanted: &str) -> Result<String> {
        let Plan { family, name, file, .. } = self;
        let package = family.package(root)?;
        let keys = &family.keys;
        // The requested key, if it was a key.
        let key =
            keys.iter().find(|key| key.ends_with(wanted)).or(keys.first()).map_or("KEY", String::as_str);
        let cases = places(root, keys, &family.entries)?;
        let mut text =
            format!("created {file}\nlisted it in {}\n\npolicies of {} so far:\n", family.list, family.name);
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

// Where the cases of a key name the policies of a family.

const FOLDER: &str = "crates/machine/machine/tests/all/keys";

/// Text before the values of a case.
const VALUES: &str = "values: ";

/// Lines to extend for a new policy, each with its place: for each key the case with most of the policies.
fn places(root: &Path, keys: &[String], policies: &[String]) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(FOLDER))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, fs::read_to_string(&path)?));
        }
    }
    files.sort();
    let mut places: Vec<String> = Vec::new();
    for key in keys {
        let place = place(&files, key, policies).unwrap_or_else(|| format!("{FOLDER}: a case of `{key}`"));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Ok(places)
}

fn place(files: &[(String, String)], key: &str, policies: &[String]) -> Option<String> {
    let named = |text: &str| policies.iter().filter(|policy| text.contains(policy.as_str())).count();
    let mut best: Option<((usize, bool), String)> = None;
    for (file, text) in files {
        for (at, _) in text.match_indices(&format!("key: \"{key}\",")) {
            let Some(values) = text[at..].find(VALUES).map(|values| at + values) else { continue };
            let given = &text[values + VALUES.len()..];
            let line = text[..values].matches('\n').count();
            // What several keys share is the line to extend.
            let shared = given.split(',').next().and_then(|name| constant(files, name));
            let own = given.split_inclusive(']').next().unwrap_or_default();
            let rank = (named(shared.map_or(own, |(.., line)| line)), shared.is_some());
            let (file, line, values) = shared.unwrap_or((file, line, own));
            if best.as_ref().is_none_or(|(most, _)| rank > *most) {
                best = Some((rank, format!("{FOLDER}/{file}:{}: {values}", line + 1)));
            }
        }
    }
    best.map(|(_, place)| place)
}

/// Line of the constant that several cases share for their values.
fn constant<'f>(files: &'f [(String, String)], name: &str) -> Option<(&'f String, usize, &'f str)> {
    let begins = |line: &str| {
        let line = line.trim_start_matches("pub(crate) ");
        line.strip_prefix("const ").is_some_and(|rest| rest.split(':').next() == Some(name))
    };
    let lines = files
        .iter()
        .flat_map(|(file, text)| text.lines().enumerate().map(move |(at, line)| (file, at, line)));
    lines.into_iter().find(|(_, _, line)| begins(line))
}

#[cfg(test)]
mod tests {
    // Every template against the tree as it stands. Nothing is written.
    use super::family::declared;
    use super::*;
    use std::io::Write;
    use std::process::Stdio;

    /// A name that no family has.
    const NAME: &str = "my_own_policy";

    /// Returns whether rustfmt reads a text; nothing where there is none.
    fn parses(text: &str) -> Option<bool> {
        let mut command = Command::new("rustfmt");
        command.args(["--edition", "2024", "--emit", "stdout"]);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = piped.ok()?;
        child.stdin.take()?.write_all(text.as_bytes()).ok()?;
        Some(child.wait().ok()?.success())
    }

    #[test]
    fn every_template_becomes_a_policy() {
        let root = workspace::root();
        for (family, _) in TEMPLATES {
            let plan = plan(&root, family, NAME).unwrap();
            assert!(plan.file.ends_with("/my_own_policy.rs"), "{}", plan.file);
            assert!(!plan.text.contains("{{") && plan.text.contains("pub struct MyOwnPolicy"), "{family}");
            for step in
                ["fn example()", "does not decide anything yet", "FIXME", &plan.file, &plan.family.list]
            {
                assert!(plan.text.contains(step), "{family}: no `{step}`");
            }
            if parses(&plan.text).is_none() {
                println!("skipped: no rustfmt");
            }
            assert_ne!(parses(&plan.text), Some(false), "{family}:\n{}", plan.text);
            assert_ne!(parses("fn f( {"), Some(true));
        }
    }

    #[test]
    fn the_list_has_one_module_and_one_entry_more() {
        let root = workspace::root();
        for (family, _) in TEMPLATES {
            let Plan { family: before, list, .. } = plan(&root, family, NAME).unwrap();
            let after = family::lists(&list, &before.list);
            let after = after.iter().find(|after| after.name == before.name).unwrap();
            let expected: Vec<&str> = before.entries.iter().map(String::as_str).chain([NAME]).collect();
            assert_eq!(after.entries, expected);

            // Without the new lines it is what it was.
            let old = fs::read_to_string(root.join(&before.list)).unwrap();
            let mut rest: Vec<&str> = list.lines().collect();
            let module = rest.iter().position(|line| *line == "pub mod my_own_policy;").unwrap();
            let (above, below) =
                (module.checked_sub(1).and_then(|at| declared(rest[at])), declared(rest[module + 1]));
            assert!(above.is_none_or(|name| name < NAME) && below.is_none_or(|name| name > NAME), "{family}");
            rest.remove(module);
            let entry =
                rest.iter().position(|line| line.contains("my_own_policy::MyOwnPolicy::new,")).unwrap();
            rest.drain(entry - 3..=entry);
            assert_eq!(rest, old.lines().collect::<Vec<_>>(), "{family}");
        }
    }

    /// The remaining steps list the existing policies, in the words of the program's own list.
    #[test]
    fn the_policies_of_a_family_are_shown_with_what_they_do() {
        let root = workspace::root();
        for (family, _) in TEMPLATES {
            let plan = plan(&root, family, NAME).unwrap();
            let steps = plan.steps(&root, family).unwrap();
            let page = fs::read_to_string(root.join("docs/policies.md")).unwrap().replace('\n', " ");
            for (policy, doc) in plan.family.entries.iter().zip(&plan.family.docs) {
                assert!(
                    steps.contains(&format!("\n  {policy}: {doc}\n")),
                    "{family}: no {policy} in\n{steps}"
                );
                assert!(!doc.is_empty() && page.contains(doc.as_str()), "{family}: {policy}: {doc}");
            }
            assert_eq!(plan.family.entries.len(), plan.family.docs.len());
        }
    }

    #[test]
    fn a_family_is_found_by_its_keys_too() {
        let root = workspace::root();
        for (name, _) in TEMPLATES {
            let family = family::find(&root, name).unwrap();
            assert!(!family.keys.is_empty(), "{name}: its words are not a chapter of docs/policies.md");
            for key in &family.keys {
                assert_eq!(family::find(&root, key).unwrap(), family);
            }
        }
        // The last parts of a key are enough.
        let victim = family::find(&root, "VictimPolicy").unwrap();
        let (_, rest) = victim.keys[0].split_once('.').unwrap();
        assert_eq!(family::find(&root, rest).unwrap(), victim);
    }

    #[test]
    fn the_steps_name_every_case() {
        let root = workspace::root();
        for (family, _) in TEMPLATES {
            let plan = plan(&root, family, NAME).unwrap();
            let steps = plan.steps(&root, family).unwrap();
            let cases = super::places(&root, &plan.family.keys, &plan.family.entries).unwrap();
            for case in &cases {
                assert!(steps.contains(case), "{steps}");
                let all = plan.family.entries.iter().filter(|entry| case.contains(entry.as_str())).count();
                assert!(all + 1 >= plan.family.entries.len(), "{family}: {case}");
            }
            // Parts that share a family may have a line each.
            let lines = 1..=plan.family.keys.len();
            assert!(lines.contains(&cases.len()), "{family}: a policy has a line to go into: {cases:?}");
        }
    }

    #[test]
    fn what_cannot_be_made_is_refused_with_what_can() {
        let root = workspace::root();
        let refused = |family: &str, name: &str| plan(&root, family, name).err().unwrap().to_string();
        assert!(refused("VictimPolicies", NAME).contains("the nearest is `VictimPolicy`"));
        assert!(refused("victimpolicy", NAME).contains("the nearest is `VictimPolicy`"));
        let key = &family::find(&root, "VictimPolicy").unwrap().keys[0];
        assert!(refused(&format!("{key}s"), NAME).contains(&format!("the nearest is `{key}`")));
        assert!(!refused("zzzzzzzz", NAME).contains("nearest"));
        assert!(refused("PageLayout", NAME).contains("it only chooses"));
        assert!(refused("VictimPolicy", "greedy").contains("already"));
        for name in ["", "My", "my-own", "2q", "match", "tests"] {
            assert!(refused("VictimPolicy", name).contains("is not a policy name"), "{name}");
        }
    }

    #[test]
    fn a_type_is_no_word_of_its_template() {
        let victim = TEMPLATES.iter().find(|(family, _)| *family == "VictimPolicy").unwrap().1;
        assert_eq!(kind("windowed_greedy", victim), "WindowedGreedy");
        assert_eq!(kind("victim", victim), "VictimPolicy");
    }
}
