//! `iolog`: a program of one thread that does to files what a log of fio says, versions 2 and 3 (`write_iolog`).
//!
//! A request waits until its time has come, as fio's `iolog_delay`; one that is late is made at once. A file was there before, and so long as what is read of
//! it. `trim` is counted and left out. The same log names a device for `trace` workloads; here its names are those of files.

use std::fs::File;
use std::path::{Path, PathBuf};

use config::{Diagnostic, Place};
use kernel::Time;
use proto::file::{Call, Fd, FileId, FileSpec, Next, OpenFlags, Program};
use rustc_hash::FxHashMap;

use super::line::Fault;
use super::{diagnostic, unreadable};
use crate::host::HostProgram;
use crate::host::list::{Built, Entry, Named};
use crate::host::options::{DRIVE, Options, Parameter, Range, SWITCH, SWITCHED};
use crate::host::served::Served;
use crate::trace::{Input, Line, Lines, shown};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "file",
        what: "log of fio's write_iolog, plain or compressed (gzip, xz, bzip2, zstd)",
        default: "",
        range: Range::Path,
        source: "none: it must be given",
    },
    Parameter {
        name: "times",
        what: "kept: requests wait for their times; none: each follows the one before",
        default: "kept",
        range: Range::Word(&["kept", "none"]),
        source: "fio: replay_no_stall=0",
    },
    Parameter {
        name: "direct",
        what: "whether files are opened with O_DIRECT, which the log does not say",
        default: "no",
        range: SWITCH,
        source: "fio: direct=0",
    },
    DRIVE,
];

/// The program.
pub(in crate::host) const ENTRY: Entry = Entry {
    name: "iolog",
    source: "fio HOWTO, Trace file format v2 and v3",
    what: "what a log of fio says that a job did to files",
    parameters: &[PARAMETERS],
    build,
};

fn build(options: &Options, named: Named<'_>) -> Built {
    let Some(path) = options.path("file") else {
        let help = "write `iolog:file=PATH`; fio's `write_iolog=PATH` makes the log";
        return Err(Diagnostic::new("`iolog` needs a log").help(help));
    };
    let kept = options.word("times", &[true, false]);
    let direct = options.word("direct", SWITCHED);
    Ok(Box::new(Replay::new(named.name, path, kept, direct, options.whole("drive") as u16)?))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    /// A file of the job, or a wait: nothing by itself.
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
struct Request {
    at: Time,
    file: u32,
    action: Action,
}

/// A log that is being read.
struct Reader {
    source: PathBuf,
    lines: Lines,
    /// Three: lines begin with a time.
    timed: Option<bool>,
    waited: u64,
    names: FxHashMap<Vec<u8>, u32>,
}

/// The latest time of a log in microseconds: simulated time ends after 213 days.
const LATEST: u64 = 100 * 24 * 3_600 * 1_000_000;
/// The most files: descriptors are numbers of 16 bits.
const FILES: usize = 1 << 16;

impl Reader {
    fn open(path: &Path) -> Result<Reader, Diagnostic> {
        let input = File::open(path).and_then(Input::new).map_err(|error| unreadable(path, &error))?;
        let (source, lines) = (path.to_owned(), Lines::new(input.bytes));
        Ok(Reader { source, lines, timed: None, waited: 0, names: FxHashMap::default() })
    }

    /// The next line that says something; none at the end.
    fn next(&mut self) -> Result<Option<Request>, Diagnostic> {
        loop {
            let number = self.lines.number() + 1;
            let place = |text: &[u8], at: usize| Place {
                source: self.source.display().to_string(),
                line: number,
                column: at as u64 + 1,
                text: shown(text, 200),
                key: String::new(),
            };
            let text = match self.lines.next() {
                Ok(Line::End) => return Ok(None),
                Ok(Line::TooLong(text)) => {
                    return Err(Diagnostic::new("a line longer than 64 KiB").at(place(text, 0)));
                }
                Ok(Line::Text(text)) => text,
                Err(error) => return Err(unreadable(&self.source, &error)),
            };
            let state = (&mut self.timed, &mut self.waited, &mut self.names);
            match request(text, state) {
                Ok(Some(request)) => return Ok(Some(request)),
                Ok(None) => {}
                Err(fault) => return Err(diagnostic(&fault, place(text, fault.at))),
            }
        }
    }
}

const HELP: &str =
    "a line is `[microseconds] NAME add|open|close|read|write|sync|datasync|trim|wait [offset length]`";

type State<'a> = (&'a mut Option<bool>, &'a mut u64, &'a mut FxHashMap<Vec<u8>, u32>);

