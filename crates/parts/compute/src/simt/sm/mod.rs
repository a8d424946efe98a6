//! Multiprocessor: the warps and blocks that it holds, and its actions in a cycle.

mod coalesce;
mod issue;
mod l1;
mod load_store;

use super::sched::{WarpScheduler, Warps};
use super::spec::{GpuSpec, Model};
use super::stats::{Counters, GpuStats, SmStats};
use coalesce::{Banks, MOST_WORDS};
use engine::{Cx, Slab, Time};
use issue::Helper;
use l1::{Ring, Wake};
use load_store::{LoadStore, Op};
use proto::memory::{Access, Help, Tally, Translation};
use proto::simt::{Inst, InstKind, LANES, Launch, Programs, Tape, WarpStart};

/// Environment of a multiprocessor.
pub(super) struct Env<'a> {
    pub model: &'a Model,
    pub stats: &'a mut GpuStats,
    pub tally: &'a mut Tally,
    /// Position of each application's present kernel among the counted ones.
    pub kernels: &'a [usize],
    /// Applications of blocks that have ended.
    pub ended: &'a mut Vec<u8>,
    pub programs: &'a mut dyn Programs,
    pub now: Time,
    /// Present cycle; between cycles, the next.
    pub cycle: u64,
}

impl Env<'_> {
    #[inline]
    fn counters(&mut self, app: u8) -> &mut Counters {
        &mut self.stats.kernels[self.kernels[usize::from(app)]].counters
    }
}

/// Resources of a multiprocessor that a block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    pub warps: u32,
    /// Threads, in whole warps.
    pub threads: u32,
    pub registers: u64,
    pub shared: u64,
}

impl Needs {
    pub(super) fn of(launch: &Launch) -> Needs {
        let warps = launch.threads.div_ceil(LANES as u32);
        let threads = warps.saturating_mul(LANES as u32);
        let registers = u64::from(threads) * u64::from(launch.registers);
        Needs { warps, threads, registers, shared: launch.shared.into() }
    }
}

/// Block on a multiprocessor.
struct Block {
    app: u8,
    needs: Needs,
    /// Warps that still hold a slot.
    held: u32,
    /// Warps that have not issued their last instruction.
    running: u32,
    /// Warps that wait at a barrier.
    waiting: Warps,
}

/// Reason why a multiprocessor issues nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Idle {
    Empty,
    LoadStore,
    Arithmetic,
    Memory,
}

/// State of one multiprocessor.
pub(super) struct Sm {
    index: u16,
    scheduler: Box<dyn WarpScheduler>,
    warps: Vec<Warp>,
    blocks: Slab<Block>,
    /// Slots without a warp.
    free: Warps,
    /// Warps whose next instruction waits for no register.
    ready: Warps,
    /// Warps that wait for a value from global memory or at a barrier.
    far: Warps,
    /// Warps whose next instruction is for the load-store unit.
    to_memory: Warps,
    /// Warps of applications that are held.
    held: Warps,
    /// Warps that may issue: all, until the multiprocessor is stopped.
    allowed: Warps,
    /// Warps whose next instruction is a special function, and the cycle in which the next may be issued.
    to_sfu: Warps,
    sfu_free: u64,
    /// Warps whose next instruction is for shared memory, and the cycle in which the next may be issued.
    to_shared: Warps,
    shared_free: u64,
    /// Ready warps among which the scheduler last declined to choose.
    declined: Warps,
    ring: Ring,
    helper: Helper,
    banks: Banks,
    load_store: LoadStore,
    blocks_left: u32,
    threads_left: u32,
    registers_left: u64,
    shared_left: u64,
    /// First cycle that has not been counted, and the class of the cycles since.
    uncounted: u64,
    idle: Idle,
    finished: Vec<Op>,
}

