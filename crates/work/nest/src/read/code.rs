//! The code of a microblock with its place in a file.

use config::{Diagnostic, Place};

/// A text inside a TOML file.
pub(super) struct Code<'t> {
    pub(super) text: &'t str,
    /// Where its first line stands.
    first: Place,
    /// Whether that is the line of the quotes.
    is_beside_quotes: bool,
}

impl<'t> Code<'t> {
    /// `value` is the place of the opening quotes.
    pub(super) fn new(text: &'t str, value: Place) -> Code<'t> {
        let column = usize::try_from(value.column).unwrap_or(1).max(1);
        let quoted: String = value.text.chars().skip(column - 1).collect();
        let quotes = if quoted.starts_with("\"\"\"") || quoted.starts_with("'''") { 3 } else { 1 };
        let is_beside_quotes = quotes == 1 || !quoted.chars().skip(3).all(char::is_whitespace);
        let first = match is_beside_quotes {
            true => Place { column: value.column + quotes, ..value },
            // TOML leaves the line break out that follows three quotes.
            false => Place { line: value.line + 1, column: 1, text: String::new(), ..value },
        };
        Code { text, first, is_beside_quotes }
    }

    /// Line of a byte, as the file counts.
    pub(super) fn line(&self, at: usize) -> u64 {
        self.first.line + self.before(at).matches('\n').count() as u64
    }

    fn before(&self, at: usize) -> &str {
        self.text.get(..at).unwrap_or(self.text)
    }

    /// The place of a byte.
    pub(super) fn place(&self, at: usize) -> Place {
        let before = self.before(at);
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[begin..].chars().count() as u64;
        let place = Place { line: self.line(at), column: column + 1, ..self.first.clone() };
        if begin == 0 && self.is_beside_quotes {
            return Place { column: self.first.column + column, ..place };
        }
        Place { text: self.text[begin..].lines().next().unwrap_or_default().to_owned(), ..place }
    }

    /// A diagnostic about a byte.
    pub(super) fn fault(&self, at: usize, what: impl Into<String>) -> Diagnostic {
        Diagnostic::new(what).at(self.place(at))
    }
}
