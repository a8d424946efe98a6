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
//! **Clocks.** Lines have moments (`-ttt`, `-tt`, `-t`, across midnight) or times since the line before (`-r`), which are added up. A time that goes back
//! is refused. `times=none` needs neither times nor durations.
//!
//! **Files.** Relative names are those of a directory called `.` unless `-y` says which it was. A file was there before if the log opens it without `O_CREAT`,
//! reads from it what the log has not written, or says its length. Files below `/dev`, `/proc` and `/sys` and those of `memfd_create` are no files;
//! a directory that is opened without `O_DIRECTORY` is a file of no length.
//!
//! The log is read twice, once for names, lengths and threads, once while it is replayed, in a window of bounded size; it may be compressed.
//! [`strace_options`] is what to call strace with, so that the log has what is read here and little else.

mod calls;
mod clock;
mod files;
mod iolog;
mod line;
mod replay;
#[cfg(test)]
mod tests;
mod tracer;

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use config::{Diagnostic, Place};
use engine::Time;

use self::clock::Choice;
use self::files::Files;
use self::replay::{KINDS, Recorded, kind_of};
use self::tracer::{Op, Tracer};
use super::{Built, DRIVE, Entry, Named, Options, Parameter, Range};
use line::dispensable_calls;
use text::{Input, Line, Lines, shown};

const PARAMETERS: &[Parameter] = &[
    self::named("log of `strace -f -ttt -T -o FILE`, plain or compressed (gzip, xz, bzip2, zstd)"),
    Parameter {
        name: "times",
        what: "kept: time between calls is computed or slept as in the log; none: no time passes, and the log needs no times (-t, -T)",
        default: "kept",
        range: Range::Word(&["kept", "none"]),
        source: "as recorded",
    },
    Parameter {
        name: "clock",
        what: "auto: detected from the times; relative: since the previous line (strace -r); absolute: timestamps (strace -ttt, -tt, -t)",
        default: "auto",
        range: Range::Word(&["auto", "relative", "absolute"]),
        source: "strace pads only times of -r to six places",
    },
    Parameter {
        name: "overhead",
        what: "time that strace itself took between two calls, subtracted from the pause",
        default: "0us",
        range: Range::Span(Time::ZERO, Time::from_ms(100)),
        source: "as recorded; two stops of a traced program take some tens of microseconds",
    },
    Parameter {
        name: "unknown",
        what: "refuse: a call that is unknown or cannot be replayed is an error; skip: it is skipped and counted",
        default: "refuse",
        range: Range::Word(&["refuse", "skip"]),
        source: "nothing is lost silently",
    },
    DRIVE,
];

pub(super) use self::iolog::ENTRY as IOLOG;

/// The program.
pub(super) const ENTRY: Entry = Entry {
    name: "strace",
    source: "strace 6.1",
    what: "replays the system calls in a log of a real program",
    parameters: &[PARAMETERS],
    build,
};

/// How a log is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Settings {
    /// Times between calls count.
    kept: bool,
    /// What times are.
    clock: Choice,
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
        clock: options.word("clock", &[Choice::Auto, Choice::Relative, Choice::Absolute]),
        overhead: options.span("overhead").ns(),
        skip: options.word("unknown", &[false, true]),
    };
    let drive = options.whole("drive") as u16;
    Ok(Box::new(Recorded::new(named.name, path, settings, drive)?))
}

/// Whether a text is the beginning of a log of strace: its first lines are, and one is a call that Linux has.
pub(crate) fn is_strace(start: &[u8]) -> bool {
    // The last line may be cut.
    let whole = memchr::memrchr(b'\n', start).map_or(start, |end| &start[..end]);
    let mut calls = 0;
    for text in whole.split(|byte| *byte == b'\n').take(SNIFFED) {
        let Ok(line) = line::read(text) else { return false };
        let call = match line.map(|line| line.said) {
            Some(line::Said::Whole(call)) => match line::Syscall::read(call, false) {
                Ok(call) => call.name,
                Err(_) => return false,
            },
            Some(line::Said::Begun(call)) => call.split(|byte| *byte == b'(').next().unwrap_or_default(),
            _ => continue,
        };
        calls += usize::from(line::kind_of_call(call).is_some());
    }
    calls > 0
}

/// Lines that say whether a text is a log.
const SNIFFED: usize = 16;

/// A log that is being read.
struct Reader {
    log: Log,
    tracer: Tracer,
    done: bool,
}

