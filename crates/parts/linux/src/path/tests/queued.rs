//! Flows of direct requests on a host, before a drive that serves a number of commands at once, each in the same time.
//!
//! Costs in nanoseconds, used in the sums below: `call` 150, `map` 90, `bio` 720, `request` 660, `interrupt` 500,
//! `complete` 1040, `end_page` 100, `context_switch` 950, `idle_exit` 2000. A read of 4 KiB is submitted in
//! `call + map + bio + request` = 1620; its interrupt takes `interrupt + complete + end_page` = 1640; a thread that
//! sleeps on an idle core is back after `context_switch + idle_exit` = 2950.

use super::*;
use engine::Rng;
use proto::Batches;
use proto::file::Advice;

const SUBMIT: u64 = 1620;
const HANDLER: u64 = 1640;
const WAKE: u64 = 2950;

engine::events! {
    enum Around {
        /// Event of the host.
        Host(Event),
        /// Completion of a command by the drive.
        Done(u32),
    }
}

/// Time, and the drive.
pub(super) struct Drive {
    queue: EventQueue<Around>,
    latency: Time,
    /// Times at which each server is free.
    free: Vec<Time>,
    /// Commands, with their times of arrival and completion.
    seen: Vec<(Command, Time, Time)>,
    /// Selects the commands that it fails.
    fails: fn(&Command) -> bool,
    failing: Vec<u32>,
    /// Requests answered by the host since the last check.
    answers: Vec<Completion>,
}

impl Drive {
    fn take(&mut self, out: Out) {
        let now = self.queue.now();
        match out {
            Out::Submit { command, .. } => {
                let first = (0..self.free.len()).min_by_key(|at| self.free[*at]).expect("it serves");
                let end = self.free[first].max(now) + self.latency;
                self.free[first] = end;
                self.queue.after(end - now, Around::Done(command.tag));
                self.seen.push((command, now, end));
                if (self.fails)(&command) {
                    self.failing.push(command.tag);
                }
            }
            Out::Order { order, .. } => panic!("the host has no coprocessor: {order:?}"),
            Out::Complete(completion) => self.answers.push(completion),
        }
    }
}

engine::context! {
    Drive: Cx<Event, Out>,
    queue: |at| at.queue,
    event: |_at, event| Around::Host(event),
    out: |at, out| at.take(out),
}

/// Host with flows of requests, and the record of their requests.
pub(super) struct Load {
    pub(super) host: Host<Script>,
    drive: Drive,
    /// Times at which each request was made, and answered, by tag.
    made: Vec<Time>,
    answered: Vec<Option<Time>>,
}

fn host(spec: &PathSpec) -> Host<Script> {
    let device =
        Device { max_transfer: 0, block: 512, queues: 16, queue_depth: 63, write_cache: true, fua: true };
    Host::new(spec, &[DiskSpec { bytes: 1 << 30, device, scheduler: None }]).expect("a host")
}

impl Load {
    pub(super) fn new(spec: &PathSpec, latency: Time, width: usize) -> Load {
        let free = vec![Time::ZERO; width];
        let drive = Drive {
            queue: EventQueue::default(),
            latency,
            free,
            seen: Vec::new(),
            fails: |_| false,
            failing: Vec::new(),
            answers: Vec::new(),
        };
        Load { host: host(spec), drive, made: Vec::new(), answered: Vec::new() }
    }

    pub(super) fn ask(&mut self, way: Way, mut command: Command) {
        command.tag = self.made.len() as u32;
        self.made.push(self.drive.queue.now());
        self.answered.push(None);
        self.host.submit_request(0, way, command, &mut self.drive);
    }

    /// Runs an event; returns the answers to requests, or `None` without an event.
    pub(super) fn step(&mut self) -> Option<Vec<Completion>> {
        match self.drive.queue.pop()? {
            Around::Host(event) => self.host.handle(event, &mut self.drive),
            Around::Done(tag) => {
                let fails = self.drive.failing.iter().position(|failing| *failing == tag);
                let status = fails.map_or(Status::Success, |at| {
                    self.drive.failing.remove(at);
                    Status::WriteFault
                });
                let to = Port::default();
                let buffer = BufferState::Unknown;
                self.host.completed(Completion { tag, to, status, errors: 0, buffer }, &mut self.drive);
            }
        }
        assert_eq!(self.host.stuck(), None);
        let answers = std::mem::take(&mut self.drive.answers);
        for answer in &answers {
            let at = &mut self.answered[answer.tag as usize];
            assert_eq!(at.replace(self.drive.queue.now()), None, "answered once");
        }
        Some(answers)
    }

