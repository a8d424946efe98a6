//! fio jobs as a source: groups one after another, the jobs of a group side by side.

use super::Turns;
use config::Diagnostic;
use engine::Time;
use proto::file::{Advice, Way};
use proto::{Batches, IoRequest};
use requests::fio::{Behind, Group, Guards, JobSpec, Jobs, LaidOut, Layout};
use requests::inject::{Next, Source};
use requests::synth::{Generator, Poll};
use std::collections::VecDeque;

/// Job under way.
struct Running {
    generator: Generator,
    outstanding: u32,
    ended: bool,
}

/// Jobs of one workload.
pub struct FioSource {
    names: Vec<String>,
    /// Jobs with a rate of their own.
    paced: Vec<bool>,
    /// Batches of each job that has some.
    batches: Vec<Option<Batches>>,
    /// Path and advice of each flow to a host's file; `None` if the jobs go to a drive.
    ways: Option<Vec<(Way, Advice)>>,
    warnings: Vec<String>,
    files: Vec<LaidOut>,
    guards: Vec<Option<Guards>>,
    /// Behind a stripe: the drives, the flows that go over a list, and the rest of a request that is several commands.
    behind: Option<Behind>,
    listed: Vec<bool>,
    rest: Option<IoRequest>,
    groups: VecDeque<Group>,
    running: Vec<Running>,
    /// Jobs to ask, and their times.
    turns: Turns,
    /// Number of jobs that have ended and have nothing outstanding.
    over: usize,
    /// Flow number of the first job of the running group.
    first_flow: u16,
    /// Job to ask first, to keep every job from starving.
    turn: usize,
    seed: u64,
    /// Time of the last poll.
    now: Time,
}

impl FioSource {
    /// Creates a source over jobs that are settled against a device of `capacity` bytes, on which their files are laid
    /// out.
    ///
    /// # Errors
    /// A job that does not fit the device.
    pub fn new(jobs: &Jobs, capacity: u64, seed: u64) -> Result<FioSource, Diagnostic> {
        FioSource::on(&Layout::of([jobs], capacity)?, jobs, capacity, seed)
    }

    /// Creates a source on a device on which the files of several workloads are laid out.
    ///
    /// # Errors
    /// A job that does not fit the device.
    pub fn on(layout: &Layout, jobs: &Jobs, capacity: u64, seed: u64) -> Result<FioSource, Diagnostic> {
        let groups: VecDeque<Group> = jobs.resolve_on(layout, capacity)?.into();
        let all = || groups.iter().flat_map(|group| &group.jobs);
        let names = all().map(|job| job.name.clone()).collect();
        let paced = all().map(|job| job.rate.iter().any(Option::is_some)).collect();
        let batches = all().map(|job| job.batches).collect();
        let mut warnings: Vec<String> = Vec::new();
        for warning in all().flat_map(|job| &job.warnings) {
            // Clones of a job give the same warnings.
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        Ok(FioSource {
            names,
            paced,
            batches,
            ways: None,
            warnings,
            files: layout.laid_out(),
            guards: jobs
                .jobs
                .iter()
                .flat_map(|job| std::iter::repeat_n(job.guards(), usize::from(job.numjobs)))
                .collect(),
            behind: layout.behind(),
            listed: listed(jobs),
            rest: None,
            groups,
            running: Vec::new(),
            turns: Turns::new(0),
            over: 0,
            first_flow: 0,
            turn: 0,
            seed,
            now: Time::ZERO,
        })
    }

    /// Sends the flows to a host's file, each by its own path.
    #[must_use]
    pub fn to_file(self, ways: Option<Vec<(Way, Advice)>>) -> FioSource {
        FioSource { ways, ..self }
    }

    /// Warnings about settings that are probably not meant on this device.
    pub fn doubts(&self) -> &[String] {
        &self.warnings
    }

    /// Time at which results begin to count: the longest ramp of the first group.
    pub fn ramp(&self) -> Time {
        self.groups
            .front()
            .map_or(Time::ZERO, |g| g.jobs.iter().map(|job| job.ramp).max().unwrap_or_default())
    }

    /// Starts the next group once the present one has ended. Returns false if none is left.
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
            Running { generator, outstanding: 0, ended: false }
        };
        self.running = group.jobs.into_iter().map(start).collect();
        self.turns = Turns::new(self.running.len());
        self.over = 0;
        self.turn = 0;
        true
    }

    /// Asks the jobs that may have something to issue, in turn.
    fn ask(&mut self, now: Time) -> Next {
        self.turns.advance(now);
        let (mut from, mut wrapped) = (self.turn, false);
        loop {
            let Some(at) = self.turns.next(from) else {
                if wrapped {
                    break;
                }
                (from, wrapped) = (0, true);
                continue;
            };
            let job = &mut self.running[at];
            match job.generator.poll(now, job.outstanding) {
                Poll::Issue(request) => {
                    job.outstanding += 1;
                    self.turn = at;
                    return Next::Issue(request);
                }
                Poll::At(time) => self.turns.wait_until(at, time),
                Poll::Blocked => self.turns.wait(at),
                Poll::Done => {
                    self.turns.wait(at);
                    job.ended = true;
                    self.over += usize::from(job.outstanding == 0);
                }
            }
            from = at + 1;
        }
        match self.turns.earliest() {
            _ if self.over == self.running.len() => Next::Done,
            Some(time) => Next::At(time),
            None => Next::Blocked,
        }
    }
}

