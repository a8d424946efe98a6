//! Programs of a host: services that answer requests, and programs that only have throughput, as system calls on files.
//!
//! A request to a service takes core time and system calls on real offsets of files, drawn from published laws of
//! sizes and popularity. The host determines the cost of a call. Clients are only the arrivals of their requests:
//! networks are not modelled. Response time runs from the client's send to the last byte of the answer; later work of a
//! server (its log) only occupies the worker.
//!
//! Recorded programs (`strace`, `iolog`) replay the log of a real program.
//!
//! [`open`] finds programs by name. All their random draws follow from a seed and their name in the run, so that the
//! same requests arrive in the same order on any host.

// A program returns at most one diagnostic in its life: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod apache;
mod db;
mod demand;
mod images;
mod objects;
pub mod offload;
mod server;
mod syscalls;
mod ungzip;

#[cfg(test)]
mod tests;

use crate::program::{Key, Params};
use config::{
    Diagnostic,
    units::{Bandwidth, Bytes, Duration},
};
use engine::{Rng, Time};
use std::path::Path;

pub use server::{Asked, Failed, Kind, Served};
pub(crate) use syscalls::is_strace;
pub use syscalls::{LogContents, LogKind, log_contents, strace_options};

/// A program that reports its measurements.
pub trait HostProgram: proto::file::Program {
    /// Clears the measurements when the measured part of the run begins. A request in service counts when it is
    /// answered.
    fn reset_stats(&mut self, now: Time);
    /// Returns the measurements since then.
    fn measured(&self) -> &Served;
    /// Returns the share of its work done, between zero and one; none if it has no end.
    fn progress(&self) -> Option<f64>;
    /// Returns what it has had a coprocessor execute in the measured part, in order; empty without a coprocessor.
    fn executed(&self) -> &[offload::Executed] {
        &[]
    }
    /// Returns what it leaves out of its input, one sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

// Programs of a host, in one list.

/// A program, or the diagnostic of its parameters.
pub type Built = Result<Box<dyn HostProgram>, Diagnostic>;

/// Entry of a program in the list.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// Benchmark or program that it follows.
    pub source: &'static str,
    /// Description, in one sentence.
    pub what: &'static str,
    pub(crate) parameters: Tables,
    pub(crate) build: fn(&Options, Named<'_>) -> Built,
}

impl Entry {
    /// Returns the parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        self.parameters.iter().copied().flatten()
    }
}

/// Name of a program in a run, which opens its random streams.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    seed: u64,
}

impl Named<'_> {
    /// Opens the stream for one purpose.
    pub(crate) fn stream(&self, purpose: &str) -> Rng {
        Rng::stream(self.seed, &format!("{}/{purpose}", self.name))
    }
}

const ENTRIES: &[Entry] = &[
    apache::FETCH,
    apache::UPLOAD,
    db::SELECT,
    db::UPDATE,
    images::FETCH,
    images::UPLOAD,
    ungzip::ENTRY,
    syscalls::ENTRY,
    syscalls::IOLOG,
];

/// Returns every program.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter()
}

/// Opens a program with its parameters: `apache-u:rate=2000,fsync=yes`. It is called `name` in the run, which must be
/// unique if there are several; all its random draws follow from the name and `seed`.
///
/// # Errors
/// If a program or parameter is unknown, or a parameter is invalid.
pub fn open(text: &str, name: &str, seed: u64) -> Built {
    let (program, options) = text.split_once(':').unwrap_or((text, ""));
    let program = program.trim();
    let Some(entry) = entries().find(|entry| entry.name == program) else {
        let unknown = Diagnostic::new(format!("unknown program `{program}`"));
        return Err(unknown.allowed(program, entries().map(|entry| entry.name)));
    };
    (entry.build)(&Options::read(text, options, entry.parameters)?, Named { name, seed })
}

// Parameters of programs: a table with limits and sources, and their values.

/// Allowed values of a parameter, limits included.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Range {
    /// A whole number.
    Count(u64, u64),
    /// A real number.
    Real(f64, f64),
    /// An amount of data with its unit; in bytes.
    Size(u64, u64),
    /// A span of time with its unit.
    Span(Time, Time),
    /// Data per time with its unit; in bytes per second.
    Rate(u64, u64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// The path of a file, without a comma.
    Path,
}

/// A parameter of a program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// Description of its effect.
    pub what: &'static str,
    /// Default value.
    pub default: &'static str,
    /// Allowed values.
    pub range: Range,
    /// Source of the default: a publication, the source of a program, or *chosen* with the reason.
    pub source: &'static str,
}

