//! Batches of fio's queues (`iodepth_batch*`, `iodepth_low`): arrival times of requests at a drive of constant
//! latency, and their durations.
//!
//! Expected times are arithmetic on fio's documentation and on `do_io`, `wait_for_completions` and `td_io_getevents` of fio 3.42.

use config::Diagnostic;
use engine::{EventQueue, Time};
use proto::{Batches, BufferState, Command, Completion, IoRequest, Port, Status};
use requests::fio::parse_inline;
use requests::inject::{Event, HostCost, Injector, Next, Out, Queues, Source};
use requests::synth::{Generator, Poll};
use std::collections::VecDeque;

engine::events! {
    enum Ev {
        Injector(Event),
        Done(u32),
    }
}

struct Side<'a>(&'a mut EventQueue<Ev>, &'a mut VecDeque<Command>);

engine::context! {
    Side<'_>: Cx<Event, Out>,
    queue: |me| me.0,
    event: |_me, event| Ev::Injector(event),
    out: |me, out| {
        let Out::Submit { command, .. } = out else { panic!("no kernel is called: {out:?}") };
        me.1.push_back(command);
    },
}

/// One job.
struct Job {
    generator: Generator,
    outstanding: u32,
}

impl Source for Job {
    fn poll(&mut self, now: Time, _: u32) -> Result<Next, Diagnostic> {
        Ok(match self.generator.poll(now, self.outstanding) {
            Poll::Issue(request) => {
                self.outstanding += 1;
                Next::Issue(request)
            }
            Poll::At(time) => Next::At(time),
            Poll::Blocked => Next::Blocked,
            Poll::Done => Next::Done,
        })
    }
    fn completed(&mut self, _: Time, request: &IoRequest) {
        self.outstanding -= 1;
        self.generator.completed(request.op);
    }
    fn flows(&self) -> Vec<String> {
        vec!["job".into()]
    }
    fn has_thread(&self, _: u16) -> bool {
        true
    }
    fn batches(&self, _: u16) -> Option<Batches> {
        self.generator.job().batches
    }
    fn takes(&mut self, _: u16, ended: u32) -> u32 {
        self.generator.takes(ended, self.outstanding)
    }
}

/// Observations of a job: when each request reached the drive, and the longest duration, both in microseconds.
struct Seen {
    submitted: Vec<u64>,
    slowest: u64,
    requests: u64,
}

impl Seen {
    /// Returns how many requests reached the drive at each time.
    fn groups(&self) -> Vec<(u64, usize)> {
        let mut groups: Vec<(u64, usize)> = Vec::new();
        for at in &self.submitted {
            match groups.last_mut() {
                Some((time, count)) if time == at => *count += 1,
                _ => groups.push((*at, 1)),
            }
        }
        groups
    }
}

/// Runs a job of 4 KiB reads on a drive that takes `latency` for each, `width` at once; the thread needs an
/// additional `thread` for each. All times are in microseconds.
fn run(job: &str, latency: u64, width: usize, thread: u64) -> Seen {
    let text = format!("fio:rw=read,bs=4k,{job}");
    let job = parse_inline(&text).and_then(|jobs| jobs.jobs[0].resolve(64 << 20));
    let mut generator = Generator::new(job.unwrap_or_else(|fault| panic!("{text}: {fault}")), 1);
    generator.start(Time::ZERO, Time::ZERO);
    let cost = HostCost { thread: Time::from_us(thread), ..HostCost::default() };
    let source = Box::new(Job { generator, outstanding: 0 });
    let mut injector = Injector::new(vec![source], Queues { count: 1, depth: 1024 }, cost);
    let (mut queue, mut sent) = (EventQueue::new(), VecDeque::new());
    let (mut free, mut submitted) = (vec![Time::ZERO; width], Vec::new());
    injector.start(&mut Side(&mut queue, &mut sent));
    loop {
        while let Some(command) = sent.pop_front() {
            let now = queue.now();
            submitted.push(now.ps() / 1_000_000);
            let first = (0..width).min_by_key(|at| free[*at]).expect("it serves");
            free[first] = free[first].max(now) + Time::from_us(latency);
            queue.after(free[first] - now, Ev::Done(command.tag));
        }
        let Some(event) = queue.pop() else { break };
        let mut side = Side(&mut queue, &mut sent);
        match event {
            Ev::Injector(event) => injector.handle(event, &mut side),
            Ev::Done(tag) => {
                let (to, status, buffer) = (Port::default(), Status::Success, BufferState::Unknown);
                injector.complete(Completion { tag, to, status, errors: 0, buffer }, &mut side);
            }
        }
    }
    assert!(injector.is_done() && injector.outstanding() == 0, "{text}");
    let read = &injector.flows[0].read;
    Seen { submitted, slowest: read.latency.max().unwrap_or(0) / 1_000_000, requests: read.requests }
}

