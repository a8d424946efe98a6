//! A log as a program.

use std::collections::VecDeque;
use std::path::Path;

use config::Diagnostic;
use engine::{List, Lists, Time};
use proto::file::{Call, CallError, Fd, FileSpec, Next, Program};
use rustc_hash::FxHashMap;

use super::files::Files;
use super::tracer::{NO_NAME, Op};
use super::{Log, Reader, Settings, Survey, survey};
use crate::host::HostProgram;
use crate::host::server::Served;

/// Maximum number of steps of all threads that are read ahead.
const WINDOW: usize = 1 << 16;
/// Interval at which a thread retries when all descriptors are in use.
const AGAIN: Time = Time::from_ms(1);
/// Number of descriptors of a program.
const DESCRIPTORS: u32 = 1 << 16;

/// An open file description.
#[derive(Default)]
struct Description {
    fd: Option<Fd>,
    /// True if the open has returned.
    ready: bool,
    /// Number of calls on it that were read and have not returned.
    calls: u32,
    /// True if it was closed while calls were left.
    closing: bool,
    /// Threads that wait for the open.
    waiting: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Under {
    name: u32,
    call: Call,
    since: Time,
}

#[derive(Default)]
struct Thread {
    begun: bool,
    ended: bool,
    steps: List,
    /// True if it waits because its next step has not been read.
    parked: bool,
    /// Step that could not be made yet.
    held: Option<Op>,
    /// Threads that wait for its end.
    joined_by: Vec<u32>,
    under: Option<Under>,
}

/// A log as a program.
pub(super) struct Recorded {
    name: String,
    reader: Reader,
    files: Vec<FileSpec>,
    threads: Vec<Thread>,
    steps: Lists<Op>,
    read_ahead: usize,
    descriptions: FxHashMap<u32, Description>,
    free: Vec<Fd>,
    descriptors: u32,
    /// Threads to wake; the next thread that is asked wakes them.
    wakes: VecDeque<u32>,
    served: Served,
    /// Number of steps in total, and of those made.
    progress: (u64, u64),
    notes: Vec<String>,
}

/// Names of its kinds of calls.
pub(super) const KINDS: [&str; 4] = ["read", "write", "sync", "other"];

/// Returns the kind of a call, and its bytes.
pub(super) fn kind_of(call: &Call) -> (usize, u64) {
    match *call {
        Call::Read { bytes, .. } => (0, bytes),
        Call::Write { bytes, .. } => (1, bytes),
        Call::Sync { .. } | Call::SyncAll | Call::SyncRange { .. } => (2, 0),
        _ => (3, 0),
    }
}

/// Inserts the descriptor into a call.
fn with(call: Call, to: Fd) -> Call {
    let mut call = call;
    match &mut call {
        Call::Open { fd, .. }
        | Call::Close { fd }
        | Call::Read { fd, .. }
        | Call::Write { fd, .. }
        | Call::Touch { fd, .. }
        | Call::Sync { fd, .. }
        | Call::SyncRange { fd, .. }
        | Call::Advise { fd, .. }
        | Call::Truncate { fd, .. } => *fd = to,
        Call::Unlink { .. } | Call::SyncAll => {}
    }
    call
}

impl Recorded {
    /// Reads the whole log once.
    ///
    /// # Errors
    /// If the log cannot be read or replayed, with the line.
    pub(super) fn new(
        name: &str,
        path: &Path,
        settings: Settings,
        drive: u16,
    ) -> Result<Recorded, Diagnostic> {
        let Survey { files, roots, ops, notes, .. } = survey(path, settings)?;
        let known = Files::known(files.iter().map(|(_, bytes)| *bytes).collect());
        let spec = |(name, bytes)| FileSpec { name, bytes, drive };
        Ok(Recorded {
            name: name.to_owned(),
            reader: Reader::new(Log::open(path)?, settings, known),
            files: files.into_iter().map(spec).collect(),
            threads: roots.into_iter().map(|begun| Thread { begun, ..Thread::default() }).collect(),
            steps: Lists::default(),
            read_ahead: 0,
            descriptions: FxHashMap::default(),
            free: Vec::new(),
            descriptors: 0,
            wakes: VecDeque::new(),
            served: Served::new(&KINDS),
            progress: (ops, 0),
            notes: notes.sentences(),
        })
    }

    /// Reads ahead until the window is full.
    fn read_on(&mut self) {
        while self.read_ahead < WINDOW && !self.reader.done {
            if let Err(fault) = self.reader.advance() {
                // The first pass found no fault: the log has changed since, and the rest of it is not replayed.
                self.notes.push(format!("the log changed while it was replayed: {fault}"));
                self.reader.tracer.finish();
                self.reader.done = true;
            }
            let mut out = std::mem::take(&mut self.reader.tracer.out);
            for (thread, op) in out.drain(..) {
                if thread as usize >= self.threads.len() {
                    continue;
                }
                self.take_in(thread, op);
            }
            self.reader.tracer.out = out;
        }
    }