impl Sm {
    pub(super) fn new(index: u16, spec: &GpuSpec, model: &Model) -> Sm {
        let longest = model.alu.max(model.sfu).max(model.shared + MOST_WORDS);
        Sm {
            index,
            scheduler: spec.scheduler.build(&()),
            warps: (0..model.warps).map(|_| Warp::none()).collect(),
            blocks: Slab::default(),
            free: Warps::MAX >> (Warps::BITS - model.warps),
            ready: 0,
            far: 0,
            to_memory: 0,
            held: 0,
            allowed: Warps::MAX,
            to_sfu: 0,
            sfu_free: 0,
            to_shared: 0,
            shared_free: 0,
            declined: 0,
            ring: Ring::new(longest),
            helper: Helper::default(),
            banks: Banks::new(spec.shared.banks),
            load_store: LoadStore::new(index, spec),
            blocks_left: model.blocks,
            threads_left: model.threads,
            registers_left: model.registers.into(),
            shared_left: model.shared_bytes,
            uncounted: 0,
            idle: Idle::Empty,
            finished: Vec::new(),
        }
    }

    /// Returns whether the multiprocessor has room for a block.
    #[inline]
    pub(super) fn fits(&self, needs: &Needs) -> bool {
        self.blocks_left > 0
            && self.free.count_ones() >= needs.warps
            && self.threads_left >= needs.threads
            && self.registers_left >= needs.registers
            && self.shared_left >= needs.shared
    }

    /// Starts a block.
    pub(super) fn start(&mut self, app: u8, number: u32, needs: Needs, env: &mut Env<'_>) {
        self.count_idle(env.cycle, &mut env.stats.sms[usize::from(self.index)]);
        self.blocks_left -= 1;
        self.threads_left -= needs.threads;
        self.registers_left -= needs.registers;
        self.shared_left -= needs.shared;
        let warps = needs.warps;
        let block = self.blocks.insert(Block { app, needs, held: warps, running: warps, waiting: 0 });
        // All slots are taken before any warp runs: a warp that ends at once must not give its slot to its sibling.
        let mut slots = self.free;
        for _ in 0..warps {
            self.free &= self.free - 1;
        }
        slots &= !self.free;
        // Blocks of held applications do not begin: these bits belong to earlier warps.
        self.held &= !slots;
        for (warp, slot) in super::sched::slots(slots).enumerate() {
            self.warps[slot as usize].begin(app, block);
            self.scheduler.enter(slot);
            env.programs.start(self.global(slot), WarpStart { app, block: number, warp: warp as u32 });
            self.advance(slot, env);
        }
        self.declined = 0;
    }

    #[inline]
    fn global(&self, slot: u32) -> u32 {
        u32::from(self.index) * self.warps.len() as u32 + slot
    }

    /// Runs a cycle.
    pub(super) fn tick(&mut self, env: &mut Env<'_>, cx: &mut impl Cx<Event, Out>) {
        self.count_idle(env.cycle, &mut env.stats.sms[usize::from(self.index)]);
        self.declined = 0;
        while let Some(wake) = self.ring.pop(env.cycle) {
            self.written(wake, env);
        }
        if let Some(op) = self.load_store.step(env, cx) {
            self.finish(op, env);
        }
        let mut issued = self.help_on(env, cx);
        while issued < env.model.issue {
            let Some(slot) = self.pick(env) else { break };
            self.issue(slot, env);
            issued += 1;
        }
        self.idle = self.why_idle(env);
        self.uncounted = env.cycle + 1;
        let cycles = &mut env.stats.sms[usize::from(self.index)];
        match issued {
            0 => self.idle.count(cycles, 1),
            _ => cycles.busy += 1,
        }
    }

    /// Issues the helper thread's next instruction, if possible; returns the number issued.
    #[inline]
    fn help_on(&mut self, env: &mut Env<'_>, cx: &mut impl Cx<Event, Out>) -> u32 {
        if self.helper.due(env.cycle) != env.cycle {
            return 0;
        }
        env.stats.helper_instructions += 1;
        if let Some(help) = self.helper.issue(env.cycle, env.model.alu) {
            cx.emit(Out::Helped(help));
        }
        1
    }

