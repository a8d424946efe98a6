//! Jobs of a program that is a [`Service`]: the running ones, the requests and replies around each, and the emission
//! of their operations.

use proto::cpu::{NEEDS, Op, OpKind, Service};

/// Bytes of a thread's frame: its request, its stack, its reply.
pub(crate) const FRAME: u64 = 4096;
/// Number of threads with a frame: 64 cores with 64 threads each, the maximum of AstriFlash (section V).
pub(crate) const FRAMES: u64 = 4096;
/// Start of a program's data, above the frames.
pub(crate) const DATA: u64 = FRAMES * FRAME;

/// First basic block of a program; earlier ones handle requests.
pub(crate) const FIRST_BLOCK: u32 = 2 * HANDLING;
/// Basic blocks of the loop that models the handling of a request, and as many for a reply.
const HANDLING: u32 = 4;
/// Instructions per turn of such a loop: many, so that few operations cover many instructions.
const TURN: u32 = 240;
/// Dependent instructions per turn: all but a load, a comparison and a branch. A turn needs the chain of the previous
/// turn and a word of the frame, which an out-of-order core has loaded by then, even at a latency of two cycles. So a
/// turn takes as many cycles as its chain is long, and the loop runs at 240 / 237 = 1.01 instructions per cycle on
/// any core capable of two: Ferdman et al., "Clearing the clouds" (ASPLOS 2012), measure about one for scale-out
/// workloads on four-wide cores.
const CHAIN: u32 = TURN - 3;