/// On a drive that ends a read every microsecond, a full queue of 32 waits for eight, takes them, and submits as
/// many.
#[test]
fn a_full_queue_waits_for_a_batch_and_submits_a_batch() {
    let one = run("iodepth=32,number_ios=64", 1, 1, 0);
    let alone: Vec<(u64, usize)> = [(0, 32)].into_iter().chain((1..=32).map(|at| (at, 1))).collect();
    assert_eq!(one.groups(), alone);
    let eight = run("iodepth=32,iodepth_batch_submit=8,iodepth_batch_complete_min=8,number_ios=64", 1, 1, 0);
    assert_eq!(eight.groups(), [(0, 32), (8, 8), (16, 8), (24, 8), (32, 8)]);
    // Each waits for those that were submitted before it: 32 us in both cases.
    assert_eq!((one.requests, eight.requests), (64, 64));
    assert_eq!((one.slowest, eight.slowest), (32, 32));
    // A request that has ended counts until its batch is taken: of eight submitted together, all take as long as the
    // last.
    let two = run("iodepth=8,iodepth_batch_complete_min=8,number_ios=16", 1, 1, 0);
    assert_eq!(two.groups(), [(0, 8), (8, 8)]);
    assert_eq!(two.slowest, 8);
    // The aliases, and more than the queue has: limited to the queue.
    let all = run("iodepth=8,iodepth_batch=100,iodepth_batch_complete=100,number_ios=16", 1, 1, 0);
    assert_eq!(all.groups(), two.groups());
}

/// `iodepth_low`: a queue of 16 that was full drains to four.
#[test]
fn a_full_queue_drains_to_its_low_mark() {
    let seen = run("iodepth=16,iodepth_low=4,number_ios=40", 1, 1, 0);
    assert_eq!(seen.groups(), [(0, 16), (12, 12), (24, 12)]);
    // Eight at a time: 16, 8, 0 are left; with a low mark of four, the second batch is waited for too.
    let seen = run("iodepth=16,iodepth_low=4,iodepth_batch_complete_min=8,number_ios=32", 1, 1, 0);
    assert_eq!(seen.groups(), [(0, 16), (16, 16)]);
    // Zero, and more than the queue has, are the queue's depth.
    for low in ["0", "16", "400"] {
        let seen = run(&format!("iodepth=16,iodepth_low={low},number_ios=20"), 1, 1, 0);
        assert_eq!(seen.groups(), [(0, 16), (1, 1), (2, 1), (3, 1), (4, 1)]);
    }
}