    /// Runs a closed loop of `depth` requests of 4 KiB, `count` in all; returns the time of the last answer.
    fn closed(&mut self, way: Way, op: IoOp, depth: u64, count: u64) -> Time {
        self.closed_over(way, op, depth, count, 1)
    }

    /// Runs a closed loop with `stride` pages from one request to the next.
    fn closed_over(&mut self, way: Way, op: IoOp, depth: u64, count: u64, stride: u64) -> Time {
        let request = |number: u64| Command::new(0, op, number * stride % 4096 * PAGE, PAGE);
        (0..depth).for_each(|number| self.ask(way, request(number)));
        let mut asked = depth;
        while !self.host.is_done() {
            let answers = self.step().expect("requests that are not served");
            for _ in answers {
                if asked < count {
                    self.ask(way, request(asked));
                    asked += 1;
                }
            }
        }
        let last = self.answered.iter().map(|at| at.expect("all are answered")).max();
        last.expect("requests")
    }

    pub(super) fn drain(&mut self) {
        while self.step().is_some() {}
        assert!(self.answered.iter().all(Option::is_some));
        assert_eq!(self.host.dios.len(), 0);
        self.host.check_idle();
    }

    /// Commands received by the drive: kind, first page, pages.
    pub(super) fn commands(&self) -> Vec<(IoOp, u64, u64)> {
        let of =
            |(command, ..): &(Command, Time, Time)| (command.op, command.offset / PAGE, command.bytes / PAGE);
        self.drive.seen.iter().map(of).collect()
    }

    /// Latencies in nanoseconds, in the order in which requests were made.
    pub(super) fn latencies(&self) -> Vec<u64> {
        let times = self.made.iter().zip(&self.answered);
        times.map(|(made, answered)| answered.expect("answered").since(*made).ps() / 1000).collect()
    }
}

pub(super) fn plain() -> PathSpec {
    raw(64 * MIB)
}

fn with_poll_queues(spec: PathSpec) -> PathSpec {
    PathSpec { driver: DriverSpec { poll_queues: Some(2), ..DriverSpec::default() }, ..spec }
}

/// One request at a time costs the same on every path: a thread in `io_getevents` has called it while the drive was at
/// work. On a file, an unwaited direct write is ended by a kernel thread, which wakes first (`iomap_dio_bio_end_io`).
#[test]
fn at_depth_one_an_asynchronous_read_takes_as_long_as_a_read() {
    let latency = 20_000;
    let expected = latency + SUBMIT + HANDLER + WAKE;
    for files in [plain(), spec(64 * MIB)] {
        for way in [Way::Direct, Way::Aio, Way::Uring] {
            let mut load = Load::new(&files, Time::from_ns(latency), 1);
            load.closed(way, IoOp::Read, 1, 10);
            // The first request finds the thread asleep on an idle core.
            assert_eq!(load.latencies()[0], expected + WAKE, "{way:?}");
            assert_eq!(load.latencies()[1..], [expected; 9], "{way:?}");
            assert_eq!(load.host.stats.interrupts, 10);
            load.drain();
        }
    }
    for (files, more) in [(plain(), 0), (spec(64 * MIB), WAKE)] {
        let mut load = Load::new(&files, Time::from_ns(latency), 1);
        load.closed(Way::Aio, IoOp::Write, 1, 10);
        // The first request changes the times of the inode: a handle.
        assert_eq!(load.latencies()[1..], [expected + more; 9]);
        load.drain();
    }
}

/// Polling saves the interrupt and the wake-up, and uses the whole core.
#[test]
fn polling_saves_the_interrupt_and_the_way_back_and_takes_the_core() {
    let latency = 20_000;
    let mut load = Load::new(&with_poll_queues(plain()), Time::from_ns(latency), 1);
    let ended = load.closed(Way::Polled, IoOp::Read, 1, 100);
    // Submission, the drive, and the end of the request on the thread's own core.
    let expected = latency + SUBMIT + 1040 + 100;
    assert_eq!(load.latencies()[1..], [expected; 99]);
    // `interrupt`, `context_switch`, `idle_exit`.
    assert_eq!(latency + SUBMIT + HANDLER + WAKE - expected, 500 + 950 + 2000);
    assert_eq!((load.host.stats.interrupts, load.host.stats.polled), (0, 100));
    let time = &load.host.cores().stats.time;
    let busy: Time = time.iter().fold(Time::ZERO, |sum, core| sum + core.user + core.system + core.interrupt);
    assert_eq!(busy, ended, "one core, all of the time");
    assert!(load.drive.seen.iter().all(|(command, ..)| command.queue >= 8), "in a queue of their own");
    load.drain();
}

