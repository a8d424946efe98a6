//! Programs of a GPU, executed on their data while the machine asks for their instructions.
//!
//! An application is arrays in a virtual address space of its own ([`Space`]) and kernels that host logic launches one
//! after another ([`Code`]). A warp's step executes about one iteration of its loop on the data and writes the
//! instructions of that iteration ([`Emit`]), so that addresses, divergence and loop counts come from the data.
//! [`Slots`] keeps the warps, [`Apps`] runs several applications side by side as [`proto::simt::Programs`],
//! [`open`] finds them by name, and [`census`] counts what one does without a machine.

// A diagnostic is returned once in the life of a program: its size costs nothing, a box would cost every caller.
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

// Inputs that several applications of one run share.

/// Graphs already built, by how they were asked for: eight instances of one program hold one graph.
#[derive(Default)]
pub struct Inputs {
    graphs: Vec<(String, Arc<Graph>)>,
    /// What a user must know of inputs that were read, not yet handed on.
    pub(crate) notes: Vec<String>,
}

impl Inputs {
    /// The graph known by `recipe`, or the one that `build` makes.
    ///
    /// # Errors
    /// What `build` refuses.
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

// The programs, in one list.

/// What ZnG's Table II says of a program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Table {
    /// Read ratio.
    pub read_ratio: f64,
    /// Kernels.
    pub kernels: u32,
}

/// A program, or why its parameters cannot be.
pub type Built = Result<Box<dyn Program>, Diagnostic>;

/// A program of the list.
#[derive(Clone, Copy)]
pub struct Entry {
    /// What it is called on the command line.
    pub name: &'static str,
    /// The benchmark suite it is from.
    pub suite: &'static str,
    /// What it does, in a sentence.
    pub what: &'static str,
    /// Its row of ZnG's Table II, if it has one.
    pub table: Option<Table>,
    /// Its parameters.
    pub keys: &'static [Key],
    /// Builds it.
    pub build: fn(&Params, &mut Inputs) -> Built,
}

/// Every suite's programs.
const SUITES: &[&[Entry]] = &[graph::ENTRIES, dense::ENTRIES, dnn::ENTRIES];

/// Every program.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    SUITES.iter().copied().flatten()
}

/// The programs of one run, in order. A text is a program with its parameters, `betw:scale=17,seed=2`, or programs side by
/// side, each as it is by default, `betw-back`. Loop nests are programs as well: `atax:m=2048,n=2048`, `betw-gemm`.
///
/// # Errors
/// An unknown program or parameter, or a parameter that cannot be.
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

/// Programs that execute loop nests: each instance is one.
///
/// # Errors
/// An application that is no nest; one with more threads than a GPU can number.
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

// The arrays of an application in its virtual address space.

/// How `cudaMalloc` aligns: CUDA C++ programming guide, "any address of a variable residing in global memory or
/// returned by one of the memory allocation routines is always aligned to at least 256 bytes".
const ALIGNMENT: u64 = 256;

/// An array: where it begins, what an element takes, how many there are. The values live in the program's own vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Array {
    base: u64,
    len: u64,
    width: u8,
}

impl Array {
    /// Virtual address of element `n`.
    #[inline]
    pub fn address(&self, n: usize) -> u64 {
        debug_assert!((n as u64) < self.len, "element {n} of an array of {}", self.len);
        self.base + n as u64 * u64::from(self.width)
    }
    /// Bytes of an element.
    #[inline]
    pub fn width(&self) -> u8 {
        self.width
    }
    /// Elements.
    pub fn len(&self) -> u64 {
        self.len
    }
    /// The same bytes as elements of another width: fields of a structure that are accessed so.
    pub fn as_words(&self, width: u8) -> Array {
        Array { base: self.base, len: self.len * u64::from(self.width) / u64::from(width), width }
    }
    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A named piece of the address space, for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// What the program calls it.
    pub name: &'static str,
    /// First byte, virtual.
    pub base: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

/// An address space from zero up, in which arrays are laid one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Space {
    allocations: Vec<Allocation>,
    end: u64,
}

impl Space {
    /// Lays out `len` elements of `width` bytes each.
    pub fn array(&mut self, name: &'static str, width: u8, len: usize) -> Array {
        let base = self.end;
        let bytes = len as u64 * u64::from(width);
        self.allocations.push(Allocation { name, base, bytes });
        self.end = (base + bytes).next_multiple_of(ALIGNMENT);
        Array { base, len: len as u64, width }
    }
    /// All arrays, lowest first.
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }
    /// Bytes of the space, a multiple of the page: every address is below it.
    pub fn footprint(&self) -> u64 {
        self.end.next_multiple_of(proto::memory::PAGE)
    }
}

// Several applications side by side.

/// Bits of an instruction's address inside its application: the code of another begins above them.
const CODE_BITS: u32 = 24;

struct App {
    program: Box<dyn Program>,
    /// The program before its first launch, if it is to be repeated.
    first: Option<Box<dyn Program>>,
    /// Every kernel launched, in order; the last is the present one.
    kernels: Vec<Kernel>,
}

/// Applications with an address space each, as a GPU's multiprocessors see them. A warp's slot has the same number in the
/// machine and in the program.
pub struct Apps {
    apps: Vec<App>,
    /// The application of the warp in each slot.
    of: Vec<u8>,
}

impl Apps {
    /// These programs, numbered in their order.
    ///
    /// # Panics
    /// If there are more than 254.
    pub fn new(programs: Vec<Box<dyn Program>>) -> Apps {
        assert!(programs.len() < usize::from(u8::MAX), "applications are numbered by a byte");
        let app = |program| App { program, first: None, kernels: Vec::new() };
        Apps { apps: programs.into_iter().map(app).collect(), of: Vec::new() }
    }

    /// So that each can begin anew: its data are kept twice.
    pub fn repeatable(mut self) -> Apps {
        for app in &mut self.apps {
            app.first = Some(app.program.copy());
        }
        self
    }

    /// An application's program.
    pub fn program(&self, app: u8) -> &dyn Program {
        self.apps[usize::from(app)].program.as_ref()
    }

    /// Bytes of an application's address space, from zero up, whole pages.
    pub fn footprint(&self, app: u8) -> u64 {
        self.program(app).space().footprint()
    }

    /// The kernels that an application has launched so far, in order of their numbers.
    pub fn kernels(&self, app: u8) -> &[Kernel] {
        &self.apps[usize::from(app)].kernels
    }

    /// Name of an application's launch `number`: `betw.forward#3`. A launch that has not been has only its number.
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
        // Address zero is nobody's: it marks page walks.
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