/// Effect of jobs on a program's data.
pub(crate) trait Program {
    /// Request of a job, and its progress.
    type Job;
    /// End of the basic blocks of its text, which begin at [`FIRST_BLOCK`].
    const BLOCKS: u32;
    /// Returns the first address above its data, which begins at [`DATA`].
    fn end(&self) -> u64;
    /// Returns the request of job number `job`.
    fn begin(&self, job: u64) -> Self::Job;
    /// Executes the next piece of a job and writes its operations, at least one; returns whether the job continues.
    fn piece(&mut self, job: &mut Self::Job, e: &mut Emit<'_>) -> bool;
    /// Appends the changes that jobs have made to its data.
    fn save(&self, out: &mut Vec<u8>);
    /// Restores saved changes on the loaded data; `None` if they are malformed.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}

struct Running<J> {
    job: J,
    written: u32,
}

/// A program and its running jobs.
pub(crate) struct Served<P: Program> {
    program: P,
    work: u32,
    running: Vec<Option<Running<P::Job>>>,
}

impl<P: Program> Served<P> {
    /// Creates a service with `work` instructions around each job, half of them before it.
    pub(crate) fn new(program: P, work: u32) -> Served<P> {
        Served { program, work, running: Vec::new() }
    }
}

/// Writes whole turns of a request's loop within `instructions`, for a program with work between its accesses;
/// returns how many instructions they are.
/// instructions they are.
pub(crate) fn turns(e: &mut Emit<'_>, instructions: u64) -> u32 {
    let whole = (instructions / u64::from(TURN)) as u32 * TURN;
    handle(e, 0, whole);
    whole
}

/// Writes the handling of a request or a reply, which touches only the thread's frame: a loop of dependent
/// instructions.
/// each other.
fn handle(e: &mut Emit<'_>, first: u32, instructions: u32) {
    let mut last = Value::READY;
    for turn in 0..instructions.div_ceil(TURN) {
        e.blocks(first, HANDLING);
        let word = e.load(e.frame() + u64::from(turn) * 16 % FRAME, 16, []);
        last = e.chain(CHAIN as u16, [word, last]);
        e.branch((turn + 1) * TURN < instructions, [last]);
    }
}

impl<P: Program> Service for Served<P> {
    fn footprint(&self) -> u64 {
        self.program.end().next_multiple_of(proto::memory::PAGE)
    }

    fn text(&self) -> u32 {
        P::BLOCKS * BLOCK
    }

    fn start(&mut self, slot: u32, job: u64) {
        let at = slot as usize;
        assert!(u64::from(slot) < FRAMES, "slot {slot} of {FRAMES}");
        if self.running.len() <= at {
            self.running.resize_with(at + 1, || None);
        }
        self.running[at] = Some(Running { job: self.program.begin(job), written: 0 });
    }

    fn step(&mut self, slot: u32, tape: &mut Vec<Op>) -> bool {
        let place = &mut self.running[slot as usize];
        let running = place.as_mut().expect("a slot is stepped while its job runs");
        let first = running.written == 0;
        let mut e = Emit::new(tape, &mut running.written, u64::from(slot) * FRAME);
        if first {
            handle(&mut e, 0, self.work.div_ceil(2));
        }
        let goes_on = self.program.piece(&mut running.job, &mut e);
        if !goes_on {
            handle(&mut e, HANDLING, self.work / 2);
            *place = None;
        }
        goes_on
    }

    fn save(&self, out: &mut Vec<u8>) {
        debug_assert!(self.running.iter().all(Option::is_none), "a job runs");
        self.program.save(out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.program.load(input)
    }
}

// Emission of a job's operations.
//
// Instructions are counted as a compiler for ARMv8 makes them of the loop in C. A comparison and its branch are two,
// an address computed from an index one (shift and add in one instruction), a load or store of up to 16 bytes one
// (the width of the load and store pipes of the Cortex-A76; a longer one is an operation that counts as several
// instructions).

/// Bytes of a line; no access crosses one.
pub(crate) const LINE: u64 = 64;

/// Bytes that one instruction loads or stores.
const ACCESS: u64 = 16;

/// Bytes of text of a basic block; an instruction takes four.
pub(crate) const BLOCK: u32 = 256;

/// Result of an operation of the same job, possibly of an earlier piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Value(u32);

impl Value {
    /// Constant, or a value that has been in a register for long.
    pub(crate) const READY: Value = Value(0);
}

/// Writes operations to a tape and tracks the distances of their dependences.
pub(crate) struct Emit<'a> {
    tape: &'a mut Vec<Op>,
    /// Number of operations written so far, which is the number of the last one.
    written: &'a mut u32,
    frame: u64,
    pc: u32,
    end: u32,
}

impl<'a> Emit<'a> {
    /// Creates a writer at the beginning of block 0. `written` counts the job's operations over its pieces, from
    /// zero; `frame` is the address of the [`FRAME`] bytes of memory of the job's thread.
    pub(crate) fn new(tape: &'a mut Vec<Op>, written: &'a mut u32, frame: u64) -> Emit<'a> {
        Emit { tape, written, frame, pc: 0, end: BLOCK }
    }

    /// Switches to basic block `n` of the program, which begins at `n * 256`. A block is written from its beginning
    /// each time.
    pub(crate) fn block(&mut self, n: u32) {
        self.blocks(n, 1);
    }

    /// Switches to one basic block in place of `n`, from `first`.
    pub(crate) fn blocks(&mut self, first: u32, n: u32) {
        self.pc = first * BLOCK;
        self.end = self.pc + n * BLOCK;
    }

    /// Returns the address of the thread's frame.
    pub(crate) fn frame(&self) -> u64 {
        self.frame
    }

    fn push<const N: usize>(
        &mut self,
        kind: OpKind,
        address: u64,
        width: u64,
        count: u16,
        from: [Value; N],
    ) -> Value {
        const { assert!(N <= 2, "an operation needs two results at most") };
        debug_assert!(count > 0 && address % LINE + width <= LINE);
        *self.written += 1;
        let mut needs = [0; 2];
        for (need, value) in needs.iter_mut().zip(from) {
            let away = *self.written - value.0;
            *need = if value.0 == 0 || away > u32::from(NEEDS) { 0 } else { away as u16 };
        }
        self.pc += 4 * u32::from(count);
        self.tape.push(Op { kind, width: width as u8, count, needs, pc: self.pc - 4, address });
        debug_assert!(self.pc <= self.end, "a basic block of more than {BLOCK} bytes");
        Value(*self.written)
    }

    /// Writes `count` instructions without memory access; only the last needs `from`.
    pub(crate) fn compute<const N: usize>(&mut self, count: u16, from: [Value; N]) -> Value {
        self.push(OpKind::Compute, 0, 0, count, from)
    }

    /// Writes `count` instructions without memory access: the first needs `from`, each later one the previous one.
    pub(crate) fn chain<const N: usize>(&mut self, count: u16, from: [Value; N]) -> Value {
        self.push(OpKind::Chain, 0, 0, count, from)
    }

    /// Writes a comparison and conditional branch.
    pub(crate) fn branch<const N: usize>(&mut self, taken: bool, from: [Value; N]) {
        let kind = if taken { OpKind::Taken } else { OpKind::NotTaken };
        self.push(kind, 0, 0, 2, from);
    }

    /// Writes a load of `bytes` bytes within a line.
    pub(crate) fn load<const N: usize>(&mut self, address: u64, bytes: u64, from: [Value; N]) -> Value {
        self.push(OpKind::Load, address, bytes, bytes.div_ceil(ACCESS) as u16, from)
    }

    /// Writes a load of `bytes` bytes across lines: one load per line; returns a value that depends on all of them.
    pub(crate) fn read(&mut self, address: u64, bytes: u64, from: Value) -> Value {
        let end = address + bytes;
        let line_end = (address + 1).next_multiple_of(LINE).min(end);
        let mut all = self.load(address, line_end - address, [from]);
        let mut at = line_end;
        while at < end {
            let part = self.load(at, LINE.min(end - at), [from]);
            all = self.compute(1, [all, part]);
            at += LINE;
        }
        all
    }

    /// Writes a store of `bytes` bytes within a line.
    pub(crate) fn store<const N: usize>(&mut self, address: u64, bytes: u64, from: [Value; N]) {
        self.push(OpKind::Store, address, bytes, bytes.div_ceil(ACCESS) as u16, from);
    }

    /// Writes a compare-and-swap, swap or similar of eight bytes, to take a lock.
    pub(crate) fn atomic<const N: usize>(&mut self, address: u64, from: [Value; N]) -> Value {
        self.push(OpKind::Atomic, address, 8, 1, from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::cpu::OpKind;

    /// Returns the cycles of a core that dispatches `width` instructions per cycle in order and executes them as soon
    /// as possible: a load takes two cycles, everything else one.
    fn cycles(tape: &[Op], width: u64) -> u64 {
        let (mut dispatched, mut ends) = (0, Vec::new());
        for (n, op) in tape.iter().enumerate() {
            let needs = op.needs.iter().filter(|away| **away > 0);
            let ready = needs.map(|away| ends[n - usize::from(*away)]).max().unwrap_or(0);
            let count = u64::from(op.count);
            let (first, last) = (dispatched / width, (dispatched + count - 1) / width);
            dispatched += count;
            ends.push(match op.kind {
                OpKind::Chain => (first.max(ready) + count).max(last + 1),
                OpKind::Load => last.max(ready) + 2,
                _ => last.max(ready) + 1,
            });
        }
        ends.into_iter().max().unwrap_or(0)
    }

    #[test]
    fn requests_are_handled_at_one_instruction_a_cycle() {
        let (mut tape, mut written) = (Vec::new(), 0);
        handle(&mut Emit::new(&mut tape, &mut written, FRAME), 0, 24_000);
        assert_eq!(tape.iter().map(|op| u64::from(op.count)).sum::<u64>(), 24_000);
        for width in [2, 4, 8] {
            let ipc = 24_000.0 / cycles(&tape, width) as f64;
            assert!((0.98..1.02).contains(&ipc), "{ipc} instructions a cycle on a core {width} wide");
        }
        let touched = tape.iter().filter(|op| op.width > 0).map(|op| op.address);
        assert!(touched.clone().count() == 100 && touched.min() == Some(FRAME), "a word of the frame a turn");
    }

    #[test]
    fn a_read_is_split_at_lines_and_waits_for_all_of_them() {
        let (mut tape, mut written) = (Vec::new(), 0);
        let mut e = Emit::new(&mut tape, &mut written, 0);
        let pointer = e.load(0, 8, [Value::READY]);
        e.read(100, 100, pointer);
        let loads: Vec<(u64, u8)> =
            tape.iter().filter(|op| op.width > 0).map(|op| (op.address, op.width)).collect();
        assert_eq!(loads, [(0, 8), (100, 28), (128, 64), (192, 8)]);
        let needs: Vec<[u16; 2]> = tape.iter().map(|op| op.needs).collect();
        assert_eq!(needs, [[0, 0], [1, 0], [2, 0], [2, 1], [4, 0], [2, 1]]);
    }

    #[test]
    fn needs_reach_over_pieces_up_to_the_window() {
        let (mut tape, mut written) = (Vec::new(), 0);
        let first = Emit::new(&mut tape, &mut written, 0).load(64, 8, [Value::READY]);
        let mut e = Emit::new(&mut tape, &mut written, 0);
        let second = e.compute(3, [first]);
        e.branch(true, [second, first]);
        for _ in 3..NEEDS {
            e.block(0);
            e.compute(1, [Value::READY]);
        }
        e.block(0);
        e.store(128, 64, [first]);
        e.store(0, 8, [first, second]);
        let needs: Vec<[u16; 2]> = tape.iter().map(|op| op.needs).collect();
        assert_eq!(needs[..4], [[0, 0], [1, 0], [1, 2], [0, 0]]);
        assert_eq!(needs[1024..], [[1024, 0], [0, 1024]]);
        assert_eq!((tape[2].kind, tape[2].count, tape[2].pc), (OpKind::Taken, 2, 16));
        assert_eq!((tape[1024].width, tape[1024].count, tape[1025].pc), (64, 4, 16));
    }
}
