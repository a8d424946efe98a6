//! A core: its state, the events inside it, its messages, and the tags of its requests.

use super::l1::L1;
use super::load::Load;
use super::sched::{Halted, ThreadScheduler};
use super::spec::{CoreMeter, CpuSpec, MissAction};
use super::window::{Spent, Stores, Window};
use engine::{Rng, Slab, Ticket, Time};
use mem::mmu::tlb::Tlb;
use proto::{
    Probed,
    cpu::Op,
    memory::{Absent, Access, CPU_LINE, Tally, Translation},
};
use stats::{Batched, Mser};

/// What all cores know.
pub(super) struct Shared {
    pub(super) shape: Shape,
    pub(super) load: Load,
    /// Requests that are sent later.
    pub(super) sends: Slab<Send>,
    pub(super) stats: CoresStats,
    pub(super) tally: Tally,
    /// Lines that were changed here and had not been before, since the beginning.
    pub(super) changed: u64,
    /// What says when the times of jobs are steady, while somebody wants to know.
    pub(super) settling: Option<Mser>,
    /// Sum and number of the measured answers of flash.
    pub(super) responses: (u128, u64),
    /// When the last job has ended.
    pub(super) over_at: Option<Time>,
    /// The latest end of a job so far.
    pub(super) latest: Time,
    /// Cycles that the kernel has had a core in advance, at most.
    pub(super) lead: u64,
}

impl Shared {
    /// How long flash takes to answer.
    pub(super) fn response(&self) -> Option<Time> {
        let (sum, count) = self.responses;
        (count > 0).then(|| Time::from_ps((sum / u128::from(count)) as u64))
    }
}

/// Times and sizes as the cores use them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) cycle: Time,
    pub(super) width: u64,
    pub(super) ports: u64,
    pub(super) flush: u64,
    pub(super) switch: u64,
    pub(super) quantum: u64,
    pub(super) pending: usize,
    pub(super) threads: u32,
    pub(super) translations: usize,
    /// What becomes of an access whose page is in flash, and of a translation whose tables are.
    pub(super) absent: Absent,
    pub(super) waits: bool,
    /// Bytes of a page.
    pub(super) page: u64,
    /// First byte of the text, virtual.
    pub(super) text: u64,
}

impl Shape {
    pub(super) fn new(spec: &CpuSpec, page: u64) -> Shape {
        let cycle = Time::period(spec.clock.hz());
        Shape {
            cycle,
            width: spec.width.into(),
            ports: spec.ports.into(),
            flush: spec.flush.into(),
            switch: spec.threads.switch.time().ps().div_ceil(cycle.ps()),
            quantum: spec.quantum.time().ps().div_ceil(cycle.ps()),
            pending: spec.threads.pending as usize,
            threads: spec.threads.count,
            translations: spec.tlb.misses as usize,
            absent: match spec.threads.miss {
                MissAction::switch => Absent::Signal,
                MissAction::wait => Absent::Wait,
                MissAction::serial => Absent::Probe,
            },
            waits: spec.threads.miss != MissAction::switch,
            page,
            text: 0,
        }
    }

    /// The first cycle that begins at a time or later.
    #[inline]
    pub(super) fn cycle_of(&self, time: Time) -> u64 {
        time.ps().div_ceil(self.cycle.ps())
    }

    /// The beginning of a cycle.
    #[inline]
    pub(super) fn time_of(&self, cycle: u64) -> Time {
        self.cycle.times(cycle)
    }
}

/// A request that is sent when its time has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Send {
    pub(super) core: u16,
    pub(super) what: What,
    /// When its instruction asked for it.
    pub(super) since: Time,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// The line of a register of the data cache.
    Data(u8),
    /// The line of a register of the instruction cache.
    Text(u8),
    /// The translation of a page.
    Page(u64),
}

/// A page whose translation has been asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) page: u64,
    pub(super) wait: bool,
    pub(super) since: Time,
}

/// Why nothing can be fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fetching {
    Page(u64),
    Line(u8),
}

/// A TLB with the latest translations beside it, which are found without a search.
pub(super) struct FirstTlb {
    tlb: Tlb,
    latest: [(u64, u64); 8],
}

const NO_PAGE: (u64, u64) = (u64::MAX, 0);

impl FirstTlb {
    fn new(entries: u32, ways: u32) -> FirstTlb {
        FirstTlb { tlb: Tlb::new(entries, ways), latest: [NO_PAGE; 8] }
    }

    /// The frame of a page. The latest are forgotten with every fill, so a page that is used between two fills counts as used
    /// between them; only the order of uses between two fills is lost.
    #[inline]
    pub(super) fn look_up(&mut self, page: u64) -> Option<u64> {
        let at = page as usize % self.latest.len();
        if self.latest[at].0 == page {
            return Some(self.latest[at].1);
        }
        let frame = self.tlb.look_up(0, page)?;
        self.latest[at] = (page, frame);
        Some(frame)
    }

    pub(super) fn fill(&mut self, page: u64, frame: u64) {
        self.tlb.fill(0, page, frame);
        self.latest = [NO_PAGE; 8];
    }

