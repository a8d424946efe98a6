//! Server of objects, each in a separate file: fetches and uploads.

use std::collections::VecDeque;

use config::Diagnostic;
use engine::{Rng, Time};
use proto::file::{Call, Fd, FileId, FileSpec, Next, OpenFlags, SyncRange};

use super::demand::Set;
use super::server::{Serve, Step};
use super::{Options, Parameter, Range, SWITCH, SWITCHED};

const SECOND: Time = Time::from_s(1);

/// Parameters common to fetches and uploads of all objects.
pub(crate) const COMMON: &[Parameter] = &[
    Parameter {
        name: "cpu",
        what: "core time per request, excluding its system calls and its bytes",
        default: "150us",
        range: Range::Span(Time::ZERO, SECOND),
        source: "chosen: static requests cost Apache 0.1 to 0.3 ms of a core of 2 GHz",
    },
    Parameter {
        name: "per_kib",
        what: "core time per KiB sent to or received from the network",
        default: "800ns",
        range: Range::Span(Time::ZERO, Time::from_ms(1)),
        source: "chosen: 10 Gbit/s per core, segmentation left to the adapter",
    },
    Parameter {
        name: "chunk",
        what: "bytes per read of a fetch",
        default: "64KiB",
        range: Range::Size(512, 64 << 20),
        source: "sendfile(2) moves at most what its pipe holds, 16 pages: PIPE_DEF_BUFFERS, splice_direct_to_actor",
    },
    Parameter {
        name: "piece",
        what: "bytes per write of an upload",
        default: "8000B",
        range: Range::Size(512, 64 << 20),
        source: "mod_dav's dav_method_put writes a bucket as it comes from the socket: APR_BUCKET_BUFF_SIZE",
    },
    Parameter {
        name: "put",
        what: "new: an upload creates a new file; replace: it replaces an object, through a file with a temporary name",
        default: "new",
        range: Range::Word(&["new", "replace"]),
        source: "chosen; mod_dav_fs replaces (dav_fs_close_stream renames), where ext4 begins to write what was uploaded (ext4_rename, auto_da_alloc)",
    },
    Parameter {
        name: "keep",
        what: "uploads kept before the oldest is unlinked (put=new)",
        default: "65536",
        range: Range::Count(1, 1 << 24),
        source: "chosen: a run uploads fewer",
    },
    Parameter {
        name: "fsync",
        what: "whether an upload ends with fsync",
        default: "no",
        range: SWITCH,
        source: "mod_dav_fs and CGI programs do not ask for it",
    },
    Parameter {
        name: "log",
        what: "bytes appended to the access log after each answer; 0B: none",
        default: "100B",
        range: Range::Size(0, 4_096),
        source: "a line of Apache's common log format",
    },
];

/// Returns the parameter for the percentage of uploads.
pub(crate) const fn uploads(default: &'static str) -> Parameter {
    Parameter {
        name: "uploads",
        what: "percent of requests that upload",
        default,
        range: Range::Real(0.0, 100.0),
        source: "the program's name",
    }
}

const LOG: Fd = Fd(0);
const KINDS: &[&str] = &["fetch", "upload"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begin,
    Open,
    /// Bytes of a chunk are in memory, or have arrived from the network.
    Move,
    /// Bytes of the chunk are sent, or written.
    Moved,
    Sync,
    Allocate,
    Close,
    Replace,
    Answer,
    Log,
    Done,
}

/// Request that a worker serves.
#[derive(Clone, Copy)]
struct Job {
    upload: bool,
    object: u64,
    file: u32,
    bytes: u64,
    done: u64,
    phase: Phase,
}

/// The server.
pub(crate) struct Objects<S> {
    set: S,
    rng: Rng,
    /// Percentage of uploads.
    uploads: f64,
    cpu: Time,
    per_kib: u64,
    chunk: u64,
    piece: u64,
    replace: bool,
    fsync: bool,
    log: u64,
    log_end: u64,
    drive: u16,
    /// Number of files.
    files: u32,
    /// The file of each object, if objects may be replaced.
    held: Vec<u32>,
    /// Files available for uploads, the least recently uploaded first.
    spare: VecDeque<u32>,
    /// Number of descriptors of each file; only files without descriptors are taken.
    open: Vec<u16>,
    /// True for each file that exists.
    there: Vec<bool>,
    jobs: Vec<Job>,
}

impl<S: Set> Objects<S> {
    /// Creates the server from its parameters, for `workers` workers.
    ///
    /// # Errors
    /// If there are more objects than a host has numbers for.
    pub(crate) fn new(set: S, options: &Options, rng: Rng, workers: u32) -> Result<Objects<S>, Diagnostic> {
        let replace = options.word("put", &[false, true]);
        // Each worker may hold one file and use a second one.
        let least = 2 * u64::from(workers) + 1;
        let uploads = options.real("uploads");
        let spares = match replace {
            _ if uploads == 0.0 => 0,
            true => least,
            false => options.whole("keep").max(least),
        };
        const MOST: u64 = 1 << 26;
        if set.len() + spares >= MOST {
            let most = format!("at most {MOST} files; these parameters make {}", set.len() + spares);
            return Err(options.refused("size", most));
        }
        let first = 1 + set.len() as u32;
        let files = first + spares as u32;
        let idle = Job { upload: false, object: 0, file: 0, bytes: 0, done: 0, phase: Phase::Done };
        Ok(Objects {
            rng,
            uploads,
            cpu: options.span("cpu"),
            per_kib: options.span("per_kib").ps(),
            chunk: options.whole("chunk"),
            piece: options.whole("piece"),
            replace,
            fsync: options.word("fsync", SWITCHED),
            log: options.whole("log"),
            log_end: 0,
            drive: options.whole("drive") as u16,
            files,
            held: if replace { (1..first).collect() } else { Vec::new() },
            spare: (first..files).collect(),
            open: vec![0; files as usize],
            there: (0..files).map(|file| file < first).collect(),
            jobs: vec![idle; workers as usize],
            set,
        })
    }

