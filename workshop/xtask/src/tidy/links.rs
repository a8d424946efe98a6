//! Links of pages lead to files and headings that exist.

use super::Finding;
use super::tree::{Tree, line_of};
use crate::markdown::{links, resolved};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (at, target) in links(text) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let to = if file.is_empty() { path.to_owned() } else { resolved(path, file) };
            if !exists(tree, &to) {
                findings.push(Finding::fail(path, line_of(text, at), format!("`{target}` does not exist")));
            } else if !heading.is_empty() && tree.text(&to).is_some_and(|text| !has(text, heading)) {
                findings.push(Finding::fail(
                    path,
                    line_of(text, at),
                    format!("`{to}` has no heading `{heading}`"),
                ));
            }
        }
    }
    findings
}

/// Whether a path is a file of the tree, or a folder of one.
fn exists(tree: &Tree, path: &str) -> bool {
    path.is_empty() || tree.has(path)
}

/// Whether a page has a heading with this anchor.
fn has(text: &str, anchor: &str) -> bool {
    let slug = |heading: &str| -> String {
        let kept = heading.trim().to_lowercase();
        kept.chars()
            .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    text.lines().filter(|line| line.starts_with('#')).any(|line| slug(line.trim_start_matches('#')) == anchor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let page = "[a](b.md) [b](../c.md#two-words) [c](none.md)\n[d](b.md#absent)\n[e](https://x.y) `[f](gone.md)`\n";
        let tree = Tree::planted(&[("docs/a.md", page), ("docs/b.md", "# B\n"), ("c.md", "## Two words\n")]);
        let found: Vec<usize> = check(&tree).into_iter().map(|finding| finding.line).collect();
        assert_eq!(found, [1, 2]);
    }
}
