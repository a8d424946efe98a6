//! A service as a program: workers that take requests, threads that help them, and the measurements of both.

use engine::Time;
use proto::file::{Call, CallError, FileSpec, Next, Program};

use super::HostProgram;
use super::demand::{Arrival, Arrivals};
use stats::{OpStats, Series};

/// Next step of a worker for its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Step that takes time.
    Next(Next),
    /// The last byte of the answer is sent.
    Answered {
        /// Kind of the request.
        kind: usize,
        /// Bytes fetched or uploaded.
        bytes: u64,
    },
    /// End: the worker is free.
    Done,
}

/// Behaviour of requests.
pub(crate) trait Serve {
    /// Returns the names of its kinds of requests.
    fn kinds(&self) -> &'static [&'static str];
    /// Returns the files.
    fn files(&self) -> Vec<FileSpec>;
    /// Returns the calls before the first request.
    fn setup(&self) -> Vec<Call>;
    /// Starts the next request on a worker; it is drawn now.
    fn begin(&mut self, worker: u32);
    /// Returns the worker's next step for its request.
    fn step(&mut self, worker: u32, now: Time) -> Step;
    /// Returns the number of threads that serve no requests; they come after the workers.
    fn helpers(&self) -> u32 {
        0
    }
    /// Returns the next step of a helper.
    fn help(&mut self, _helper: u32, _now: Time) -> Next {
        Next::End
    }
}

#[derive(Clone, Copy)]
enum Worker {
    Free,
    /// Sleeps until its request arrives.
    Claimed(Arrival),
    /// Serves its request, since the given time.
    Serving(Arrival, Time),
}

/// A service that is running.
pub(crate) struct Server<S> {
    name: String,
    service: S,
    arrivals: Arrivals,
    workers: Vec<Worker>,
    served: Served,
    /// Calls before the first request, in reverse order.
    setup: Vec<Call>,
    /// Number of threads that know that the setup is done, including the first; none before that.
    told: Option<u32>,
    /// Number of requests to answer in total, if limited, and number answered.
    requests: (u64, u64),
}

impl<S: Serve> Server<S> {
    /// Creates a server with `workers` workers; `requests` is the total to answer, zero for no limit.
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

    /// Lets the first thread make the calls before the first request and then wake the threads that started too
    /// early.
    fn set_up(&mut self, thread: u32) -> Option<Next> {
        if thread != 0 {
            return self.told.is_none().then_some(Next::Wait);
        }
        if let Some(call) = self.setup.pop() {
            return Some(Next::Call(call));
        }
        // Threads that start from now on do not sleep, so they need not be woken.
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

// Measurements of a program.

/// Initial length of a bin of the series.
const BIN: Time = Time::from_ms(100);

/// Maximum number of bins before pairs of them are merged: 27 minutes.
const BINS: usize = 1 << 14;

/// Measurements of one kind of request.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Name of the kind: `fetch`.
    pub name: &'static str,
    /// Number, bytes, and response times: submission is the time before a worker took the request, device the time
    /// after it.
    pub ops: OpStats,
}

/// Counts of a program's requests to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// Number of system calls.
    pub calls: u64,
    /// Bytes requested to be read.
    pub read_bytes: u64,
    /// Bytes requested to be written.
    pub written_bytes: u64,
    /// Number of `fsync` and `fdatasync` calls.
    pub syncs: u64,
    /// Number of failed calls.
    pub failed: Failed,
}

/// Numbers of failed system calls, by error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failed {
    /// Calls that failed with `ENOSPC`.
    pub no_space: u64,
    /// Calls that failed with `EIO`.
    pub io: u64,
    /// Calls that failed with `EROFS`.
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

    /// Returns the requests by kind.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Returns the requests of all kinds by the time at which they were answered, in bins of 100 ms.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Returns the counts of requests to the kernel.
    pub fn asked(&self) -> Asked {
        self.asked
    }

    /// Returns the time of the last reset.
    pub fn since(&self) -> Time {
        self.since
    }

    /// Returns the number of requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.ops.requests).sum()
    }

    /// Returns the largest mean response time of a bin, in nanoseconds; none if nothing was answered.
    pub fn worst_bin_ns(&self) -> Option<f64> {
        self.series.windows().filter_map(|bin| bin.latency_ns_mean).max_by(f64::total_cmp)
    }

    /// Counts a request that came at `arrived`, was taken by a worker at `taken`, and is answered now.
    pub(crate) fn answered(&mut self, kind: usize, bytes: u64, arrived: Time, taken: Time, now: Time) {
        let (latency, waited) = (now.since(arrived), taken.since(arrived));
        self.kinds[kind].ops.record(bytes, waited, latency - waited, latency);
        self.series.record(now, bytes, latency);
    }

    /// Counts a system call.
    pub(crate) fn ask(&mut self, call: &Call) {
        self.asked.calls += 1;
        match *call {
            Call::Read { bytes, .. } => self.asked.read_bytes += bytes,
            Call::Write { bytes, .. } => self.asked.written_bytes += bytes,
            Call::Sync { .. } => self.asked.syncs += 1,
            _ => {}
        }
    }

    /// Counts the failure of the last system call.
    pub(crate) fn fail(&mut self, error: CallError) {
        let failed = &mut self.asked.failed;
        *match error {
            CallError::NoSpace => &mut failed.no_space,
            CallError::Io => &mut failed.io,
            CallError::ReadOnly => &mut failed.read_only,
        } += 1;
    }

    /// Clears all measurements.
    pub(crate) fn reset(&mut self, now: Time) {
        self.kinds.iter_mut().for_each(|kind| kind.ops = OpStats::default());
        self.series.reset(now);
        self.asked = Asked::default();
        self.since = now;
    }
}