    fn file_of(&self, object: u64) -> u32 {
        self.held.get(object as usize).copied().unwrap_or(object as u32 + 1)
    }

    /// Takes a file for an upload: the oldest that is not being read.
    fn take_spare(&mut self) -> u32 {
        loop {
            let file = self.spare.pop_front().expect("there are more spare files than workers hold");
            if self.open[file as usize] == 0 {
                return file;
            }
            self.spare.push_back(file);
        }
    }

    fn compute(&self, bytes: u64) -> Next {
        Next::Compute(Time::from_ps(self.per_kib * bytes / 1_024))
    }

    fn call(&mut self, at: usize, fd: Fd) -> Option<Next> {
        let Job { upload, object, file, bytes, done, phase } = self.jobs[at];
        let length = (bytes - done).min(if upload { self.piece } else { self.chunk });
        let end = if done + length < bytes { Phase::Move } else { Phase::Sync };
        let (after, next) = match phase {
            Phase::Begin => (Phase::Open, Next::Compute(self.cpu)),
            Phase::Open if upload && self.there[file as usize] => {
                self.there[file as usize] = false;
                (Phase::Open, Next::Call(Call::Unlink { file: FileId(file) }))
            }
            Phase::Open => {
                // The file of an object is known only when it is opened: it may have been replaced since the request
                // was drawn.
                let file = if upload { file } else { self.file_of(object) };
                self.jobs[at].file = file;
                self.there[file as usize] = true;
                self.open[file as usize] += 1;
                let flags = OpenFlags::default();
                (Phase::Move, Next::Call(Call::Open { fd, file: FileId(file), flags }))
            }
            Phase::Move if upload => (Phase::Moved, self.compute(length)),
            Phase::Move => (Phase::Moved, Next::Call(Call::Read { fd, offset: done, bytes: length })),
            Phase::Moved => {
                self.jobs[at].done += length;
                let write = Next::Call(Call::Write { fd, offset: done, bytes: length });
                (end, if upload { write } else { self.compute(length) })
            }
            Phase::Sync if !upload => {
                self.jobs[at].phase = Phase::Answer;
                return None;
            }
            Phase::Sync if self.fsync => (Phase::Allocate, Next::Call(Call::Sync { fd, data_only: false })),
            Phase::Sync | Phase::Allocate if self.replace => {
                // As ext4_alloc_da_blocks does at the rename: starts writing and does not wait.
                let how = SyncRange { wait_before: false, write: true, wait_after: false };
                (Phase::Close, Next::Call(Call::SyncRange { fd, offset: 0, bytes: 0, how }))
            }
            Phase::Sync | Phase::Allocate | Phase::Close => {
                self.open[file as usize] -= 1;
                let after = if upload { Phase::Replace } else { Phase::Log };
                (after, Next::Call(Call::Close { fd }))
            }
            Phase::Replace if self.replace => {
                let old = std::mem::replace(&mut self.held[object as usize], file);
                self.there[old as usize] = false;
                self.spare.push_back(old);
                (Phase::Answer, Next::Call(Call::Unlink { file: FileId(old) }))
            }
            Phase::Replace => {
                self.spare.push_back(file);
                self.jobs[at].phase = Phase::Answer;
                return None;
            }
            Phase::Log if self.log > 0 => {
                let offset = self.log_end;
                self.log_end += self.log;
                (Phase::Done, Next::Call(Call::Write { fd: LOG, offset, bytes: self.log }))
            }
            Phase::Answer | Phase::Log | Phase::Done => return None,
        };
        self.jobs[at].phase = after;
        Some(next)
    }
}

impl<S: Set> Serve for Objects<S> {
    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn files(&self) -> Vec<FileSpec> {
        let drive = self.drive;
        let file = |name: String, bytes| FileSpec { name, bytes, drive };
        let log = std::iter::once(file("access_log".to_owned(), None));
        let objects = (0..self.set.len()).map(|n| file(self.set.name(n), Some(self.set.bytes(n))));
        let spares = (1 + self.set.len()..u64::from(self.files)).map(|n| file(format!("upload{n:08}"), None));
        log.chain(objects).chain(spares).collect()
    }

    fn setup(&self) -> Vec<Call> {
        let open = Call::Open { fd: LOG, file: FileId(0), flags: OpenFlags::default() };
        if self.log > 0 { vec![open] } else { Vec::new() }
    }

    fn begin(&mut self, worker: u32) {
        let upload = self.rng.unit() * 100.0 < self.uploads;
        let object = self.set.draw(&mut self.rng);
        let file = if upload { self.take_spare() } else { 0 };
        let bytes = self.set.bytes(object);
        self.jobs[worker as usize] = Job { upload, object, file, bytes, done: 0, phase: Phase::Begin };
    }

    fn step(&mut self, worker: u32, _now: Time) -> Step {
        let (at, fd) = (worker as usize, Fd(1 + worker as u16));
        loop {
            if let Some(next) = self.call(at, fd) {
                return Step::Next(next);
            }
            let Job { upload, bytes, phase, .. } = self.jobs[at];
            match phase {
                Phase::Answer => {
                    self.jobs[at].phase = if upload { Phase::Log } else { Phase::Close };
                    return Step::Answered { kind: usize::from(upload), bytes };
                }
                Phase::Log | Phase::Done => return Step::Done,
                _ => {}
            }
        }
    }
}