/// Without such a queue, the thread polls for the results of interrupts (`bio_poll` of a queue without
/// `QUEUE_FLAG_POLL`); split bios are not polled.
#[test]
fn what_cannot_be_polled_interrupts() {
    let latency = 20_000;
    let mut load = Load::new(&plain(), Time::from_ns(latency), 1);
    load.closed(Way::Polled, IoOp::Read, 1, 10);
    assert_eq!(load.latencies()[1..], [latency + SUBMIT + HANDLER; 9]);
    assert_eq!((load.host.stats.interrupts, load.host.stats.polled), (10, 0));
    load.drain();
    let mut load = Load::new(&with_poll_queues(plain()), Time::from_ns(latency), 4);
    load.ask(Way::Polled, Command::new(0, IoOp::Read, 0, 127 * PAGE));
    load.ask(Way::Polled, Command::new(0, IoOp::Read, 0, 128 * PAGE));
    load.drain();
    let polled: Vec<bool> = load.drive.seen.iter().map(|(command, ..)| command.queue >= 8).collect();
    assert_eq!(polled, [true, false, false]);
}

/// `min(depth / latency, drive throughput, 1 / core time of a request)`.
#[test]
fn throughput_is_bounded_by_depth_then_the_drive_then_the_core() {
    let count = 4000;
    let mean = |load: &mut Load, way, depth| {
        let ended = load.closed(way, IoOp::Read, depth, count);
        load.drain();
        ended.ps() as f64 / 1000.0 / count as f64
    };
    for way in [Way::Aio, Way::Uring, Way::Polled] {
        // An unlimited drive of 100 us, four at once: each takes between the minimum, with an awake thread, and the
        // maximum, with a thread that submits three others first.
        let spec = with_poll_queues(plain());
        let took = mean(&mut Load::new(&spec, Time::from_us(100), 64), way, 4);
        let least = (100_000 + SUBMIT + 1140) as f64 / 4.0;
        let most = (100_000 + 4 * (SUBMIT + HANDLER + 150) + WAKE) as f64 / 4.0;
        assert!(took >= least && took <= most, "{way:?}: {took} of {least} to {most}");
        // One at once of 10 us.
        let took = mean(&mut Load::new(&spec, Time::from_us(10), 1), way, 32);
        assert!((took - 10_000.0).abs() < 20.0, "{way:?}: {took}");
        // A drive that is never the limit. The core's work for a request is its submission, `complete + end_page`, a
        // share of an interrupt for several, and `io_getevents`.
        let took = mean(&mut Load::new(&spec, Time::from_us(5), 64), way, 48);
        let least = (SUBMIT + 1140) as f64;
        let most = (SUBMIT + HANDLER + 150) as f64;
        assert!(took >= least && took <= most * 1.01, "{way:?}: {took} of {least} to {most}");
    }
    // One after the other: all of it.
    let took = mean(&mut Load::new(&plain(), Time::from_us(5), 64), Way::Direct, 1);
    assert!((took - (5000 + SUBMIT + HANDLER + WAKE) as f64).abs() < 5.0, "{took}");
}

/// Batches of eight: one call submits eight requests and one takes eight, so each request costs an eighth of a call.
/// The thread of a full queue waits for eight.
#[test]
fn a_batch_is_one_call() {
    let (depth, count) = (32, 3200);
    let system = |way, batches: Option<Batches>| {
        let mut load = Load::new(&plain(), Time::from_us(100), 64);
        if let Some(batches) = batches {
            load.host.open_flow(0, way, 0, Some(batches), Advice::Normal);
        }
        load.closed_over(way, IoOp::Read, depth, count, 3);
        load.drain();
        let time = &load.host.cores().stats.time;
        let system: u64 = time.iter().map(|core| core.system.ps() / 1000).sum();
        (system, load.drive.seen.iter().map(|(_, came, _)| *came).collect::<Vec<_>>())
    };
    let eight = Batches { depth: 32, submit: 8, complete_min: 8, complete_max: 8, low: 32 };
    for way in [Way::Aio, Way::Uring] {
        let (alone, _) = system(way, None);
        let (batch, came) = system(way, Some(eight));
        // `submit_queued`: 150 ns a call, of which seven of eight are saved.
        let saved = (alone - batch) as f64 / count as f64;
        assert!(saved >= 0.99 * 150.0 * 7.0 / 8.0, "{way:?}: {saved} ns a request");
        // The ninth request of each group comes when the drive has ended eight more, 100 us after they came.
        for group in came.chunks(8).collect::<Vec<_>>().windows(5) {
            assert!(group[4][0] >= group[0][7] + Time::from_us(100), "{way:?}");
        }
    }
}

