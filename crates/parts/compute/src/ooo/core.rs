//! A core: state, internal events, messages, and the tags of its requests.

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

/// State shared by all cores.
pub(super) struct Shared {
    pub(super) shape: Shape,
    pub(super) load: Load,
    /// Requests to send later.
    pub(super) sends: Slab<Send>,
    pub(super) stats: CoresStats,
    pub(super) tally: Tally,
    /// Lines changed by cores, since the beginning: each transition from unchanged to changed counts.
    pub(super) changed: u64,
    /// Detector of steady job times, while wanted.
    pub(super) settling: Option<Mser>,
    /// Sum and number of the measured response times of flash.
    pub(super) responses: (u128, u64),
    /// End of the last job.
    pub(super) over_at: Option<Time>,
    /// Latest end of a job so far.
    pub(super) latest: Time,
    /// Most cycles for which the kernel has had a core in advance.
    pub(super) lead: u64,
}

impl Shared {
    /// Mean response time of flash.
    pub(super) fn response(&self) -> Option<Time> {
        let (sum, count) = self.responses;
        (count > 0).then(|| Time::from_ps((sum / u128::from(count)) as u64))
    }
}

/// Times and sizes in the cores' units.
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
    /// Outcome of an access whose page is in flash, and of a translation whose tables are.
    pub(super) absent: Absent,
    pub(super) waits: bool,
    /// Page size, bytes.
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

    /// First cycle that begins at a time or later.
    #[inline]
    pub(super) fn cycle_of(&self, time: Time) -> u64 {
        time.ps().div_ceil(self.cycle.ps())
    }

    /// Beginning of a cycle.
    #[inline]
    pub(super) fn time_of(&self, cycle: u64) -> Time {
        self.cycle.times(cycle)
    }
}

/// Request to send at a later time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Send {
    pub(super) core: u16,
    pub(super) what: What,
    /// Time at which its instruction issued it.
    pub(super) since: Time,
}

/// Object of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// Line of a data-cache register.
    Data(u8),
    /// Line of an instruction-cache register.
    Text(u8),
    /// Translation of a page.
    Page(u64),
}

/// Page whose translation has been requested.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) page: u64,
    pub(super) wait: bool,
    pub(super) since: Time,
}

/// Reason why fetch is blocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fetching {
    Page(u64),
    Line(u8),
}

/// TLB with the latest translations beside it, which need no search.
pub(super) struct FirstTlb {
    tlb: Tlb,
    latest: [(u64, u64); 8],
}

const NO_PAGE: (u64, u64) = (u64::MAX, 0);

impl FirstTlb {
    fn new(entries: u32, ways: u32) -> FirstTlb {
        FirstTlb { tlb: Tlb::new(entries, ways), latest: [NO_PAGE; 8] }
    }

    /// Frame of a page. The latest translations are cleared with every fill, so a page used between two fills counts as
    /// used between them; only the order of uses between two fills is lost.
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

/// State of a core.
pub(super) struct Core {
    pub(super) number: u16,
    pub(super) threads: Vec<Thread>,
    /// Threads without a job.
    pub(super) free: Vec<u32>,
    pub(super) running: Option<u32>,
    /// Halted jobs, oldest first, each with its thread and the page that it waits for.
    pub(super) halted: Vec<Halted>,
    pub(super) halted_threads: Vec<(u32, u64)>,
    /// Pages that arrived before the running job was halted because of them: it waited for an older access.
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
    /// Line of the next operation's text that was waited for; `None` if its first line is next.
    pub(super) fetch_from: Option<u64>,
    /// Line of text fetched last, virtual.
    pub(super) fetched: u64,
    /// Latest atomic in the window.
    pub(super) fence: u64,
    /// Slots: the next instruction dispatches in `dispatch`, the latest has retired in `retire`. A cycle has `width`
    /// slots.
    pub(super) dispatch: u64,
    pub(super) retire: u64,
    pub(super) meter: Option<Box<CoreMeter>>,
    /// Ports of the data cache, in cycles divided by the number of ports.
    pub(super) port: u64,
    /// Physical page that a core waits for if it requests one page at a time.
    pub(super) turn: Option<u64>,
    /// True if data have arrived that operations in the window, or stores, may have waited for.
    pub(super) unsettled: bool,
    /// True if nothing runs, and the core waits for a job or a page.
    pub(super) sleeping: bool,
    /// Cause of dispatch delay since the last operation.
    pub(super) delayed: Option<Spent>,
    /// Cycle until which the kernel has the core.
    pub(super) kernel: u64,
    /// Next wake-up of the core.
    pub(super) wake: Option<(Time, Ticket)>,
    /// Milestones of the requests that wait for a line: of the data cache, then of the instruction cache.
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

    /// Running thread.
    #[inline]
    pub(super) fn thread(&mut self) -> &mut Thread {
        let running = self.running.expect("a thread runs");
        &mut self.threads[running as usize]
    }