fn request(text: &[u8], (timed, waited, names): State<'_>) -> Result<Option<Request>, Fault> {
    let fault = |what: String, word: &[u8]| {
        let at = (word.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        Fault { what, at: if word.is_empty() { text.len() } else { at }, help: HELP, given: None }
    };
    let Some(timed) = *timed else {
        *timed = Some(match text.trim_ascii() {
            b"fio version 2 iolog" => false,
            b"fio version 3 iolog" => true,
            _ => return Err(fault("the first line is not `fio version 2 iolog` or `3`".to_owned(), text)),
        });
        return Ok(None);
    };
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let number = |what: &str, word: Option<&[u8]>| {
        let word = word.unwrap_or_default();
        let value = std::str::from_utf8(word).ok().and_then(|word| word.parse::<u64>().ok());
        value.ok_or_else(|| fault(format!("the {what} is not a whole number"), word))
    };
    let mut us = *waited;
    if timed {
        let Some(word) = words.next() else {
            return Ok(None);
        };
        us = number("time", Some(word))?;
    }
    let Some(name) = words.next() else {
        return if timed { Err(fault("the line ends before the name".to_owned(), b"")) } else { Ok(None) };
    };
    let word = words.next().unwrap_or_default();
    let mut extent = || {
        let (offset, bytes) = (number("offset", words.next())?, number("length", words.next())?);
        match offset.checked_add(bytes) {
            Some(end) if end <= i64::MAX as u64 => Ok((offset, bytes)),
            _ => Err(fault("the end is not below 2^63".to_owned(), word)),
        }
    };
    let action = match word {
        b"add" => Action::None,
        b"open" => Action::Open,
        b"close" => Action::Close,
        b"read" => extent().map(|(offset, bytes)| Action::Read(offset, bytes))?,
        b"write" => extent().map(|(offset, bytes)| Action::Write(offset, bytes))?,
        b"sync" => Action::Sync { data_only: false },
        b"datasync" => Action::Sync { data_only: true },
        b"trim" => extent().map(|_| Action::Trim)?,
        b"wait" if !timed => {
            us = waited.saturating_add(number("time to wait", words.next())?);
            *waited = us;
            Action::None
        }
        _ => return Err(fault(format!("unknown action `{}`", shown(word, 40)), word)),
    };
    if us > LATEST {
        return Err(fault("the time is more than 100 days after the beginning".to_owned(), text));
    }
    let next = names.len();
    let file = match names.get(name) {
        Some(file) => *file,
        None if next >= FILES => return Err(fault(format!("more than {FILES} files"), name)),
        None => *names.entry(name.to_owned()).or_insert(next as u32),
    };
    Ok(Some(Request { at: Time::from_us(us), file, action }))
}

/// A log as a program.
struct Replay {
    name: String,
    reader: Reader,
    files: Vec<FileSpec>,
    kept: bool,
    direct: bool,
    /// Which files are open.
    open: Vec<bool>,
    /// When it began.
    began: Option<Time>,
    waiting: Option<Request>,
    /// The kind of the call under way, its bytes, and when it began.
    under: Option<(usize, u64, Time)>,
    served: Served,
    /// Requests in all, and those made.
    progress: (u64, u64),
    notes: Vec<String>,
}

impl Replay {
    fn new(name: &str, path: &Path, kept: bool, direct: bool, drive: u16) -> Result<Replay, Diagnostic> {
        let mut survey = Reader::open(path)?;
        // The end of what is read, and of what was written before.
        let (mut lengths, mut requests, mut trims) = (Vec::<(u64, u64)>::new(), 0, 0);
        while let Some(request) = survey.next()? {
            requests += 1;
            lengths.resize(lengths.len().max(request.file as usize + 1), (0, 0));
            let (before, written) = &mut lengths[request.file as usize];
            match request.action {
                Action::Read(offset, bytes) if offset + bytes > *written => {
                    *before = (*before).max(offset + bytes);
                }
                Action::Write(offset, bytes) => *written = (*written).max(offset + bytes),
                Action::Trim => trims += 1,
                _ => {}
            }
        }
        if requests == 0 {
            let what = format!("`{}` has no requests", path.display());
            return Err(Diagnostic::new(what).help(HELP));
        }
        let mut names: Vec<(&Vec<u8>, u32)> = survey.names.iter().map(|(name, n)| (name, *n)).collect();
        names.sort_unstable_by_key(|(_, n)| *n);
        let spec = |((name, _), (before, _)): ((&Vec<u8>, u32), (u64, u64))| FileSpec {
            name: String::from_utf8_lossy(name).into_owned(),
            bytes: Some(before),
            drive,
        };
        let files: Vec<FileSpec> = names.into_iter().zip(lengths).map(spec).collect();
        let notes = (trims > 0).then(|| format!("{trims} trims of files: left out"));
        Ok(Replay {
            name: name.to_owned(),
            reader: Reader::open(path)?,
            open: vec![false; files.len()],
            files,
            kept,
            direct,
            began: None,
            waiting: None,
            under: None,
            served: Served::new(super::replay::KINDS),
            progress: (requests, 0),
            notes: notes.into_iter().collect(),
        })
    }

    /// The call of a request; none if it has none. What is used without an open is opened first, and the request waits.
    fn call(&mut self, request: Request) -> Option<Call> {
        let (fd, file) = (Fd(request.file as u16), FileId(request.file));
        let flags = OpenFlags { direct: self.direct, ..OpenFlags::default() };
        let open = &mut self.open[request.file as usize];
        match request.action {
            Action::None | Action::Trim => None,
            Action::Open if *open => None,
            Action::Close => std::mem::take(open).then_some(Call::Close { fd }),
            Action::Open => {
                *open = true;
                Some(Call::Open { fd, file, flags })
            }
            _ if !*open => {
                *open = true;
                self.waiting = Some(request);
                Some(Call::Open { fd, file, flags })
            }
            Action::Read(offset, bytes) => Some(Call::Read { fd, offset, bytes }),
            Action::Write(offset, bytes) => Some(Call::Write { fd, offset, bytes }),
            Action::Sync { data_only } => Some(Call::Sync { fd, data_only }),
        }
    }
}

impl Program for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn files(&self) -> Vec<FileSpec> {
        self.files.clone()
    }

    fn threads(&self) -> u32 {
        1
    }

    fn next(&mut self, _thread: u32, now: Time) -> Next {
        if let Some((kind, bytes, since)) = self.under.take() {
            self.served.answered(kind, bytes, since, since, now);
        }
        let began = *self.began.get_or_insert(now);
        loop {
            let request = match self.waiting.take() {
                Some(request) => request,
                None => match self.reader.next() {
                    Ok(Some(request)) if (request.file as usize) < self.files.len() => {
                        self.progress.1 += 1;
                        request
                    }
                    Ok(None) => return Next::End,
                    // The first reading has found no fault: the log has changed since.
                    _ => {
                        self.notes
                            .push("the log changed while it was replayed: the rest is left out".to_owned());
                        return Next::End;
                    }
                },
            };
            if self.kept && began + request.at > now {
                self.waiting = Some(request);
                return Next::Until(began + request.at);
            }
            if let Some(call) = self.call(request) {
                let (kind, bytes) = super::replay::kind_of(&call);
                self.under = Some((kind, bytes, now));
                self.served.ask(&call);
                return Next::Call(call);
            }
        }
    }
}