impl Parameter {
    /// Returns the allowed values, in words.
    pub fn allowed(&self) -> String {
        match self.range {
            Range::Count(least, most) => format!("a whole number from {least} to {most}"),
            Range::Real(least, most) => format!("a number from {least} to {most}"),
            Range::Size(least, most) => format!("{} to {}", Bytes::new(least), Bytes::new(most)),
            Range::Span(least, most) => format!("{} to {}", Duration::new(least), Duration::new(most)),
            Range::Rate(least, most) => format!("{} to {}", Bandwidth::new(least), Bandwidth::new(most)),
            Range::Word(words) => words.join(", "),
            Range::Path => "the path of a file, without a comma".to_owned(),
        }
    }

    fn value(&self, params: &Params) -> Result<Value, Diagnostic> {
        let text = params.text(self.name).unwrap_or_default();
        let within = |value: Option<u64>, least: u64, most: u64| {
            let value = value.filter(|value| (least..=most).contains(value));
            value.map(Value::Whole).ok_or_else(|| params.refused(self.name, vec![self.allowed()]))
        };
        match self.range {
            Range::Count(least, most) => params.integer(self.name, least..=most).map(Value::Whole),
            Range::Real(least, most) => params.real(self.name, least..=most).map(Value::Real),
            Range::Size(least, most) => within(text.parse().ok().map(Bytes::get), least, most),
            Range::Span(least, most) => {
                within(text.parse().ok().map(|d: Duration| d.time().ps()), least.ps(), most.ps())
            }
            Range::Rate(least, most) => within(text.parse().ok().map(Bandwidth::bytes_per_s), least, most),
            Range::Word(words) => {
                let words: Vec<(&str, u64)> = words.iter().copied().zip(0..).collect();
                params.word(self.name, &words).map(Value::Whole)
            }
            // Paths are read as written.
            Range::Path => Ok(Value::Whole(0)),
        }
    }
}

/// Tables of a program's parameters.
pub(crate) type Tables = &'static [&'static [Parameter]];

#[derive(Clone, Copy)]
enum Value {
    Whole(u64),
    Real(f64),
}

/// Values of a program's parameters, all of them within their limits.
pub(crate) struct Options {
    params: Params,
    values: Vec<(&'static str, Value)>,
}

impl Options {
    /// Reads `key=value,key=value`; `text` is the complete text.
    ///
    /// # Errors
    /// If [`Params::read`] refuses them, or a value is outside its limits.
    pub(crate) fn read(text: &str, options: &str, tables: Tables) -> Result<Options, Diagnostic> {
        let all = || tables.iter().copied().flatten();
        let keys: Vec<Key> = all().map(|p| Key { name: p.name, what: p.what, default: p.default }).collect();
        let params = Params::read(text, options, &keys)?;
        let values = all().map(|p| Ok((p.name, p.value(&params)?)));
        let values = values.collect::<Result<_, Diagnostic>>()?;
        Ok(Options { params, values })
    }

    fn value(&self, name: &str) -> Value {
        let value = self.values.iter().find(|(key, _)| *key == name);
        value.map(|(_, value)| *value).expect("a program reads its own parameters")
    }

    /// Returns a count, an amount of data in bytes, or a rate in bytes per second.
    pub(crate) fn whole(&self, name: &str) -> u64 {
        match self.value(name) {
            Value::Whole(value) => value,
            Value::Real(value) => value as u64,
        }
    }

    /// Returns a span of time.
    pub(crate) fn span(&self, name: &str) -> Time {
        Time::from_ps(self.whole(name))
    }

    /// Returns a real number.
    pub(crate) fn real(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Whole(value) => value as f64,
            Value::Real(value) => value,
        }
    }

    /// Returns the meaning of a word; `meanings` are in the order of the words of the table.
    pub(crate) fn word<T: Copy>(&self, name: &str, meanings: &[T]) -> T {
        meanings[self.whole(name) as usize]
    }

    /// Returns a path; none if it was not given.
    pub(crate) fn path(&self, name: &str) -> Option<&Path> {
        self.params.text(name).map(Path::new)
    }

    /// Returns a diagnostic about a value that is incompatible with a different one.
    pub(crate) fn refused(&self, name: &str, allowed: String) -> Diagnostic {
        self.params.refused(name, vec![allowed])
    }
}

/// Words for no and yes.
pub(crate) const SWITCH: Range = Range::Word(&["no", "yes"]);

/// Meaning of [`SWITCH`].
pub(crate) const SWITCHED: &[bool] = &[false, true];

/// Parameter that selects the drive.
pub(crate) const DRIVE: Parameter = Parameter {
    name: "drive",
    what: "index of the host's drive that holds the files, from 0",
    default: "0",
    range: Range::Count(0, 65_535),
    source: "the first",
};
