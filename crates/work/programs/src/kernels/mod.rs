//! Kernels of an accelerator: programs as loop nests, a user's own, mixes of them, and programs whose work depends on
//! their data.
//!
//! A text names one or more applications: instances of a program that a host offloads one after another. Instances of
//! a program share the data that they only read; so do those of two texts with the same program.

// A program returns at most one diagnostic in its life: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod data;
mod list;
pub mod mixes;
#[cfg(test)]
mod tests;

pub use data::{Key, Room};
pub use list::{Entry, entries, explained, fits, names, of_programs, open};

use config::{Diagnostic, Place, units::Bytes};
use nest::executed::{Area, Bfs, Body, Executed, Nn, Watch, Wc};
use nest::{Kernel, Section};
use std::{ops::RangeInclusive, sync::Arc};

/// Program that an instance executes.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// A loop nest.
    Nest(Kernel),
    /// A program whose work depends on its data, with the data.
    Executed(Arc<OnData>),
}

/// A program whose work depends on its data.
#[derive(Clone, Debug, PartialEq)]
pub enum OnData {
    /// Breadth-first search.
    Bfs(Bfs),
    /// Nearest neighbours.
    Nn(Nn),
    /// Word count.
    Wc(Wc),
}

/// Forwards to the program.
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
    /// Returns the program.
    pub fn program(&self) -> &dyn Executed {
        match self {
            OnData::Bfs(program) => program,
            OnData::Nn(program) => program,
            OnData::Wc(program) => program,
        }
    }

    /// Returns the bytes present before it starts.
    pub fn input_bytes(&self) -> u64 {
        self.bytes_of(Section::Input)
    }

    /// Returns the bytes of its data sections of a kind.
    pub fn bytes_of(&self, section: Section) -> u64 {
        let arrays = self.program().arrays();
        arrays.iter().filter(|area| area.section == section).map(|area| area.bytes).sum()
    }
}

impl Program {
    /// Returns the name.
    pub fn name(&self) -> &str {
        match self {
            Program::Nest(kernel) => kernel.name(),
            Program::Executed(on_data) => on_data.program().name(),
        }
    }

    /// Returns the bytes present before an instance starts, including shared ones.
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
    /// Program that each instance executes.
    pub program: Program,
    /// Number of instances.
    pub instances: u32,
    /// Threads per block on a GPU; none if the GPU decides.
    pub block: Option<u32>,
    /// Input that each instance reads.
    pub inputs: Inputs,
    /// True if all change the same data: they leave a single result, and each continues where the previous one
    /// stopped.
    pub in_turn: bool,
}

// Instances with their own input, and the room that this takes.

/// Source of an instance's read-only input. Data that it also writes is its own in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inputs {
    /// One input for all instances of a program.
    #[default]
    Shared,
    /// Separate input for each instance.
    Own,
    /// Separate input for each instance if there is room for all, otherwise one for all: [`settle`] decides.
    Fit,
}

impl Inputs {
    /// Spellings of the choice.
    pub const NAMES: [(&str, Inputs); 3] =
        [("shared", Inputs::Shared), ("own", Inputs::Own), ("fit", Inputs::Fit)];
}

/// Returns the number of parts of `unit` bytes that the data of all instances take; each array takes whole parts.
fn needed(applications: &[Application], unit: u64) -> u64 {
    let mut shared: Vec<&Program> = Vec::new();
    let mut sum = 0;
    for Application { program, instances, inputs, .. } in applications {
        let is_known = shared.contains(&program);
        for Area { bytes, section, .. } in program.areas() {
            let times = match section {
                Section::Input if *inputs == Inputs::Shared => u64::from(!is_known),
                _ => u64::from(*instances),
            };
            sum += bytes.div_ceil(unit) * times;
        }
        if *inputs == Inputs::Shared && !is_known {
            shared.push(program);
        }
    }
    sum
}

/// Decision on separate input where it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Input that they read: never [`Inputs::Fit`].
    pub inputs: Inputs,
    /// Parts that the data of all instances take with separate input.
    pub needed: u64,
}

/// Gives separate input to the instances that request it if it fits: all of them if all data then take at most `room`
/// parts of `unit` bytes, otherwise none. Returns none if none requests it.
pub fn settle(applications: &mut [Application], unit: u64, room: u64) -> Option<Settled> {
    let asked: Vec<usize> =
        (0..applications.len()).filter(|at| applications[*at].inputs == Inputs::Fit).collect();
    if asked.is_empty() {
        return None;
    }
    asked.iter().for_each(|at| applications[*at].inputs = Inputs::Own);
    let needed = needed(applications, unit);
    let inputs = if needed <= room { Inputs::Own } else { Inputs::Shared };
    asked.iter().for_each(|at| applications[*at].inputs = inputs);
    Some(Settled { inputs, needed })
}

impl Program {
    /// Returns the arrays of the program.
    fn areas(&self) -> Vec<Area> {
        match self {
            Program::Nest(kernel) => {
                let area = |array: &nest::Array| Area {
                    name: array.name.clone(),
                    bytes: array.bytes(),
                    section: array.section,
                };
                kernel.arrays().iter().map(area).collect()
            }
            Program::Executed(on_data) => on_data.arrays(),
        }
    }
}

// Text after the name of a kernel: `atax:m=1024,n=1024,instances=2`.