/// Flows that go over a list of drives.
fn listed(jobs: &Jobs) -> Vec<bool> {
    let of = |job: &JobSpec| std::iter::repeat_n(job.drives().is_some(), job.numjobs.into());
    jobs.jobs.iter().flat_map(of).collect()
}

impl FioSource {
    /// Next command of a request whose address is one of the drives behind a stripe.
    #[cold]
    fn command(&mut self, request: IoRequest) -> Next {
        let Some(behind) = self.behind.filter(|_| request.bytes > 0) else { return Next::Issue(request) };
        let (offset, room) = behind.place(request.offset);
        let bytes = request.bytes.min(room);
        let left = IoRequest { offset: request.offset + bytes, bytes: request.bytes - bytes, ..request };
        self.rest = (left.bytes > 0).then_some(left);
        let command = IoRequest { offset, bytes, ..request };
        if self.rest.is_some() { Next::Part(command) } else { Next::Issue(command) }
    }

    #[inline]
    fn draw(&mut self, now: Time) -> Result<Next, Diagnostic> {
        // Most workloads are one job: it can issue, or must wait for a completion.
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
}

impl Source for FioSource {
    #[inline]
    fn poll(&mut self, now: Time, _: u32) -> Result<Next, Diagnostic> {
        self.now = now;
        if self.behind.is_none() {
            return self.draw(now);
        }
        if let Some(rest) = self.rest.take() {
            return Ok(self.command(rest));
        }
        match self.draw(now)? {
            Next::Issue(request) if self.listed[usize::from(request.flow)] => Ok(self.command(request)),
            next => Ok(next),
        }
    }

    fn completed(&mut self, _: Time, request: &IoRequest) {
        let at = usize::from(request.flow - self.first_flow);
        let job = &mut self.running[at];
        job.outstanding -= 1;
        job.generator.completed(request.op);
        if job.ended {
            self.over += usize::from(job.outstanding == 0);
        } else {
            self.turns.wake(at);
        }
        self.turn = at;
    }

    fn flows(&self) -> Vec<String> {
        self.names.clone()
    }

    /// The paths to a file are adjacent targets, in the order of [`Way::ALL`].
    fn target(&self, flow: u16) -> u16 {
        self.ways.as_ref().map_or(0, |ways| ways[usize::from(flow)].0 as u16)
    }

    fn is_open(&self, flow: u16) -> bool {
        self.paced[usize::from(flow)]
    }

    fn guards(&self, flow: u16) -> Option<&Guards> {
        self.guards.get(usize::from(flow))?.as_ref()
    }

    fn files(&self) -> &[LaidOut] {
        &self.files
    }

    fn has_thread(&self, flow: u16) -> bool {
        !self.is_open(flow)
    }

    fn batches(&self, flow: u16) -> Option<Batches> {
        self.batches[usize::from(flow)]
    }

    fn takes(&mut self, flow: u16, ended: u32) -> u32 {
        let job = &mut self.running[usize::from(flow - self.first_flow)];
        job.generator.takes(ended, job.outstanding)
    }

    fn advice(&self, flow: u16) -> Option<Advice> {
        self.ways.as_ref().map(|ways| ways[usize::from(flow)].1)
    }

