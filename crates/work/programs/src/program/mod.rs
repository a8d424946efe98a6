//! Programs of a GPU, executed on their data as the machine requests their instructions.
//!
//! An application consists of arrays in a separate virtual address space ([`Space`]) and kernels that host logic
//! launches one after another ([`Code`]). A warp's step executes about one iteration of its loop on the data and
//! writes the instructions of that iteration ([`Emit`]), so that addresses, divergence and loop counts come from the
//! data. [`Slots`] keeps the warps, [`Apps`] runs several applications side by side as [`proto::simt::Programs`],
//! [`open`] finds them by name, and [`census`] counts the work of one without a machine.

// A program returns at most one diagnostic in its life: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod census;
mod code;
mod dense;
mod dnn;
mod graph;
mod nest;
mod params;

pub use census::{Census, Requests, census, census_within};
pub use code::{Code, Emit, Kernel, Program, Slots, WarpAt, cost};
pub(crate) use dnn::is_onnx;
pub use dnn::{Launches, launches};
pub use params::{Key, Params};

use crate::{
    graph::Graph,
    kernels::{self, Application},
};
use config::Diagnostic;
use proto::simt::{Launch, Programs, Tape, WarpStart};
use std::sync::Arc;

// Inputs shared by several applications of one run.

/// Graphs already built, by recipe: eight instances of one program share one graph.
#[derive(Default)]
pub struct Inputs {
    graphs: Vec<(String, Arc<Graph>)>,
    /// Notes for the user about inputs that were read, not yet handed on.
    pub(crate) notes: Vec<String>,
}

impl Inputs {
    /// Returns the graph known by `recipe`, or builds it with `build`.
    ///
    /// # Errors
    /// If `build` fails.
    pub fn graph<E>(
        &mut self,
        recipe: &str,
        build: impl FnOnce(&mut Vec<String>) -> Result<Graph, E>,
    ) -> Result<Arc<Graph>, E> {
        if let Some((_, graph)) = self.graphs.iter().find(|(known, _)| known == recipe) {
            return Ok(Arc::clone(graph));
        }
        let graph = Arc::new(build(&mut self.notes)?);
        self.graphs.push((recipe.to_owned(), Arc::clone(&graph)));
        Ok(graph)
    }
}

// Programs of a GPU, in one list.

/// Values of ZnG's Table II for a program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Table {
    /// Read ratio.
    pub read_ratio: f64,
    /// Number of kernels.
    pub kernels: u32,
}

/// A program, or the diagnostic of its parameters.
pub type Built = Result<Box<dyn Program>, Diagnostic>;

/// Entry of a program in the list.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// Benchmark suite of the program.
    pub suite: &'static str,
    /// Description, in one sentence.
    pub what: &'static str,
    /// Row in ZnG's Table II, if it has one.
    pub table: Option<Table>,
    /// Parameters.
    pub keys: &'static [Key],
    /// Function that builds it.
    pub build: fn(&Params, &mut Inputs) -> Built,
}

/// Programs of every suite.
const SUITES: &[&[Entry]] = &[graph::ENTRIES, dense::ENTRIES, dnn::ENTRIES];

/// Returns every program.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    SUITES.iter().copied().flatten()
}

/// Opens the programs of one run, in order. A text is a program with its parameters, `betw:scale=17,seed=2`, or
/// programs side by side with default parameters, `betw-back`. Loop nests are programs as well: `atax:m=2048,n=2048`,
/// `betw-gemm`.
///
/// # Errors
/// If a program or parameter is unknown, or a parameter is invalid.
pub fn open(texts: &[impl AsRef<str>]) -> Result<Vec<Box<dyn Program>>, Diagnostic> {
    let mut inputs = Inputs::default();
    let mut programs = Vec::new();
    for text in texts {
        let text = text.as_ref();
        if let Some((name, options)) = text.split_once(':') {
            open_one(text, name, options, &mut inputs, &mut programs)?;
            continue;
        }
        for name in text.split('-') {
            open_one(text, name, "", &mut inputs, &mut programs)?;
        }
    }
    Ok(programs)
}

