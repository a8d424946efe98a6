//! Faults of a file, and their places.

use std::fmt::Write as _;
use std::path::Path;

use config::{Diagnostic, Place};

/// A fault of one line or record; the caller that knows the place turns it into a diagnostic.
#[derive(Debug)]
pub struct Bad {
    what: String,
    column: usize,
    nearest: Option<String>,
    help: Option<String>,
}

impl Bad {
    /// Creates a fault without a place.
    pub fn new(what: impl Into<String>) -> Bad {
        Bad { what: what.into(), column: 0, nearest: None, help: None }
    }

    /// Sets the byte of the line where it begins, counted from zero.
    pub fn at(mut self, byte: usize) -> Bad {
        self.column = byte + 1;
        self
    }

    /// Sets the nearest of the allowed words.
    pub fn nearest<'a>(mut self, given: &str, right: impl IntoIterator<Item = &'a str>) -> Bad {
        self.nearest = Diagnostic::new(String::new()).allowed(given, right).nearest;
        self
    }

    /// Sets the help text.
    pub fn help(mut self, help: impl Into<String>) -> Bad {
        self.help = Some(help.into());
        self
    }

    /// Returns a diagnostic of a line of a text file.
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

    /// Returns a diagnostic of a whole file.
    pub fn in_file(self, source: &str) -> Diagnostic {
        self.place(Place { source: source.to_owned(), ..Place::default() })
    }

    /// Returns a diagnostic of a record of a binary file, counted from one.
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

/// Returns a file's name as diagnostics show it.
pub fn name(path: &Path) -> String {
    path.display().to_string()
}

/// Returns bytes as text that is safe to print: control characters escaped, at most `limit` characters.
pub fn shown(bytes: &[u8], limit: usize) -> String {
    let mut text = String::new();
    // At most four bytes per character: no need to decode a 64 KiB line to show its start.
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
