//! Loop nests on a server: a job is an instance, executed by one thread from its first microblock to its last.
//!
//! Jobs of a server have no barrier between them, so cores cannot share a microblock's loop: instances run side by
//! side instead. Instances of a program share the data that they only read, and have everything else separately.
//! Instructions are those that the nest counts ([`nest::Counts`]); a load depends on the last store to its address,
//! if that was among the latest few stores.

use config::Diagnostic;
use config::units::Bytes;
use nest::{Grid, Lanes, Microblock, Passed, Section, Statement, Term};
use proto::cpu::{Op, Service};
use proto::memory::PAGE;

use crate::kernels::{Application, Program};
use crate::service::jobs::{BLOCK, Emit, Value};

/// Minimum operations that a step writes, if there are as many: a core that takes them in does not get far ahead of
/// the clock.
const PIECE: usize = 64;
/// The largest address space.
const LARGEST: u64 = 1 << 46;

/// Creates a service whose jobs are the instances of applications, in order.
///
/// # Errors
/// If an application is not a nest, has threads of a GPU's block, or has more data than there are addresses.
pub(super) fn service(applications: &[Application]) -> Result<Box<dyn Service>, Diagnostic> {
    let mut nests =
        Nests { programs: Vec::new(), jobs: Vec::new(), running: Vec::new(), bytes: 0, blocks: 0 };
    for Application { program, instances, block, .. } in applications {
        let Program::Nest(kernel) = program else {
            let what =
                format!("`{}` runs only on an accelerator: it is executed on its data", program.name());
            return Err(Diagnostic::new(what)
                .help("a loop nest (atax, nw, path), or a program of a server (tatp, silo)"));
        };
        if block.is_some() {
            let what = format!("`block` applies to GPUs, but a server runs `{}`", kernel.name());
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
                "the instances need {}, but a server has {} of addresses",
                Bytes::new(bytes),
                Bytes::new(LARGEST)
            );
            Err(Diagnostic::new(what).help("use fewer instances or smaller sizes"))
        }
        _ => Ok(Box::new(nests)),
    }
}

/// A program with its memory layout.
struct Laid {
    nest: nest::Kernel,
    /// For each microblock, the grid of a single thread, and its code.
    alone: Vec<(Grid, usize)>,
    texts: Vec<Text>,
    /// Start of each array: read-only ones in the address space, the others in an instance's own memory.
    arrays: Vec<u64>,
    /// Bytes of an instance's own memory.
    own: u64,
}

/// A job: its program, and the start of its own memory.
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
    /// Value of each term of a statement.
    values: Vec<Value>,
    recent: Recent,
}

struct Nests {
    programs: Vec<Laid>,
    jobs: Vec<Job>,
    running: Vec<Option<Running>>,
    bytes: u64,
    /// Number of basic blocks of all texts.
    blocks: u32,
}

impl Nests {
    /// Lays out the memory shared by instances of a program.
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

    /// Lays out an instance's own memory.
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

    // Jobs are executed once, each from its beginning.
    fn save(&self, _out: &mut Vec<u8>) {}

    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

// Operations of a nest's code.

/// Number of recent stores known to a load.
const RECENT: usize = 4;

/// Latest stores of a job: addresses and values.
#[derive(Clone, Copy, Default)]
struct Recent {
    stores: [(u64, Value); RECENT],
    next: usize,
}

impl Recent {
    /// Returns the value last stored at an address; no dependence if that is long ago.
    fn at(&self, address: u64) -> Value {
        let stores = (1..=RECENT).map(|back| self.stores[(self.next + RECENT - back) % RECENT]);
        let mut same = stores.filter(|(stored, _)| *stored == address);
        same.next().map_or(Value::READY, |(_, value)| value)
    }