fn in_batches(submit: u32) -> Option<Batches> {
    Some(Batches { depth: 32, submit, complete_min: 1, complete_max: 32, low: 32 })
}

/// A call for more than two requests has one plug (`AIO_PLUG_THRESHOLD`, `IO_PLUG_THRESHOLD`): neighbours become one
/// command, and none is sent before the last has been submitted.
#[test]
fn requests_of_one_call_share_a_plug() {
    for way in [Way::Aio, Way::Uring] {
        let load = |submit: u32, stride: u64| {
            let mut load = Load::new(&plain(), Time::from_us(20), 64);
            load.host.open_flow(0, way, 0, in_batches(submit), Advice::Normal);
            (0..8).for_each(|at| load.ask(way, Command::new(0, IoOp::Read, at * stride * PAGE, PAGE)));
            load.drain();
            load
        };
        // Commands of 8, 4 and 4, 3, 3 and 2 pages. Two in a call, such as the last two of eight by threes, are not
        // plugged.
        let read = |pages: &[u64]| -> Vec<(IoOp, u64, u64)> {
            let starts = pages.iter().scan(0, |at, pages| {
                *at += pages;
                Some(*at - pages)
            });
            starts.zip(pages).map(|(start, pages)| (IoOp::Read, start, *pages)).collect()
        };
        for (submit, pages) in
            [(32, &[8][..]), (8, &[8]), (4, &[4, 4]), (3, &[3, 3, 1, 1]), (2, &[1; 8]), (1, &[1; 8])]
        {
            let load = load(submit, 1);
            assert_eq!(load.commands(), read(pages), "{way:?}, {submit}");
            let stats = load.host.queue(0).stats();
            assert_eq!(stats.plug_merges, 8 - pages.len() as u64, "{way:?}, {submit}");
        }
        // One command of eight bios: `call`, eight times `map + bio`, one `request`. The thread sleeps on an idle core
        // at first.
        let whole = Time::from_ns(WAKE + 150 + 8 * (90 + 720) + 660);
        assert_eq!(load(8, 1).drive.seen[0].1, whole, "{way:?}");
        // Separate requests arrive one `request` after another, the latest first (`blk_mq_plug_issue_direct`).
        let apart = load(8, 2);
        let places: Vec<u64> = apart.commands().iter().map(|(_, page, _)| *page).collect();
        assert_eq!(places, [14, 12, 10, 8, 6, 4, 2, 0], "{way:?}");
        for (number, (_, came, _)) in (0..).zip(&apart.drive.seen) {
            assert_eq!(*came, whole + Time::from_ns(660 * number), "{way:?}");
        }
    }
}

/// `fsync` of `libaio` is a call of its own, and later requests wait for it; that of a ring goes to a worker thread of
/// the ring.
#[test]
fn flushes_are_in_order() {
    let write = |page: u64| Command::new(0, IoOp::Write, page * PAGE, PAGE);
    for (way, batches) in
        [Way::Aio, Way::Uring].map(|way| [(way, None), (way, in_batches(8))]).into_iter().flatten()
    {
        let mut load = Load::new(&plain(), Time::from_us(50), 8);
        load.host.open_flow(0, way, 0, batches, Advice::Normal);
        load.ask(way, write(0));
        load.ask(way, write(6));
        load.ask(way, write(2));
        load.ask(way, Command::new(0, IoOp::Flush, 0, 0));
        load.ask(way, write(4));
        load.drain();
        let of = |page: u64| load.drive.seen.iter().find(|(c, ..)| c.bytes > 0 && c.offset == page * PAGE);
        let flush = load.drive.seen.iter().find(|(command, ..)| command.op == IoOp::Flush).expect("a flush");
        let (before, after) = (of(2).expect("a write"), of(4).expect("a write"));
        // The worker of a ring may be faster than the call that plugs: a flush is not ordered behind unfinished writes.
        assert!(before.1 < flush.1 || way == Way::Uring && batches.is_some(), "{way:?}");
        assert_eq!(after.1 > flush.2, way == Way::Aio, "{way:?}");
    }
}

