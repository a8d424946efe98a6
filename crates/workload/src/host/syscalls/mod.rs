//! `strace`: a program that does what a log of a real one says, as `strace -f -ttt -T` writes it (`-y` adds to it).
//!
//! **What is replayed.** `open`, `openat`, `creat`, `close`, `read` and `write` in all their forms, `lseek`, `fsync`, `fdatasync`, `sync`,
//! `sync_file_range`, `fadvise64`, `readahead`, `truncate`, `fallocate` where the file grows, `sendfile` and `copy_file_range` as a read and a write,
//! `unlink`, `rename`. Offsets follow from the log: descriptors are copied by `fork`, shared by threads, duplicated, closed by `execve`. A file that
//! takes another one's place is written at once, as ext4 does. The time that calls on files took in the log is left out: the host says
//! how long they take. Data and names are not replayed; nor are directories and what goes through mapped memory.
//!
//! **Times.** The time between two calls of a thread is computed; the time in calls that may sleep (`futex`, `poll`, `read` of a pipe) is slept; with
//! `times=none` there is neither. A parent that waited for a child waits for it again, a child begins when its parent has forked it, and
//! nobody uses a descriptor before it is opened. Otherwise threads and processes do not wait for each other: what one of them slept for another one in the log,
//! it sleeps again.
//!
//! **Files.** Relative names are those of a directory called `.` unless `-y` says which it was. A file was there before if the log opens it without `O_CREAT`,
//! reads from it what the log has not written, or says its length. Files below `/dev`, `/proc` and `/sys` are no files;
//! a directory that is opened without `O_DIRECTORY` is a file of no length.
//!
//! The log is read twice, once for names, lengths and threads, once while it is replayed, in a window of bounded size; it may be compressed.

mod calls;
mod descriptors;
mod files;
mod iolog;
mod line;
mod notes;
mod replay;
mod table;
#[cfg(test)]
mod tests;
mod tracer;

use std::fs::File;
use std::path::{Path, PathBuf};

use config::{Diagnostic, Place};
use kernel::Time;

use self::files::Files;
use self::line::Fault;
use self::notes::Notes;
use self::replay::Recorded;
use self::tracer::Tracer;
use super::list::{Built, Entry, Named};
use super::options::{DRIVE, Options, Parameter, Range};
use crate::trace::{Input, Line, Lines, shown};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "file",
        what: "log of `strace -f -ttt -T -o FILE`, plain or compressed (gzip, xz, bzip2, zstd)",
        default: "",
        range: Range::Path,
        source: "none: it must be given",
    },
    Parameter {
        name: "times",
        what: "kept: time between calls is computed or slept as in the log; none: there is none",
        default: "kept",
        range: Range::Word(&["kept", "none"]),
        source: "as recorded",
    },
    Parameter {
        name: "overhead",
        what: "time that strace itself took between two calls, which is taken off",
        default: "0us",
        range: Range::Span(Time::ZERO, Time::from_ms(100)),
        source: "as recorded; two stops of a traced program take some tens of microseconds",
    },
    Parameter {
        name: "unknown",
        what: "refuse: a call that is not known, or cannot be replayed, is an error; skip: it is counted",
        default: "refuse",
        range: Range::Word(&["refuse", "skip"]),
        source: "nothing is lost in silence",
    },
    DRIVE,
];

pub(super) use self::iolog::ENTRY as IOLOG;

/// The program.
pub(super) const ENTRY: Entry = Entry {
    name: "strace",
    source: "strace 6.1",
    what: "what a log of a real program says that it did",
    parameters: &[PARAMETERS],
    build,
};

/// How a log is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Settings {
    /// Times between calls count.
    kept: bool,
    /// Nanoseconds that are taken off each of them.
    overhead: u64,
    /// Calls that are not known are skipped.
    skip: bool,
}

fn build(options: &Options, named: Named<'_>) -> Built {
    let Some(path) = options.path("file") else {
        let help = "write `strace:file=PATH`; `strace -f -ttt -T -o PATH PROGRAM` makes the log";
        return Err(Diagnostic::new("`strace` needs a log").help(help));
    };
    let settings = Settings {
        kept: options.word("times", &[true, false]),
        overhead: options.span("overhead").ns(),
        skip: options.word("unknown", &[false, true]),
    };
    let drive = options.whole("drive") as u16;
    Ok(Box::new(Recorded::new(named.name, path, settings, drive)?))
}

