//! The programs, in one list.

use config::Diagnostic;

use crate::kernels::{self, Application};
use crate::program::{Inputs, Key, Params, Program, dense, dnn, graph, nest};

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
