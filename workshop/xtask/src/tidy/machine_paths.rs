//! No file names a place on one particular machine.

use super::Finding;
use super::tree::{Tree, line_of};

// In two pieces, or this file would break its own rule.
const FOLDERS: [&str; 4] =
    [concat!("/", "work/"), concat!("/", "tmp/"), concat!("/", "root/"), concat!("/", "home/")];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for folder in FOLDERS {
            for (at, _) in text.match_indices(folder).filter(|(at, _)| starts_a_path(text, *at)) {
                findings.push(Finding::fail(path, line_of(text, at), format!("machine path `{folder}`")));
            }
        }
    }
    findings
}

/// False inside a longer path, such as that of a URL.
fn starts_a_path(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    !before.is_some_and(|c| c.is_alphanumeric() || "._-}".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_found_in_any_text() {
        let planted = format!("a\nsee {}x and file://{}y\n", FOLDERS[0], FOLDERS[3]);
        let fine = format!("https://example.org{}x target{}y $TMPDIR/x\n", FOLDERS[3], FOLDERS[1]);
        let tree =
            Tree::planted(&[("a.md", &planted), ("b.json", &fine), ("c", FOLDERS[2]), ("d.sh", FOLDERS[1])]);
        let found: Vec<_> = check(&tree).into_iter().map(|finding| (finding.path, finding.line)).collect();
        let expected = [("a.md", 2), ("a.md", 2), ("c", 1), ("d.sh", 1)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_string(), line)));
    }
}