/// A log that is being read.
struct Reader {
    source: PathBuf,
    lines: Lines,
    tracer: Tracer,
    done: bool,
}

impl Reader {
    fn open(path: &Path, settings: Settings, files: Files) -> Result<Reader, Diagnostic> {
        let input = File::open(path).and_then(Input::new).map_err(|error| unreadable(path, &error))?;
        let lines = Lines::new(input.bytes);
        Ok(Reader { source: path.to_owned(), lines, tracer: Tracer::new(settings, files), done: false })
    }

    /// Takes a line in; at the end of the log all threads end.
    fn advance(&mut self) -> Result<(), Diagnostic> {
        let source = &self.source;
        let place = |number, at: usize, text: &[u8]| Place {
            source: source.display().to_string(),
            line: number,
            column: shown(&text[..at.min(text.len())], usize::MAX).chars().count() as u64 + 1,
            text: shown(text, 200),
            key: String::new(),
        };
        let number = self.lines.number() + 1;
        match self.lines.next() {
            Ok(Line::End) => {
                self.tracer.finish();
                self.done = true;
                Ok(())
            }
            Ok(Line::TooLong(start)) => {
                let help = "strace writes shorter lines: `-s` bounds the strings";
                Err(Diagnostic::new("a line longer than 64 KiB").at(place(number, 0, start)).help(help))
            }
            Ok(Line::Text(text)) => {
                let result = line::read(text).and_then(|line| match line {
                    Some(line) => self.tracer.line(line).map_err(|fault| {
                        // A call's place in its line.
                        let before = match line.said {
                            line::Said::Whole(call) => call.as_ptr() as usize - text.as_ptr() as usize,
                            _ => 0,
                        };
                        Fault { at: fault.at + before, ..fault }
                    }),
                    None => Ok(()),
                });
                result.map_err(|fault| diagnostic(&fault, place(number, fault.at, text)))
            }
            Err(error) => Err(unreadable(source, &error)),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::new(format!("cannot read `{}`: {error}", path.display())).help("give the path of a log")
}

fn diagnostic(fault: &Fault, place: Place) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(fault.what.clone()).at(place).help(fault.help);
    if let Some(given) = &fault.given {
        diagnostic = diagnostic.allowed(given, table::names());
        // All of Linux' calls are too long a list.
        diagnostic.allowed = vec!["a call that Linux 6.1 has on x86-64 or arm64".to_owned()];
    }
    diagnostic
}

/// What a first reading of a log has found.
struct Survey {
    files: Vec<(String, Option<u64>)>,
    /// Whether each thread was there when the log began.
    roots: Vec<bool>,
    ops: u64,
    notes: Notes,
}

fn survey(path: &Path, settings: Settings) -> Result<Survey, Diagnostic> {
    let mut reader = Reader::open(path, settings, Files::default())?;
    let mut ops = 0;
    while !reader.done {
        reader.advance()?;
        ops += reader.tracer.out.len() as u64;
        reader.tracer.out.clear();
    }
    let roots = reader.tracer.roots();
    if roots.is_empty() {
        let what = format!("`{}` has no system calls", path.display());
        return Err(Diagnostic::new(what).help("`strace -f -ttt -T -o FILE PROGRAM` makes a log"));
    }
    let files = reader.tracer.files.before().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    Ok(Survey { files, roots, ops, notes: reader.tracer.notes })
}

/// Reads a log from memory and throws it away: what fuzzing calls.
#[cfg(test)]
fn read_all(text: &[u8], settings: Settings) -> Result<u64, Diagnostic> {
    let lines = Lines::new(Box::new(std::io::Cursor::new(text.to_vec())));
    let tracer = Tracer::new(settings, Files::default());
    let mut reader = Reader { source: PathBuf::from("log"), lines, tracer, done: false };
    let mut ops = 0;
    while !reader.done {
        reader.advance()?;
        ops += reader.tracer.out.drain(..).len() as u64;
    }
    Ok(ops)
}
