//! Files that the rules examine, and Rust text split into code, comments, and the insides of literals.
//!
//! The lexer is enough for rules that count braces and look for words; the rest of the grammar is the compiler's.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// All files of the repository, by path.
pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

/// File of the repository.
pub(super) struct File {
    /// Path relative to the root, with `/`.
    pub(super) path: String,
    /// Length in bytes.
    pub(super) bytes: u64,
    /// Text; `None` if the content is not UTF-8.
    pub(super) text: Option<String>,
}

impl Tree {
    /// Reads the files that git tracks, and the new ones that it does not ignore.
    pub(super) fn read(root: &Path) -> Result<Tree> {
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("git did not start")?;
        if !listing.status.success() {
            bail!("git ls-files failed: {}", String::from_utf8_lossy(&listing.stderr).trim_end());
        }
        let names = String::from_utf8(listing.stdout).context("a file name is not UTF-8")?;
        let mut files = Vec::new();
        for name in names.split_terminator('\0') {
            let path = root.join(name);
            // A file deleted but not yet staged is still listed.
            if path.is_file() {
                let content = std::fs::read(&path).with_context(|| format!("cannot read {name}"))?;
                files.push(File {
                    path: name.into(),
                    bytes: content.len() as u64,
                    text: String::from_utf8(content).ok(),
                });
            }
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Tree { files })
    }

    /// Creates a tree from pairs of path and text.
    #[cfg(test)]
    pub(super) fn planted(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).into(),
            bytes: text.len() as u64,
            text: Some((*text).into()),
        };
        Tree { files: files.iter().map(file).collect() }
    }

    /// Path and text of the text files.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|file| Some((file.path.as_str(), file.text.as_deref()?)))
    }

    /// Path, text and masked text of the Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&str, &str, Mask)> {
        self.texts()
            .filter(|(path, _)| path.ends_with(".rs"))
            .map(|(path, text)| (path, text, Mask::new(text)))
    }

    /// Whether a path is a file, or a folder with files.
    pub(super) fn has(&self, path: &str) -> bool {
        let inside = format!("{}/", path.trim_end_matches('/'));
        self.files.iter().any(|file| file.path == path || file.path.starts_with(&inside))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.texts().find(|(name, _)| *name == path).map(|(_, text)| text)
    }
}

/// Two copies of a text with every line in its place: one keeps the code, one the comments. The rest is blank, the
/// insides of string and character literals in both.
pub(super) struct Mask {
    pub(super) code: String,
    pub(super) comments: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Code,
    Comment,
    Literal,
}

impl Mask {
    pub(super) fn new(text: &str) -> Mask {
        let bytes = text.as_bytes();
        let mut classes = Vec::with_capacity(bytes.len());
        while classes.len() < bytes.len() {
            let at = classes.len();
            let (length, class) = token(bytes, at);
            // The quotes stay in the code, so that `""` does not glue its neighbours together.
            let edge = if class == Class::Literal { Class::Code } else { class };
            for offset in 0..length {
                let inside = offset > 0 && offset + 1 < length;
                classes.push(if inside { class } else { edge });
            }
        }
        Mask { code: keep(text, &classes, Class::Code), comments: keep(text, &classes, Class::Comment) }
    }

    /// Identifiers and keywords of the code, each with its byte offset.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        words(&self.code)
    }
}

/// Identifiers and keywords of a masked text, each with its byte offset.
pub(super) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + code[rest..].find(is_word)?;
        let length = code[start..].find(|c| !is_word(c)).unwrap_or(code.len() - start);
        rest = start + length;
        Some((start, &code[start..rest]))
    })
}

/// The line, from 1, of a byte offset.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn keep(text: &str, classes: &[Class], wanted: Class) -> String {
    text.char_indices()
        .map(
            |(at, c)| {
                if c == '\n' || classes[at] == wanted { c.to_string() } else { " ".repeat(c.len_utf8()) }
            },
        )
        .collect()
}

/// Length and class of the token that starts at `at`.
fn token(bytes: &[u8], at: usize) -> (usize, Class) {
    let rest = &bytes[at..];
    let after_word = at > 0 && is_word_byte(bytes[at - 1]);
    match rest {
        [b'/', b'/', ..] => (find(rest, b"\n", 0).unwrap_or(rest.len()), Class::Comment),
        [b'/', b'*', ..] => (block_comment(rest), Class::Comment),
        [b'"', ..] => (quoted(rest, b'"'), Class::Literal),
        [b'\'', ..] => character(rest).map_or((1, Class::Code), |length| (length, Class::Literal)),
        [b'r', b'"' | b'#', ..] if !after_word || matches!(bytes[at - 1], b'b' | b'c') => {
            raw(rest).map_or((1, Class::Code), |length| (length, Class::Literal))
        }
        _ => (1, Class::Code),
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn find(bytes: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    bytes.get(from..)?.windows(needle.len()).position(|window| window == needle).map(|at| from + at)
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        let step = match &rest[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of a character literal; `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    match rest.get(1)? {
        b'\\' => Some(quoted(rest, b'\'')),
        first => {
            let length = match first {
                0x00..=0x7f => 1,
                0x80..=0xdf => 2,
                0xe0..=0xef => 3,
                _ => 4,
            };
            (rest.get(1 + length) == Some(&b'\'')).then_some(length + 2)
        }
    }
}

/// Length of a raw string; `None` for a raw identifier.
fn raw(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.extend(std::iter::repeat_n(b'#', hashes));
    Some(find(rest, &end, 2 + hashes).map_or(rest.len(), |at| at + end.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_words(text: &str) -> Vec<String> {
        Mask::new(text).words().map(|(_, word)| word.to_string()).collect()
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        let text = "a /* b /* c */ d */ e // f\n\"g \\\" h\" r#\"i \" j\"# br\"k\" 'l' '\\'' b'm' n";
        assert_eq!(code_words(text), ["a", "e", "r", "br", "b", "n"]);
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        assert_eq!(
            code_words("fn f<'a>(x: &'a str) { r#type('é') }"),
            ["fn", "f", "a", "x", "a", "str", "r", "type"]
        );
    }

    #[test]
    fn lines_and_lengths_stay() {
        let text = "x /* é\n\n*/ y \"ü\n\" z // w\n";
        let mask = Mask::new(text);
        assert_eq!(mask.code.len(), text.len());
        assert_eq!(mask.comments.len(), text.len());
        let (at, _) = mask.words().find(|(_, word)| *word == "z").unwrap();
        assert_eq!(line_of(text, at), 4);
        assert!(mask.comments.contains('é') && mask.comments.contains("// w"));
    }
}
