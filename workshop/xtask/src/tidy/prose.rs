//! Prose reads as English: no turns of phrase that translations leave behind, and no endless sentences on pages.

use super::Finding;
use super::tree::{Mask, Tree, line_of};

/// Turns of phrase, each with what to write.
const TURNS: [(&str, &str); 14] = [
    (" is no ", "`is not`, or the noun with `no` in front"),
    (" are no ", "`are not`, or the noun with `no` in front"),
    ("on the mean", "`on average`"),
    ("The latter", "the noun again"),
    ("the latter", "the noun again"),
    ("So many ", "a number, or the noun"),
    ("looked whether", "`checked`"),
    ("so that no", "a sentence of its own"),
    ("nothing of it", "the nouns"),
    ("obody ", "`no one` for people, the noun for things"),
    ("hangs on it", "`depends on it`"),
    ("/// Its ", "the noun first"),
    ("/// Both ", "the nouns first"),
    ("/// The same ", "the noun first"),
];
/// Most words of a sentence on a page.
const WORDS: usize = 40;
/// This file names the turns; pages written by a program are as good as their sources; a decision of the past stays as it was written.
const APART: [&str; 2] = ["workshop/xtask/src/tidy/prose.rs", "docs/adr/"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| !APART.iter().any(|apart| path.starts_with(apart))) {
        if [".rs", ".py", ".md"].iter().any(|end| path.ends_with(end)) {
            findings.extend(turns(path, text));
        }
        if path.ends_with(".md") {
            findings.extend(sentences(path, text));
        }
    }
    findings
}

/// Turns in a text; in Rust those of comments and literals, not of names in code.
fn turns(path: &str, text: &str) -> Vec<Finding> {
    let code = path.ends_with(".rs").then(|| Mask::new(text).code);
    let is_code = |at: usize| code.as_ref().is_some_and(|code| !code[at..].starts_with(char::is_whitespace));
    let mut findings = Vec::new();
    for (turn, better) in TURNS {
        // The first letter decides: a turn may begin with a blank.
        let first = turn.len() - turn.trim_start().len();
        for (at, _) in text.match_indices(turn).filter(|(at, _)| !is_code(at + first)) {
            findings.push(Finding::fail(
                path,
                line_of(text, at + first),
                format!("`{}`: write {better}", turn.trim()),
            ));
        }
    }
    findings.sort_by_key(|finding| finding.line);
    findings
}

/// Sentences of paragraphs and lists with too many words; tables, headings and code are left alone.
fn sentences(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut inside, mut at) = (false, 0);
    for paragraph in text.split("\n\n") {
        let first = at;
        at += paragraph.len() + 2;
        let fences = paragraph.matches("```").count();
        let is_code = inside || fences > 0;
        inside ^= fences % 2 == 1;
        if is_code || paragraph.starts_with('|') || paragraph.starts_with('#') || paragraph.starts_with('<') {
            continue;
        }
        let items =
            paragraph.split("\n* ").flat_map(|item| item.split("\n- ")).flat_map(|item| item.split("\n| "));
        for sentence in items.flat_map(|item| item.split(['.', '?', '!', ':', ';']).collect::<Vec<_>>()) {
            let words = sentence.split_whitespace().filter(|word| word.contains(char::is_alphabetic)).count();
            if words > WORDS {
                let start: String = sentence.split_whitespace().take(6).collect::<Vec<_>>().join(" ");
                let message = format!("a sentence of {words} words, at most {WORDS}: `{start} ...`");
                findings.push(Finding::fail(path, line_of(text, first), message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::planted(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn turns_of_phrase_are_found_in_comments_and_messages() {
        assert_eq!(found("a.rs", "// This is no page.\nlet x = 1;\n/// Its size.\n"), [1, 3]);
        assert_eq!(found("a.py", "raise Error(f\"`{x}` is no metric\")\n"), [1]);
        assert_eq!(found("a.rs", "/// Pages of a block.\nlet nobody = Nobody { x };\n"), [0; 0]);
    }

    #[test]
    fn long_sentences_of_pages_are_found() {
        let long = "word ".repeat(WORDS + 1);
        assert_eq!(found("a.md", &format!("Short.\n\n{long}.\n")), [3]);
        assert_eq!(found("a.md", &format!("```sh\n{long}\n```\n\n| {long} |\n")), [0; 0]);
        assert_eq!(found("a.md", &format!("{}. {}.\n", "word ".repeat(30), "word ".repeat(30))), [0; 0]);
    }
}
