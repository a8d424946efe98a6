//! A kernel and its arrays.

use serde::Deserialize;

use crate::microblock::Microblock;

/// What an element of an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Element {
    /// A real number of 4 B.
    F32,
    /// A real number of 8 B.
    F64,
    /// A whole number of 4 B; it wraps.
    I32,
}

impl Element {
    /// Bytes of one.
    pub fn bytes(self) -> u64 {
        match self {
            Element::F32 | Element::I32 => 4,
            Element::F64 => 8,
        }
    }
}

/// Which data section an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// Read only: instances of a kernel share it.
    Input,
    /// Written, and not read before that.
    Output,
    /// Read, then written.
    Inout,
    /// Between microblocks: nobody asks for it afterwards.
    Scratch,
}

/// An array: row-major, dense, alone in its own addresses, which begin at zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Elements by dimension, from the outermost.
    pub shape: Vec<u64>,
    /// What an element is.
    pub element: Element,
    /// Which data section it is.
    pub section: Section,
}

impl Array {
    /// How many elements it has.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> u64 {
        self.elements() * self.element.bytes()
    }
}

/// What a paper says of the kernel, to be shown beside what follows from the nest.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Loads and stores of all instructions, in per cent.
    pub ldst: f64,
    /// Input bytes a thousand instructions.
    pub bki: f64,
    /// Input in MB.
    pub input: f64,
    /// Microblocks.
    pub microblocks: usize,
    /// Microblocks without screens.
    pub serial: usize,
}

/// A kernel: arrays, and microblocks that work on them one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) sizes: Vec<(String, i64)>,
    pub(crate) arrays: Vec<Array>,
    pub(crate) microblocks: Vec<Microblock>,
    pub(crate) paper: Option<Paper>,
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it computes.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Its sizes as they were read, in the order of their names.
    pub fn sizes(&self) -> &[(String, i64)] {
        &self.sizes
    }

    /// Its arrays, in the order of their names. Their numbers elsewhere are places in this list.
    pub fn arrays(&self) -> &[Array] {
        &self.arrays
    }

    /// Its microblocks, in the order in which they run.
    pub fn microblocks(&self) -> &[Microblock] {
        &self.microblocks
    }

    /// What a paper says of it.
    pub fn paper(&self) -> Option<&Paper> {
        self.paper.as_ref()
    }

    /// Bytes that are there before it starts: of its input, and of what it reads and then writes.
    pub fn input_bytes(&self) -> u64 {
        self.bytes_of(|section| matches!(section, Section::Input | Section::Inout))
    }

    /// Bytes that it leaves behind.
    pub fn output_bytes(&self) -> u64 {
        self.bytes_of(|section| matches!(section, Section::Output | Section::Inout))
    }

    fn bytes_of(&self, is_meant: impl Fn(Section) -> bool) -> u64 {
        self.arrays.iter().filter(|array| is_meant(array.section)).map(Array::bytes).sum()
    }
}