/// Returns programs that execute loop nests, one per instance.
///
/// # Errors
/// If an application is not a nest, or has more threads than a GPU can number.
pub fn of_kernels(applications: &[Application]) -> Result<Vec<Box<dyn Program>>, Diagnostic> {
    nest::programs(applications)
}

fn open_one(
    text: &str,
    name: &str,
    options: &str,
    inputs: &mut Inputs,
    programs: &mut Vec<Box<dyn Program>>,
) -> Result<(), Diagnostic> {
    let name = name.trim();
    if let Some(entry) = entries().find(|entry| entry.name == name) {
        let mut program = (entry.build)(&Params::read(text, options, entry.keys)?, inputs)?;
        program.tell(std::mem::take(&mut inputs.notes));
        programs.push(program);
        return Ok(());
    }
    if kernels::names().any(|known| known == name) {
        let whole = if options.is_empty() { name } else { text };
        programs.extend(of_kernels(&kernels::open(whole)?)?);
        return Ok(());
    }
    let unknown = Diagnostic::new(format!("unknown program `{name}`"));
    Err(unknown.allowed(name, entries().map(|entry| entry.name).chain(kernels::names())))
}

// Arrays of an application in its virtual address space.

/// Alignment of `cudaMalloc`: CUDA C++ programming guide, "any address of a variable residing in global memory or
/// returned by one of the memory allocation routines is always aligned to at least 256 bytes".
const ALIGNMENT: u64 = 256;

/// An array: base address, element width, number of elements. The values are in the program's own vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Array {
    base: u64,
    len: u64,
    width: u8,
}

impl Array {
    /// Returns the virtual address of element `n`.
    #[inline]
    pub fn address(&self, n: usize) -> u64 {
        debug_assert!((n as u64) < self.len, "element {n} of an array of {}", self.len);
        self.base + n as u64 * u64::from(self.width)
    }
    /// Returns the bytes of an element.
    #[inline]
    pub fn width(&self) -> u8 {
        self.width
    }
    /// Returns the number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }
    /// Returns the same bytes as elements of a different width, for fields of a structure that are accessed so.
    pub fn as_words(&self, width: u8) -> Array {
        Array { base: self.base, len: self.len * u64::from(self.width) / u64::from(width), width }
    }
    /// Returns true if it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A named piece of the address space, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Name in the program.
    pub name: &'static str,
    /// Virtual address of the first byte.
    pub base: u64,
    /// Number of bytes requested.
    pub bytes: u64,
}

/// Address space from zero up, in which arrays are placed one after another.
#[derive(Clone, Debug, Default)]
pub struct Space {
    allocations: Vec<Allocation>,
    end: u64,
}

impl Space {
    /// Places `len` elements of `width` bytes each.
    pub fn array(&mut self, name: &'static str, width: u8, len: usize) -> Array {
        let base = self.end;
        let bytes = len as u64 * u64::from(width);
        self.allocations.push(Allocation { name, base, bytes });
        self.end = (base + bytes).next_multiple_of(ALIGNMENT);
        Array { base, len: len as u64, width }
    }
    /// Returns all arrays, lowest first.
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }
    /// Returns the bytes of the space, a multiple of the page: every address is below it.
    pub fn footprint(&self) -> u64 {
        self.end.next_multiple_of(proto::memory::PAGE)
    }
}

// Applications running side by side.

/// Bits of an instruction's address within its application: the application number is above them.
const CODE_BITS: u32 = 24;

struct App {
    program: Box<dyn Program>,
    /// Program before its first launch, if it is to be repeated.
    first: Option<Box<dyn Program>>,
    /// Kernels launched so far, in order; the last is the current one.
    kernels: Vec<Kernel>,
}

/// Applications with separate address spaces, as a GPU's multiprocessors see them. A warp's slot has the same number
/// in the machine and in the program.
pub struct Apps {
    apps: Vec<App>,
    /// Application of the warp in each slot.
    of: Vec<u8>,
}