    /// First cycle at or after `from` with work; `None` while everything waits for answers.
    pub(super) fn due(&self, from: u64, model: &Model) -> Option<u64> {
        let open = self.open(from, model);
        if open != 0 && open != self.declined {
            return Some(from);
        }
        let mut due = self.load_store.due(from).unwrap_or(u64::MAX);
        due = due.min(self.ring.next(from).unwrap_or(u64::MAX)).min(self.helper.due(from));
        for (warps, free) in [(self.to_sfu, self.sfu_free), (self.to_shared, self.shared_free)] {
            if self.ready & warps != 0 && free > from {
                due = due.min(free);
            }
        }
        (due != u64::MAX).then_some(due)
    }

    fn why_idle(&self, env: &Env<'_>) -> Idle {
        let ready = self.ready & !(self.to_memory & self.held);
        if ready & self.to_memory != 0 && self.load_store.is_full(env.model) {
            Idle::LoadStore
        } else if ready != 0 || !self.ring.is_empty() {
            Idle::Arithmetic
        } else if self.is_empty() {
            Idle::Empty
        } else {
            Idle::Memory
        }
    }

    fn is_empty(&self) -> bool {
        self.free.count_ones() as usize == self.warps.len()
    }

    /// Counts the idle cycles before `cycle`.
    pub(super) fn count_idle(&mut self, cycle: u64, cycles: &mut SmStats) {
        let idle = cycle.saturating_sub(self.uncounted);
        if idle > 0 {
            self.idle.count(cycles, idle);
            self.uncounted = cycle;
        }
    }

    /// Prefetches for an access that will be answered soon.
    #[inline]
    pub(super) fn expect(&self, access: &Access) {
        self.load_store.expect(access);
    }

    /// Handles the answer to an access.
    pub(super) fn answer(&mut self, access: Access, env: &mut Env<'_>) {
        self.declined = 0;
        let mut finished = std::mem::take(&mut self.finished);
        self.load_store.answer(access, &mut finished, env);
        for op in finished.drain(..) {
            self.finish(op, env);
        }
        self.finished = finished;
        if self.is_empty() {
            self.count_idle(env.cycle, &mut env.stats.sms[usize::from(self.index)]);
            self.idle = Idle::Empty;
        }
    }

    /// Handles the answer to a translation.
    pub(super) fn translated(&mut self, translation: Translation, env: &mut Env<'_>) {
        self.load_store.translated(translation, env);
    }

    /// Holds or releases the warps of an application.
    pub(super) fn hold(&mut self, app: u8, held: bool) {
        let its = self.warps.iter().enumerate().filter(|(_, warp)| warp.app == app);
        let its = its.fold(0, |warps: Warps, (slot, _)| warps | 1 << slot);
        self.held = if held { self.held | its } else { self.held & !its };
        self.declined = 0;
    }

    /// Gives the helper thread more work.
    pub(super) fn help(&mut self, help: Help) {
        self.helper.push(help);
    }

    /// Stops issue for applications; issued instructions complete.
    pub(super) fn stop(&mut self) {
        self.allowed = 0;
    }

    /// Removes a translation.
    pub(super) fn invalidate(&mut self, app: u8, page: u64) {
        self.load_store.invalidate(app, page);
    }

    /// Number of unanswered accesses and translations.
    pub(super) fn outstanding(&self) -> usize {
        self.load_store.outstanding()
    }
}

#[cfg(test)]
impl Sm {
    pub(super) fn know(&mut self, app: u8, page: u64, frame: u64) {
        self.load_store.know(app, page, frame);
    }
}

impl Idle {
    fn count(self, sm: &mut SmStats, cycles: u64) {
        match self {
            Idle::Empty => {}
            Idle::LoadStore => sm.load_store += cycles,
            Idle::Arithmetic => sm.arithmetic += cycles,
            Idle::Memory => sm.memory += cycles,
        }
    }
}

// Lines of a memory instruction.

