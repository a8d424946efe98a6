//! A service as a program: workers that take requests, threads that help them, and the measures of both.

use engine::Time;
use proto::file::{Call, CallError, FileSpec, Next, Program};

use super::HostProgram;
use super::demand::{Arrival, Arrivals};
use stats::{OpStats, Series};

/// What a worker does next for its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Something that takes time.
    Next(Next),
    /// The last byte of the answer is sent.
    Answered {
        /// Which kind of request it was.
        kind: usize,
        /// Bytes that were asked for or brought.
        bytes: u64,
    },
    /// Nothing more: the worker is free.
    Done,
}

/// What requests do.
pub(crate) trait Serve {
    /// What its requests are called.
    fn kinds(&self) -> &'static [&'static str];
    /// Its files.
    fn files(&self) -> Vec<FileSpec>;
    /// Calls before the first request.
    fn setup(&self) -> Vec<Call>;
    /// A worker takes the next request, which is drawn now.
    fn begin(&mut self, worker: u32);
    /// What the worker does next for it.
    fn step(&mut self, worker: u32, now: Time) -> Step;
    /// Threads that serve no requests; they come after the workers.
    fn helpers(&self) -> u32 {
        0
    }
    /// What a helper does next.
    fn help(&mut self, _helper: u32, _now: Time) -> Next {
        Next::End
    }
}

#[derive(Clone, Copy)]
enum Worker {
    Free,
    /// Sleeps until its request comes.
    Claimed(Arrival),
    /// Serves it, since then.
    Serving(Arrival, Time),
}

/// A service that is running.
pub(crate) struct Server<S> {
    name: String,
    service: S,
    arrivals: Arrivals,
    workers: Vec<Worker>,
    served: Served,
    /// Calls before the first request, the first of them last.
    setup: Vec<Call>,
    /// Threads that were told that the setup is done, the first one included; none while it is not.
    told: Option<u32>,
    /// Requests to answer in all, if that is given, and those answered.
    requests: (u64, u64),
}

impl<S: Serve> Server<S> {
    /// `workers` of them; `requests` to answer in all, zero if it has no end.
    pub(crate) fn new(
        name: &str,
        service: S,
        (arrivals, workers): (Arrivals, u32),
        requests: u64,
    ) -> Server<S> {
        let mut setup = service.setup();
        setup.reverse();
        Server {
            name: name.to_owned(),
            arrivals,
            workers: vec![Worker::Free; workers as usize],
            served: Served::new(service.kinds()),
            setup,
            told: None,
            requests: (requests, 0),
            service,
        }
    }

    /// The first thread makes the calls before the first request, then wakes those that have come too early.
    fn set_up(&mut self, thread: u32) -> Option<Next> {
        if thread != 0 {
            return self.told.is_none().then_some(Next::Wait);
        }
        if let Some(call) = self.setup.pop() {
            return Some(Next::Call(call));
        }
        // Whoever is asked from now on does not sleep, so that it need not be woken.
        let told = self.told.get_or_insert(1);
        if *told < self.workers.len() as u32 + self.service.helpers() {
            *told += 1;
            return Some(Next::Wake(*told - 1));
        }
        None
    }

    fn serve(&mut self, at: u32, now: Time) -> Next {
        loop {
            match self.workers[at as usize] {
                Worker::Free => {
                    let Some(arrival) = self.arrivals.claim() else {
                        return Next::End;
                    };
                    self.service.begin(at);
                    self.workers[at as usize] = Worker::Claimed(arrival);
                    if arrival.at > now {
                        return Next::Until(arrival.at);
                    }
                }
                Worker::Claimed(arrival) if arrival.at > now => return Next::Until(arrival.at),
                Worker::Claimed(arrival) => self.workers[at as usize] = Worker::Serving(arrival, now),
                Worker::Serving(arrival, taken) => match self.service.step(at, now) {
                    Step::Next(next) => return next,
                    Step::Answered { kind, bytes } => {
                        self.served.answered(kind, bytes, arrival.at, taken, now);
                        self.requests.1 += 1;
                        self.arrivals.answered(arrival, now);
                    }
                    Step::Done => self.workers[at as usize] = Worker::Free,
                },
            }
        }
    }
}

