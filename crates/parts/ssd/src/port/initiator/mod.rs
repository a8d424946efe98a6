//! GPU-initiated storage: connects a GPU's shared cache with a flash device, without a host in between.
//!
//! A read of lines becomes one block command for the sectors that hold them. Written lines are gathered by page until
//! another page needs the place (`gather.rs`). Commands go to submission queues over the device's inner entrance, or
//! over the host's. This component does not cache or join reads: the shared cache does that for the lines that it
//! fetches as one, and the device's buffer for its contents.
//!
//! Sources: section 1 of Gundawar et al., "Towards Performance-Aware Allocation for Accelerated Machine Learning on
//! GPU-SSD Systems" (MQMS, 2024), says that such a GPU bypasses the host, but not how. Submission queues filled by a
//! GPU's threads: Qureshi et al., "GPU-Initiated On-Demand High-Throughput Storage Access in the BaM System
//! Architecture", ASPLOS 2023.
//!
//! Bounds: the sources are closed, so that requests are bounded by theirs; commands by requests, and by the sectors of the
//! places in which lines are gathered.

mod gather;
#[cfg(test)]
mod tests;

use crate::check::Check;
use config::{
    SpecError,
    units::{Bytes, Duration},
};
use engine::resource::Serial;
use engine::{Cx, Lists, Slab, Time};
use gather::{Gather, Put, Run, Sectors};
use proto::memory::{Lines, MemCommand, PAGE, Stage, Tally};
use proto::{Command, Completion, INNER, IoOp, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{OpStats, Series, Span};
use std::collections::VecDeque;

engine::events! {
    /// Internal events of the initiator.
    pub enum Event {
        /// The dispatcher has taken a request.
        Dispatched(u32),
        /// Gathered lines have been accessed for a request.
        Gathered(u32),
    }
}

/// Messages sent by the initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A request of the shared cache is done.
    Done(MemCommand),
    /// A command to the flash device.
    Submit(Command),
}

/// Purpose of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// Read of a request.
    Fetch(u32),
    /// Write-back of the page in a place: sectors of this run were written in part, and are read.
    Fill { place: u32, run: Run },
    /// Write-back of the page in a place: the run is written.
    Write { place: u32 },
}

/// Block command, from the moment it is wanted.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    purpose: Purpose,
    op: IoOp,
    offset: u64,
    bytes: u64,
    app: u8,
    queue: u16,
    wanted: Time,
    submitted: Time,
}

/// GPU-initiated storage.
pub struct Initiator {
    lines: Lines,
    sectors: Sectors,
    dispatcher: Serial,
    dispatch_time: Time,
    requests: Slab<MemCommand>,
    commands: Slab<Wanted>,
    /// Free entries of each submission queue.
    room: Vec<u32>,
    /// Queue that is tried first.
    turn: usize,
    /// Offset of queue numbers.
    first_queue: u16,
    /// Commands that wait for an entry.
    held: VecDeque<u32>,
    gather: Gather,
    gather_latency: Time,
    /// Requests that wait for room among the gathered pages.
    waiting: Lists<u32>,
    /// Statistics of each application.
    pub flows: Vec<InitiatedFlow>,
    /// Completions of all applications' commands over time.
    pub series: Series,
    /// Time of the last completion in the window.
    pub last_completion: Time,
    ledger: Ledger,
    /// Statistics since the window began.
    pub stats: InitiatorStats,
    /// Waits of requests.
    pub tally: Tally,
}