    /// Every job has equal weight: the duration of a job is unknown before it ends.
    fn progress(&self) -> Option<f64> {
        let under_way: f64 = self.running.iter().map(|job| job.generator.share(self.now)).sum();
        let all = self.names.len().max(1) as f64;
        Some(((f64::from(self.first_flow) + under_way) / all).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Rng;
    use requests::fio;

    const CAPACITY: u64 = 1 << 30;

    /// Condition that a job of the reference waits for.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Wait {
        Nothing,
        Until(Time),
        Completion,
        Ended,
    }

    /// Reference: the same jobs, each examined at every poll.
    struct Scan {
        groups: VecDeque<Group>,
        running: Vec<(Generator, u32, Wait)>,
        first_flow: u16,
        turn: usize,
    }

    impl Scan {
        fn new(jobs: &Jobs) -> Scan {
            let groups = jobs.resolve(CAPACITY).expect("jobs that fit").into();
            Scan { groups, running: Vec::new(), first_flow: 0, turn: 0 }
        }

        fn poll(&mut self, now: Time) -> Next {
            loop {
                match self.ask(now) {
                    Next::Done => {}
                    next => return next,
                }
                self.first_flow += self.running.len() as u16;
                let Some(group) = self.groups.pop_front() else {
                    self.running.clear();
                    return Next::Done;
                };
                let start = |job| {
                    let mut generator = Generator::new(job, 1);
                    generator.start(Time::ZERO, now);
                    (generator, 0, Wait::Nothing)
                };
                self.running = group.jobs.into_iter().map(start).collect();
                self.turn = 0;
            }
        }

        fn ask(&mut self, now: Time) -> Next {
            let count = self.running.len();
            let (mut earliest, mut ended) = (None::<Time>, 0);
            for n in 0..count {
                let at = (self.turn + n) % count;
                let (generator, outstanding, wait) = &mut self.running[at];
                if matches!(wait, Wait::Until(time) if *time <= now) {
                    *wait = Wait::Nothing;
                }
                if *wait == Wait::Nothing {
                    *wait = match generator.poll(now, *outstanding) {
                        Poll::Issue(request) => {
                            *outstanding += 1;
                            self.turn = at;
                            return Next::Issue(request);
                        }
                        Poll::At(time) => Wait::Until(time),
                        Poll::Blocked => Wait::Completion,
                        Poll::Done => Wait::Ended,
                    };
                }
                match wait {
                    Wait::Until(time) => earliest = Some(earliest.map_or(*time, |e| e.min(*time))),
                    Wait::Ended if *outstanding == 0 => ended += 1,
                    _ => {}
                }
            }
            match earliest {
                _ if ended == count => Next::Done,
                Some(time) => Next::At(time),
                None => Next::Blocked,
            }
        }

        fn completed(&mut self, request: &IoRequest) {
            let at = usize::from(request.flow - self.first_flow);
            let (generator, outstanding, wait) = &mut self.running[at];
            *outstanding -= 1;
            generator.completed(request.op);
            if matches!(wait, Wait::Completion | Wait::Until(_)) {
                *wait = Wait::Nothing;
            }
            self.turn = at;
        }
    }

    /// Jobs with all kinds of pauses, some in groups of their own.
    fn jobs(rng: &mut Rng, count: u64) -> Jobs {
        const PAUSES: [&str; 8] = [
            "",
            "",
            "rate_iops=40000",
            "rate_iops=9000\nrate_process=poisson",
            "thinktime=200us\nthinktime_blocks=3",
            "startdelay=1",
            "fsync=5",
            "runtime=2ms\ntime_based=1",
        ];
        let mut text = "[global]\nbs=4k\nsize=1m\n".to_owned();
        for n in 0..count {
            let pause = PAUSES[rng.below(8) as usize];
            let wall = if rng.below(count) == 0 { "stonewall\n" } else { "" };
            let (depth, clones, number) = (1 + rng.below(4), 1 + rng.below(3), 1 + rng.below(40));
            text += &format!(
                "[j{n}]\nrw=randwrite\niodepth={depth}\nnumjobs={clones}\nnumber_ios={number}\n{pause}\n{wall}"
            );
        }
        fio::parse_text("jobs", &text).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
    }

    /// Answers equal those of a scan over all jobs, whatever completes when.
    #[test]
    fn turns_are_those_of_a_look_at_each_job() {
        for seed in 0..60 {
            let mut rng = Rng::stream(seed, "jobs");
            let count = 1 + rng.below(if seed % 10 == 0 { 90 } else { 9 });
            let jobs = jobs(&mut rng, count);
            let mut source = FioSource::new(&jobs, CAPACITY, 1).expect("jobs that fit");
            let mut scan = Scan::new(&jobs);
            let (mut now, mut outstanding) = (Time::ZERO, Vec::new());
            let mut answers = 0;
            loop {
                let next = source.poll(now, outstanding.len() as u32).expect("jobs do not fail");
                assert_eq!(next, scan.poll(now), "seed {seed}, answer {answers} at {now}");
                answers += 1;
                let due = match next {
                    Next::Issue(request) | Next::Part(request) => {
                        outstanding.push(request);
                        continue;
                    }
                    Next::Done => break,
                    Next::At(time) => Some(time),
                    Next::Blocked => None,
                };
                let pause = Time::from_ns(rng.below(60_000));
                match due {
                    Some(due) if outstanding.is_empty() || rng.below(3) == 0 => now = due,
                    _ => {
                        now = due.map_or(now + pause, |due| due.min(now + pause));
                        let request = outstanding.swap_remove(rng.below(outstanding.len() as u64) as usize);
                        source.completed(now, &request);
                        scan.completed(&request);
                    }
                }
            }
            assert!(outstanding.is_empty() && answers > 1, "seed {seed}");
        }
    }
}
