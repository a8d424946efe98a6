//! A program as a [`Service`]: its running jobs, and what surrounds each of them.

use proto::cpu::{Op, Service};

use crate::service::emit::{BLOCK, Emit, Value};

/// Bytes that a thread has for itself: its request, its stack, its reply.
pub(crate) const FRAME: u64 = 4096;
/// Threads that have a frame: 64 cores with 64 threads each, what AstriFlash (section V) has at most.
pub(crate) const FRAMES: u64 = 4096;
/// Where the data of a program begins, above the frames.
pub(crate) const DATA: u64 = FRAMES * FRAME;

/// The first basic block of a program; those before it are the handling of requests.
pub(crate) const FIRST_BLOCK: u32 = 2 * HANDLING;
/// Blocks of the loop that stands for the handling of a request, and as many for that of a reply.
const HANDLING: u32 = 4;
/// Instructions of a turn of such a loop: long, so that few operations stand for many instructions.
const TURN: u32 = 240;
/// Instructions of a turn that follow from each other: all but a load, a comparison and a branch. A turn needs the chain of
/// the turn before it and a word of the frame, which an out-of-order core has loaded by then, be it two cycles away. So a turn
/// takes as many cycles as its chain is long, and the loop runs at 240 / 237 = 1.01 instructions a cycle on any core that could do two:
/// Ferdman et al., "Clearing the clouds" (ASPLOS 2012), measure about one for scale-out workloads on cores four wide.
const CHAIN: u32 = TURN - 3;

/// What a job does to a program's data.
pub(crate) trait Program {
    /// What a job asks for, and how far it is.
    type Job;
    /// Basic blocks of its text, from [`FIRST_BLOCK`] up to below this.
    const BLOCKS: u32;
    /// The first address above its data, which begins at [`DATA`].
    fn end(&self) -> u64;
    /// What job number `job` asks for.
    fn begin(&self, job: u64) -> Self::Job;
    /// Executes the next piece of a job and writes its operations, at least one; whether the job goes on.
    fn piece(&mut self, job: &mut Self::Job, e: &mut Emit<'_>) -> bool;
    /// Appends what jobs have changed of its data.
    fn save(&self, out: &mut Vec<u8>);
    /// Brings its data, as they were loaded, to what was saved; `None` if that is malformed.
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
    /// Around each job `work` instructions, half of them before it.
    pub(crate) fn new(program: P, work: u32) -> Served<P> {
        Served { program, work, running: Vec::new() }
    }
}

/// Whole turns of the loop of a request within so many instructions, for a program that has its work between its accesses; how many
/// instructions they are.
pub(crate) fn turns(e: &mut Emit<'_>, instructions: u64) -> u32 {
    let whole = (instructions / u64::from(TURN)) as u32 * TURN;
    handle(e, 0, whole);
    whole
}

/// Handling of a request or a reply, which touches nothing but the thread's frame: a loop whose instructions depend on
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

#[cfg(test)]
mod tests {
    use super::*;
    use proto::cpu::OpKind;

    /// Cycles of a core that dispatches `width` instructions a cycle in order and executes them as soon as they can be: a
    /// load takes two cycles, everything else one.
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
}