    pub(super) fn invalidate(&mut self, page: u64) {
        self.tlb.invalidate(0, page);
        self.latest = [NO_PAGE; 8];
    }
}

/// A core.
pub(super) struct Core {
    pub(super) number: u16,
    pub(super) threads: Vec<Thread>,
    /// Threads without a job.
    pub(super) free: Vec<u32>,
    pub(super) running: Option<u32>,
    /// Halted jobs, oldest first, and beside each its thread and the page that it waits for.
    pub(super) halted: Vec<Halted>,
    pub(super) halted_threads: Vec<(u32, u64)>,
    /// Pages that have come before the running job was halted because of them: it waited for something older.
    pub(super) early: Vec<u64>,
    pub(super) scheduler: Box<dyn ThreadScheduler>,
    pub(super) window: Window,
    pub(super) stores: Stores,
    pub(super) l1d: L1,
    pub(super) l1i: L1,
    pub(super) dtlb: FirstTlb,
    pub(super) itlb: FirstTlb,
    pub(super) asks: Vec<Ask>,
    pub(super) fetching: Option<Fetching>,
    /// The line of the next operation's text that has been waited for; none if its first is next.
    pub(super) fetch_from: Option<u64>,
    /// The line of text that was fetched last, virtual.
    pub(super) fetched: u64,
    /// The latest atomic in the window.
    pub(super) fence: u64,
    /// Slots: the next instruction is dispatched in `dispatch`, the latest has retired in `retire`. A cycle has as many slots
    /// as the width.
    pub(super) dispatch: u64,
    pub(super) retire: u64,
    pub(super) meter: Option<Box<CoreMeter>>,
    /// Ports of the data cache, in units of a cycle by the ports.
    pub(super) port: u64,
    /// The page, physical, that a core which asks for one at a time waits for.
    pub(super) turn: Option<u64>,
    /// Something has come that operations in the window, or stores, may have waited for.
    pub(super) unsettled: bool,
    /// Nothing runs, and the core waits for a job or a page.
    pub(super) sleeping: bool,
    /// What has delayed dispatch since the last operation.
    pub(super) delayed: Option<Spent>,
    /// The kernel has the core until then: a cycle.
    pub(super) kernel: u64,
    /// The next look at the core.
    pub(super) wake: Option<(Time, Ticket)>,
    /// Time of the requests that wait for a line: of the data cache, then of the instruction cache.
    pub(super) since: [Vec<Time>; 2],
}

impl Core {
    pub(super) fn new(spec: &CpuSpec, number: u16, seed: u64) -> Core {
        let seed = |what: &str| Rng::stream(seed, &format!("cpu/core{number}/{what}")).next_u64();
        let threads = spec.threads.count;
        let times = |cache: &super::spec::L1Spec| vec![Time::ZERO; cache.registers as usize];
        Core {
            number,
            threads: (0..threads).map(|_| Thread::default()).collect(),
            free: (0..threads).rev().collect(),
            running: None,
            halted: Vec::with_capacity(threads as usize),
            halted_threads: Vec::with_capacity(threads as usize),
            early: Vec::new(),
            scheduler: spec.threads.scheduler.build(&()),
            window: Window::new(spec.window),
            stores: Stores::new(spec.store_buffer),
            l1d: L1::new(&spec.l1d, seed("l1d")),
            l1i: L1::new(&spec.l1i, seed("l1i")),
            dtlb: FirstTlb::new(spec.tlb.entries, spec.tlb.ways),
            itlb: FirstTlb::new(spec.tlb.entries, spec.tlb.ways),
            asks: Vec::with_capacity(spec.tlb.misses as usize),
            fetching: None,
            fetch_from: None,
            fetched: u64::MAX,
            fence: 0,
            dispatch: 0,
            retire: 0,
            meter: spec.energy.as_ref().map(|costs| {
                let cycle = Time::period(spec.clock.hz());
                Box::new(CoreMeter::new(costs, number, cycle, spec.width.into()))
            }),
            port: 0,
            turn: None,
            unsettled: false,
            sleeping: false,
            delayed: None,
            kernel: 0,
            wake: None,
            since: [times(&spec.l1d), times(&spec.l1i)],
        }
    }

    /// The thread that runs.
    #[inline]
    pub(super) fn thread(&mut self) -> &mut Thread {
        let running = self.running.expect("a thread runs");
        &mut self.threads[running as usize]
    }

    /// The slot, among those of all cores, of a thread.
    pub(super) fn slot(&self, thread: u32, shape: &Shape) -> u32 {
        u32::from(self.number) * shape.threads + thread
    }

    /// What keeps the core from retiring anything.
    pub(super) fn waits_for(&self) -> Spent {
        if self.sleeping {
            Spent::Idle
        } else if !self.window.is_settled() {
            self.window.get(self.window.retired).cause
        } else if self.fetching.is_some() {
            Spent::Fetch
        } else {
            Spent::Stores
        }
    }

    /// Everything up to a slot has been spent for something.
    #[inline]
    pub(super) fn spend(&mut self, until: u64, what: Spent, stats: &mut CoresStats) {
        if until > self.retire {
            stats.spent[what as usize] += until - self.retire;
            if what == Spent::Idle
                && let Some(meter) = &mut self.meter
            {
                meter.idles(self.retire, until);
            }
            self.retire = until;
        }
    }
}