    fn store(&mut self, address: u64, value: Value) {
        self.stores[self.next] = (address, value);
        self.next = (self.next + 1) % RECENT;
    }
}

/// Code of a microblock.
struct Text {
    /// Basic block of its first loop.
    loops: u32,
    /// First basic block of each statement, and its number of blocks.
    statements: Vec<(u32, u32)>,
}

impl Text {
    /// Creates the code of a microblock; `next` is the basic block after all earlier ones.
    fn new(microblock: &Microblock, next: &mut u32) -> Text {
        let loops = *next;
        *next += microblock.loops.len() as u32;
        let place = |statement: &Statement| {
            let own = statement.counts();
            let instructions = own.operations() as u32;
            let place = (*next, (4 * instructions).div_ceil(BLOCK));
            *next += place.1;
            place
        };
        Text { loops, statements: microblock.statements.iter().map(place).collect() }
    }

    /// Writes an iteration of a loop: the variable is incremented and compared, and the branch is taken.
    fn iteration(&self, id: usize, e: &mut Emit<'_>) {
        e.block(self.loops + id as u32);
        let variable = e.compute(1, []);
        e.branch(true, [variable]);
    }

    /// Writes a statement; `address` returns the address of a reference's element, and its bytes.
    fn statement(
        &self,
        (statement, id): (&Statement, usize),
        address: impl Fn(usize) -> (u64, u64),
        values: &mut Vec<Value>,
        recent: &mut Recent,
        e: &mut Emit<'_>,
    ) {
        let (first, blocks) = self.statements[id];
        e.blocks(first, blocks);
        let addresses = statement.counts().addresses as u16;
        let index = if addresses > 0 { e.compute(addresses, []) } else { Value::READY };
        values.clear();
        for term in &statement.terms {
            let value = match *term {
                Term::Constant(_) | Term::Index(_) => Value::READY,
                Term::Load(reference) => {
                    let (address, bytes) = address(reference);
                    e.load(address, bytes, [index, recent.at(address)])
                }
                Term::Unary(_, a) => e.compute(1, [values[a]]),
                Term::Binary(_, a, b) => e.compute(1, [values[a], values[b]]),
                // The condition was computed before both arms, or with them.
                Term::Select(condition, yes, no) => {
                    let arm = if values[yes] == Value::READY { no } else { yes };
                    e.compute(1, [values[condition], values[arm]])
                }
            };
            values.push(value);
        }
        let value = values.last().copied().unwrap_or(Value::READY);
        let (address, bytes) = address(0);
        e.store(address, bytes, [index, value]);
        recent.store(address, value);
    }
}

#[cfg(test)]
mod tests {
    // Nests on a server against their sequential execution.
    use crate::kernels::{self, Program};
    use crate::service::of_kernels;
    use nest::{Counts, Kernel, Piece, Section};
    use proto::cpu::{Op, OpKind, Service};
    use proto::memory::PAGE;

    fn opened(texts: &[&str]) -> Result<Box<dyn Service>, config::Diagnostic> {
        let mut all = Vec::new();
        for text in texts {
            all.extend(kernels::open(text)?);
        }
        of_kernels(&all)
    }

    fn nest_of(text: &str) -> Kernel {
        match kernels::open(text).unwrap_or_else(|fault| panic!("{fault}")).pop().map(|one| one.program) {
            Some(Program::Nest(kernel)) => kernel,
            _ => panic!("{text} is not a nest"),
        }
    }

    /// Writes of one job, alone.
    fn job(service: &mut dyn Service, number: u64) -> Vec<Op> {
        let mut tape = Vec::new();
        service.start(5, number);
        while service.step(5, &mut tape) {}
        tape
    }

    fn small(name: &str) -> String {
        let size = |(at, (size, _)): (usize, &(String, i64))| match size.as_str() {
            "t" | "tj" => format!("{size}=4"),
            "u" | "ti" => format!("{size}=3"),
            _ => format!("{size}={}", 9 + 2 * at),
        };
        format!("{name}:{}", nest_of(name).sizes().iter().enumerate().map(size).collect::<Vec<_>>().join(","))
    }

