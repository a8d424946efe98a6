//! Tracer of a log, line by line: threads, descriptors, offsets and files, and the actions of each thread.

use config::diag::nearest;
use engine::Time;
use proto::file::{Call, Fd, FileId, OpenFlags, SyncRange};
use rustc_hash::FxHashMap;

use super::calls::Made;
use super::clock::Clock;
use super::files::{Closed, Descriptors, Files, Target};
use super::line::{self, Kind};
use super::line::{Line, Said, Syscall};
use super::{Fault, Notes, Settings, Unknown};

/// Maximum number of files open at a time: a program's descriptors are 16-bit numbers, and a replay may close later
/// than the log did.
const MOST_OPEN: u32 = 1 << 15;
/// Longest log in nanoseconds: simulated time ends after 213 days.
const LONGEST: u64 = 100 * 24 * 3_600 * 1_000_000_000;

/// Marker for a call by name, without an open file description.
pub(super) const NO_NAME: u32 = u32::MAX;

/// Action of a thread in a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    /// Computes.
    Compute(Time),
    /// Sleeps for the given time.
    Sleep(Time),
    /// Calls the kernel; the open file description replaces the call's descriptor.
    Call(u32, Call),
    /// Begins a different thread.
    Begin(u32),
    /// Waits until a different thread has ended.
    Join(u32),
    /// Ends.
    End,
}

#[derive(Debug)]
struct Thread {
    pid: u32,
    table: u32,
    /// Time at which its last call returned.
    last: u64,
    /// Time that it has computed since then, in nanoseconds.
    owed: u64,
    /// Unfinished call: its start time, and its text.
    begun: Option<(u64, Vec<u8>)>,
    ended: bool,
    /// True if it existed when the log began.
    root: bool,
}

/// State of the log at a line.
pub(super) struct Tracer {
    settings: Settings,
    clock: Clock,
    threads: Vec<Thread>,
    by_pid: FxHashMap<u32, u32>,
    /// Threads that have begun to fork, and whether the child was seen before the call returned.
    forking: Vec<(u32, bool)>,
    pub(super) descriptors: Descriptors,
    pub(super) files: Files,
    pub(super) notes: Notes,
    /// Time at which the log begins.
    first: Option<u64>,
    closed: Vec<Closed>,
    /// Actions found since they were last taken, by thread.
    pub(super) out: Vec<(u32, Op)>,
}

