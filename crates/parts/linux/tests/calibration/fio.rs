//! The part of fio that the jobs use: `psync` calls, and `libaio` as several threads with one call each.

use super::run::Job;
use engine::{Rng, Time};
use proto::file::{Call, Fd, FileId, FileSpec, Next, OpenFlags, Program};

/// Files on the file system before a job, with their blocks.
const THERE: [(&str, u64); 2] = [("fit", 256 << 20), ("large", 1280 << 20)];
/// Block device, for jobs that use it directly.
const DEVICE: (&str, u64) = ("device", 1 << 30);

/// Options of a fio job, and its progress.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) name: &'static str,
    file: &'static str,
    random: bool,
    /// Percentage of calls that read.
    reads: u64,
    pub(crate) direct: bool,
    piece: u64,
    size: u64,
    fsync: u64,
    time_based: bool,
    runtime: Option<Time>,
    /// Rate in bytes a second.
    rate: Option<u64>,
    depth: u32,
    /// True for a job that begins when the jobs before it have ended.
    stonewall: bool,
    rng: Rng,
    /// Bytes requested, and writes since the last `fsync`.
    asked: u64,
    unsynced: u64,
    threads: u32,
    pub(crate) begun: Option<Time>,
    pub(crate) ended: Time,
    pub(crate) read: Side,
    pub(crate) write: Side,
    pub(crate) sync: Side,
}

/// Calls of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    pub(crate) bytes: u64,
    pub(crate) times: Vec<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Nothing,
    Opened,
    Read,
    Write,
    Sync,
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    work: usize,
    did: Did,
    ready: bool,
    since: Time,
}

/// All jobs of fio.
#[derive(Clone, Debug)]
pub(crate) struct Fio {
    pub(crate) works: Vec<Work>,
    threads: Vec<Thread>,
    files: Vec<FileSpec>,
    /// Running jobs, from one stonewall to the next, and threads still to be woken for them.
    group: (usize, usize),
    to_wake: Vec<u32>,
}

fn bytes(text: &str) -> u64 {
    let (digits, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let shift = match unit.to_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        other => panic!("unknown unit of bytes: {other}"),
    };
    digits.parse::<u64>().expect("a number") << shift
}

impl Work {
    fn new() -> Work {
        Work {
            name: "",
            file: "",
            random: false,
            reads: 0,
            direct: false,
            piece: 4096,
            size: 0,
            fsync: 0,
            time_based: false,
            runtime: None,
            rate: None,
            depth: 1,
            stonewall: false,
            rng: Rng::stream(1, "fio"),
            asked: 0,
            unsynced: 0,
            threads: 0,
            begun: None,
            ended: Time::ZERO,
            read: Side::default(),
            write: Side::default(),
            sync: Side::default(),
        }
    }

    fn option(&mut self, option: &'static str) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match key {
            "filename" => self.file = value,
            "rw" => {
                self.random = value.starts_with("rand");
                self.reads = if value.ends_with("read") { 100 } else { 0 };
            }
            "rwmixread" => self.reads = value.parse().expect("a share"),
            "bs" => self.piece = bytes(value),
            "size" => self.size = bytes(value),
            "fsync" => self.fsync = bytes(value),
            "time_based" => self.time_based = true,
            "runtime" => self.runtime = Some(Time::from_s(bytes(value))),
            "rate" => self.rate = Some(bytes(value)),
            "iodepth" => self.depth = bytes(value) as u32,
            "direct" => self.direct = true,
            "stonewall" => self.stonewall = true,
            "ioengine" => {}
            other => panic!("unknown fio option: {other}"),
        }
    }

    fn is_over(&self, now: Time) -> bool {
        let timed = self.runtime.zip(self.begun).is_some_and(|(runtime, begun)| now >= begun + runtime);
        timed || !self.time_based && self.asked >= self.size
    }

    /// Returns the next call, and its kind.
    fn next(&mut self, fd: Fd) -> (Did, Call) {
        if self.fsync > 0 && self.unsynced == self.fsync {
            self.unsynced = 0;
            return (Did::Sync, Call::Sync { fd, data_only: false });
        }
        let pieces = self.size / self.piece;
        let piece = if self.random { self.rng.below(pieces) } else { self.asked / self.piece % pieces };
        self.asked += self.piece;
        let (offset, bytes) = (piece * self.piece, self.piece);
        if self.reads == 100 || self.reads > 0 && self.rng.below(100) < self.reads {
            return (Did::Read, Call::Read { fd, offset, bytes });
        }
        self.unsynced += 1;
        (Did::Write, Call::Write { fd, offset, bytes })
    }
}