    fn take_in(&mut self, thread: u32, op: Op) {
        match op {
            Op::Call(_, Call::Close { .. }) | Op::Call(NO_NAME, _) => {}
            Op::Call(name, Call::Open { .. }) => {
                self.descriptions.insert(name, Description::default());
            }
            Op::Call(name, _) => self.descriptions.entry(name).or_default().calls += 1,
            _ => {}
        }
        let of = &mut self.threads[thread as usize];
        self.steps.push(&mut of.steps, op);
        self.read_ahead += 1;
        if std::mem::take(&mut of.parked) {
            self.wakes.push_back(thread);
        }
    }

    /// Handles the return of the current call.
    fn returned(&mut self, thread: u32, now: Time) {
        let Some(Under { name, call, since }) = self.threads[thread as usize].under.take() else {
            return;
        };
        let (kind, bytes) = kind_of(&call);
        self.served.answered(kind, bytes, since, since, now);
        if let Call::Close { fd } = call {
            self.free.push(fd);
            return;
        }
        let Some(description) = self.descriptions.get_mut(&name) else {
            return;
        };
        if let Call::Open { .. } = call {
            description.ready = true;
            self.wakes.extend(description.waiting.drain(..));
            return;
        }
        description.calls -= 1;
        if description.closing && description.calls == 0 {
            self.threads[thread as usize].held = Some(Op::Call(name, Call::Close { fd: Fd(0) }));
        }
    }

    /// Begins a call, or returns why it cannot begin.
    fn call(&mut self, thread: u32, name: u32, call: Call, now: Time) -> Option<Next> {
        let fd = match self.descriptions.get_mut(&name) {
            None => Fd(0),
            Some(description) => match call {
                Call::Open { .. } => {
                    let fd = self.free.pop().or_else(|| {
                        (self.descriptors < DESCRIPTORS).then(|| {
                            self.descriptors += 1;
                            Fd((self.descriptors - 1) as u16)
                        })
                    });
                    let Some(fd) = fd else {
                        self.threads[thread as usize].held = Some(Op::Call(name, call));
                        return Some(Next::Until(now + AGAIN));
                    };
                    description.fd = Some(fd);
                    fd
                }
                _ if !description.ready => {
                    description.waiting.push(thread);
                    self.threads[thread as usize].held = Some(Op::Call(name, call));
                    return Some(Next::Wait);
                }
                Call::Close { .. } => {
                    if description.calls > 0 {
                        description.closing = true;
                        return None;
                    }
                    let fd = description.fd.unwrap_or_default();
                    self.descriptions.remove(&name);
                    fd
                }
                _ => description.fd.unwrap_or_default(),
            },
        };
        let call = with(call, fd);
        self.threads[thread as usize].under = Some(Under { name, call, since: now });
        self.served.ask(&call);
        Some(Next::Call(call))
    }

    /// Wakes the threads that wait for an ended thread, one after another, then ends it.
    fn end(&mut self, thread: u32) -> Next {
        self.threads[thread as usize].joined_by.pop().map_or(Next::End, Next::Wake)
    }

    /// Executes a step; none if it takes no time.
    fn step(&mut self, thread: u32, op: Op, now: Time) -> Option<Next> {
        match op {
            Op::Compute(time) => Some(Next::Compute(time)),
            Op::Sleep(time) => Some(Next::Until(now + time)),
            Op::Call(name, call) => self.call(thread, name, call, now),
            Op::Begin(child) => {
                self.threads[child as usize].begun = true;
                Some(Next::Wake(child))
            }
            Op::Join(child) if self.threads[child as usize].ended => None,
            Op::Join(child) => {
                self.threads[child as usize].joined_by.push(thread);
                self.threads[thread as usize].held = Some(op);
                Some(Next::Wait)
            }
            Op::End => {
                self.threads[thread as usize].ended = true;
                Some(self.end(thread))
            }
        }
    }
}

impl Program for Recorded {
    fn name(&self) -> &str {
        &self.name
    }

    fn files(&self) -> Vec<FileSpec> {
        self.files.clone()
    }

    fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    fn next(&mut self, thread: u32, now: Time) -> Next {
        let at = thread as usize;
        self.returned(thread, now);
        loop {
            self.read_on();
            if let Some(other) = self.wakes.pop_front() {
                return Next::Wake(other);
            }
            if self.threads[at].ended {
                return self.end(thread);
            }
            if !self.threads[at].begun {
                return Next::Wait;
            }
            let held = self.threads[at].held.take();
            let op = match held {
                Some(op) => op,
                None => {
                    let Some(op) = self.steps.pop(&mut self.threads[at].steps) else {
                        self.threads[at].parked = true;
                        return Next::Wait;
                    };
                    self.read_ahead -= 1;
                    self.progress.1 += 1;
                    op
                }
            };
            if let Some(next) = self.step(thread, op, now) {
                return next;
            }
        }
    }

    fn failed(&mut self, _: u32, error: CallError) {
        self.served.fail(error);
    }
}

impl HostProgram for Recorded {
    fn reset_stats(&mut self, now: Time) {
        self.served.reset(now);
    }

    fn measured(&self) -> &Served {
        &self.served
    }

    fn progress(&self) -> Option<f64> {
        let (all, made) = self.progress;
        Some(if all > 0 { made as f64 / all as f64 } else { 1.0 })
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
