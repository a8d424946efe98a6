//! A log of calls: its lines, and where its faults are.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use config::{Diagnostic, Place};
use text::{Input, Line, Lines, shown};

use crate::host::options::{Parameter, Range};

/// What is wrong with a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fault {
    /// In a sentence without a final stop.
    pub(super) what: String,
    /// Where in the line, in bytes.
    pub(super) at: usize,
    /// What the reader can do about it.
    pub(super) help: &'static str,
    /// A word that is not known.
    pub(super) word: Option<Unknown>,
}

/// A word that is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unknown {
    /// What would have been allowed.
    pub(super) allowed: Vec<&'static str>,
    /// The nearest spelling of it.
    pub(super) nearest: Option<&'static str>,
}

/// The parameter that names a log.
pub(super) const fn named(what: &'static str) -> Parameter {
    Parameter { name: "file", what, default: "", range: Range::Path, source: "none: it must be given" }
}

/// The lines of a log, plain or compressed.
pub(super) struct Log {
    source: PathBuf,
    lines: Lines,
}

impl Log {
    /// Opens a file.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn open(path: &Path) -> Result<Log, Diagnostic> {
        let input = File::open(path).and_then(Input::new).map_err(|error| unreadable(path, &error))?;
        Ok(Log { source: path.to_owned(), lines: Lines::new(input.bytes) })
    }

    /// A log in memory.
    #[cfg(test)]
    pub(super) fn of(text: &[u8]) -> Log {
        let lines = Lines::new(Box::new(io::Cursor::new(text.to_vec())));
        Log { source: PathBuf::from("log"), lines }
    }

    /// What `take` makes of the next line; none at the end.
    ///
    /// # Errors
    /// What `take` refuses, with its place, a line that is too long, and a file that cannot be read on.
    pub(super) fn next<T>(
        &mut self,
        take: impl FnOnce(&[u8]) -> Result<T, Fault>,
    ) -> Result<Option<T>, Diagnostic> {
        let number = self.lines.number() + 1;
        let (text, taken) = match self.lines.next() {
            Ok(Line::End) => return Ok(None),
            Ok(Line::Text(text)) => (text, take(text)),
            Ok(Line::TooLong(start)) => {
                let help = "no log of calls has such lines: give one that a tool has written";
                (start, Err(Fault { what: "a line longer than 64 KiB".to_owned(), at: 0, help, word: None }))
            }
            Err(error) => return Err(unreadable(&self.source, &error)),
        };
        taken.map(Some).map_err(|fault| {
            let before = shown(&text[..fault.at.min(text.len())], usize::MAX).chars().count();
            let place = Place {
                source: self.source.display().to_string(),
                line: number,
                column: before as u64 + 1,
                text: shown(text, 200),
                key: String::new(),
            };
            let mut diagnostic = Diagnostic::new(fault.what).at(place).help(fault.help);
            if let Some(word) = fault.word {
                diagnostic.allowed = word.allowed.into_iter().map(str::to_owned).collect();
                diagnostic.nearest = word.nearest.map(str::to_owned);
            }
            diagnostic
        })
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::new(format!("cannot read `{}`: {error}", path.display())).help("give the path of a log")
}