    /// Every access where and in the order in which the nest has it, and as many instructions as it counts.
    #[test]
    fn a_job_is_the_sequential_execution() {
        for (name, _) in nest::programs() {
            let text = small(name);
            let kernel = nest_of(&text);
            let mut service = opened(&[&format!("{text},instances=2")]).expect("a service");
            assert_eq!(service.jobs(), Some(2));
            // Inputs, then each instance's own, in pages.
            let pages = |is_shared: bool| {
                let own =
                    kernel.arrays().iter().filter(|array| (array.section == Section::Input) == is_shared);
                own.map(|array| array.bytes().next_multiple_of(PAGE)).sum::<u64>()
            };
            let (shared, own) = (pages(true), pages(false));
            assert_eq!(service.footprint(), shared + 2 * own, "{name}");
            let mut counts = Counts::default();
            let (mut bases, mut ends) = (Vec::new(), [0, shared]);
            for array in kernel.arrays() {
                let end = &mut ends[usize::from(array.section != Section::Input)];
                bases.push(*end);
                *end += array.bytes().next_multiple_of(PAGE);
            }
            let mut expected = Vec::new();
            for at in 0..kernel.microblocks().len() {
                counts += kernel.counts(&Piece::whole(at));
                kernel.accesses(&Piece::whole(at), &mut |access| {
                    expected.push((bases[access.array] + access.byte, access.write));
                });
            }
            let first = job(service.as_mut(), 0);
            let accesses: Vec<(u64, bool)> = first
                .iter()
                .filter(|op| op.width > 0)
                .map(|op| (op.address, op.kind == OpKind::Store))
                .collect();
            assert!(accesses == expected, "{name}");
            assert_eq!(
                first.iter().map(|op| u64::from(op.count)).sum::<u64>(),
                counts.operations(),
                "{name}"
            );
            assert!(first.iter().all(|op| op.pc < service.text() && op.pc % 4 == 0), "{name}");
            // The second instance does the same to its own arrays.
            let second = job(service.as_mut(), 1);
            let moved = first
                .iter()
                .map(|op| Op { address: op.address + if op.address >= shared { own } else { 0 }, ..*op });
            let moved: Vec<Op> =
                moved.map(|op| if op.width == 0 { Op { address: 0, ..op } } else { op }).collect();
            assert!(second == moved, "{name}");
        }
    }

    /// A sum in memory is a chain: each load needs the addition that was stored, and that the load.
    #[test]
    fn a_load_needs_what_was_stored_there() {
        let mut service = opened(&["atax:m=2,n=6"]).expect("a service");
        let tape = job(service.as_mut(), 0);
        let adds: Vec<usize> = (0..tape.len())
            .filter(|n| tape[*n].kind == OpKind::Store)
            .map(|store| store - usize::from(tape[store].needs[1]))
            .take(7)
            .collect();
        // The first is the zero; the sum of the first product needs what was in a register.
        for pair in adds[1..].windows(2) {
            let load = pair[1] - usize::from(tape[pair[1]].needs[0]);
            assert_eq!(tape[load].kind, OpKind::Load);
            assert_eq!(load - usize::from(tape[load].needs[1]), pair[0]);
        }
    }

    #[test]
    fn jobs_are_those_of_all_applications() {
        let mut service =
            opened(&["atax:m=4,n=4,instances=2", "mvt:n=5", "atax:m=4,n=4"]).expect("a service");
        assert_eq!(service.jobs(), Some(4));
        // The two of one kind share their input: A and x.
        let addresses = |tape: Vec<Op>| tape.into_iter().filter(|op| op.width > 0).map(|op| op.address).min();
        assert_eq!(addresses(job(service.as_mut(), 0)), Some(0));
        assert_eq!(addresses(job(service.as_mut(), 3)), Some(0));
        for (text, said) in [
            ("wc:bytes=1000B", "tatp"),
            ("atax:block=64", "applies to GPUs"),
            ("gemm:ni=1048576,nj=1048576,instances=1024", "fewer"),
        ] {
            let refused = opened(&[text]).err().unwrap_or_else(|| panic!("{text} is taken"));
            assert!(refused.to_string().contains(said), "{refused}");
        }
    }
}