    /// Slot of a thread among those of all cores.
    pub(super) fn slot(&self, thread: u32, shape: &Shape) -> u32 {
        u32::from(self.number) * shape.threads + thread
    }

    /// Cause that keeps the core from retiring.
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

    /// Accounts all slots up to a given one to a cause.
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

// Counters of the cores.

/// Counters of all cores together.
#[derive(Clone, Debug, Default)]
pub struct CoresStats {
    /// Jobs completed.
    pub jobs: u64,
    /// Instructions retired, including those executed again.
    pub instructions: u64,
    /// Instructions executed again because they had retired behind a store whose page was in flash; part of
    /// `instructions`.
    pub repeated: u64,
    /// Instructions in the window squashed because the page of an older one was in flash.
    pub squashed: u64,
    /// Loads, stores and atomics that accessed the first-level data cache.
    pub data_accesses: u64,
    /// Data accesses that hit.
    pub data_hits: u64,
    /// Loads forwarded from the store buffer because their line was missing.
    pub forwarded: u64,
    /// Instruction lines looked up.
    pub fetches: u64,
    /// Instruction lines that hit.
    pub fetch_hits: u64,
    /// Line requests sent.
    pub requests: u64,
    /// Dirty lines sent back.
    pub write_backs: u64,
    /// Lines taken away by other cores.
    pub probed: u64,
    /// Translation requests to the second-level TLBs.
    pub translations: u64,
    /// Answers that signalled a page in flash.
    pub signals: u64,
    /// Jobs halted because a page was in flash.
    pub halts: u64,
    /// Jobs halted because of a store that had retired; part of `halts`.
    pub store_halts: u64,
    /// Halted jobs resumed because the limit of halted jobs was reached.
    pub crowded: u64,
    /// Time from the beginning of a job to its end, picoseconds.
    pub service: Batched,
    /// Time from the arrival of a job to its end, picoseconds.
    pub latency: Batched,
    /// Time from requests to answers, picoseconds, summed over requests for lines and translations: the stages of all
    /// parts tile it.
    pub waited: u128,
    /// Slots of all cores by cause; a cycle has `width` slots.
    pub spent: [u64; Spent::COUNT],
}

// Threads: the job, and its operations that may still be executed.

/// User-level thread. Operations are numbered from one; a need of zero is none.
#[derive(Debug, Default)]
pub(super) struct Thread {
    tape: Vec<Op>,
    /// Number of the tape's first operation.
    first: u64,
    /// Operation to dispatch next.
    pub(super) next: u64,
    /// True if the job has no more operations than the tape holds.
    pub(super) ended: bool,
    /// Operation with which the thread resumed after its last halt: its accesses are completed in any case. Zero if
    /// none.
    pub(super) must: u64,
    /// Arrival time of the job.
    pub(super) arrived: Time,
    /// Start time of the job.
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

    /// Number after that of the last known operation.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.first + self.tape.len() as u64
    }

    /// Operation of the tape.
    #[inline]
    pub(super) fn op(&self, number: u64) -> &Op {
        &self.tape[(number - self.first) as usize]
    }

    /// Returns the tape for appending; operations before `keep` may be dropped.
    pub(super) fn tape(&mut self, keep: u64) -> &mut Vec<Op> {
        let old = (keep - self.first) as usize;
        // Moving the kept part costs more than the memory, unless most of the tape is old.
        if old > 1024.max(self.tape.len() / 2) {
            self.tape.drain(..old);
            self.first = keep;
        }
        &mut self.tape
    }

    /// Number of instructions of the operations in a range of numbers.
    pub(super) fn instructions(&self, numbers: std::ops::Range<u64>) -> u64 {
        numbers.map(|number| u64::from(self.op(number).count)).sum()
    }
}

// Internal events of cores, their outputs, and the tags of their requests.

/// Line size, bytes.
pub(super) const LINE: u64 = CPU_LINE;

/// Tag bit that marks an instruction request.
pub(super) const TEXT: u32 = 1 << 8;

/// Tag of a dirty line sent back: it needs no answer.
pub(super) const WRITE_BACK: u32 = 1 << 9;

/// Outcome of a TLB look-up.
pub(super) enum Translated {
    /// First byte of the page, physical.
    Frame(u64),
    /// The translation has been requested.
    Asked,
    /// The translation cannot be requested now.
    Full,
}

/// Output of the cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// Request for a line, or a dirty line sent back. Its port is the core.
    Access(Access),
    /// Request for a translation. Its port is the core.
    Translate(Translation),
    /// Answer to a probe.
    Probed(Probed),
    /// An unchanged line that a core no longer has.
    Dropped {
        /// Number of the core.
        core: u16,
        /// First byte of the line, physical.
        address: u64,
    },
}

engine::events! {
    /// Internal event of the cores.
    pub enum Event {
        /// A core can go on.
        Go(u16),
        /// A request is due.
        Send(u32),
    }
}
