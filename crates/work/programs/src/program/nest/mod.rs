//! Loop nests on a GPU: one kernel per microblock, one thread per value of its [grid](nest::Grid).
//!
//! Threads of a warp execute the loops together; lanes whose loop has fewer iterations wait. Instructions are counted
//! as the nest counts them ([`nest::Counts`]): no accumulator is kept in a register, nothing is fused. Only a
//! division and a square root are more than one instruction, as `nvcc` compiles them. Addresses do not depend on data
//! here, so no data are kept.

#[cfg(test)]
mod tests;

use config::Diagnostic;
use nest::{Binary, Grid, Lanes, Microblock, Passed, Span, Statement, Term, Unary};

use crate::kernels::{Application, Program as Offloaded};
use crate::program::{
    Array, Code, Emit, Kernel, Program, Slots, Space, WarpAt,
    code::BLOCK_INSTS,
    cost,
    dense::{divide, root},
};

/// Default threads per block: PolyBench/GPU's `DIM_THREAD_BLOCK_X` times `_Y`, 256 x 1 and 32 x 8.
pub(crate) const BLOCK: u32 = 256;
/// Threads of a warp, and of a row of a block with two dimensions.
const WIDTH: u64 = nest::LANES as u64;
/// Chosen: as the other programs of PolyBench.
const REGISTERS: u32 = 16;

/// Returns GPU programs that execute nests, one per instance, side by side.
///
/// # Errors
/// If an application is not a nest, or has more threads than a GPU can number.
pub(super) fn programs(applications: &[Application]) -> Result<Vec<Box<dyn Program>>, Diagnostic> {
    let mut programs: Vec<Box<dyn Program>> = Vec::new();
    for Application { program, instances, block, .. } in applications {
        let Offloaded::Nest(kernel) = program else {
            let what =
                format!("`{}` runs only on an accelerator: it is executed on its data", program.name());
            let own: Vec<&str> = super::graph::ENTRIES.iter().map(|entry| entry.name).collect();
            let help = format!(
                "a loop nest (atax, nw, path), or a program of a GPU over a graph: {}",
                own.join(", ")
            );
            return Err(Diagnostic::new(what).help(help));
        };
        let first = OnGpu::new(kernel, block.unwrap_or(BLOCK))?;
        for _ in 1..*instances {
            programs.push(Box::new(Slots::new(first.clone())));
        }
        programs.push(Box::new(Slots::new(first)));
    }
    Ok(programs)
}

/// A microblock as a kernel.
#[derive(Clone)]
struct Launched {
    kernel: Kernel,
    grid: Grid,
    /// Index of its code among the texts.
    text: usize,
    /// Tiles per row of threads, if it has two dimensions.
    tiles: Option<u32>,
}

/// A nest with its arrays.
#[derive(Clone)]
struct OnGpu {
    name: &'static str,
    nest: nest::Kernel,
    launches: Vec<Launched>,
    texts: Vec<Text>,
    launched: usize,
    space: Space,
    arrays: Vec<Array>,
}

impl OnGpu {
    fn new(nest: &nest::Kernel, block: u32) -> Result<OnGpu, Diagnostic> {
        // Kernel names live as long as the process: one copy per opened program.
        let leaked = |name: &str| &*String::leak(name.to_owned());
        let mut space = Space::default();
        let array = |one: &nest::Array| {
            space.array(leaked(&one.name), one.element.bytes() as u8, one.elements() as usize)
        };
        let arrays = nest.arrays().iter().map(array).collect();
        let mut texts: Vec<Text> = Vec::new();
        let (mut numbers, mut launches) = (Vec::new(), Vec::new());
        for microblock in nest.microblocks() {
            let text = numbers.iter().position(|number| *number == microblock.text).unwrap_or_else(|| {
                numbers.push(microblock.text);
                let first = texts.last().map_or(0, Text::end);
                texts.push(Text::new(microblock, first, leaked(&format!("m{}", microblock.text))));
                texts.len() - 1
            });
            let grid = Grid::of(microblock);
            let (kernel, tiles) = shape(grid.threads(), block, texts[text].name).ok_or_else(|| {
                let [across, down] = grid.threads();
                let what = format!("a microblock of `{}` has {across} x {down} threads", nest.name());
                Diagnostic::new(what)
                    .help("a grid has fewer than 2^32 blocks: use smaller sizes or larger blocks")
            })?;
            launches.push(Launched { kernel, grid, text, tiles });
        }
        let (name, nest) = (leaked(nest.name()), nest.clone());
        Ok(OnGpu { name, nest, launches, texts, launched: 0, space, arrays })
    }