/// A minimum of zero. By its documentation, fio never waits. fio 3.42 waits for one completion whenever it checks:
/// after each submission if no maximum is given (`io_in_polling`), otherwise when its queue is full
/// (`wait_for_completions`).
#[test]
fn a_minimum_of_zero_waits_for_one_completion() {
    let full = run("iodepth=16,number_ios=40", 1, 1, 0).groups();
    for max in [1, 16] {
        let job =
            format!("iodepth=16,iodepth_batch_complete_min=0,iodepth_batch_complete_max={max},number_ios=40");
        assert_eq!(run(&job, 1, 1, 0).groups(), full);
    }
    let alone: Vec<(u64, usize)> = (0..40).map(|at| (at, 1)).collect();
    for more in ["", ",iodepth_batch_submit=8", ",iodepth_batch_complete_max=0", ",iodepth_low=4"] {
        let job = format!("iodepth=16,iodepth_batch_complete_min=0,number_ios=40{more}");
        assert_eq!(run(&job, 1, 16, 0).groups(), alone, "{job}");
        let job =
            parse_inline(&format!("fio:rw=read,bs=4k,{job}")).expect("a good job").jobs[0].resolve(64 << 20);
        let said = job.expect("it fits").warnings.join("\n");
        assert!(said.contains("fio waits for each request"), "{said}");
    }
}

/// Eight reads of 10 us at once, and a thread that needs 1 us for each. The first completion is taken alone; when the
/// thread has finished it, seven have arrived.
#[test]
fn a_thread_takes_what_has_come_and_submits_a_batch() {
    let groups = |more: &str| run(&format!("iodepth=8,number_ios=16,{more}"), 10, 64, 1).groups();
    let each: Vec<(u64, usize)> = [(0, 8)].into_iter().chain((11..=18).map(|at| (at, 1))).collect();
    assert_eq!(groups("iodepth_batch_submit=1"), each);
    assert_eq!(groups("iodepth_batch_submit=1,iodepth_batch_complete_max=8"), each);
    // Submissions wait until the thread has drawn a full batch, or has nothing more to draw.
    let max = "iodepth_batch_complete_max=8";
    assert_eq!(groups(&format!("iodepth_batch_submit=8,{max}")), [(0, 8), (11, 1), (18, 7)]);
    assert_eq!(groups(&format!("iodepth_batch_submit=0,{max}")), [(0, 8), (11, 1), (18, 7)]);
    assert_eq!(groups(&format!("iodepth_batch_submit=4,{max}")), [(0, 8), (11, 1), (15, 4), (18, 3)]);
    // At most three at a time.
    let some = groups("iodepth_batch_submit=8,iodepth_batch_complete_max=3");
    assert_eq!(some, [(0, 8), (11, 1), (14, 3), (17, 3), (18, 1)]);
}

/// A queue that never fills: a job that waits for its rate takes each completion as it arrives.
#[test]
fn a_job_that_waits_for_its_rate_waits_for_no_batch() {
    let job = "iodepth=32,rate_iops=1000,iodepth_batch_submit=8,iodepth_batch_complete_min=8,number_ios=5";
    let seen = run(job, 10, 64, 0);
    assert_eq!(seen.groups(), [(0, 1), (1000, 1), (2000, 1), (3000, 1), (4000, 1)]);
    assert_eq!(seen.slowest, 10);
}

/// Flushes come between batches, and no job is stuck at its end.
#[test]
fn jobs_of_all_kinds_of_batches_end() {
    for base in ["rw=write,fsync=3,end_fsync=1", "rw=randrw,loops=2", "rw=read,thinktime=5", "rw=trimwrite"] {
        for engine in ["libaio", "io_uring", "psync"] {
            for (submit, min, max, low) in
                [(8, 8, 8, 0), (3, 5, 7, 2), (0, 0, 16, 1), (1, 16, 0, 15), (5, 1, 1, 9)]
            {
                let batches = format!(
                    "iodepth_batch={submit},iodepth_batch_complete_min={min},iodepth_batch_complete_max={max},iodepth_low={low}"
                );
                let job = format!("iodepth=16,size=1m,ioengine={engine},{batches},{base}");
                for (width, thread) in [(1, 0), (5, 0), (64, 2)] {
                    assert!(!run(&job, 3, width, thread).submitted.is_empty());
                }
            }
        }
    }
}
