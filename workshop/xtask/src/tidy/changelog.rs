//! Every section of the changelog says whether results change.

use super::Finding;
use super::tree::Tree;

const PATH: &str = "CHANGELOG.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(PATH) else {
        return vec![Finding::fail(PATH, 0, "missing")];
    };
    let mut findings = Vec::new();
    let mut sections: Vec<(usize, &str, bool)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            sections.push((index + 1, title, false));
        } else if let (Some(section), true) = (sections.last_mut(), says_yes_or_no(line)) {
            section.2 = true;
        }
    }
    if !sections.iter().any(|(_, title, _)| title.trim_matches(['[', ']']) == "Unreleased") {
        findings.push(Finding::fail(PATH, 0, "no section `## Unreleased`"));
    }
    for (line, title, _) in sections.iter().filter(|section| !section.2) {
        let message = format!("section `{title}` has no line `Results change: yes` or `Results change: no`");
        findings.push(Finding::fail(PATH, *line, message));
    }
    findings
}

/// A line `Results change: yes …` or `Results change: no …`, in a list or not.
fn says_yes_or_no(line: &str) -> bool {
    let Some((_, answer)) = line.split_once("Results change:") else { return false };
    let word = answer.trim().split(|c: char| !c.is_alphanumeric()).next();
    matches!(word, Some("yes" | "no"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Tree::planted(&[(PATH, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn each_section_must_answer() {
        assert_eq!(lines("# Log\n\n## Unreleased\n\nResults change: no.\n"), [0; 0]);
        assert_eq!(
            lines("## Unreleased\n- Results change: maybe\n\n## 0.1.0\nResults change: yes (GC)\n"),
            [1]
        );
        assert_eq!(lines("## Unreleased\nResults change: no\n## 0.1.0\n- a fix\n"), [3]);
    }

    #[test]
    fn there_must_be_a_changelog_with_an_open_section() {
        assert_eq!(check(&Tree::planted(&[])).len(), 1);
        assert_eq!(lines("## 0.1.0\nResults change: no\n"), [0]);
    }
}
