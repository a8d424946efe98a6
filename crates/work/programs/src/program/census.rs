//! Census of a program's work, without a machine.

use std::collections::VecDeque;

use proto::memory::{LINE, PAGE};
use proto::simt::{Inst, InstKind, LANES, Tape};
use rustc_hash::FxHashMap;

use crate::program::{Kernel, Program, WarpAt};

/// Accesses of one kind to global memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// Number of warp instructions.
    pub instructions: u64,
    /// Number of their lanes.
    pub lanes: u64,
    /// Number of 128 B lines that they touch: lanes of one instruction in one line are one request.
    pub lines: u64,
    /// Bytes that the lanes read or write.
    pub bytes: u64,
}

/// Counts of a program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Census {
    /// Every kernel, in order.
    pub kernels: Vec<Kernel>,
    /// Number of warp instructions, consecutive arithmetic counted individually.
    pub warp_instructions: u64,
    /// Number of warp instructions times active lanes.
    pub thread_instructions: u64,
    /// Number of tape entries: consecutive arithmetic is one. The cost of a machine's run grows with it.
    pub entries: u64,
    /// Number of arithmetic and special-function warp instructions.
    pub arithmetic: u64,
    /// Number of these times active lanes.
    pub thread_arithmetic: u64,
    /// Loads from global memory.
    pub loads: Requests,
    /// Stores to global memory.
    pub stores: Requests,
    /// Atomic operations on global memory.
    pub atomics: Requests,
    /// Number of warp instructions on shared memory.
    pub shared: u64,
    /// Number of warp barriers.
    pub barriers: u64,
    /// Number of blocks in which some warp passed fewer barriers than another: valid only if it had ended.
    pub uneven_blocks: u64,
    /// Bytes of the address space.
    pub footprint: u64,
    /// Number of 4 KiB pages that a load, store or atomic touched.
    pub touched_pages: u64,
    /// Number of 4 KiB pages that a store or atomic touched.
    pub written_pages: u64,
    /// Digest of every instruction and address.
    pub digest: u64,
}

impl Census {
    /// Returns the read ratio: the share of requests for 128 B lines that are not stores. Atomics count as reads,
    /// because a warp waits for their answer. ZnG's Table II must do so too, as it gives 1 for degree centrality,
    /// which writes by atomics only.
    pub fn read_ratio(&self) -> f64 {
        let reads = self.loads.lines + self.atomics.lines;
        reads as f64 / (reads + self.stores.lines).max(1) as f64
    }
    /// Returns the share of loads among requests for lines: atomics count as writes.
    pub fn load_ratio(&self) -> f64 {
        let all = self.loads.lines + self.atomics.lines + self.stores.lines;
        self.loads.lines as f64 / all.max(1) as f64
    }
    /// Returns the read ratio of warp instructions instead of lines.
    pub fn instruction_read_ratio(&self) -> f64 {
        let reads = self.loads.instructions + self.atomics.instructions;
        reads as f64 / (reads + self.stores.instructions).max(1) as f64
    }
    /// Returns the bytes of the pages touched.
    pub fn touched(&self) -> u64 {
        self.touched_pages * PAGE
    }
    /// Returns the arithmetic intensity: thread arithmetic per byte read or written in global memory.
    pub fn intensity(&self) -> f64 {
        let bytes = self.loads.bytes + self.stores.bytes + self.atomics.bytes;
        self.thread_arithmetic as f64 / bytes.max(1) as f64
    }
    /// Returns the mean share of active lanes in an instruction.
    pub fn lane_use(&self) -> f64 {
        self.thread_instructions as f64 / (self.warp_instructions.max(1) * LANES as u64) as f64
    }
}

/// Number of warps active at a time: 16 multiprocessors of 80 (ZnG, Table I).
const RESIDENT: u32 = 16 * 80;

/// Runs a program to its end without a machine: blocks begin in order as slots become free, and warps take turns, one
/// step each.
pub fn census(program: &mut dyn Program) -> Census {
    census_within(program, u64::MAX, |_| {}).0
}

/// Runs [`census`] up to about `most` tape entries; returns whether the program has ended. `told` sees the counts
/// periodically.
pub fn census_within(program: &mut dyn Program, most: u64, mut told: impl FnMut(&Census)) -> (Census, bool) {
    let pages = (program.space().footprint() / PAGE) as usize;
    let mut counter = Counter { touched: vec![0; pages], ..Counter::default() };
    counter.census.footprint = program.space().footprint();
    let mut goes_on = |census: &Census| {
        told(census);
        census.entries < most
    };
    let mut ended = true;
    while ended && let Some(kernel) = program.launch() {
        counter.census.kernels.push(kernel);
        ended = run(program, kernel, &mut counter, &mut goes_on);
    }
    let census = &mut counter.census;
    census.touched_pages = counter.touched.iter().filter(|p| **p != 0).count() as u64;
    census.written_pages = counter.touched.iter().filter(|p| **p & WRITTEN != 0).count() as u64;
    census.digest = counter.digest.value();
    (counter.census, ended)
}

