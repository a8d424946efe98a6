//! No dead files: every Rust file of a package is a root of it or is declared by its parent module.
//!
//! Policies are entries of the family's list: a file named in a `policies!` block counts as declared.

use super::Finding;
use super::tree::{Mask, Tree, words};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let sources: BTreeMap<&str, Mask> = tree.rust().map(|(path, _, mask)| (path, mask)).collect();
    let mut reached = BTreeSet::new();
    let mut waiting = roots(tree);
    while let Some(path) = waiting.pop() {
        let Some((path, mask)) = sources.get_key_value(path.as_str()) else { continue };
        if reached.insert(*path) {
            for name in declared(mask) {
                waiting.extend(places(path, name));
            }
        }
    }
    let dead = sources.keys().filter(|path| !reached.contains(*path));
    dead.map(|path| Finding::fail(path, 0, "no `mod` declaration reaches this file")).collect()
}

/// Files that cargo compiles on their own.
fn roots(tree: &Tree) -> Vec<String> {
    let mut roots = Vec::new();
    for (path, text) in tree.texts() {
        let Some(package) = path.strip_suffix("Cargo.toml") else { continue };
        for name in ["src/lib.rs", "src/main.rs", "build.rs"] {
            roots.push(format!("{package}{name}"));
        }
        for folder in ["src/bin/", "tests/", "benches/", "examples/"] {
            roots.extend(discovered(tree, &format!("{package}{folder}")));
        }
        roots.extend(named_targets(text).map(|target| format!("{package}{target}")));
    }
    roots
}

/// Targets `NAME.rs` and `NAME/main.rs` of a folder.
fn discovered<'t>(tree: &'t Tree, folder: &str) -> impl Iterator<Item = String> + use<'t> {
    let folder = folder.to_string();
    tree.files.iter().filter_map(move |file| {
        let rest = file.path.strip_prefix(&folder)?;
        let own_file = rest.ends_with(".rs") && !rest.contains('/');
        let own_folder = rest.ends_with("/main.rs") && rest.matches('/').count() == 1;
        (own_file || own_folder).then(|| file.path.clone())
    })
}

/// Paths that a manifest gives to its targets.
fn named_targets(manifest: &str) -> impl Iterator<Item = String> {
    let manifest = manifest.parse::<toml::Table>().unwrap_or_default();
    let tables =
        ["lib", "bin", "test", "bench", "example"].into_iter().filter_map(move |kind| {
            match manifest.get(kind)? {
                toml::Value::Array(list) => Some(list.clone()),
                single => Some(vec![single.clone()]),
            }
        });
    tables.flatten().filter_map(|target| Some(target.get("path")?.as_str()?.to_string()))
}

/// Names in `mod NAME;`, and every name in a `policies!` block.
fn declared(mask: &Mask) -> Vec<&str> {
    let code = mask.code.as_str();
    let mut names = Vec::new();
    let mut previous = "";
    for (at, word) in mask.words() {
        let after = code[at + word.len()..].trim_start();
        if previous == "mod" && after.starts_with(';') {
            names.push(word);
        }
        if word == "policies" && after.starts_with('!') {
            names.extend(words(block(after)).map(|(_, name)| name));
        }
        previous = word;
    }
    names
}

/// Text up to the brace that closes the first one.
fn block(text: &str) -> &str {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return &text[..at],
            b'}' => depth -= 1,
            _ => {}
        }
    }
    text
}

/// Possible paths of the module `name`, declared in the file `path`.
fn places(path: &str, name: &str) -> [String; 4] {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    [
        format!("{folder}/{name}.rs"),
        format!("{folder}/{name}/mod.rs"),
        format!("{folder}/{stem}/{name}.rs"),
        format!("{folder}/{stem}/{name}/mod.rs"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::planted(files)).into_iter().map(|finding| finding.path).collect()
    }

    #[test]
    fn a_file_that_no_module_declares_is_dead() {
        let files = [
            ("c/Cargo.toml", ""),
            ("c/src/lib.rs", "mod gc; mod map; // mod dead;\nmod inline { fn f() {} }"),
            ("c/src/gc/mod.rs", "pub(crate) mod greedy;"),
            ("c/src/gc/greedy.rs", ""),
            ("c/src/gc/cost_benefit.rs", ""),
            ("c/src/map.rs", "mod page;"),
            ("c/src/map/page.rs", ""),
            ("c/src/dead.rs", "mod deader;"),
            ("c/src/deader.rs", ""),
            ("c/src/inline.rs", ""),
        ];
        assert_eq!(
            dead(&files),
            ["c/src/dead.rs", "c/src/deader.rs", "c/src/gc/cost_benefit.rs", "c/src/inline.rs"]
        );
    }

    #[test]
    fn a_family_list_declares_its_policies() {
        let list = "policies! { trait Gc; greedy => Greedy { a: u32 }, fifo => Fifo }\nfn random() {}";
        let files = [
            ("c/Cargo.toml", ""),
            ("c/src/lib.rs", "mod gc;"),
            ("c/src/gc/fifo.rs", ""),
            ("c/src/gc/greedy.rs", ""),
            ("c/src/gc/mod.rs", list),
            ("c/src/gc/random.rs", ""),
        ];
        assert_eq!(dead(&files), ["c/src/gc/random.rs"]);
    }

    #[test]
    fn targets_are_roots() {
        let files = [
            ("c/Cargo.toml", "[[bin]]\nname = \"x\"\npath = \"fuzz_targets/x.rs\""),
            ("c/fuzz_targets/x.rs", ""),
            ("c/fuzz_targets/y.rs", ""),
            ("c/tests/common/mod.rs", ""),
            ("c/tests/ladder/main.rs", "mod golden;"),
            ("c/tests/ladder/golden.rs", ""),
            ("c/tests/one.rs", "mod common;"),
            ("c/examples/loose/part.rs", ""),
        ];
        assert_eq!(
            dead(&files),
            ["c/fuzz_targets/y.rs", "c/examples/loose/part.rs"]
                .map(String::from)
                .into_iter()
                .rev()
                .collect::<Vec<_>>()
        );
    }
}
