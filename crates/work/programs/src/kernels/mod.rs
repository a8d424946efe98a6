//! Kernels of an accelerator: programs as loop nests, a user's own, mixes of them, and programs whose work depends on their data.
//!
//! What one text names is one or more applications: instances of a program that a host offloads one after another. Instances of a
//! program share what they only read; those of two texts too, if the programs are the same.

// A diagnostic is returned once in the life of a program: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod data;
mod inputs;
mod list;
pub mod mixes;
mod options;
#[cfg(test)]
mod tests;

pub use data::{Key, Room};
pub use inputs::{Inputs, Settled, settle};
pub use list::{Entry, entries, explained, fits, names, of_programs, open};

use nest::executed::{Area, Bfs, Body, Executed, Nn, Watch, Wc};
use nest::{Kernel, Section};
use std::sync::Arc;

/// What an instance executes.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// A loop nest.
    Nest(Kernel),
    /// A program whose work depends on its data, with them.
    Executed(Arc<OnData>),
}

/// A program whose work depends on its data.
#[derive(Clone, Debug, PartialEq)]
pub enum OnData {
    /// Breadth-first search.
    Bfs(Bfs),
    /// The nearest of many places.
    Nn(Nn),
    /// Words of a text.
    Wc(Wc),
}

/// The program, whichever it is.
impl Executed for OnData {
    fn name(&self) -> &'static str {
        self.program().name()
    }

    fn arrays(&self) -> Vec<Area> {
        self.program().arrays()
    }

    fn bodies(&self) -> Vec<Body> {
        self.program().bodies()
    }

    fn execute(&self, watch: &mut dyn Watch) {
        self.program().execute(watch);
    }
}

impl OnData {
    /// The program, whichever it is.
    pub fn program(&self) -> &dyn Executed {
        match self {
            OnData::Bfs(program) => program,
            OnData::Nn(program) => program,
            OnData::Wc(program) => program,
        }
    }

    /// Bytes that are there before it starts.
    pub fn input_bytes(&self) -> u64 {
        self.bytes_of(Section::Input)
    }

    /// Bytes of its data sections of a kind.
    pub fn bytes_of(&self, section: Section) -> u64 {
        let arrays = self.program().arrays();
        arrays.iter().filter(|area| area.section == section).map(|area| area.bytes).sum()
    }
}

impl Program {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Program::Nest(kernel) => kernel.name(),
            Program::Executed(on_data) => on_data.program().name(),
        }
    }

    /// Bytes that are there before an instance starts, those that it shares included.
    pub fn input_bytes(&self) -> u64 {
        match self {
            Program::Nest(kernel) => kernel.input_bytes(),
            Program::Executed(on_data) => on_data.input_bytes(),
        }
    }
}

/// Instances of a program, offloaded one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// What each instance executes.
    pub program: Program,
    /// How many there are.
    pub instances: u32,
    /// Threads of a block, where a GPU executes it; none if that is left to it.
    pub block: Option<u32>,
    /// Whose input each reads.
    pub inputs: Inputs,
    /// Whether all change the same data: what they leave is one, and each goes on where the one before has stopped.
    pub in_turn: bool,
}
