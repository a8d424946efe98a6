//! Program `iolog`: one thread that replays a log of fio on files, versions 2 and 3 (`write_iolog`).
//!
//! A request waits for its time, as with fio's `iolog_delay`; a late one is made at once. Files existed before and
//! are as long as the data read from them. `trim` is counted and left out. The same log names a device for `trace`
//! workloads; here its names are those of files.

mod line;

use std::path::Path;

use config::Diagnostic;
use engine::Time;
use proto::file::{Call, Fd, FileId, FileSpec, Next, OpenFlags, Program};

use self::line::{Action, RECORD, Reader, Request};
use super::super::{Built, DRIVE, Entry, Named, Options, Parameter, Range, SWITCH, SWITCHED};
use super::replay::{KINDS, kind_of};
use crate::host::HostProgram;
use crate::host::server::Served;

const PARAMETERS: &[Parameter] = &[
    super::named("log of fio's write_iolog, plain or compressed (gzip, xz, bzip2, zstd)"),
    Parameter {
        name: "times",
        what: "kept: requests wait for their times; none: each follows the previous one",
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
    what: "replays the requests to files in a log of fio",
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

/// A log as a program.
struct Replay {
    name: String,
    reader: Reader,
    files: Vec<FileSpec>,
    kept: bool,
    direct: bool,
    /// True for each open file.
    open: Vec<bool>,
    /// Start time.
    began: Option<Time>,
    waiting: Option<Request>,
    /// Kind, bytes, and start time of the current call.
    under: Option<(usize, u64, Time)>,
    served: Served,
    /// Number of requests in total, and of those made.
    progress: (u64, u64),
    notes: Vec<String>,
}

impl Replay {
    fn new(name: &str, path: &Path, kept: bool, direct: bool, drive: u16) -> Result<Replay, Diagnostic> {
        let mut survey = Reader::open(path)?;
        // End of the data read, and of the data written before.
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
            return Err(Diagnostic::new(what).help(RECORD));
        }
        let spec = |(name, (before, _))| FileSpec { name, bytes: Some(before), drive };
        let files: Vec<FileSpec> = survey.names().into_iter().zip(lengths).map(spec).collect();
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
            served: Served::new(&KINDS),
            progress: (requests, 0),
            notes: notes.into_iter().collect(),
        })
    }

    /// Returns the call of a request; none if it has none. A file that is used without an open is opened first, and
    /// the request waits.
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
                    // The first pass found no fault: the log has changed since.
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
                let (kind, bytes) = kind_of(&call);
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
    use crate::host::open;
    use crate::host::tests::{Calls, Did, drive};
    use engine::Time;
    use proptest::prelude::*;
    use proto::file::{Call, Fd, FileId, Next, OpenFlags};
    use std::io::Write as _;

    /// Operations done, the lengths of the files before, and what was left out.
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
            ("hello\n", 1, 1, "first line"),
            ("fio version 3 iolog\nx a read 0 1\n", 2, 1, "time is not a whole number"),
            ("fio version 3 iolog\n1 a raed 0 1\n", 2, 5, "did you mean `read`?"),
            ("fio version 3 iolog\n1 \u{e4} datsync\n", 2, 5, "did you mean `datasync`?"),
            ("fio version 3 iolog\n1 a read 0\n", 2, 11, "ends before the length"),
            ("fio version 3 iolog\n1 a read 0 -1\n", 2, 12, "length is not a whole number: `-1`"),
            ("fio version 3 iolog\n1 a read 0 1 2\n", 2, 14, "text after the last field: `2`"),
            ("fio version 3 iolog\n1 a sync 0 0 1\n", 2, 14, "text after the last field: `1`"),
            ("fio version 3 iolog\n1 a sync 0 x\n", 2, 12, "length is not"),
            ("fio version 3 iolog\n1 a read 9223372036854775807 1\n", 2, 31, "2^63"),
            ("fio version 3 iolog\n1\n", 2, 2, "ends before the name"),
            ("fio version 3 iolog\n1 a\n", 2, 4, "ends before the action"),
            ("fio version 3 iolog\n1 a wait 5\n", 2, 5, "version 3, whose lines have times"),
            ("fio version 2 iolog\na wait 99999999999999\n", 2, 1, "100 days"),
        ];
        for (text, line, column, says) in cases {
            let refused = run(text.as_bytes(), "").unwrap_err();
            let place = refused.place.as_ref().unwrap();
            assert_eq!((place.line, place.column), (line, column), "{refused}");
            let shown = refused.to_string();
            assert!(shown.contains(says) && shown.contains("fio version 3 iolog"), "{refused}");
        }
        // What one version allows is not offered in the other.
        let word = |version| format!("fio version {version} iolog\n1 wiat 5\n1 a wiat 5\n");
        assert!(run(word(2).as_bytes(), "").unwrap_err().to_string().contains("did you mean `wait`?"));
        assert!(
            !run(word(3).replacen("1 wiat 5\n", "", 1).as_bytes(), "")
                .unwrap_err()
                .to_string()
                .contains("`wait`?")
        );
        assert!(run(b"fio version 3 iolog\n", "").unwrap_err().to_string().contains("no requests"));
    }

    /// A request as a writer of logs has it: what passes before it, whose file, what, where.
    type Written = (u64, usize, usize, u64, u64);

    const WORDS: [&str; 8] = ["add", "open", "close", "read", "write", "sync", "datasync", "trim"];

    /// As fio's `log_io_u` and `log_file` write it.
    fn written(requests: &[Written], version: u32) -> String {
        let (mut text, mut at) = (format!("fio version {version} iolog\n"), 0);
        for &(gap, file, what, offset, bytes) in requests {
            at += gap;
            let range = if what > 2 { format!(" {offset} {bytes}") } else { String::new() };
            match version {
                2 if gap > 0 => text += &format!("f{file} wait {gap} 0\nf{file} {}{range}\n", WORDS[what]),
                2 => text += &format!("f{file} {}{range}\n", WORDS[what]),
                _ => text += &format!("{at} f{file} {}{range}\n", WORDS[what]),
            }
        }
        text
    }

    /// The calls of these requests and when each begins: not before its time, not before the one before has returned, 100 us later.
    fn expected(requests: &[Written]) -> Vec<(u64, Call)> {
        let mut seen = Vec::new();
        let (mut open, mut calls) = ([false; 4], Vec::new());
        let (mut at, mut free) = (0, 0);
        for &(gap, file, what, offset, bytes) in requests {
            at += gap;
            free = at.max(free);
            if !seen.contains(&file) {
                seen.push(file);
            }
            let number = seen.iter().position(|name| *name == file).unwrap();
            let (fd, id) = (Fd(number as u16), FileId(number as u32));
            let mut call = |call| {
                calls.push((free, call));
                free += 100;
            };
            let opened = Call::Open { fd, file: id, flags: OpenFlags::default() };
            match what {
                2 if open[file] => call(Call::Close { fd }),
                0 | 2 | 7 => {}
                _ => {
                    if !open[file] {
                        call(opened);
                    }
                    match what {
                        3 => call(Call::Read { fd, offset, bytes }),
                        4 => call(Call::Write { fd, offset, bytes }),
                        5 | 6 => call(Call::Sync { fd, data_only: what == 6 }),
                        _ => {}
                    }
                }
            }
            open[file] = !matches!(what, 0 | 2 | 7) || open[file] && what != 2;
        }
        calls
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn what_is_written_is_read(
            requests in prop::collection::vec((0_u64..300, 0_usize..4, 0_usize..8, 0_u64..1 << 40, 0_u64..1 << 30), 1..40),
            version in 2_u32..4,
        ) {
            let (done, files, _) = run(written(&requests, version).as_bytes(), "").unwrap();
            let calls: Vec<(u64, Call)> = done.iter().filter_map(|did| match did.next {
                Next::Call(call) => Some((did.at.ns() / 1_000, call)),
                _ => None,
            }).collect();
            prop_assert_eq!(calls, expected(&requests));
            let mut names: Vec<usize> = requests.iter().map(|request| request.1).collect();
            names.sort_unstable();
            names.dedup();
            prop_assert_eq!(files.len(), names.len());
        }

        #[test]
        fn a_damaged_log_is_refused_or_replayed(at in 0..THREE.len(), byte: u8, cut: bool) {
            let mut text = THREE.as_bytes().to_vec();
            if cut { text.truncate(at) } else { text[at] = byte }
            let _ = run(&text, "");
        }
    }
}