/// Parameters as text, each once.
struct Options<'a> {
    text: &'a str,
    given: Vec<(&'a str, &'a str)>,
}

impl<'a> Options<'a> {
    /// Reads the part of a text after the colon.
    ///
    /// # Errors
    /// If a parameter has no value, or is given twice.
    fn read(text: &'a str) -> Result<Options<'a>, Diagnostic> {
        let mut options = Options { text, given: Vec::new() };
        let (_, rest) = text.split_once(':').unwrap_or_default();
        for option in rest.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let (name, value) = (name.trim(), value.trim());
            if value.is_empty() {
                let what = format!("parameter `{name}` has no value");
                return Err(Diagnostic::new(what)
                    .at(options.place(name))
                    .help(format!("write `{name}=...`")));
            }
            if options.text(name).is_some() {
                let what = format!("parameter `{name}` is given twice");
                return Err(Diagnostic::new(what).at(options.place(name)));
            }
            options.given.push((name, value));
        }
        Ok(options)
    }

    /// Returns the text of a value.
    fn text(&self, name: &str) -> Option<&'a str> {
        self.given.iter().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    /// Refuses parameters that are not in `known`.
    ///
    /// # Errors
    /// If there is one: the first, with the nearest known name.
    fn only(&self, known: &[&str]) -> Result<(), Diagnostic> {
        let Some((name, _)) = self.given.iter().find(|(name, _)| !known.contains(name)) else {
            return Ok(());
        };
        let what = format!("unknown parameter `{name}`");
        Err(Diagnostic::new(what).at(self.place(name)).allowed(name, known.iter().copied()))
    }

    /// Returns a whole number, or its default.
    ///
    /// # Errors
    /// If the value is invalid or out of range.
    fn number(&self, name: &str, default: u32, range: RangeInclusive<u32>) -> Result<u32, Diagnostic> {
        let Some(value) = self.text(name) else { return Ok(default) };
        let within = value.parse().ok().filter(|number| range.contains(number));
        within.ok_or_else(|| {
            let allowed = format!("a whole number from {} to {}", range.start(), range.end());
            self.refused(name, value, allowed)
        })
    }

    /// Returns an amount of data, or its default.
    ///
    /// # Errors
    /// If the value is invalid or out of range.
    fn bytes(&self, name: &str, default: Bytes, range: RangeInclusive<Bytes>) -> Result<Bytes, Diagnostic> {
        let Some(value) = self.text(name) else { return Ok(default) };
        let within = value.parse().ok().filter(|bytes| range.contains(bytes));
        within.ok_or_else(|| {
            self.refused(name, value, format!("an amount from {} to {}", range.start(), range.end()))
        })
    }

    /// Returns a number with a fraction, or its default.
    ///
    /// # Errors
    /// If the value is invalid or out of range.
    fn real(&self, name: &str, default: f32, range: RangeInclusive<f32>) -> Result<f32, Diagnostic> {
        let Some(value) = self.text(name) else { return Ok(default) };
        let within = value.parse().ok().filter(|number| range.contains(number));
        within.ok_or_else(|| {
            self.refused(name, value, format!("a number from {} to {}", range.start(), range.end()))
        })
    }

    /// Returns the diagnostic of an invalid value, with the allowed ones.
    fn refused(&self, name: &str, value: &str, allowed: String) -> Diagnostic {
        let mut refused = Diagnostic::new(format!("`{value}` is not a valid value of parameter `{name}`"));
        refused.allowed = vec![allowed];
        refused.at(self.place(value))
    }

    /// Refuses parameters that conflict with `given`.
    ///
    /// # Errors
    /// If there is one: the first.
    fn without(&self, given: &str, others: &[&str]) -> Result<(), Diagnostic> {
        let other = others.iter().find(|name| self.text(name).is_some());
        match (self.text(given), other) {
            (Some(_), Some(other)) => {
                let what =
                    format!("parameter `{other}` applies to generated data, but `{given}` names a file");
                Err(Diagnostic::new(what).at(self.place(other)).help("leave one of them out"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the sizes of a kernel among the parameters.
    ///
    /// # Errors
    /// If a value is not a whole number above zero.
    fn sizes(&self, known: &[(String, i64)]) -> Result<Vec<(String, i64)>, Diagnostic> {
        let is_size = |(name, _): &&(&str, &str)| known.iter().any(|(size, _)| size == name);
        let size = |(name, value): &(&str, &str)| {
            let number = value.parse().ok().filter(|number| *number > 0);
            let number = number.ok_or_else(|| {
                let mut refused = Diagnostic::new(format!("`{value}` is not a valid value of size `{name}`"));
                refused.allowed = vec!["a whole number above zero".to_owned()];
                refused.at(self.place(value))
            })?;
            Ok(((*name).to_owned(), number))
        };
        self.given.iter().filter(is_size).map(size).collect()
    }

    /// Returns the place of a word in the text.
    fn place(&self, word: &str) -> Place {
        let from = self.text.find(':').map_or(0, |colon| colon + 1);
        let at = self.text[from..].find(word).map_or(from, |at| from + at);
        let column = self.text[..at].chars().count() as u64 + 1;
        Place { source: "--workload".into(), column, text: self.text.to_owned(), ..Place::default() }
    }
}
