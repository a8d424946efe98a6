//! `unsafe` stands only in listed files, and each use next to a comment that proves it.

use super::Finding;
use super::tree::{Mask, Tree, line_of};

/// Files that may hold `unsafe`: one with a Miri test, and one whose attribute places a safe function before `main`,
/// where Miri does not go.
const ALLOWED: &[&str] = &["crates/ground/engine/src/slab.rs", "crates/front/cli/src/output/closed.rs"];

/// Maximum number of lines between the proof's beginning and the keyword.
const REACH: usize = 6;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    check_with(tree, ALLOWED)
}

fn check_with(tree: &Tree, allowed: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text, mask) in tree.rust() {
        for (at, _) in mask.words().filter(|(_, word)| *word == "unsafe") {
            let line = line_of(text, at);
            if !allowed.contains(&path) {
                let message = "`unsafe` outside the files listed in workshop/xtask/src/tidy/unsafety.rs";
                findings.push(Finding::fail(path, line, message));
            } else if !proved(&mask, line) {
                findings.push(Finding::fail(path, line, "`unsafe` without a `SAFETY:` comment next to it"));
            }
        }
    }
    findings
}

fn proved(mask: &Mask, line: usize) -> bool {
    let near = mask.comments.lines().take(line).skip(line.saturating_sub(REACH + 1));
    near.into_iter().any(|comment| comment.contains("SAFETY:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROVED: &str = "// SAFETY: x is in bounds\nlet y = unsafe { x.get() };\n";

    #[test]
    fn an_unlisted_file_fails_even_with_a_proof() {
        let tree = Tree::planted(&[("a.rs", PROVED), ("b.rs", "// unsafe\nlet s = \"unsafe\";\n")]);
        let found = check_with(&tree, &[]);
        assert_eq!((found.len(), found[0].line), (1, 2));
    }

    #[test]
    fn a_listed_file_needs_a_proof_near_each_use() {
        let far = format!("// SAFETY: too far\n{}unsafe {{}}\n", "\n".repeat(REACH));
        let near = format!("// SAFETY: near\n{}unsafe {{}}\n", "\n".repeat(REACH - 1));
        let literal = "let s = \"SAFETY:\";\nunsafe {}\n";
        let tree =
            Tree::planted(&[("a.rs", PROVED), ("far.rs", &far), ("lit.rs", literal), ("near.rs", &near)]);
        let found: Vec<_> =
            check_with(&tree, &["a.rs", "far.rs", "lit.rs", "near.rs"]).into_iter().map(|f| f.path).collect();
        assert_eq!(found, ["far.rs", "lit.rs"]);
    }
}