// What cores have counted.

/// Counters of all cores together.
#[derive(Clone, Debug, Default)]
pub struct CoresStats {
    /// Jobs that have ended.
    pub jobs: u64,
    /// Instructions that have retired, those that were executed again included.
    pub instructions: u64,
    /// Of them, instructions that had retired behind a store whose page was in flash, and were executed again.
    pub repeated: u64,
    /// Instructions in the window that were thrown away because the page of an older one was in flash.
    pub squashed: u64,
    /// Loads, stores and atomics that have looked into the first-level data cache.
    pub data_accesses: u64,
    /// Of them, those that found what they needed.
    pub data_hits: u64,
    /// Loads that took their value from the store buffer because their line was missing.
    pub forwarded: u64,
    /// Lines of instructions looked up.
    pub fetches: u64,
    /// Of them, found.
    pub fetch_hits: u64,
    /// Requests for lines sent.
    pub requests: u64,
    /// Lines sent back changed.
    pub write_backs: u64,
    /// Lines taken away by other cores.
    pub probed: u64,
    /// Translations asked of the second-level TLBs.
    pub translations: u64,
    /// Answers that said that a page is in flash.
    pub signals: u64,
    /// Jobs halted because a page was in flash.
    pub halts: u64,
    /// Of them, because of a store that had retired.
    pub store_halts: u64,
    /// Halted jobs resumed because there were as many as there may be.
    pub crowded: u64,
    /// From the begin of a job to its end, picoseconds.
    pub service: Batched,
    /// From the arrival of a job to its end, picoseconds.
    pub latency: Batched,
    /// Picoseconds from requests to answers, summed over requests for lines and translations: what the stages of all parts tile.
    pub waited: u128,
    /// Slots (a cycle has as many as the width) of all cores by what they were spent for.
    pub spent: [u64; Spent::COUNT],
}

// A thread: its job, and the operations of it that may still be executed.

/// A user-level thread. Its operations are numbered from one; a need of zero is none.
#[derive(Debug, Default)]
pub(super) struct Thread {
    tape: Vec<Op>,
    /// Number of the tape's first operation.
    first: u64,
    /// The operation that is dispatched next.
    pub(super) next: u64,
    /// The job has no more operations than the tape holds.
    pub(super) ended: bool,
    /// The operation with which the thread went on when it was halted last: its accesses are completed, whatever it takes. Zero
    /// if there is none.
    pub(super) must: u64,
    /// When the job came.
    pub(super) arrived: Time,
    /// When it began to run.
    pub(super) begun: Time,
}

impl Thread {
    /// Begins a job.
    pub(super) fn begin(&mut self, arrived: Time, begun: Time) {
        self.tape.clear();
        *self = Thread {
            tape: std::mem::take(&mut self.tape),
            first: 1,
            next: 1,
            arrived,
            begun,
            ..Thread::default()
        };
    }

    /// The number behind that of the last operation that is known.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.first + self.tape.len() as u64
    }

    /// An operation of the tape.
    #[inline]
    pub(super) fn op(&self, number: u64) -> &Op {
        &self.tape[(number - self.first) as usize]
    }

    /// The tape, to be continued; operations before `keep` are not needed any more.
    pub(super) fn tape(&mut self, keep: u64) -> &mut Vec<Op> {
        let old = (keep - self.first) as usize;
        // Moving what is kept costs more than the memory: only when most of it is old.
        if old > 1024.max(self.tape.len() / 2) {
            self.tape.drain(..old);
            self.first = keep;
        }
        &mut self.tape
    }

    /// Instructions of the operations in a range of numbers.
    pub(super) fn instructions(&self, numbers: std::ops::Range<u64>) -> u64 {
        numbers.map(|number| u64::from(self.op(number).count)).sum()
    }
}

// What happens inside cores, what leaves them, and the tags of their requests.

/// Bytes of a line.
pub(super) const LINE: u64 = CPU_LINE;

/// Bit of a request's tag that says that it is for instructions.
pub(super) const TEXT: u32 = 1 << 8;

/// Tag of a line that is sent back changed: nobody waits for its answer.
pub(super) const WRITE_BACK: u32 = 1 << 9;

/// The outcome of a look at a TLB.
pub(super) enum Translated {
    /// The first byte of the page, physical.
    Frame(u64),
    /// It has been asked for.
    Asked,
    /// It cannot be asked for now.
    Full,
}

/// What leaves the cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A line is wanted, or sent back changed. Its port is the core.
    Access(Access),
    /// A translation is wanted. Its port is the core.
    Translate(Translation),
    /// The answer to a probe.
    Probed(Probed),
    /// A core does not have a line any more that it had not changed.
    Dropped {
        /// The core.
        core: u16,
        /// First byte of the line, physical.
        address: u64,
    },
}

engine::events! {
    /// What happens inside cores.
    pub enum Event {
        /// A core can go on.
        Go(u16),
        /// A request's time has come.
        Send(u32),
    }
}