impl HostProgram for Replay {
    fn reset_stats(&mut self, now: Time) {
        self.served.reset(now);
    }

    fn measured(&self) -> &Served {
        &self.served
    }

    fn progress(&self) -> Option<f64> {
        let (all, made) = self.progress;
        Some(made as f64 / all as f64)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

#[cfg(test)]
mod tests {
    use crate::host::drive::{Calls, Did, drive};
    use crate::host::open;
    use kernel::Time;
    use proptest::prelude::*;
    use proto::file::{Call, Fd, FileId, Next, OpenFlags};
    use std::io::Write as _;

    /// What was done, the lengths of the files before, and what was left out.
    type Ran = (Vec<Did>, Vec<Option<u64>>, Vec<String>);

    fn run(text: &[u8], options: &str) -> Result<Ran, config::Diagnostic> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        let mut program = open(&format!("iolog:file={}{options}", file.path().display()), "i", 1)?;
        let files = program.files().iter().map(|file| file.bytes).collect();
        let calls = Calls { time: Time::from_us(100), sync: Time::ZERO };
        let done = drive(program.as_mut(), &calls, Time::from_s(9));
        Ok((done, files, program.notes()))
    }

    const THREE: &str = "fio version 3 iolog\n0 a add\n10 a open\n50 a read 4096 8192\n60 a write 0 4096\n70 b sync\n\
                         900 a datasync\n901 a trim 0 4096\n902 a close\n";

    #[test]
    fn requests_wait_for_their_times() {
        let (done, files, notes) = run(THREE.as_bytes(), "").unwrap();
        assert_eq!(
            (files, notes),
            (vec![Some(12_288), Some(0)], vec!["1 trims of files: left out".to_owned()])
        );
        let (a, b, flags) = (Fd(0), Fd(1), OpenFlags::default());
        // 100 us a call: those of 10, 50, 60 and 70 us follow each other, that of 900 us waits.
        let expected = [
            (10, Call::Open { fd: a, file: FileId(0), flags }),
            (110, Call::Read { fd: a, offset: 4_096, bytes: 8_192 }),
            (210, Call::Write { fd: a, offset: 0, bytes: 4_096 }),
            (310, Call::Open { fd: b, file: FileId(1), flags }),
            (410, Call::Sync { fd: b, data_only: false }),
            (900, Call::Sync { fd: a, data_only: true }),
            (1_000, Call::Close { fd: a }),
        ];
        let calls: Vec<(u64, Call)> = done
            .iter()
            .filter_map(|did| match did.next {
                Next::Call(call) => Some((did.at.ns() / 1_000, call)),
                _ => None,
            })
            .collect();
        assert_eq!(calls, expected);
        let at_once = run(THREE.as_bytes(), ",times=none").unwrap().0;
        assert_eq!(at_once.last().map(|did| (did.at, did.next)), Some((Time::from_us(700), Next::End)));

        let two =
            "fio version 2 iolog\na add\na open\na wait 500\na read 0 4096\na wait 200\na write 0 512\n";
        let done = run(two.as_bytes(), ",direct=yes").unwrap().0;
        let starts: Vec<u64> = done
            .iter()
            .filter(|did| matches!(did.next, Next::Call(Call::Read { .. } | Call::Write { .. })))
            .map(|did| did.at.ns() / 1_000)
            .collect();
        assert_eq!(starts, [500, 700]);
        let direct = OpenFlags { direct: true, ..flags };
        assert_eq!(done[0].next, Next::Call(Call::Open { fd: a, file: FileId(0), flags: direct }));
    }

    #[test]
    fn bad_lines_are_named() {
        let cases = [
            ("hello\n", 1, "first line"),
            ("fio version 3 iolog\nx a read 0 1\n", 2, "time is not a whole number"),
            ("fio version 3 iolog\n1 a raed 0 1\n", 2, "unknown action `raed`"),
            ("fio version 3 iolog\n1 a read 0\n", 2, "length is not"),
            ("fio version 3 iolog\n1 a read 9223372036854775807 1\n", 2, "2^63"),
            ("fio version 3 iolog\n1\n", 2, "ends before the name"),
            ("fio version 2 iolog\na wait 99999999999999\n", 2, "100 days"),
        ];
        for (text, line, says) in cases {
            let refused = run(text.as_bytes(), "").unwrap_err();
            assert_eq!(refused.place.as_ref().unwrap().line, line, "{text}");
            assert!(refused.to_string().contains(says), "{refused}");
        }
        assert!(run(b"fio version 3 iolog\n", "").unwrap_err().to_string().contains("no requests"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn a_damaged_log_is_refused_or_replayed(at in 0..THREE.len(), byte: u8, cut: bool) {
            let mut text = THREE.as_bytes().to_vec();
            if cut { text.truncate(at) } else { text[at] = byte }
            let _ = run(&text, "");
        }
    }
}