impl Fio {
    pub(crate) fn new(job: &Job) -> Fio {
        let mut common = Work::new();
        let mut works: Vec<Work> = Vec::new();
        for option in job.fio() {
            match option.strip_prefix("name=") {
                Some(name) => {
                    let rng = Rng::stream(1, name);
                    works.push(Work { name, rng, ..common.clone() });
                }
                None => works.last_mut().unwrap_or(&mut common).option(option),
            }
        }
        let (mut files, mut threads) = (Vec::<FileSpec>::new(), Vec::new());
        let device = works.iter().any(|work| work.file == DEVICE.0).then_some(DEVICE);
        for (name, bytes) in THERE.into_iter().chain(device) {
            files.push(FileSpec { name: name.to_owned(), bytes: Some(bytes), drive: 0 });
        }
        for (number, work) in works.iter_mut().enumerate() {
            if !files.iter().any(|file| file.name == work.file) {
                files.push(FileSpec { name: work.file.to_owned(), bytes: None, drive: 0 });
            }
            work.threads = work.depth;
            let thread = Thread { work: number, did: Did::Nothing, ready: false, since: Time::ZERO };
            threads.extend((0..work.depth).map(|_| thread));
        }
        let mut fio = Fio { works, threads, files, group: (0, 0), to_wake: Vec::new() };
        fio.next_group();
        fio
    }

    /// Starts the jobs up to the next stonewall.
    fn next_group(&mut self) {
        let first = self.group.1;
        let rest = self.works.iter().skip(first + 1);
        let end = (first + 1 + rest.take_while(|work| !work.stonewall).count()).min(self.works.len());
        self.group = (first, end);
        let of_group = |thread: &Thread| (first..end).contains(&thread.work);
        let numbers = (0..).zip(&self.threads).filter(|(_, thread)| of_group(thread));
        self.to_wake = numbers.map(|(number, _)| number).collect();
    }

    /// Returns whether all jobs have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.works.iter().all(|work| work.threads == 0)
    }

    fn note(&mut self, thread: usize, now: Time) {
        let Thread { work, did, since, .. } = self.threads[thread];
        let work = &mut self.works[work];
        let side = match did {
            Did::Nothing | Did::Opened => return,
            Did::Read => &mut work.read,
            Did::Write => &mut work.write,
            Did::Sync => &mut work.sync,
        };
        side.times.push(now - since);
        side.bytes += if did == Did::Sync { 0 } else { work.piece };
        self.threads[thread].did = Did::Nothing;
    }

    fn end(&mut self, work: usize, now: Time) {
        let work = &mut self.works[work];
        work.threads -= 1;
        work.ended = now;
        let (first, end) = self.group;
        if self.works[first..end].iter().all(|work| work.threads == 0) && end < self.works.len() {
            self.next_group();
        }
    }
}

impl Program for Fio {
    fn name(&self) -> &str {
        "fio"
    }
    fn files(&self) -> Vec<FileSpec> {
        self.files.clone()
    }
    fn threads(&self) -> u32 {
        self.threads.len() as u32
    }
    fn next(&mut self, thread: u32, now: Time) -> Next {
        let at = thread as usize;
        self.note(at, now);
        let number = self.threads[at].work;
        if self.works[number].is_over(now) && self.threads[at].ready {
            // Only once: the others of the next group are woken before this thread ends.
            if self.threads[at].did != Did::Opened {
                self.threads[at].did = Did::Opened;
                self.end(number, now);
            }
            return self.to_wake.pop().map_or(Next::End, Next::Wake);
        }
        if !(self.group.0..self.group.1).contains(&number) {
            return Next::Wait;
        }
        self.to_wake.retain(|other| *other != thread);
        let (fd, work) = (Fd(thread as u16), &mut self.works[number]);
        let file = self.files.iter().position(|file| file.name == work.file).expect("its file");
        if !self.threads[at].ready {
            let is_new = self.files[file].bytes.is_none();
            if self.threads[at].did == Did::Nothing && self.threads[at].since == Time::ZERO {
                self.threads[at].since = now + Time::from_ns(1);
                let flags = OpenFlags { direct: work.direct, ..OpenFlags::default() };
                return Next::Call(Call::Open { fd, file: FileId(file as u32), flags });
            }
            self.threads[at].ready = true;
            if is_new {
                return Next::Call(Call::Truncate { fd, bytes: work.size });
            }
        }
        let begun = *work.begun.get_or_insert(now);
        if let Some(rate) = work.rate {
            let due = begun + Time::transfer(work.asked, rate);
            if due > now {
                return Next::Until(due);
            }
        }
        let (did, call) = work.next(fd);
        (self.threads[at].did, self.threads[at].since) = (did, now);
        Next::Call(call)
    }
}