impl<S: Serve> Program for Server<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn files(&self) -> Vec<FileSpec> {
        self.service.files()
    }

    fn threads(&self) -> u32 {
        self.workers.len() as u32 + self.service.helpers()
    }

    fn next(&mut self, thread: u32, now: Time) -> Next {
        let next = match self.set_up(thread) {
            Some(next) => next,
            None => match thread.checked_sub(self.workers.len() as u32) {
                Some(helper) => self.service.help(helper, now),
                None => self.serve(thread, now),
            },
        };
        if let Next::Call(call) = &next {
            self.served.ask(call);
        }
        next
    }

    fn failed(&mut self, _: u32, error: CallError) {
        self.served.fail(error);
    }
}

impl<S: Serve> HostProgram for Server<S> {
    fn reset_stats(&mut self, now: Time) {
        self.served.reset(now);
    }

    fn measured(&self) -> &Served {
        &self.served
    }

    fn progress(&self) -> Option<f64> {
        let (all, done) = self.requests;
        (all > 0).then(|| done as f64 / all as f64)
    }
}

// The measures that a program takes of itself.

/// Length of a bin of the series, to begin with.
const BIN: Time = Time::from_ms(100);

/// Bins before two of them are joined: 27 minutes.
const BINS: usize = 1 << 14;

/// Requests of one kind.
#[derive(Clone, Debug)]
pub struct Kind {
    /// What they are called: `fetch`.
    pub name: &'static str,
    /// Their number, their bytes, and their response times: submission is the time before a worker took the request, device
    /// the time after it.
    pub ops: OpStats,
}

/// What a program has asked of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// System calls.
    pub calls: u64,
    /// Bytes that were to be read.
    pub read_bytes: u64,
    /// Bytes that were to be written.
    pub written_bytes: u64,
    /// `fsync` and `fdatasync`.
    pub syncs: u64,
    /// Calls that have failed.
    pub failed: Failed,
}

/// System calls that have failed, by error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failed {
    /// `ENOSPC`.
    pub no_space: u64,
    /// `EIO`.
    pub io: u64,
    /// `EROFS`.
    pub read_only: u64,
}

/// Requests and system calls of a program since its counts were reset.
#[derive(Clone, Debug)]
pub struct Served {
    kinds: Vec<Kind>,
    series: Series,
    asked: Asked,
    since: Time,
}

impl Served {
    pub(crate) fn new(kinds: &[&'static str]) -> Served {
        Served {
            kinds: kinds.iter().map(|name| Kind { name, ops: OpStats::default() }).collect(),
            series: Series::new(Time::ZERO, BIN, BINS),
            asked: Asked::default(),
            since: Time::ZERO,
        }
    }

    /// Requests by kind.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Requests of all kinds by the time at which they were answered, in bins of 100 ms.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// What was asked of the kernel.
    pub fn asked(&self) -> Asked {
        self.asked
    }

    /// Since when.
    pub fn since(&self) -> Time {
        self.since
    }

    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.ops.requests).sum()
    }

    /// The largest of the bins' mean response times, in nanoseconds; none if nothing was answered.
    pub fn worst_bin_ns(&self) -> Option<f64> {
        self.series.windows().filter_map(|bin| bin.latency_ns_mean).max_by(f64::total_cmp)
    }

    /// A request that came at `arrived`, was taken by a worker at `taken`, and is answered now.
    pub(crate) fn answered(&mut self, kind: usize, bytes: u64, arrived: Time, taken: Time, now: Time) {
        let (latency, waited) = (now.since(arrived), taken.since(arrived));
        self.kinds[kind].ops.record(bytes, waited, latency - waited, latency);
        self.series.record(now, bytes, latency);
    }

    /// A system call is made.
    pub(crate) fn ask(&mut self, call: &Call) {
        self.asked.calls += 1;
        match *call {
            Call::Read { bytes, .. } => self.asked.read_bytes += bytes,
            Call::Write { bytes, .. } => self.asked.written_bytes += bytes,
            Call::Sync { .. } => self.asked.syncs += 1,
            _ => {}
        }
    }

    /// The last one has failed.
    pub(crate) fn fail(&mut self, error: CallError) {
        let failed = &mut self.asked.failed;
        *match error {
            CallError::NoSpace => &mut failed.no_space,
            CallError::Io => &mut failed.io,
            CallError::ReadOnly => &mut failed.read_only,
        } += 1;
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self, now: Time) {
        self.kinds.iter_mut().for_each(|kind| kind.ops = OpStats::default());
        self.series.reset(now);
        self.asked = Asked::default();
        self.since = now;
    }
}
