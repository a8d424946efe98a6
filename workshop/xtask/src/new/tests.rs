//! Every template against the tree as it stands. Nothing is written.

use super::list::declared;
use super::*;
use std::io::Write;
use std::process::Stdio;

/// A name that no family has.
const NAME: &str = "my_own_policy";

/// Whether rustfmt reads a text; nothing where there is none.
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
        for step in ["fn example()", "decides nothing of its own yet", "FIXME", &plan.file, &plan.family.list]
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
        let entry = rest.iter().position(|line| line.contains("my_own_policy::MyOwnPolicy::new,")).unwrap();
        rest.drain(entry - 3..=entry);
        assert_eq!(rest, old.lines().collect::<Vec<_>>(), "{family}");
    }
}

/// Who adds a policy sees what there is, in the words of the program's own list.
#[test]
fn the_policies_of_a_family_are_shown_with_what_they_do() {
    let root = workspace::root();
    for (family, _) in TEMPLATES {
        let plan = plan(&root, family, NAME).unwrap();
        let steps = plan.steps(&root, family).unwrap();
        let page = fs::read_to_string(root.join("docs/policies.md")).unwrap().replace('\n', " ");
        for (policy, doc) in plan.family.entries.iter().zip(&plan.family.docs) {
            assert!(steps.contains(&format!("\n  {policy}: {doc}\n")), "{family}: no {policy} in\n{steps}");
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
        assert!(!family.keys.is_empty(), "{name}: its words are no chapter of docs/policies.md");
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
        let cases = cases::places(&root, &plan.family.keys, &plan.family.entries).unwrap();
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
        assert!(refused("VictimPolicy", name).contains("names no policy"), "{name}");
    }
}

#[test]
fn a_type_is_no_word_of_its_template() {
    let victim = TEMPLATES.iter().find(|(family, _)| *family == "VictimPolicy").unwrap().1;
    assert_eq!(kind("windowed_greedy", victim), "WindowedGreedy");
    assert_eq!(kind("victim", victim), "VictimPolicy");
}
