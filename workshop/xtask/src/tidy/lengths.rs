//! A file fits a head.

use super::Finding;
use super::tree::Tree;

const NOTE_LINES: usize = 400;
const MOST_LINES: usize = 600;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let rust = tree.texts().filter(|(path, _)| path.ends_with(".rs"));
    rust.filter_map(|(path, text)| match text.lines().count() {
        lines if lines > MOST_LINES => {
            Some(Finding::fail(path, 0, format!("{lines} lines; the limit is {MOST_LINES}")))
        }
        lines if lines > NOTE_LINES => {
            Some(Finding::note(path, 0, format!("{lines} lines; aim at {NOTE_LINES}")))
        }
        _ => None,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Severity;

    #[test]
    fn long_files_are_noted_then_fail() {
        let text = |lines| "x\n".repeat(lines);
        let tree = Tree::planted(&[
            ("a.rs", &text(400)),
            ("b.rs", &text(401)),
            ("c.rs", &text(600)),
            ("d.rs", &text(601)),
            ("e.md", &text(9999)),
        ]);
        let found: Vec<_> =
            check(&tree).into_iter().map(|finding| (finding.path, finding.severity)).collect();
        let expected = [("b.rs", Severity::Note), ("c.rs", Severity::Note), ("d.rs", Severity::Fail)];
        assert_eq!(found, expected.map(|(path, severity)| (path.to_string(), severity)));
    }
}