    /// Returns the current kernel.
    fn present(&self) -> &Launched {
        &self.launches[self.launched - 1]
    }
}

/// Returns a kernel with `across` x `down` threads, and its tiles per row if it has two dimensions; none if it has
/// too many blocks.
fn shape([across, down]: [u64; 2], block: u32, name: &'static str) -> Option<(Kernel, Option<u32>)> {
    let kernel = |blocks: u64, threads: u32| {
        let blocks = u32::try_from(blocks).ok()?;
        Some(Kernel { name, blocks, threads, registers: REGISTERS, shared: 0 })
    };
    if down == 1 {
        let threads = across.min(block.into());
        return Some((kernel(across.div_ceil(threads), threads as u32)?, None));
    }
    let rows = (u64::from(block) / WIDTH).clamp(1, down);
    let tiles = across.div_ceil(WIDTH);
    let blocks = tiles.checked_mul(down.div_ceil(rows))?;
    Some((kernel(blocks, (WIDTH * rows) as u32)?, Some(u32::try_from(tiles).ok()?)))
}

/// An active warp.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Warp {
    at: WarpAt,
    lanes: Lanes,
    /// True if its threads know their numbers.
    has_begun: bool,
}

impl Code for OnGpu {
    type Warp = Warp;

    fn name(&self) -> &'static str {
        self.name
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn launch(&mut self) -> Option<Kernel> {
        let next = self.launches.get(self.launched)?;
        self.launched += 1;
        Some(next.kernel)
    }

    fn start(&mut self, at: WarpAt) -> Warp {
        let Launched { grid, tiles, .. } = self.present();
        let [across, down] = grid.threads();
        let lanes = match tiles {
            None => Lanes::new(at.thread() as u64, 0, at.below(across as usize)),
            Some(tiles) => {
                let rows = u64::from(at.threads) / WIDTH;
                let (x, y) = (
                    u64::from(at.block % tiles) * WIDTH,
                    u64::from(at.block / tiles) * rows + u64::from(at.warp),
                );
                let here = if y < down { (across - x).min(WIDTH) } else { 0 };
                Lanes::new(x, y, ((1u64 << here) - 1) as u32)
            }
        };
        Warp { at, lanes, has_begun: false }
    }

    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        let launched = &self.launches[self.launched - 1];
        let (microblock, text) = (&self.nest.microblocks()[self.launched - 1], &self.texts[launched.text]);
        if !warp.has_begun {
            warp.has_begun = true;
            let axes = 1 + u16::from(launched.tiles.is_some());
            e.block(text.begin());
            e.lanes(warp.at.mask);
            e.alu(axes * cost::THREAD, INDEX, []);
            e.alu(axes * cost::IF, 0, [INDEX]);
        }
        while let Some(passed) = warp.lanes.next(microblock, &launched.grid) {
            match passed {
                Passed::Iteration(id, mask) => text.iteration(id, mask, e),
                Passed::Statement(id, mask) => {
                    let bytes = |reference: usize| {
                        let span = warp.lanes.bytes(microblock, &launched.grid, id, reference);
                        let array = &self.arrays[microblock.statements[id].references[reference].array];
                        (array, span)
                    };
                    text.statement(&microblock.statements[id], id, mask, bytes, e);
                    return true;
                }
            }
        }
        e.block(text.end() - 1);
        e.lanes(warp.at.mask);
        e.exit();
        false
    }
}