impl Initiator {
    /// Creates an idle initiator for `apps` applications, whose requests are for lines of `line` bytes.
    ///
    /// # Errors
    /// Returns the first value that cannot be built, with its key, or refuses a line size other than 64, 128, 256 or
    /// 512 B (key `line`).
    pub fn new(spec: &InitiatorSpec, apps: u8, line: u64) -> Result<Initiator, SpecError> {
        spec.check()?;
        let lines = mem::lines_of(line)?;
        Ok(Initiator {
            lines,
            sectors: Sectors::new(lines),
            dispatcher: Serial::default(),
            dispatch_time: spec.dispatch_time.time(),
            requests: Slab::default(),
            commands: Slab::default(),
            room: vec![spec.depth; spec.queues.into()],
            turn: 0,
            first_queue: if spec.entrance == EntranceChoice::inner { INNER } else { 0 },
            held: VecDeque::new(),
            gather: Gather::new(&spec.gather),
            gather_latency: spec.gather.latency.time(),
            waiting: Lists::default(),
            flows: vec![InitiatedFlow::default(); apps.into()],
            series: Series::of_run(),
            last_completion: Time::ZERO,
            ledger: Ledger::default(),
            stats: InitiatorStats::default(),
            tally: Tally::default(),
        })
    }

    /// Accepts a request of the shared cache.
    pub fn command(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        debug_assert!(
            command.page.is_multiple_of(PAGE) && command.lines != 0 && command.lines & !self.lines.all() == 0,
            "lines of a page: {command:?}"
        );
        self.ledger.entered += 1;
        let id = self.requests.insert(command);
        let end = self.dispatcher.grant(cx.now(), self.dispatch_time);
        cx.after(end - cx.now(), Event::Dispatched(id));
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Dispatched(id) => {
                self.tally.command(Stage::Controller, &mut self.requests[id], cx.now());
                if self.requests[id].write {
                    self.stats.writes += 1;
                    let taken = self.write(id, cx);
                    self.stats.waits_for_room += u64::from(!taken);
                } else {
                    self.stats.reads += 1;
                    self.read(id, cx);
                }
            }
            Event::Gathered(id) => self.answer(id, Stage::Buffer, cx),
        }
    }

    /// Handles a completion of the device.
    pub fn completed(&mut self, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        self.ledger.completed += 1;
        self.stats.failed += u64::from(completion.status != Status::Success);
        let now = cx.now();
        let done = self.commands[completion.tag];
        self.commands.remove(completion.tag);
        self.room[usize::from(done.queue)] += 1;
        let flow = &mut self.flows[usize::from(done.app)];
        flow.span.record(done.wanted, now);
        let of = if done.op == IoOp::Read { &mut flow.read } else { &mut flow.write };
        of.record(done.bytes, done.submitted - done.wanted, now - done.submitted, now - done.wanted);
        self.series.record(now, done.bytes, now - done.wanted);
        self.last_completion = now;
        if let Some(next) = self.held.pop_front() {
            self.submit(next, cx);
        }
        match done.purpose {
            Purpose::Fetch(id) => self.answer(id, Stage::Array, cx),
            Purpose::Fill { place, run } => self.write_run(place, run, cx),
            Purpose::Write { place } => {
                let set = self.gather.set_of(self.gather.page(place).page);
                if self.gather.left(place) {
                    self.unblock(set, cx);
                }
            }
        }
    }

    /// Number of requests inside, plus commands wanted or at the device.
    pub fn outstanding(&self) -> usize {
        self.requests.len() + self.commands.len()
    }

    fn answer(&mut self, id: u32, stage: Stage, cx: &mut impl Cx<Event, Out>) {
        let mut command = self.requests[id];
        self.requests.remove(id);
        self.ledger.answered += 1;
        self.tally.command(stage, &mut command, cx.now());
        cx.emit(Out::Done(command));
    }

    fn read(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let command = self.requests[id];
        let page = command.page / PAGE;
        let missing = command.lines & !self.gather.lines(page);
        if missing == 0 {
            self.stats.gathered_reads += 1;
            cx.after(self.gather_latency, Event::Gathered(id));
            return;
        }
        self.want(Purpose::Fetch(id), IoOp::Read, page, self.sectors.of_lines(missing), command.app, cx);
    }

    /// Takes the lines of a write. Returns false if it waits for room.
    fn write(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        let command = self.requests[id];
        let page = command.page / PAGE;
        let put = self.gather.put(page, command.app, command.lines);
        if put == Put::Taken {
            cx.after(self.gather_latency, Event::Gathered(id));
        } else {
            let set = self.gather.set_of(page);
            self.waiting.push(&mut self.gather.blocked[set], id);
        }
        if let Some(place) = self.gather.victim(page) {
            self.evict(place, cx);
        }
        put == Put::Taken
    }

    /// Starts the write-back of the page in a place.
    fn evict(&mut self, place: u32, cx: &mut impl Cx<Event, Out>) {
        self.stats.evictions += 1;
        let gathered = *self.gather.page(place);
        let sectors = self.sectors;
        self.gather.leave(place, sectors.runs(gathered.lines).count() as u32);
        for run in sectors.runs(gathered.lines) {
            match sectors.partial(run, gathered.lines) {
                Some(partial) => {
                    self.stats.fills += 1;
                    let purpose = Purpose::Fill { place, run };
                    self.want(purpose, IoOp::Read, gathered.page, partial, gathered.app, cx);
                }
                None => self.write_run(place, run, cx),
            }
        }
    }

    fn write_run(&mut self, place: u32, run: Run, cx: &mut impl Cx<Event, Out>) {
        let gathered = *self.gather.page(place);
        self.want(Purpose::Write { place }, IoOp::Write, gathered.page, run, gathered.app, cx);
    }

    /// Retries waiting writes after a page of a set has left.
    fn unblock(&mut self, set: usize, cx: &mut impl Cx<Event, Out>) {
        let mut blocked = self.gather.blocked[set].take();
        while let Some(id) = self.waiting.pop(&mut blocked) {
            self.write(id, cx);
        }
    }

    fn want(
        &mut self,
        purpose: Purpose,
        op: IoOp,
        page: u64,
        run: Run,
        app: u8,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let (offset, bytes) = (run.offset(page), run.bytes());
        let (wanted, submitted) = (cx.now(), cx.now());
        let name =
            self.commands.insert(Wanted { purpose, op, offset, bytes, app, queue: 0, wanted, submitted });
        if self.held.is_empty() && self.room.iter().any(|room| *room > 0) {
            self.submit(name, cx);
        } else {
            self.stats.waits_for_entry += 1;
            self.held.push_back(name);
        }
    }

    /// Gives a command to the next queue in turn that has an entry; at least one has.
    fn submit(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        while self.room[self.turn] == 0 {
            self.turn = (self.turn + 1) % self.room.len();
        }
        let queue = self.turn;
        self.turn = (self.turn + 1) % self.room.len();
        self.room[queue] -= 1;
        self.ledger.submitted += 1;
        let wanted = &mut self.commands[name];
        (wanted.queue, wanted.submitted) = (queue as u16, cx.now());
        if let Purpose::Fetch(id) = wanted.purpose {
            self.tally.command(Stage::Controller, &mut self.requests[id], cx.now());
        }
        cx.emit(Out::Submit(Command {
            queue: self.first_queue + queue as u16,
            flow: wanted.app.into(),
            placement: wanted.app,
            ..Command::new(name, wanted.op, wanted.offset, wanted.bytes)
        }));
    }
}

