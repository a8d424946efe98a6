//! Program `strace`: replays a log of a real program, as `strace -f -ttt -T` writes it (`-y` adds to it).
//!
//! **Replayed calls.** `open`, `openat`, `creat`, `close`, `read` and `write` in all their forms, `lseek`, `fsync`,
//! `fdatasync`, `sync`, `sync_file_range`, `fadvise64`, `readahead`, `truncate`, `fallocate` where the file grows,
//! `sendfile` and `copy_file_range` as a read and a write, `unlink`, `rename`. Offsets follow from the log:
//! descriptors are copied by `fork`, shared by threads, duplicated, closed by `execve`. A file that replaces a
//! different one is written at once, as ext4 does. The recorded time of calls on files is ignored: the host
//! determines it. Data and names are not replayed, nor are directories and accesses through mapped memory.
//!
//! **Times.** The time between two calls of a thread is spent computing; the time in calls that may sleep (`futex`,
//! `poll`, `read` of a pipe) is slept; with `times=none` there is neither. A parent that waited for a child waits for
//! it again, a child begins when its parent has forked it, and a descriptor is not used before it is opened.
//! Otherwise threads and processes do not wait for each other: if one slept in the log to wait for another, it sleeps
//! for the same time again.
//!
//! **Clocks.** Lines have timestamps (`-ttt`, `-tt`, `-t`, across midnight) or times since the previous line (`-r`),
//! which are added up. A time that goes back is refused. `times=none` needs neither times nor durations.
//!
//! **Files.** Relative names are those of a directory called `.` unless `-y` gives the real one. A file existed
//! before if the log opens it without `O_CREAT`, reads data from it that the log has not written, or gives its
//! length. Files below `/dev`, `/proc` and `/sys` and those of `memfd_create` do not count as files; a directory that
//! is opened without `O_DIRECTORY` is a file of length zero.
//!
//! The log is read twice, once for names, lengths and threads, and once during the replay, in a window of bounded
//! size; it may be compressed. [`strace_options`] returns the options for strace, so that the log has what is needed
//! here and little else.

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

/// Options for reading a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Settings {
    /// True if times between calls count.
    kept: bool,
    /// Interpretation of times.
    clock: Choice,
    /// Nanoseconds subtracted from each of them.
    overhead: u64,
    /// True if unknown calls are skipped.
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

/// Returns true if a text is the beginning of a log of strace: its first lines are, and one is a call that Linux has.
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

/// Number of lines that identify a log.
const SNIFFED: usize = 16;

/// Reader of a log.
struct Reader {
    log: Log,
    tracer: Tracer,
    done: bool,
}

impl Reader {
    fn new(log: Log, settings: Settings, files: Files) -> Reader {
        Reader { log, tracer: Tracer::new(settings, files), done: false }
    }

