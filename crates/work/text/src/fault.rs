//! What is wrong with a file, and where.

use std::fmt::Write as _;
use std::path::Path;

use config::{Diagnostic, Place};

/// What is wrong with one line or record; whoever knows the place makes a diagnostic of it.
#[derive(Debug)]
pub struct Bad {
    what: String,
    column: usize,
    nearest: Option<String>,
    help: Option<String>,
}

impl Bad {
    /// A fault without a place.
    pub fn new(what: impl Into<String>) -> Bad {
        Bad { what: what.into(), column: 0, nearest: None, help: None }
    }

    /// In which byte of the line it begins, counted from zero.
    pub fn at(mut self, byte: usize) -> Bad {
        self.column = byte + 1;
        self
    }

    /// The nearest of the right words.
    pub fn nearest<'a>(mut self, given: &str, right: impl IntoIterator<Item = &'a str>) -> Bad {
        self.nearest = Diagnostic::new(String::new()).allowed(given, right).nearest;
        self
    }

    /// What to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Bad {
        self.help = Some(help.into());
        self
    }

    /// As a diagnostic of a line of a text file.
    pub fn in_line(self, source: &str, line: u64, text: &[u8]) -> Diagnostic {
        let column = self.column as u64;
        self.place(Place {
            source: source.to_owned(),
            line,
            column,
            text: shown(text, 200),
            key: String::new(),
        })
    }

    /// As a diagnostic of a whole file.
    pub fn in_file(self, source: &str) -> Diagnostic {
        self.place(Place { source: source.to_owned(), ..Place::default() })
    }

    /// As a diagnostic of a record of a binary file, counted from one.
    pub fn in_record(mut self, source: &str, record: u64) -> Diagnostic {
        self.what = format!("record {record}: {}", self.what);
        self.in_file(source)
    }

    fn place(self, place: Place) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(self.what).at(place);
        diagnostic.nearest = self.nearest;
        diagnostic.help = self.help;
        diagnostic
    }
}

/// A file's name as diagnostics show it.
pub fn name(path: &Path) -> String {
    path.display().to_string()
}

/// Bytes as text that is safe to print: control characters escaped, at most `limit` characters.
pub fn shown(bytes: &[u8], limit: usize) -> String {
    let mut text = String::new();
    // Four bytes a character at most: no need to decode a 64 KiB line to show its start.
    let head = &bytes[..bytes.len().min(limit.saturating_mul(4))];
    for c in String::from_utf8_lossy(head).chars().take(limit) {
        if c == '\t' {
            text.push(' ');
        } else if c.is_control() {
            let _ = write!(text, "{}", c.escape_default());
        } else {
            text.push(c);
        }
    }
    text
}