impl Apps {
    /// Creates the applications of these programs, numbered in order.
    ///
    /// # Panics
    /// If there are more than 254.
    pub fn new(programs: Vec<Box<dyn Program>>) -> Apps {
        assert!(programs.len() < usize::from(u8::MAX), "applications are numbered by a byte");
        let app = |program| App { program, first: None, kernels: Vec::new() };
        Apps { apps: programs.into_iter().map(app).collect(), of: Vec::new() }
    }

    /// Makes each repeatable: its data are kept twice.
    pub fn repeatable(mut self) -> Apps {
        for app in &mut self.apps {
            app.first = Some(app.program.copy());
        }
        self
    }

    /// Returns an application's program.
    pub fn program(&self, app: u8) -> &dyn Program {
        self.apps[usize::from(app)].program.as_ref()
    }

    /// Returns the bytes of an application's address space, from zero up, in whole pages.
    pub fn footprint(&self, app: u8) -> u64 {
        self.program(app).space().footprint()
    }

    /// Returns the kernels that an application has launched so far, in order of their numbers.
    pub fn kernels(&self, app: u8) -> &[Kernel] {
        &self.apps[usize::from(app)].kernels
    }

    /// Returns the name of an application's launch `number`: `betw.forward#3`. A future launch has only its number.
    pub fn kernel_name(&self, app: u8, number: u32) -> String {
        let kernel = self.kernels(app).get(number as usize).map_or("", |kernel| kernel.name);
        format!("{}.{kernel}#{number}", self.program(app).name())
    }
}

impl Programs for Apps {
    fn apps(&self) -> u8 {
        self.apps.len() as u8
    }

    fn launch(&mut self, app: u8) -> Option<Launch> {
        let app = &mut self.apps[usize::from(app)];
        let kernel = app.program.launch()?;
        assert!(kernel.blocks > 0 && kernel.threads > 0, "an empty grid: {}", kernel.name);
        let number = app.kernels.len() as u32;
        app.kernels.push(kernel);
        let Kernel { blocks, threads, registers, shared, .. } = kernel;
        Some(Launch { number, blocks, threads, registers, shared })
    }

    fn restart(&mut self, app: u8) {
        let app = &mut self.apps[usize::from(app)];
        app.program = app.first.as_ref().expect("only what is repeatable begins anew").copy();
    }

    fn start(&mut self, slot: u32, warp: WarpStart) {
        let n = slot as usize;
        if n >= self.of.len() {
            self.of.resize(n + 1, 0);
        }
        self.of[n] = warp.app;
        let app = &mut self.apps[usize::from(warp.app)];
        let kernel = app.kernels.last().expect("a warp begins after its kernel is launched");
        app.program.start(slot, WarpAt::new(warp.block, warp.warp, kernel.threads));
    }

    #[inline]
    fn step(&mut self, slot: u32, tape: &mut Tape) -> bool {
        let app = self.of[slot as usize];
        // Address zero is not used by any program: it marks page walks.
        self.apps[usize::from(app)].program.step(slot, (u32::from(app) + 1) << CODE_BITS, tape)
    }
}

#[cfg(test)]
mod tests {
    use super::Space;

    #[test]
    fn arrays_are_aligned_and_do_not_overlap() {
        let mut space = Space::default();
        let a = space.array("a", 8, 33);
        let b = space.array("b", 1, 1);
        let c = space.array("c", 4, 1025);
        assert_eq!((a.address(0), a.address(32)), (0, 256));
        assert_eq!((b.address(0), c.address(0), c.address(1024)), (512, 768, 768 + 4096));
        assert_eq!((space.footprint(), space.allocations()[2].bytes), (8192, 4100));
        assert_eq!((c.len(), c.width(), b.is_empty()), (1025, 4, false));
        let words = c.as_words(8);
        assert_eq!((words.len(), words.width(), words.address(3)), (512, 8, c.address(6)));
    }
}