// Statistics of GPU-initiated storage.

/// Counters of one measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InitiatorStats {
    /// Reads of the shared cache.
    pub reads: u64,
    /// Reads answered by lines that wait to be written.
    pub gathered_reads: u64,
    /// Writes of the shared cache.
    pub writes: u64,
    /// Pages with written lines that were evicted.
    pub evictions: u64,
    /// Reads of partly written sectors.
    pub fills: u64,
    /// Writes that waited for room.
    pub waits_for_room: u64,
    /// Commands that waited for an entry of a queue.
    pub waits_for_entry: u64,
    /// Commands that the device failed.
    pub failed: u64,
}

/// Block commands of one application.
#[derive(Clone, Debug, Default)]
pub struct InitiatedFlow {
    /// Reads.
    pub read: OpStats,
    /// Writes.
    pub write: OpStats,
    /// Time during which they were under way.
    pub span: Span,
}

/// Counts since the beginning, for the checks.
#[derive(Clone, Copy, Debug, Default)]
struct Ledger {
    entered: u64,
    answered: u64,
    submitted: u64,
    completed: u64,
}

impl Initiator {
    /// Starts the measured window and clears the statistics.
    pub fn reset_stats(&mut self, now: Time) {
        self.stats = InitiatorStats::default();
        self.flows.iter_mut().for_each(|flow| *flow = InitiatedFlow::default());
        self.series.reset(now);
        self.tally = proto::memory::Tally::default();
        self.last_completion = now;
    }