impl Reader {
    fn new(log: Log, settings: Settings, files: Files) -> Reader {
        Reader { log, tracer: Tracer::new(settings, files), done: false }
    }

    /// Takes a line in; at the end of the log all threads end.
    fn advance(&mut self) -> Result<(), Diagnostic> {
        let tracer = &mut self.tracer;
        let taken = self.log.next(|text| {
            let Some(line) = line::read(text)? else { return Ok(()) };
            // A call's place in its line.
            let before = match line.said {
                line::Said::Whole(call) => call.as_ptr() as usize - text.as_ptr() as usize,
                _ => 0,
            };
            let now = tracer.time(line)?;
            tracer.line(line, now).map_err(|fault| Fault { at: fault.at + before, ..fault })
        })?;
        if taken.is_none() {
            self.tracer.finish();
            self.done = true;
        }
        Ok(())
    }
}

/// What a first reading of a log has found.
struct Survey {
    files: Vec<(String, Option<u64>)>,
    /// Whether each thread was there when the log began.
    roots: Vec<bool>,
    ops: u64,
    /// Calls that are replayed, and their bytes, by kind.
    kinds: [(u64, u64); KINDS.len()],
    notes: Notes,
}

fn survey(path: &Path, settings: Settings) -> Result<Survey, Diagnostic> {
    let mut reader = Reader::new(Log::open(path)?, settings, Files::default());
    let (mut ops, mut kinds) = (0, [(0, 0_u64); KINDS.len()]);
    while !reader.done {
        reader.advance()?;
        for (_, op) in reader.tracer.out.drain(..) {
            ops += 1;
            if let Op::Call(_, call) = op {
                let (kind, bytes) = kind_of(&call);
                kinds[kind] = (kinds[kind].0 + 1, kinds[kind].1.saturating_add(bytes));
            }
        }
    }
    let roots = reader.tracer.roots();
    if roots.is_empty() {
        let what = format!("`{}` has no system calls", path.display());
        return Err(Diagnostic::new(what).help("`strace -f -ttt -T -o FILE PROGRAM` makes a log"));
    }
    if settings.clock == Choice::Auto
        && reader.tracer.notes.clock == Some(clock::RELATIVE)
        && has_others(path)
    {
        let what = format!(
            "`{}` is the log of one of several processes, and its times are relative to the previous line of any of them",
            path.display()
        );
        let help = "`strace -ff -ttt` writes timestamps, which `strace-log-merge` merges; times=none replays without times, clock=relative adds them up anyway";
        return Err(Diagnostic::new(what).help(help));
    }
    let files = reader.tracer.files.before().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    Ok(Survey { files, roots, ops, kinds, notes: reader.tracer.notes })
}

/// Whether a log is one of those that `strace -ff -o NAME` writes: `NAME.PID`, beside others.
fn has_others(path: &Path) -> bool {
    let split = |name: &str| {
        let (stem, pid) = name.rsplit_once('.')?;
        (!pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit())).then(|| stem.to_owned())
    };
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let Some(stem) = split(name) else { return false };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    let mut names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|other| other != name && split(&other).is_some_and(|of| of == stem))
}

/// Reads a log from memory and throws it away.
#[cfg(test)]
fn read_all(text: &[u8], settings: Settings) -> Result<u64, Diagnostic> {
    let mut reader = Reader::new(Log::of(text), settings, Files::default());
    let mut ops = 0;
    while !reader.done {
        reader.advance()?;
        ops += reader.tracer.out.drain(..).len() as u64;
    }
    Ok(ops)
}

// How a replay reads a log, and what it leaves out.

/// Counts of what was read and is not replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Notes {
    /// How its times were read, if they are not those of `strace -ttt`.
    clock: Option<&'static str>,
    /// Calls that failed.
    failed: u64,
    /// Calls on descriptors that are no files: pipes, sockets, terminals, directories, devices.
    other: u64,
    /// Mappings of files, whose pages are touched without a call.
    maps: u64,
    /// Calls on names, attributes and directories.
    metadata: u64,
    /// Calls that were skipped because nothing is known of them, by name.
    unknown: BTreeMap<String, u64>,
}