impl Tracer {
    pub(super) fn new(settings: Settings, files: Files) -> Tracer {
        Tracer {
            settings,
            clock: Clock::new(settings.clock),
            threads: Vec::new(),
            by_pid: FxHashMap::default(),
            forking: Vec::new(),
            descriptors: Descriptors::default(),
            files,
            notes: Notes::default(),
            first: None,
            closed: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Returns which threads existed when the log began.
    pub(super) fn roots(&self) -> Vec<bool> {
        self.threads.iter().map(|thread| thread.root).collect()
    }

    /// Returns the number of threads so far.
    pub(super) fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    /// Processes a line that was written at `now`.
    ///
    /// # Errors
    /// If a call cannot be read or replayed.
    pub(super) fn line(&mut self, line: Line<'_>, now: u64) -> Result<(), Fault> {
        let begins = *self.first.get_or_insert(now);
        if now.saturating_sub(begins) > LONGEST {
            return Err(Fault::new("the time is more than 100 days after the first one", 0));
        }
        let thread = match self.by_pid.get(&line.pid) {
            Some(thread) => *thread,
            None => self.appear(line.pid, now.saturating_sub(begins), now),
        };
        match line.said {
            Said::Signal => Ok(()),
            Said::Ended => {
                self.end(thread);
                Ok(())
            }
            Said::Begun(text) => {
                if Tracer::is_fork(text) {
                    self.forking.push((thread, false));
                }
                let owner = &mut self.threads[thread as usize];
                let mut kept = owner.begun.take().map_or_else(Vec::new, |(_, kept)| kept);
                kept.clear();
                kept.extend_from_slice(text);
                owner.begun = Some((now, kept));
                Ok(())
            }
            Said::Resumed(rest) => {
                let Some((at, mut text)) = self.threads[thread as usize].begun.take() else {
                    // The call began before the log did.
                    return Ok(());
                };
                text.extend_from_slice(rest);
                let call = Syscall::read(&text, self.settings.kept);
                let result = call.and_then(|call| self.call(thread, at, &call));
                result.map_err(|fault| Fault { at: 0, ..fault })
            }
            Said::Whole(text) => {
                let call = Syscall::read(text, self.settings.kept)?;
                self.call(thread, now, &call)
            }
        }
    }

    /// Returns the time at which a line was written, in nanoseconds; zero if times do not count.
    ///
    /// # Errors
    /// If a required time is missing, or is impossible for the log's clock.
    pub(super) fn time(&mut self, line: Line<'_>) -> Result<u64, Fault> {
        if !self.settings.kept {
            return Ok(0);
        }
        let Some((stamp, at)) = line.time else {
            let help = "`strace -ttt` writes times, and `-T` durations; times=none replays the calls in order without them";
            return Err(Fault { help, ..Fault::new("the line has no time", 0) });
        };
        let (now, note) = self.clock.at(stamp).map_err(|fault| Fault { at, ..fault })?;
        self.notes.clock = self.notes.clock.or(note);
        Ok(now)
    }

    /// Ends all threads at the end of the log.
    pub(super) fn finish(&mut self) {
        for thread in 0..self.threads() {
            if !self.threads[thread as usize].ended {
                self.end(thread);
            }
        }
    }

    fn is_fork(text: &[u8]) -> bool {
        [&b"clone("[..], b"clone3(", b"fork(", b"vfork("].iter().any(|name| text.starts_with(name))
    }

    /// Adds a new thread: a child whose parent's call has not returned, or one that existed when the log began.
    fn appear(&mut self, pid: u32, since: u64, at: u64) -> u32 {
        let parent = self.forking.iter().position(|(_, seen)| !seen);
        if let Some(place) = parent {
            let parent = self.forking[place].0;
            let shared = self.threads[parent as usize].begun.as_ref();
            let shared = shared.is_some_and(|(_, text)| memchr::memmem::find(text, b"CLONE_FILES").is_some());
            self.forking[place].1 = true;
            return self.fork(parent, pid, shared, at);
        }
        let table = self.descriptors.table();
        let thread = self.add(pid, table, at);
        self.threads[thread as usize].root = true;
        if since > 0 && self.settings.kept {
            self.out.push((thread, Op::Sleep(Time::from_ns(since))));
        }
        thread
    }

    fn add(&mut self, pid: u32, table: u32, at: u64) -> u32 {
        let thread = self.threads();
        self.threads.push(Thread { pid, table, last: at, owed: 0, begun: None, ended: false, root: false });
        self.by_pid.insert(pid, thread);
        thread
    }

    fn fork(&mut self, parent: u32, pid: u32, shared: bool, at: u64) -> u32 {
        let table = self.descriptors.inherit(self.threads[parent as usize].table, shared);
        let child = self.add(pid, table, at);
        self.compute(parent);
        self.out.push((parent, Op::Begin(child)));
        child
    }

    fn end(&mut self, thread: u32) {
        let of = &mut self.threads[thread as usize];
        of.ended = true;
        let (pid, table) = (of.pid, of.table);
        self.forking.retain(|(parent, _)| *parent != thread);
        self.descriptors.leave(table, &mut self.closed);
        self.compute(thread);
        self.close_files(thread);
        self.by_pid.remove(&pid);
        self.out.push((thread, Op::End));
    }

    /// Adds the time that a thread has computed since its last call.
    fn compute(&mut self, thread: u32) {
        let owed = std::mem::take(&mut self.threads[thread as usize].owed);
        if owed > 0 && self.settings.kept {
            self.out.push((thread, Op::Compute(Time::from_ns(owed.min(LONGEST)))));
        }
    }

    /// Adds a call of the kernel.
    pub(super) fn emit(&mut self, thread: u32, name: u32, call: Call) {
        self.compute(thread);
        self.out.push((thread, Op::Call(name, call)));
    }

    /// Closes the files whose last descriptors are closed.
    pub(super) fn close_files(&mut self, thread: u32) {
        for n in 0..self.closed.len() {
            let Closed { file, name } = self.closed[n];
            self.files.close(file);
            self.emit(thread, name, Call::Close { fd: Fd(0) });
        }
        self.closed.clear();
    }

    /// Closes the given files as [`Tracer::close_files`].
    pub(super) fn closed_now(&mut self, thread: u32, closed: Vec<Closed>) {
        self.closed.extend(closed);
        self.close_files(thread);
    }

    fn call(&mut self, thread: u32, at: u64, call: &Syscall<'_>) -> Result<(), Fault> {
        let Some(kind) = line::kind_of_call(call.name) else {
            return self.unknown(call.name);
        };
        let of = &mut self.threads[thread as usize];
        // Within the resolution of a coarse clock, a call begins when the previous one has returned.
        let unsure = if self.clock.grain > 1_000 { self.clock.grain } else { 0 };
        let at = if of.last < at.saturating_add(unsure) { at.max(of.last) } else { at };
        let gap = at.saturating_sub(of.last).saturating_sub(self.settings.overhead);
        of.owed = of.owed.saturating_add(gap);
        let began = at.max(of.last);
        let end = at.saturating_add(call.took);
        if end.saturating_sub(self.first.unwrap_or(at)) > LONGEST {
            return Err(Fault::new("the call ends more than 100 days after the log begins", 0));
        }
        // No time counts twice, so that all of a thread's times are within the log's.
        let took = end.saturating_sub(began);
        of.last = began + took;
        let sleeps = match (kind, call.result) {
            (Kind::Sleeps | Kind::WaitChild, None) => true,
            // The call does not return.
            (Kind::Plain, None) if call.name.starts_with(b"exit") => false,
            (_, None) => {
                self.notes.failed += 1;
                self.forget_fork(thread, kind);
                false
            }
            (_, Some(result)) => {
                let slept = self.replay(thread, kind, call, result)?;
                if slept.is_some_and(|slept| !slept) {
                    // The host determines the time of the call itself.
                    return Ok(());
                }
                slept.is_some()
            }
        };
        if sleeps {
            self.compute(thread);
            if self.settings.kept && took > 0 {
                self.out.push((thread, Op::Sleep(Time::from_ns(took))));
            }
        } else {
            let owed = &mut self.threads[thread as usize].owed;
            *owed = owed.saturating_add(took);
        }
        Ok(())
    }

    fn forget_fork(&mut self, thread: u32, kind: Kind) {
        if kind == Kind::Fork {
            self.forking.retain(|(parent, _)| *parent != thread);
        }
    }

    /// Skips a call, or returns why it cannot be skipped.
    fn skip(&mut self, name: &[u8], what: &str, known: bool, help: &'static str) -> Result<(), Fault> {
        let name = String::from_utf8_lossy(name).into_owned();
        if self.settings.skip {
            *self.notes.unknown.entry(name).or_default() += 1;
            return Ok(());
        }
        let what = what.replace("{}", &name);
        // The list of all Linux calls is too long.
        let word = (!known).then(|| Unknown {
            allowed: vec!["a call that Linux 6.1 has on x86-64 or arm64"],
            nearest: nearest(&name, line::call_names()),
        });
        Err(Fault { what, at: 0, help, word })
    }

    fn unknown(&mut self, name: &[u8]) -> Result<(), Fault> {
        let help = "unknown=skip skips and counts unknown calls; if it moves data of files, the replay lacks that data";
        self.skip(name, "unknown system call `{}`", false, help)
    }

    fn unsupported(&mut self, name: &[u8]) -> Result<(), Fault> {
        let help = "unknown=skip skips and counts such calls; the replay then lacks what they read and write";
        let what = "system call `{}` cannot be replayed: what it does to files is not in its arguments";
        self.skip(name, what, true, help)
    }

    /// Handles a call that has returned. Returns none if it computed, false if it is replayed, true if it slept.
    fn replay(
        &mut self,
        thread: u32,
        kind: Kind,
        call: &Syscall<'_>,
        result: i64,
    ) -> Result<Option<bool>, Fault> {
        let table = self.threads[thread as usize].table;
        match kind {
            Kind::Plain => return Ok(None),
            Kind::Sleeps => return Ok(Some(true)),
            Kind::Metadata => {
                self.notes.metadata += 1;
                return Ok(None);
            }
            Kind::Unsupported => {
                self.unsupported(call.name)?;
                return Ok(None);
            }
            // The previous holder of its number was closed without a call.
            Kind::OtherDescriptor => {
                if let Ok(number) = u32::try_from(result) {
                    self.descriptors.close(table, number, &mut self.closed);
                    self.close_files(thread);
                }
                return Ok(None);
            }
            Kind::Fork => {
                let pid = result as u32;
                self.forking.retain(|(parent, _)| *parent != thread);
                if result > 0 && !self.by_pid.contains_key(&pid) {
                    let shared = memchr::memmem::find(call.text, b"CLONE_FILES").is_some();
                    let now = self.threads[thread as usize].last;
                    self.fork(thread, pid, shared, now);
                }
                return Ok(None);
            }
            Kind::Execute => {
                let own = self.descriptors.execute(table, &mut self.closed);
                self.threads[thread as usize].table = own;
                self.close_files(thread);
                return Ok(None);
            }
            Kind::WaitChild => {
                let child = self.threads.iter().rposition(|of| i64::from(of.pid) == result && result > 0);
                let Some(child) = child.filter(|child| self.threads[*child].ended) else {
                    return Ok(Some(true));
                };
                self.compute(thread);
                self.out.push((thread, Op::Join(child as u32)));
                return Ok(Some(false));
            }
            _ => {}
        }
        let done = self.file_call(Made { thread, table, kind, call, result })?;
        if done == Some(true) {
            self.notes.other += 1;
        }
        Ok(done)
    }

    /// Opens a file and gives it a descriptor.
    pub(super) fn open(
        &mut self,
        thread: u32,
        (table, number): (u32, u32),
        file: u32,
        flags: OpenFlags,
        (append, closes): (bool, bool),
    ) -> Result<(), Fault> {
        if self.descriptors.open_files() >= MOST_OPEN {
            let what = format!("more than {MOST_OPEN} files are open at a time");
            return Err(Fault { what, at: 0, help: "a replay supports no more", word: None });
        }
        let name = self.descriptors.name();
        self.files.open(file);
        let target = Target::File { file, name, position: 0, append };
        self.descriptors.open(table, number, target, closes, &mut self.closed);
        self.close_files(thread);
        self.emit(thread, name, Call::Open { fd: Fd(0), file: FileId(file), flags });
        if flags.truncate {
            self.files.cut(file, 0);
        }
        Ok(())
    }

    /// Opens a file for a single call.
    pub(super) fn briefly(&mut self, thread: u32, file: u32, call: Call) {
        let (name, fd) = (self.descriptors.name(), Fd(0));
        self.emit(thread, name, Call::Open { fd, file: FileId(file), flags: OpenFlags::default() });
        self.emit(thread, name, call);
        self.emit(thread, name, Call::Close { fd });
    }

    /// Replaces a file by a different one: ext4 begins to write the new one (`ext4_rename`, auto_da_alloc), and the
    /// old one is gone.
    pub(super) fn replace(&mut self, thread: u32, old: &str, new: &str) {
        if let (Some(gone), Some(file)) = self.files.rename(old, new) {
            let how = SyncRange { write: true, ..SyncRange::default() };
            self.briefly(thread, file, Call::SyncRange { fd: Fd(0), offset: 0, bytes: 0, how });
            self.emit(thread, NO_NAME, Call::Unlink { file: FileId(gone) });
        }
    }
}