    /// Checks the accounts against each other. They hold between any two events.
    pub fn checks(&self) -> Vec<Check> {
        let ledger = &self.ledger;
        let equal = |name, left: u64, right: u64, words: &str| Check {
            name,
            ok: left == right,
            detail: format!("{words} {left}, {right}"),
        };
        let at_device = (self.commands.len() - self.held.len()) as u64;
        vec![
            equal(
                "initiator requests",
                ledger.entered,
                ledger.answered + self.requests.len() as u64,
                "entered; answered or inside:",
            ),
            equal(
                "initiator commands",
                ledger.submitted,
                ledger.completed + at_device,
                "submitted; completed or at the device:",
            ),
        ]
    }
}

// Spec of GPU-initiated storage.

/// GPU-initiated storage: misses of the GPU's shared cache become block commands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitiatorSpec {
    /// Entrance by which commands reach the device.
    pub entrance: EntranceChoice,
    /// Time of a request in the dispatcher, which takes one at a time.
    pub dispatch_time: Duration,
    /// Number of submission queues, used round-robin.
    #[schemars(range(min = 1, max = 32_768))]
    pub queues: u16,
    /// Queue depth: outstanding commands of each queue; more wait in front of it.
    #[schemars(range(min = 1))]
    pub depth: u32,
    /// Gathering of written lines until their sector is complete.
    pub gather: GatherSpec,
}

config::policies! {
    /// Entrance by which an initiator's commands reach the device.
    #[derive(Copy, Eq)]
    pub family EntranceChoice: choice {
        /// Link and queues of the host: the GPU is a device beside the host's others.
        default host,
        /// Entrance of processors inside the drive, `inner`: the GPU is one of them.
        inner,
    }
}

/// Buffer of pages with written lines. The page written longest ago is evicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatherSpec {
    /// Capacity, in whole pages of 4 KiB.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "16GiB"))]
    pub capacity: Bytes,
    /// Associativity: pages per set.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub ways: u32,
    /// Latency of an access.
    pub latency: Duration,
}

impl InitiatorSpec {
    /// Checks the whole spec.
    ///
    /// # Errors
    /// Returns the first value that cannot be built, with its key.
    pub fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("queues", self.queues.into())?;
        if self.queues > INNER {
            let what = format!("{} submission queues; allowed are at most {INNER}", self.queues);
            return Err(SpecError::new("queues", what));
        }
        SpecError::positive("depth", self.depth.into())?;
        self.gather.check()
    }
}

impl GatherSpec {
    /// Number of sets.
    fn sets(&self) -> u32 {
        (self.capacity.get() / PAGE / u64::from(self.ways)) as u32
    }

    fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("gather.ways", self.ways.into())?;
        let set = u64::from(self.ways) * PAGE;
        if self.capacity.get() == 0 || !self.capacity.get().is_multiple_of(set) {
            let what =
                format!("{} are not a multiple of the set size: {} pages, {set} B", self.capacity, self.ways);
            return Err(SpecError::new("gather.capacity", what).help(format!("choose a multiple of {set} B")));
        }
        Ok(())
    }
}
