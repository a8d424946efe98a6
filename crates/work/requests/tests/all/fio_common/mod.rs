//! A closed loop of constant latency that runs fio jobs and records what they issue.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::result_large_err, reason = "diagnostics are made once")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use config::Diagnostic;
use engine::Time;
use proto::{IoOp, IoRequest};
use requests::fio::{Jobs, parse_inline, parse_text};
use requests::synth::{Generator, Job, Poll};

/// A request and its issue time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Issued {
    pub(crate) now: Time,
    pub(crate) request: IoRequest,
    /// Requests in flight, this one included.
    pub(crate) outstanding: u32,
}

/// Requests of one clone of a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) job: Job,
    pub(crate) issued: Vec<Issued>,
    pub(crate) started: Time,
    pub(crate) ramp_until: Time,
    /// Last completion.
    pub(crate) ended: Time,
}

impl Run {
    pub(crate) fn requests(&self) -> impl Iterator<Item = IoRequest> + '_ {
        self.issued.iter().map(|i| i.request)
    }
    /// Returns the requests with an address.
    pub(crate) fn data(&self) -> impl Iterator<Item = IoRequest> + '_ {
        self.requests().filter(|r| r.op != IoOp::Flush)
    }
    pub(crate) fn count(&self, op: IoOp) -> usize {
        self.requests().filter(|r| r.op == op).count()
    }
    pub(crate) fn bytes(&self) -> u64 {
        self.requests().map(|r| r.bytes).sum()
    }
    pub(crate) fn offsets(&self) -> Vec<u64> {
        self.data().map(|r| r.offset).collect()
    }
    pub(crate) fn depth(&self) -> u32 {
        self.issued.iter().map(|i| i.outstanding).max().unwrap_or(0)
    }
}

pub(crate) const CAPACITY: u64 = 64 << 20;
pub(crate) const LATENCY: Time = Time::from_us(10);

/// Runs one clone from time zero; panics if it stalls.
pub(crate) fn drive(job: Job, seed: u64, latency: impl Fn(&IoRequest) -> Time) -> Run {
    drive_until(job, seed, latency, usize::MAX)
}

/// Returns the first requests of one clone.
pub(crate) fn drive_some(job: Job, seed: u64, most: usize) -> Run {
    drive_until(job, seed, |_| LATENCY, most)
}

fn drive_until(job: Job, seed: u64, latency: impl Fn(&IoRequest) -> Time, most: usize) -> Run {
    let mut generator = Generator::new(job.clone(), seed);
    assert_eq!(generator.poll(Time::ZERO, 0), Poll::Blocked, "not started yet");
    generator.start(Time::ZERO, Time::ZERO);
    let mut run = Run {
        job,
        issued: Vec::new(),
        started: generator.started(),
        ramp_until: generator.ramp_until(),
        ended: Time::ZERO,
    };
    let mut now = Time::ZERO;
    let mut flying: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    loop {
        let wake = match generator.poll(now, flying.len() as u32) {
            Poll::Issue(request) => {
                assert!(request.at <= now, "issued before it was due");
                flying.push(Reverse((now + latency(&request), run.issued.len())));
                run.issued.push(Issued { now, request, outstanding: flying.len() as u32 });
                assert!(run.issued.len() < 10_000_000, "endless");
                if run.issued.len() == most {
                    break;
                }
                continue;
            }
            Poll::At(time) => {
                assert!(time > now, "told to wait for the past");
                Some(time)
            }
            Poll::Blocked => {
                assert!(!flying.is_empty(), "blocked with nothing in flight");
                None
            }
            Poll::Done if flying.is_empty() => break,
            Poll::Done => None,
        };
        let next = flying.peek().map(|Reverse((time, _))| *time);
        match (wake, next) {
            (Some(wake), Some(next)) if wake < next => now = wake,
            (Some(wake), None) => now = wake,
            _ => {
                if let Some(Reverse((time, index))) = flying.pop() {
                    now = time;
                    run.ended = time;
                    generator.completed(run.issued[index].request.op);
                }
            }
        }
    }
    run
}

/// Runs the clones of every group of a workload, each separately from time zero.
pub(crate) fn run_jobs(jobs: &Jobs, capacity: u64) -> Result<Vec<Vec<Run>>, Diagnostic> {
    let one = |job: Job| drive(job, 1, |_| LATENCY);
    Ok(jobs.resolve(capacity)?.into_iter().map(|group| group.jobs.into_iter().map(one).collect()).collect())
}

/// Runs the first clone of an inline job.
pub(crate) fn run(text: &str) -> Run {
    let jobs = parse_inline(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    run_jobs(&jobs, CAPACITY).unwrap_or_else(|error| panic!("{text}: {error}")).remove(0).remove(0)
}

/// Runs a job file.
pub(crate) fn run_file(text: &str) -> Vec<Vec<Run>> {
    let jobs = parse_text("test.fio", text).unwrap_or_else(|error| panic!("{text}: {error}"));
    run_jobs(&jobs, CAPACITY).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns chi-square of counts against expectations.
pub(crate) fn chi_square(counts: &[f64], expected: &[f64]) -> f64 {
    counts.iter().zip(expected).map(|(n, e)| (n - e).powi(2) / e).sum()
}
