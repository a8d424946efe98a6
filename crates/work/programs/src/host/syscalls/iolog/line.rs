//! Lines of fio's logs, versions 2 and 3.

use std::path::Path;

use config::Diagnostic;
use config::diag::nearest;
use engine::Time;
use rustc_hash::FxHashMap;
use text::shown;

use super::super::{Fault, Log, Unknown};

/// Action on a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// File of the job, or a wait: no request.
    None,
    Open,
    Close,
    Read(u64, u64),
    Write(u64, u64),
    Sync {
        data_only: bool,
    },
    Trim,
}

/// A line of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    pub(super) at: Time,
    pub(super) file: u32,
    pub(super) action: Action,
}

/// Latest time of a log in microseconds: simulated time ends after 213 days.
const LATEST: u64 = 100 * 24 * 3_600 * 1_000_000;
/// Maximum number of files: descriptors are 16-bit numbers.
const FILES: usize = 1 << 16;

pub(super) const RECORD: &str = "the first line is `fio version 3 iolog`, the others `MICROSECONDS NAME ACTION [OFFSET LENGTH]`; or \
                                 `fio version 2 iolog`, and `NAME ACTION [OFFSET LENGTH]` with `NAME wait MICROSECONDS`";
/// Allowed actions on a file; the last one only in version 2.
const ACTIONS: [&str; 9] = ["add", "open", "close", "read", "write", "sync", "datasync", "trim", "wait"];

/// Reader of a log.
pub(super) struct Reader {
    log: Log,
    grammar: Grammar,
}

impl Reader {
    pub(super) fn open(path: &Path) -> Result<Reader, Diagnostic> {
        Ok(Reader { log: Log::open(path)?, grammar: Grammar::default() })
    }

    /// Returns the next request; none at the end.
    ///
    /// # Errors
    /// If fio does not write such a line, or the file cannot be read further.
    pub(super) fn next(&mut self) -> Result<Option<Request>, Diagnostic> {
        loop {
            let grammar = &mut self.grammar;
            match self.log.next(|line| grammar.request(line))? {
                Some(None) => {}
                Some(request) => return Ok(request),
                None => return Ok(None),
            }
        }
    }

    /// Returns the names of all files so far, by number.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.grammar.names.iter().collect();
        names.sort_unstable_by_key(|(_, number)| **number);
        names.into_iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
    }
}

/// State from the earlier lines.
#[derive(Default)]
struct Grammar {
    /// True for version 3: lines begin with a time. None before the first line.
    timed: Option<bool>,
    /// Sum of the waits, in version 2.
    waited: u64,
    names: FxHashMap<Vec<u8>, u32>,
}

/// Words of a line, and faults at them.
struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.line[self.at..];
        let from = rest.iter().position(|b| !b.is_ascii_whitespace())?;
        let length = rest[from..].iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len() - from);
        self.at += from + length;
        Some(&rest[from..from + length])
    }

    /// Returns a fault at the word that was taken last.
    fn fault(&self, what: impl Into<String>, word: &[u8]) -> Fault {
        Fault { what: what.into(), at: self.at - word.len(), help: RECORD, word: None }
    }

    fn number(&mut self, what: &str) -> Result<u64, Fault> {
        let Some(word) = self.next() else {
            return Err(self.fault(format!("the line ends before the {what}"), b""));
        };
        let value = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
        value.ok_or_else(|| {
            self.fault(format!("the {what} is not a whole number: `{}`", shown(word, 40)), word)
        })
    }

    /// Reads offset and length.
    fn extent(&mut self) -> Result<(u64, u64), Fault> {
        let (offset, bytes) = (self.number("offset")?, self.number("length")?);
        match offset.checked_add(bytes) {
            Some(end) if end <= i64::MAX as u64 => Ok((offset, bytes)),
            _ => Err(self.fault("the end must be below 2^63", b"")),
        }
    }

    /// Checks for the end of the line; allows an offset and a length without meaning if `meaningless`.
    fn end(&mut self, meaningless: bool) -> Result<(), Fault> {
        for what in ["offset", "length"].into_iter().filter(|_| meaningless) {
            if self.line[self.at..].iter().any(|b| !b.is_ascii_whitespace()) {
                self.number(what)?;
            }
        }
        self.next().map_or(Ok(()), |word| {
            Err(self.fault(format!("text after the last field: `{}`", shown(word, 40)), word))
        })
    }
}

impl Grammar {
    fn request(&mut self, line: &[u8]) -> Result<Option<Request>, Fault> {
        let mut words = Words { line, at: 0 };
        let Some(timed) = self.timed else {
            self.timed = Some(match line.trim_ascii() {
                b"fio version 2 iolog" => false,
                b"fio version 3 iolog" => true,
                _ => {
                    let what = "the first line is not `fio version 2 iolog` or `fio version 3 iolog`";
                    return Err(words.fault(what, b""));
                }
            });
            return Ok(None);
        };
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let mut us = if timed { words.number("time")? } else { self.waited };
        let Some(name) = words.next() else {
            return Err(words.fault("the line ends before the name", b""));
        };
        let Some(word) = words.next() else {
            return Err(words.fault("the line ends before the action", b""));
        };
        let action = match word {
            b"add" => Action::None,
            b"open" => Action::Open,
            b"close" => Action::Close,
            b"read" => words.extent().map(|(offset, bytes)| Action::Read(offset, bytes))?,
            b"write" => words.extent().map(|(offset, bytes)| Action::Write(offset, bytes))?,
            b"sync" => Action::Sync { data_only: false },
            b"datasync" => Action::Sync { data_only: true },
            b"trim" => words.extent().map(|_| Action::Trim)?,
            b"wait" if timed => {
                return Err(words.fault("`wait` in version 3, whose lines have times instead", word));
            }
            b"wait" => {
                us = self.waited.saturating_add(words.number("time to wait")?);
                self.waited = us;
                Action::None
            }
            _ => {
                let (known, given) = (&ACTIONS[..ACTIONS.len() - usize::from(timed)], shown(word, 40));
                let unknown =
                    Unknown { allowed: known.to_vec(), nearest: nearest(&given, known.iter().copied()) };
                let fault = words.fault(format!("unknown action `{given}`"), word);
                return Err(Fault { word: Some(unknown), ..fault });
            }
        };
        words.end(!matches!(action, Action::Read(..) | Action::Write(..) | Action::Trim))?;
        if us > LATEST {
            return Err(Fault {
                at: 0,
                ..words.fault("the time is more than 100 days after the beginning", b"")
            });
        }
        let next = self.names.len();
        let file = match self.names.get(name) {
            Some(file) => *file,
            None if next >= FILES => return Err(words.fault(format!("more than {FILES} files"), b"")),
            None => *self.names.entry(name.to_owned()).or_insert(next as u32),
        };
        Ok(Some(Request { at: Time::from_us(us), file, action }))
    }
}