/// Number of steps between two calls of `told`.
const STEPS: u64 = 1 << 16;

/// A block in progress.
struct Block {
    /// Number of its warps that have not ended.
    live: u32,
    /// Slots of its warps that wait at the barrier, with the number of barriers passed.
    waiting: Vec<(u32, u32)>,
    fewest: u32,
    most: u32,
}

/// Runs a kernel; returns whether it has ended.
fn run(
    program: &mut dyn Program,
    kernel: Kernel,
    counter: &mut Counter,
    goes_on: &mut dyn FnMut(&Census) -> bool,
) -> bool {
    let warps = kernel.threads.div_ceil(LANES as u32);
    // A block begins as a whole, so at least one must fit.
    let mut free: Vec<u32> = (0..RESIDENT.max(warps)).rev().collect();
    // Slots in round-robin order, with their block and the number of barriers passed.
    let mut turns: VecDeque<(u32, u32, u32)> = VecDeque::new();
    let mut blocks: FxHashMap<u32, Block> = FxHashMap::default();
    let (mut next, mut tape) = (0, Tape::default());
    loop {
        while next < kernel.blocks && free.len() >= warps as usize {
            for warp in 0..warps {
                let slot = free.pop().expect("there are enough");
                program.start(slot, WarpAt::new(next, warp, kernel.threads));
                turns.push_back((slot, next, 0));
            }
            blocks.insert(next, Block { live: warps, waiting: Vec::new(), fewest: u32::MAX, most: 0 });
            next += 1;
        }
        let Some((slot, number, passed)) = turns.pop_front() else {
            assert!(blocks.is_empty(), "warps wait at a barrier that no warp reaches");
            return true;
        };
        counter.steps += 1;
        if counter.steps.is_multiple_of(STEPS) && !goes_on(&counter.census) {
            return false;
        }
        tape.clear();
        let more = program.step(slot, 0, &mut tape);
        assert!(!more || !tape.insts.is_empty(), "a step without an instruction");
        counter.tape(&tape);
        let block = blocks.get_mut(&number).expect("its warps live");
        if !more {
            block.live -= 1;
            (block.fewest, block.most) = (block.fewest.min(passed), block.most.max(passed));
            free.push(slot);
        } else if tape.insts.last().is_some_and(|inst| inst.kind == InstKind::Barrier) {
            block.waiting.push((slot, passed + 1));
        } else {
            turns.push_back((slot, number, passed));
        }
        if block.live as usize == block.waiting.len() {
            turns.extend(block.waiting.drain(..).map(|(slot, passed)| (slot, number, passed)));
        }
        if block.live == 0 {
            counter.census.uneven_blocks += u64::from(block.fewest != block.most);
            blocks.remove(&number);
        }
    }
}

/// Marks of a page: touched, written.
const TOUCHED: u8 = 1;
const WRITTEN: u8 = 2;

#[derive(Default)]
struct Counter {
    census: Census,
    /// Number of warp steps.
    steps: u64,
    /// Marks of every page of the space.
    touched: Vec<u8>,
    digest: engine::Digest,
}

impl Counter {
    fn tape(&mut self, tape: &Tape) {
        for inst in &tape.insts {
            self.inst(inst, &tape.addresses);
        }
    }

    fn inst(&mut self, inst: &Inst, addresses: &[u64]) {
        let lanes = u64::from(inst.mask.count_ones());
        let count = u64::from(inst.count);
        self.census.entries += 1;
        self.census.warp_instructions += count;
        self.census.thread_instructions += count * lanes;
        self.digest.word(inst.kind as u64 | u64::from(inst.pc) << 8 | count << 48);
        self.digest.word(u64::from(inst.mask) | u64::from(inst.to) << 32 | u64::from(inst.width) << 40);
        let marks = match inst.kind {
            InstKind::Alu | InstKind::Sfu => {
                self.census.arithmetic += count;
                self.census.thread_arithmetic += count * lanes;
                return;
            }
            InstKind::Barrier => {
                self.census.barriers += 1;
                return;
            }
            InstKind::SharedLoad | InstKind::SharedStore => {
                self.census.shared += 1;
                return;
            }
            InstKind::Load => TOUCHED,
            InstKind::Store | InstKind::Atomic => TOUCHED | WRITTEN,
        };
        let from = inst.addresses as usize;
        let addresses = &addresses[from..from + lanes as usize];
        let mut lines = [0; LANES];
        let mut distinct = 0;
        for address in addresses {
            self.digest.word(*address);
            self.touched[(address / PAGE) as usize] |= marks;
            let line = address / LINE;
            if !lines[..distinct].contains(&line) {
                lines[distinct] = line;
                distinct += 1;
            }
        }
        let requests = match inst.kind {
            InstKind::Load => &mut self.census.loads,
            InstKind::Store => &mut self.census.stores,
            _ => &mut self.census.atomics,
        };
        requests.instructions += 1;
        requests.lanes += lanes;
        requests.lines += distinct as u64;
        requests.bytes += lanes * u64::from(inst.width);
    }
}
