//! Nothing half-done is committed: no marks for later, no unfinished or debugging macros.

use super::Finding;
use super::tree::{Tree, line_of, words};

const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];
const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text, mask) in tree.rust() {
        let commented = words(&mask.comments).filter(|(_, word)| MARKS.contains(word));
        let called = mask.words().filter(|(at, word)| {
            MARKS.contains(word) || MACROS.contains(word) && mask.code[at + word.len()..].starts_with('!')
        });
        for (at, word) in commented.chain(called) {
            findings.push(Finding::fail(path, line_of(text, at), format!("leftover `{word}`")));
        }
    }
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".toml")) {
        for (at, word) in words(text).filter(|(_, word)| MARKS.contains(word)) {
            findings.push(Finding::fail(path, line_of(text, at), format!("leftover `{word}`")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_leftover_is_found_and_no_look_alike() {
        let bad = "// TODO later\nfn f() {\n    todo!();\n    unimplemented!(\"no\");\n    dbg!(1);\n}\n/* FIXME */\n";
        let good = "fn todo() { let dbg = \"TODO dbg!()\"; let x = dbg != todo; }\n";
        let tree =
            Tree::planted(&[("a.rs", bad), ("b.rs", good), ("c.toml", "a = 1 # XXX\n"), ("d.md", "TODO")]);
        let mut found: Vec<_> =
            check(&tree).into_iter().map(|finding| (finding.path, finding.line)).collect();
        found.sort();
        let expected = [("a.rs", 1), ("a.rs", 3), ("a.rs", 4), ("a.rs", 5), ("a.rs", 7), ("c.toml", 1)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_string(), line)));
    }
}
