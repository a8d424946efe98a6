//! Request sources for the injector.

mod fio;

pub use fio::FioSource;

use config::Diagnostic;
use engine::{Flags, Time};
use proto::IoRequest;
use requests::inject::{Next, Recorded, Source};
use requests::trace::TraceReader;

// Recorded traces as sources.

/// Replay mode of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replay {
    /// Every request arrives at its own time. While its submission queue is full it waits; the backlog is the reader's
    /// position in the trace.
    Open,
    /// Requests are issued as fast as a queue depth allows; the trace's times are not used.
    Closed {
        /// Requests outstanding.
        depth: u32,
    },
}

/// Recorded trace.
pub struct TraceSource {
    name: String,
    reader: TraceReader,
    replay: Replay,
    /// Request, or fragment of one, read ahead, and whether more fragments follow it.
    ahead: Option<(IoRequest, bool)>,
    /// Arrival time of the request whose next fragment is to be issued.
    began: Option<Time>,
    ended: bool,
}

impl TraceSource {
    /// Creates a source that replays the requests of `reader`.
    pub fn new(name: String, reader: TraceReader, replay: Replay) -> TraceSource {
        TraceSource { name, reader, replay, ahead: None, began: None, ended: false }
    }
}

impl Source for TraceSource {
    fn poll(&mut self, now: Time, outstanding: u32) -> Result<Next, Diagnostic> {
        if self.ahead.is_none() && !self.ended {
            self.ahead = self.reader.next()?.map(|request| (request, self.reader.continues()));
            self.ended = self.ahead.is_none();
        }
        let Some((request, more)) = self.ahead else { return Ok(Next::Done) };
        let (at, limit) = match (self.began, self.replay) {
            // A fragment shares its request's place in the queue depth.
            (Some(at), _) => (at, u32::MAX),
            (None, Replay::Open) => (request.at, u32::MAX),
            (None, Replay::Closed { depth }) => (now, depth),
        };
        if at > now {
            return Ok(Next::At(at));
        }
        if outstanding >= limit {
            return Ok(Next::Blocked);
        }
        self.ahead = None;
        self.began = more.then_some(at);
        let request = IoRequest { at, ..request };
        Ok(if more { Next::Part(request) } else { Next::Issue(request) })
    }

    fn completed(&mut self, _: Time, _: &IoRequest) {}

    fn backlog(&self) -> u32 {
        1
    }

    fn flows(&self) -> Vec<String> {
        let names = self.reader.notes().flows.names();
        names.iter().map(|flow| format!("{}/{flow}", self.name)).collect()
    }

    fn is_open(&self, _: u16) -> bool {
        self.replay == Replay::Open
    }

    fn recorded(&self) -> Option<&Recorded> {
        Some(self.reader.recorded())
    }

    fn handed_out(&self) -> Option<u64> {
        self.reader.handed_out()
    }

    fn progress(&self) -> Option<f64> {
        self.reader.progress()
    }

    fn warnings(&self) -> Vec<String> {
        let notes = self.reader.notes();
        let read_as = format!("read as `{}`", notes.format);
        let said = std::iter::once(read_as).chain(notes.warnings());
        said.map(|warning| format!("{}: {warning}", self.name)).collect()
    }
}

// Turns among many jobs without a scan: which jobs may issue now, and when the others will.

/// Jobs in a ring. Each is ready, waits for a time, or waits to be woken.
#[derive(Debug)]
struct Turns {
    ready: Flags,
    /// Tournament tree: each node has the earliest time of the jobs below it, picoseconds, or the end of all time. The
    /// leaves, one for each job, begin at `leaves`; the root is 1.
    earliest: Vec<u64>,
    leaves: usize,
    /// Number of jobs that wait for a time, which may be the end of all time.
    timed: usize,
    is_timed: Flags,
}

impl Turns {
    /// Creates `jobs` jobs, all ready.
    fn new(jobs: usize) -> Turns {
        let leaves = jobs.next_power_of_two();
        let mut ready = Flags::new(jobs);
        (0..jobs).for_each(|job| ready.insert(job));
        Turns { ready, earliest: vec![u64::MAX; 2 * leaves], leaves, timed: 0, is_timed: Flags::new(jobs) }
    }

    /// First ready job, from `from` on.
    #[inline]
    fn next(&self, from: usize) -> Option<usize> {
        self.ready.next(from)
    }

    /// Marks a job as ready, whatever it waited for.
    #[inline]
    fn wake(&mut self, job: usize) {
        self.forget(job);
        self.ready.insert(job);
    }

    /// Makes a ready job wait until it is woken.
    #[inline]
    fn wait(&mut self, job: usize) {
        self.ready.remove(job);
    }

    /// Makes a ready job wait until it is woken, or for a time.
    #[inline]
    fn wait_until(&mut self, job: usize, time: Time) {
        self.ready.remove(job);
        self.is_timed.insert(job);
        self.timed += 1;
        self.set(job, time.ps());
    }

    /// Marks jobs as ready whose time has come.
    #[inline]
    fn advance(&mut self, now: Time) {
        while self.timed > 0 && self.earliest[1] <= now.ps() {
            let job = self.first();
            self.wake(job);
        }
    }

    /// Time at which the next waiting job becomes ready.
    fn earliest(&self) -> Option<Time> {
        (self.timed > 0).then(|| Time::from_ps(self.earliest[1]))
    }

    /// Job at the root of the tree.
    fn first(&self) -> usize {
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            at += usize::from(self.earliest[at] != self.earliest[at / 2]);
        }
        at - self.leaves
    }

    #[inline]
    fn forget(&mut self, job: usize) {
        if self.timed > 0 && self.is_timed.next(job) == Some(job) {
            self.is_timed.remove(job);
            self.timed -= 1;
            self.set(job, u64::MAX);
        }
    }

    fn set(&mut self, job: usize, time: u64) {
        let mut at = self.leaves + job;
        self.earliest[at] = time;
        while at > 1 {
            at /= 2;
            let least = self.earliest[2 * at].min(self.earliest[2 * at + 1]);
            if self.earliest[at] == least {
                break;
            }
            self.earliest[at] = least;
        }
    }
}