    /// Processes a line; at the end of the log all threads end.
    fn advance(&mut self) -> Result<(), Diagnostic> {
        let tracer = &mut self.tracer;
        let taken = self.log.next(|text| {
            let Some(line) = line::read(text)? else { return Ok(()) };
            // Position of a call in its line.
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

/// Findings of the first pass over a log.
struct Survey {
    files: Vec<(String, Option<u64>)>,
    /// True for each thread that existed when the log began.
    roots: Vec<bool>,
    ops: u64,
    /// Number of replayed calls and their bytes, by kind.
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

/// Returns true if a log is one of those that `strace -ff -o NAME` writes: `NAME.PID`, beside others.
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

/// Reads a log from memory and discards it.
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

// Interpretation of a log by a replay, and what is left out.

/// Counts of what was read but is not replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Notes {
    /// Interpretation of its times, if they are not those of `strace -ttt`.
    clock: Option<&'static str>,
    /// Number of calls that failed.
    failed: u64,
    /// Number of calls on descriptors other than files: pipes, sockets, terminals, directories, devices.
    other: u64,
    /// Number of mappings of files, whose pages are touched without a call.
    maps: u64,
    /// Number of calls on names, attributes and directories.
    metadata: u64,
    /// Number of unknown calls that were skipped, by name.
    unknown: BTreeMap<String, u64>,
}

impl Notes {
    /// Returns a sentence for each kind that occurred.
    fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self.clock.map(str::to_owned).into_iter().collect();
        let mut say = |n: u64, what: &str| {
            if n > 0 {
                sentences.push(format!("{n} {what}"));
            }
        };
        say(self.failed, "calls failed in the log: skipped");
        say(self.other, "calls on pipes, sockets, terminals, directories or devices: their time is slept");
        say(self.maps, "mappings of files: accesses through them are not in the log and are not replayed");
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

// Making a log, and the contents of one.

/// Returns the options of `strace` for a log that can be replayed, up to `-o FILE PROGRAM`.
///
/// The options exclude the calls that a replay does not need, instead of listing those that it reads: unknown calls
/// are in the log, and are reported when it is read. The program does not stop for the excluded calls, so that its
/// times are nearer to those without `strace`.
pub fn strace_options() -> Vec<String> {
    // A machine may lack some of these calls.
    let without: Vec<String> = dispensable_calls().map(|name| format!("?{name}")).collect();
    let calls = format!("trace=!{}", without.join(","));
    // Data is not replayed and need not be in the log (-s 0); a signal to strace is one to the program (-I 2).
    let fixed = ["-f", "-ttt", "-T", "-y", "-q", "-s", "0", "-I", "2", "-e"];
    fixed.into_iter().map(str::to_owned).chain([calls]).collect()
}

/// Counts of calls of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogKind {
    /// Name of the kind: `read`.
    pub name: &'static str,
    /// Number of calls.
    pub calls: u64,
    /// Bytes of the calls.
    pub bytes: u64,
}

/// Contents of a log that a replay uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogContents {
    /// Number of threads of all processes.
    pub threads: usize,
    /// Number of files that are read, written or named.
    pub files: usize,
    /// Calls on these files, by kind.
    pub kinds: Vec<LogKind>,
    /// Parts left out, one sentence each.
    pub left_out: Vec<String>,
    /// True if the log has calls that are refused unless the replay skips them (`unknown=skip`).
    pub skips: bool,
}

/// Returns the contents of a log of `strace` that a replay uses, with unknown calls skipped.
///
/// # Errors
/// If the log cannot be read, with the line.
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

// Log of calls: its lines, and the places of its faults.

/// Fault of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Fault {
    /// Description, as a sentence without a final full stop.
    what: String,
    /// Position in the line, in bytes.
    at: usize,
    /// Advice to the user.
    help: &'static str,
    /// Unknown word.
    word: Option<Unknown>,
}

/// An unknown word.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Unknown {
    /// Allowed words.
    allowed: Vec<&'static str>,
    /// Nearest allowed spelling.
    nearest: Option<&'static str>,
}

/// Returns the parameter that names a log.
const fn named(what: &'static str) -> Parameter {
    Parameter { name: "file", what, default: "", range: Range::Path, source: "none: it is required" }
}

/// Lines of a log, plain or compressed.
struct Log {
    source: PathBuf,
    lines: Lines,
}

impl Log {
    /// Opens a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn open(path: &Path) -> Result<Log, Diagnostic> {
        let input = File::open(path).and_then(Input::new).map_err(|error| unreadable(path, &error))?;
        Ok(Log { source: path.to_owned(), lines: Lines::new(input.bytes) })
    }

    /// Opens a log in memory.
    #[cfg(test)]
    fn of(text: &[u8]) -> Log {
        let lines = Lines::new(Box::new(io::Cursor::new(text.to_vec())));
        Log { source: PathBuf::from("log"), lines }
    }

    /// Applies `take` to the next line; none at the end.
    ///
    /// # Errors
    /// If `take` refuses the line (with its place), the line is too long, or the file cannot be read further.
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
