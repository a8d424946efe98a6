//! fio jobs as a source: groups one after another, the jobs of a group side by side.

use config::Diagnostic;
use kernel::Time;
use proto::IoRequest;
use std::collections::VecDeque;
use workload::fio::{Group, Jobs};
use workload::inject::{Next, Source};
use workload::synth::{Generator, Poll};

/// One job under way.
struct Running {
    generator: Generator,
    outstanding: u32,
    wait: Wait,
}

/// What a job waits for before it is asked again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Nothing,
    Until(Time),
    Completion,
    Ended,
}

/// The jobs of one workload.
pub struct FioSource {
    names: Vec<String>,
    /// Which of them have a rate of their own.
    paced: Vec<bool>,
    groups: VecDeque<Group>,
    running: Vec<Running>,
    /// Flow number of the first job of the running group.
    first_flow: u16,
    /// Job to ask first, so that no job starves.
    turn: usize,
    seed: u64,
    /// When it was asked last.
    now: Time,
}

impl FioSource {
    /// A source over jobs that are settled against a device of `capacity` bytes.
    ///
    /// # Errors
    /// A job that does not fit the device.
    pub fn new(jobs: &Jobs, capacity: u64, seed: u64) -> Result<FioSource, Diagnostic> {
        let groups: VecDeque<Group> = jobs.resolve(capacity)?.into();
        let all = || groups.iter().flat_map(|group| &group.jobs);
        let names = all().map(|job| job.name.clone()).collect();
        let paced = all().map(|job| job.rate.iter().any(Option::is_some)).collect();
        Ok(FioSource {
            names,
            paced,
            groups,
            running: Vec::new(),
            first_flow: 0,
            turn: 0,
            seed,
            now: Time::ZERO,
        })
    }

    /// When results begin to count: the longest ramp of the first group.
    pub fn ramp(&self) -> Time {
        self.groups
            .front()
            .map_or(Time::ZERO, |g| g.jobs.iter().map(|job| job.ramp).max().unwrap_or_default())
    }

    /// Starts the next group once the present one has ended. False if there is none.
    fn next_group(&mut self, now: Time) -> bool {
        self.first_flow += self.running.len() as u16;
        let Some(group) = self.groups.pop_front() else {
            self.running.clear();
            return false;
        };
        let seed = self.seed;
        let start = |job| {
            let mut generator = Generator::new(job, seed);
            generator.start(Time::ZERO, now);
            Running { generator, outstanding: 0, wait: Wait::Nothing }
        };
        self.running = group.jobs.into_iter().map(start).collect();
        self.turn = 0;
        true
    }

    /// Asks the jobs in turn.
    fn ask(&mut self, now: Time) -> Next {
        let count = self.running.len();
        let mut earliest: Option<Time> = None;
        let mut ended = 0;
        for n in 0..count {
            let at = (self.turn + n) % count;
            let job = &mut self.running[at];
            if let Wait::Until(time) = job.wait
                && time <= now
            {
                job.wait = Wait::Nothing;
            }
            if job.wait == Wait::Nothing {
                match job.generator.poll(now, job.outstanding) {
                    Poll::Issue(request) => {
                        job.outstanding += 1;
                        self.turn = at;
                        return Next::Issue(request);
                    }
                    Poll::At(time) => job.wait = Wait::Until(time),
                    Poll::Blocked => job.wait = Wait::Completion,
                    Poll::Done => job.wait = Wait::Ended,
                }
            }
            match job.wait {
                Wait::Until(time) => earliest = Some(earliest.map_or(time, |e| e.min(time))),
                Wait::Ended if job.outstanding == 0 => ended += 1,
                _ => {}
            }
        }
        match earliest {
            _ if ended == count => Next::Done,
            Some(time) => Next::At(time),
            None => Next::Blocked,
        }
    }
}

impl Source for FioSource {
    #[inline]
    fn poll(&mut self, now: Time, _: u32) -> Result<Next, Diagnostic> {
        self.now = now;
        // The one job of many a workload can issue, or must wait for a completion.
        if let [job] = &mut self.running[..] {
            match job.generator.poll(now, job.outstanding) {
                Poll::Issue(request) => {
                    job.outstanding += 1;
                    return Ok(Next::Issue(request));
                }
                Poll::At(time) => return Ok(Next::At(time)),
                Poll::Blocked => return Ok(Next::Blocked),
                Poll::Done => {}
            }
        }
        loop {
            if self.running.is_empty() && !self.next_group(now) {
                return Ok(Next::Done);
            }
            match self.ask(now) {
                Next::Done if !self.next_group(now) => return Ok(Next::Done),
                Next::Done => {}
                next => return Ok(next),
            }
        }
    }

    fn completed(&mut self, _: Time, request: &IoRequest) {
        let at = usize::from(request.flow - self.first_flow);
        let job = &mut self.running[at];
        job.outstanding -= 1;
        job.generator.completed(request.op);
        if job.wait == Wait::Completion || matches!(job.wait, Wait::Until(_)) {
            job.wait = Wait::Nothing;
        }
        self.turn = at;
    }

    fn flows(&self) -> Vec<String> {
        self.names.clone()
    }

    fn is_open(&self, flow: u16) -> bool {
        self.paced[usize::from(flow)]
    }

    /// Every job counts the same: how long one takes is not known before it has ended.
    fn progress(&self) -> Option<f64> {
        let under_way: f64 = self.running.iter().map(|job| job.generator.share(self.now)).sum();
        let all = self.names.len().max(1) as f64;
        Some(((f64::from(self.first_flow) + under_way) / all).min(1.0))
    }
}
