//! Loop nests on a server: a job is an instance, which one thread executes from its first microblock to its last.
//!
//! Jobs of a server have no barrier between them, so that cores cannot share a microblock's loop: instances run beside each other instead.
//! Those of a program share what they only read, and have everything else for themselves. Instructions are those that the nest counts
//! ([`nest::Counts`]); a load needs what was stored last where it loads, as far as that was a few stores ago.

mod code;
#[cfg(test)]
mod tests;

use config::Diagnostic;
use config::units::Bytes;
use nest::{Grid, Lanes, Passed, Section};
use proto::cpu::{Op, Service};
use proto::memory::PAGE;

use crate::kernels::{Application, Program};
use crate::service::emit::{BLOCK, Emit, Value};
use crate::service::nest::code::{Recent, Text};

/// Operations that a step writes at least, if there are as many: a core that takes them in is not far ahead of the clock.
const PIECE: usize = 64;
/// The largest address space.
const LARGEST: u64 = 1 << 46;

/// A service whose jobs are the instances of applications, in their order.
///
/// # Errors
/// An application that is no nest; threads of a GPU's block; more data than there are addresses.
pub(super) fn service(applications: &[Application]) -> Result<Box<dyn Service>, Diagnostic> {
    let mut nests =
        Nests { programs: Vec::new(), jobs: Vec::new(), running: Vec::new(), bytes: 0, blocks: 0 };
    for Application { program, instances, block, .. } in applications {
        let Program::Nest(kernel) = program else {
            let what = format!(
                "`{}` is executed on its data for an accelerator: a server does not run it",
                program.name()
            );
            return Err(Diagnostic::new(what)
                .help("a loop nest (atax, nw, path), or a program of a server (tatp, silo)"));
        };
        if block.is_some() {
            let what = format!("`block` is of a GPU, and a server runs `{}`", kernel.name());
            return Err(Diagnostic::new(what).help("leave it out"));
        }
        let known = nests.programs.iter().position(|one| one.nest == *kernel);
        let number = known.unwrap_or_else(|| nests.add(kernel));
        for _ in 0..*instances {
            nests.begin(number);
        }
    }
    match nests.bytes {
        bytes if bytes > LARGEST => {
            let what = format!(
                "the instances have {}; a server has {} of addresses",
                Bytes::new(bytes),
                Bytes::new(LARGEST)
            );
            Err(Diagnostic::new(what).help("fewer instances, or smaller sizes"))
        }
        _ => Ok(Box::new(nests)),
    }
}

/// A program, laid out.
struct Laid {
    nest: nest::Kernel,
    /// Of each microblock, that one thread goes through all of it, and its code.
    alone: Vec<(Grid, usize)>,
    texts: Vec<Text>,
    /// Where each array begins: those that are only read in the address space, the others in what an instance has for itself.
    arrays: Vec<u64>,
    /// Bytes that an instance has for itself.
    own: u64,
}

/// A job: its program, and where what it has for itself begins.
#[derive(Clone, Copy)]
struct Job {
    program: usize,
    own: u64,
}

struct Running {
    job: Job,
    microblock: usize,
    lanes: Lanes,
    written: u32,
    /// Of each term of a statement.
    values: Vec<Value>,
    recent: Recent,
}

struct Nests {
    programs: Vec<Laid>,
    jobs: Vec<Job>,
    running: Vec<Option<Running>>,
    bytes: u64,
    /// Basic blocks of all texts.
    blocks: u32,
}

impl Nests {
    /// Lays out what instances of a program share.
    fn add(&mut self, nest: &nest::Kernel) -> usize {
        let (mut own, mut arrays) = (0, Vec::new());
        for array in nest.arrays() {
            let end = if array.section == Section::Input { &mut self.bytes } else { &mut own };
            arrays.push(*end);
            *end = end.saturating_add(array.bytes().next_multiple_of(PAGE));
        }
        let (mut texts, mut numbers, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        for microblock in nest.microblocks() {
            let text = numbers.iter().position(|number| *number == microblock.text).unwrap_or_else(|| {
                numbers.push(microblock.text);
                texts.push(Text::new(microblock, &mut self.blocks));
                texts.len() - 1
            });
            alone.push((Grid::alone(microblock), text));
        }
        self.programs.push(Laid { nest: nest.clone(), alone, texts, arrays, own });
        self.programs.len() - 1
    }

    /// Lays out what an instance has for itself.
    fn begin(&mut self, program: usize) {
        self.jobs.push(Job { program, own: self.bytes });
        self.bytes = self.bytes.saturating_add(self.programs[program].own);
    }
}

impl Service for Nests {
    fn footprint(&self) -> u64 {
        self.bytes
    }

    fn text(&self) -> u32 {
        self.blocks * BLOCK
    }

    fn jobs(&self) -> Option<u64> {
        Some(self.jobs.len() as u64)
    }

    fn start(&mut self, slot: u32, job: u64) {
        let at = slot as usize;
        if self.running.len() <= at {
            self.running.resize_with(at + 1, || None);
        }
        let (job, lanes) = (self.jobs[job as usize], Lanes::new(0, 0, 1));
        let (values, recent) = (Vec::new(), Recent::default());
        self.running[at] = Some(Running { job, microblock: 0, lanes, written: 0, values, recent });
    }

    fn step(&mut self, slot: u32, tape: &mut Vec<Op>) -> bool {
        let place = &mut self.running[slot as usize];
        let running = place.as_mut().expect("a slot is stepped while its job runs");
        let program = &self.programs[running.job.program];
        let begin = tape.len();
        while tape.len() < begin + PIECE {
            let Some(microblock) = program.nest.microblocks().get(running.microblock) else {
                *place = None;
                return false;
            };
            let (grid, text) = &program.alone[running.microblock];
            let text = &program.texts[*text];
            let mut e = Emit::new(tape, &mut running.written, 0);
            match running.lanes.next(microblock, grid) {
                None => (running.microblock, running.lanes) = (running.microblock + 1, Lanes::new(0, 0, 1)),
                Some(Passed::Iteration(id, _)) => text.iteration(id, &mut e),
                Some(Passed::Statement(id, _)) => {
                    let statement = &microblock.statements[id];
                    let address = |reference: usize| {
                        let array = statement.references[reference].array;
                        let element = &program.nest.arrays()[array];
                        let own = if element.section == Section::Input { 0 } else { running.job.own };
                        let byte = running.lanes.bytes(microblock, grid, id, reference).first as u64;
                        (program.arrays[array] + own + byte, element.element.bytes())
                    };
                    text.statement(
                        (statement, id),
                        address,
                        &mut running.values,
                        &mut running.recent,
                        &mut e,
                    );
                }
            }
        }
        true
    }

    // Its jobs are executed once, each from its beginning.
    fn save(&self, _out: &mut Vec<u8>) {}

    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}