/// Line of an instruction.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Virtual page, in reaches.
    pub page: u64,
    /// First byte inside the page.
    pub offset: u64,
    /// First byte, physical.
    pub physical: u64,
    /// Cycle of the look-up's outcome, if nothing is before it.
    pub outcome: u64,
    /// Latest milestone.
    pub since: Time,
    /// Instruction of the line.
    pub op: u32,
    /// Bytes touched.
    pub bytes: u8,
    /// True if the look-up of its page is still to be counted.
    pub counts: bool,
}

/// Set of registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Registers([u64; 4]);

impl Registers {
    #[inline]
    fn set(&mut self, register: u8) {
        self.0[usize::from(register >> 6)] |= 1 << (register & 63);
    }
    #[inline]
    fn clear(&mut self, register: u8) {
        self.0[usize::from(register >> 6)] &= !(1 << (register & 63));
    }
    #[inline]
    fn has(&self, register: u8) -> bool {
        self.0[usize::from(register >> 6)] >> (register & 63) & 1 == 1
    }
    /// Returns whether an instruction reads or writes one of the registers. Register 0 means none and is never in a
    /// set.
    #[inline]
    fn hold_up(&self, inst: &Inst) -> bool {
        let [a, b, c] = inst.from;
        self.has(a) | self.has(b) | self.has(c) | self.has(inst.to)
    }
}

/// Warp. Its slot is freed when everything that it began has ended.
struct Warp {
    /// Piece of the warp's program.
    pub tape: Tape,
    /// Position of the next instruction on the tape.
    pub next: usize,
    /// Next instruction. A copy: it is read several times, and the tape is far away each time.
    pub inst: Inst,
    /// Remaining issues of this instruction; zero before the first.
    pub left: u16,
    /// True if the program goes on behind the tape.
    pub goes_on: bool,
    /// True if the last instruction has been issued.
    pub over: bool,
    /// True if the next instruction waits for a register.
    pub blocked: bool,
    /// Application of the warp.
    pub app: u8,
    /// Block of the warp, by its number in the multiprocessor.
    pub block: u32,
    /// Registers with a pending write.
    pub pending: Registers,
    /// Registers whose pending values come from global memory.
    pub loading: Registers,
    /// Results and answers still to come.
    pub outstanding: u32,
}

impl Warp {
    /// Slot without a warp.
    fn none() -> Warp {
        let (kind, from) = (InstKind::Alu, [0; 3]);
        let inst = Inst { kind, width: 0, to: 0, from, count: 1, pc: 0, mask: 0, addresses: 0 };
        Warp {
            tape: Tape::default(),
            next: 0,
            inst,
            left: 0,
            goes_on: false,
            over: true,
            blocked: false,
            app: 0,
            block: 0,
            pending: Registers::default(),
            loading: Registers::default(),
            outstanding: 0,
        }
    }

    /// Addresses of the active lanes of the next instruction.
    #[inline]
    fn addresses(&self) -> &[u64] {
        let first = self.inst.addresses as usize;
        &self.tape.addresses[first..first + self.inst.mask.count_ones() as usize]
    }

    /// Begins a warp; the tape keeps its memory.
    fn begin(&mut self, app: u8, block: u32) {
        debug_assert_eq!(self.outstanding, 0, "a slot was given away too early");
        self.tape.clear();
        self.next = 0;
        self.left = 0;
        self.goes_on = true;
        self.over = false;
        self.blocked = false;
        self.app = app;
        self.block = block;
    }
}

// Events and outputs of the multiprocessors.

/// Event of the multiprocessors: a cycle in which one of them has work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A cycle.
    Cycle,
}

impl engine::Event for Event {
    const BITS: u32 = 0;
    #[inline]
    fn word(self) -> u64 {
        0
    }
    #[inline]
    fn from_word(_: u64) -> Event {
        Event::Cycle
    }
}

/// Output of the multiprocessors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// Read, write or atomic change of a line.
    Access(Access),
    /// Request for a translation. Pages and frames are numbers, in units of the reach.
    Translate(Translation),
    /// Completion of a helper thread's instructions.
    Helped(Help),
    /// End of an application: no kernel is left.
    Finished(u8),
}
