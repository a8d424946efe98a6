//! `iolog`: a program of one thread that does to files what a log of fio says, versions 2 and 3 (`write_iolog`).
//!
//! A request waits until its time has come, as fio's `iolog_delay`; one that is late is made at once. A file was there before, and so long as what is read of
//! it. `trim` is counted and left out. The same log names a device for `trace` workloads; here its names are those of files.

mod line;
#[cfg(test)]
mod tests;

use std::path::Path;

use config::Diagnostic;
use engine::Time;
use proto::file::{Call, Fd, FileId, FileSpec, Next, OpenFlags, Program};

use self::line::{Action, RECORD, Reader, Request};
use super::log;
use super::replay::{KINDS, kind_of};
use crate::host::HostProgram;
use crate::host::list::{Built, Entry, Named};
use crate::host::options::{DRIVE, Options, Parameter, Range, SWITCH, SWITCHED};
use crate::host::served::Served;

const PARAMETERS: &[Parameter] = &[
    log::named("log of fio's write_iolog, plain or compressed (gzip, xz, bzip2, zstd)"),
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