// Instructions of a nest's code.

/// The register of the thread's number.
const INDEX: u8 = 1;

/// Register of addresses.
const ADDRESSES: u8 = 2;

/// First register of values.
const VALUES: u8 = 3;

/// Code of a microblock: it begins with the threads' numbers and ends with their end.
#[derive(Clone)]
struct Text {
    /// Name of the kernel.
    name: &'static str,
    /// The first basic block.
    first: u32,
    /// First basic block of each statement; loops come before.
    statements: Vec<u32>,
    end: u32,
}

/// Maximum static instructions of a term: a division is two.
const OF_A_TERM: u32 = 2;

/// Returns the basic blocks of a statement: addresses, terms, the store.
fn blocks(statement: &Statement) -> u32 {
    let terms = (BLOCK_INSTS - 2) / OF_A_TERM;
    (statement.terms.len() as u32).div_ceil(terms)
}

impl Text {
    /// Creates the code of a microblock, from a basic block on.
    fn new(microblock: &Microblock, first: u32, name: &'static str) -> Text {
        let mut next = first + 1 + microblock.loops.len() as u32;
        let place = |statement: &Statement| {
            let own = next;
            next += blocks(statement);
            own
        };
        let statements = microblock.statements.iter().map(place).collect();
        Text { name, first, statements, end: next + 1 }
    }

    /// Returns its first basic block.
    fn begin(&self) -> u32 {
        self.first
    }

    /// Returns the basic block after it.
    fn end(&self) -> u32 {
        self.end
    }

    /// Emits an iteration of a loop.
    fn iteration(&self, id: usize, mask: u32, e: &mut Emit) {
        e.block(self.first + 1 + id as u32);
        e.lanes(mask);
        e.alu(cost::LOOP, INDEX, [INDEX]);
    }

    /// Emits a statement; `bytes` returns the array of a reference, and the byte offset of each lane's element.
    fn statement<'a>(
        &self,
        statement: &Statement,
        id: usize,
        mask: u32,
        bytes: impl Fn(usize) -> (&'a Array, Span),
        e: &mut Emit,
    ) {
        e.block(self.statements[id]);
        e.lanes(mask);
        let addresses = statement.counts().addresses as u16;
        if addresses > 0 {
            e.alu(addresses, ADDRESSES, [INDEX]);
        }
        let each = ((BLOCK_INSTS - 2) / OF_A_TERM) as usize;
        for (at, term) in statement.terms.iter().enumerate() {
            if at > 0 && at.is_multiple_of(each) {
                e.block(self.statements[id] + (at / each) as u32);
            }
            let to = register(at);
            match *term {
                Term::Constant(_) | Term::Index(_) => {}
                Term::Load(reference) => {
                    let (array, span) = bytes(reference);
                    e.load_at(array.width(), to, [ADDRESSES], |lane| array.address(0) + span.of(lane) as u64);
                }
                Term::Unary(Unary::SquareRoot, a) => root(e, to, register(a)),
                Term::Unary(_, a) => e.alu(1, to, [register(a)]),
                Term::Binary(Binary::Divide, a, b) => divide(e, to, [register(a), register(b)]),
                Term::Binary(_, a, b) => e.alu(1, to, [register(a), register(b)]),
                Term::Select(condition, yes, no) => {
                    e.alu(1, to, [register(condition), register(yes), register(no)]);
                }
            }
        }
        let (array, span) = bytes(0);
        let value = register(statement.terms.len() - 1);
        e.store_at(array.width(), [ADDRESSES, value], |lane| array.address(0) + span.of(lane) as u64);
    }
}

/// Returns the register of a term; those of long expressions are reused.
fn register(term: usize) -> u8 {
    VALUES + (term % usize::from(u8::MAX - VALUES)) as u8
}