/// A durable write is one command with force unit access if it changes only data (`IOMAP_DIO_WRITE_FUA`); without a
/// journal, and on the synchronous path, `fsync` follows.
#[test]
fn durable_writes_have_force_unit_access() {
    let durable = Command { fua: true, ..Command::new(0, IoOp::Write, 0, PAGE) };
    let mut unjournaled = spec(64 * MIB);
    if let OnDrives::Ext4(fs) = &mut unjournaled.fs {
        fs.data = JournalMode::none;
    }
    for (spec, way, alone) in [
        (plain(), Way::Aio, true),
        (spec(64 * MIB), Way::Aio, true),
        (unjournaled, Way::Aio, false),
        (plain(), Way::Direct, false),
    ] {
        let mut load = Load::new(&spec, Time::from_us(20), 8);
        load.ask(way, durable);
        while !load.host.is_done() {
            load.step();
        }
        let seen = load.drive.seen.iter();
        assert_eq!(load.drive.seen[0].0.fua, alone, "{way:?}");
        let flushes = seen.filter(|(command, ..)| command.op == IoOp::Flush).count();
        assert_eq!(flushes, usize::from(!alone), "{way:?}");
        load.drain();
    }
}

/// Random requests on all paths at once, on hosts of all kinds: each is answered once, data reach the drive as often as
/// they were written, and at each event every waiting thread waits for an operation in flight.
#[test]
fn requests_of_all_ways_end_once() {
    for seed in 0..40 {
        let mut rng = Rng::stream(seed, "ways");
        let mut spec = if rng.below(2) == 0 { raw(64 * MIB) } else { spec(64 * MIB) };
        spec.cores.count = 1 + rng.below(4) as u16;
        spec.driver.poll_queues = Some(rng.below(3) as u16);
        spec.driver.coalescing_threshold = 1 + rng.below(3) as u16;
        if rng.below(3) == 0 {
            spec.block.nr_requests = Some(4);
        }
        let mut load = Load::new(&spec, Time::from_us(1 + rng.below(60)), 1 + rng.below(8) as usize);
        for (way, flow) in Way::ALL.into_iter().flat_map(|way| (0..3).map(move |flow| (way, flow))) {
            let batches = in_batches(1 + rng.below(9) as u32).filter(|_| seed % 2 == 0);
            load.host.open_flow(0, way, flow, batches, Advice::Normal);
        }
        let (mut left, mut written) = (300, 0);
        loop {
            while left > 0 && rng.below(6) != 0 {
                left -= 1;
                let way = Way::ALL[rng.below(6) as usize];
                let pages = if rng.below(10) == 0 { 200 } else { 1 + rng.below(4) };
                let (op, bytes) = match rng.below(8) {
                    // A polled ring takes none.
                    0 if way != Way::Polled => (IoOp::Flush, 0),
                    1..=4 => (IoOp::Read, pages * PAGE),
                    _ => (IoOp::Write, pages * PAGE),
                };
                if op == IoOp::Write && !way.is_cached() {
                    written += bytes;
                }
                let offset = 4096 * u64::from(way as u8) * PAGE + rng.below(2000) * PAGE;
                let flow = rng.below(3) as u16;
                let fua = op == IoOp::Write && rng.below(6) == 0;
                load.ask(way, Command { flow, fua, ..Command::new(0, op, offset, bytes) });
            }
            if load.step().is_none() {
                break;
            }
        }
        load.drain();
        let direct = |command: &&(Command, Time, Time)| command.0.op == IoOp::Write;
        let came: u64 = load.drive.seen.iter().filter(direct).map(|(command, ..)| command.bytes).sum();
        assert!(came >= written, "seed {seed}: {came} of {written}");
    }
}

/// A request that the drive fails is answered as failed, on every path; the others are not.
#[test]
fn what_the_drive_fails_is_answered_so() {
    for spec in [plain(), spec(64 * MIB)] {
        // The read-around of a mapping is a different command.
        for way in Way::ALL.into_iter().filter(|way| *way != Way::Mapped) {
            let mut load = Load::new(&spec, Time::from_us(20), 4);
            load.ask(way, Command::new(0, IoOp::Read, 0, PAGE));
            load.drain();
            let mut answers = Vec::new();
            load.drive.fails = |command| command.op == IoOp::Write || command.bytes == 3 * PAGE;
            let durable = |at: u64| Command { fua: true, ..Command::new(0, IoOp::Write, at * PAGE, PAGE) };
            let large = Command::new(0, IoOp::Read, 64 * PAGE, 3 * PAGE);
            for command in [durable(0), durable(128), Command::new(0, IoOp::Read, 256 * PAGE, PAGE), large] {
                load.ask(way, command);
            }
            while let Some(more) = load.step() {
                answers.extend(more);
            }
            answers.sort_by_key(|answer| answer.tag);
            let statuses: Vec<Status> = answers.iter().map(|answer| answer.status).collect();
            let failed: Vec<bool> = statuses.iter().map(|status| *status != Status::Success).collect();
            assert_eq!(failed, [true, true, false, true], "{way:?}");
            load.drain();
        }
    }
}