impl Notes {
    /// A sentence for each kind that occurred.
    fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self.clock.map(str::to_owned).into_iter().collect();
        let mut say = |n: u64, what: &str| {
            if n > 0 {
                sentences.push(format!("{n} {what}"));
            }
        };
        say(self.failed, "calls failed in the log: skipped");
        say(self.other, "calls on pipes, sockets, terminals, directories or devices: their time is slept");
        say(
            self.maps,
            "mappings of files: accesses through them are not in the log and are not replayed",
        );
        say(
            self.metadata,
            "calls on names, attributes or directories: their time is computed, their work in the file system is left out",
        );
        for (name, n) in &self.unknown {
            say(*n, &format!("calls of `{name}`: skipped (unknown=skip)"));
        }
        sentences
    }
}

// How a log is made, and what is in one.

/// What `strace` is called with for a log that can be replayed, up to `-o FILE PROGRAM`.
///
/// The calls that a replay can do without are named, not those that it reads: what nobody knows is in the log, and is told when it is read.
/// The program does not stop for the others, so that its times are nearer to those without `strace`.
pub fn strace_options() -> Vec<String> {
    // A machine need not have every one of these calls.
    let without: Vec<String> = dispensable_calls().map(|name| format!("?{name}")).collect();
    let calls = format!("trace=!{}", without.join(","));
    // Data is not replayed and need not be in the log (-s 0); a signal to strace is one to the program (-I 2).
    let fixed = ["-f", "-ttt", "-T", "-y", "-q", "-s", "0", "-I", "2", "-e"];
    fixed.into_iter().map(str::to_owned).chain([calls]).collect()
}

/// Calls of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogKind {
    /// What they are called: `read`.
    pub name: &'static str,
    /// How many.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a replay of a log does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogContents {
    /// Threads of all processes.
    pub threads: usize,
    /// Files that are read, written or named.
    pub files: usize,
    /// Calls on them.
    pub kinds: Vec<LogKind>,
    /// What is left out, a sentence each.
    pub left_out: Vec<String>,
    /// Whether the log has calls that are refused unless the replay skips them (`unknown=skip`).
    pub skips: bool,
}

/// What a replay of a log of `strace` does, with calls that are not known skipped.
///
/// # Errors
/// A log that cannot be read, with the line.
pub fn log_contents(path: &Path) -> Result<LogContents, Diagnostic> {
    let found = survey(path, Settings { kept: true, clock: Choice::Auto, overhead: 0, skip: true })?;
    let kinds = KINDS.iter().zip(found.kinds);
    Ok(LogContents {
        threads: found.roots.len(),
        files: found.files.len(),
        kinds: kinds.map(|(name, (calls, bytes))| LogKind { name, calls, bytes }).collect(),
        left_out: found.notes.sentences(),
        skips: !found.notes.unknown.is_empty(),
    })
}

// A log of calls: its lines, and where its faults are.

/// What is wrong with a line.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Fault {
    /// In a sentence without a final stop.
    what: String,
    /// Where in the line, in bytes.
    at: usize,
    /// What the reader can do about it.
    help: &'static str,
    /// A word that is not known.
    word: Option<Unknown>,
}

/// A word that is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Unknown {
    /// What would have been allowed.
    allowed: Vec<&'static str>,
    /// The nearest spelling of it.
    nearest: Option<&'static str>,
}

/// The parameter that names a log.
const fn named(what: &'static str) -> Parameter {
    Parameter { name: "file", what, default: "", range: Range::Path, source: "none: it is required" }
}

/// The lines of a log, plain or compressed.
struct Log {
    source: PathBuf,
    lines: Lines,
}

impl Log {
    /// Opens a file.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn open(path: &Path) -> Result<Log, Diagnostic> {
        let input = File::open(path).and_then(Input::new).map_err(|error| unreadable(path, &error))?;
        Ok(Log { source: path.to_owned(), lines: Lines::new(input.bytes) })
    }

    /// A log in memory.
    #[cfg(test)]
    fn of(text: &[u8]) -> Log {
        let lines = Lines::new(Box::new(io::Cursor::new(text.to_vec())));
        Log { source: PathBuf::from("log"), lines }
    }

    /// What `take` makes of the next line; none at the end.
    ///
    /// # Errors
    /// What `take` refuses, with its place, a line that is too long, and a file that cannot be read on.
    fn next<T>(&mut self, take: impl FnOnce(&[u8]) -> Result<T, Fault>) -> Result<Option<T>, Diagnostic> {
        let number = self.lines.number() + 1;
        let (text, taken) = match self.lines.next() {
            Ok(Line::End) => return Ok(None),
            Ok(Line::Text(text)) => (text, take(text)),
            Ok(Line::TooLong(start)) => {
                let help = "a log of calls has no such lines: give a log that a tool wrote";
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
