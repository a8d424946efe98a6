//! The programs of a host, in one list.

use config::Diagnostic;
use engine::Rng;

use super::options::{Options, Parameter, Tables};
use super::{HostProgram, apache, db, images, syscalls, ungzip};

/// A program, or why its parameters cannot be.
pub type Built = Result<Box<dyn HostProgram>, Diagnostic>;

/// A program of the list.
#[derive(Clone, Copy)]
pub struct Entry {
    /// What it is called on the command line.
    pub name: &'static str,
    /// The benchmark or the program that it follows.
    pub source: &'static str,
    /// What it does, in a sentence.
    pub what: &'static str,
    pub(crate) parameters: Tables,
    pub(crate) build: fn(&Options, Named<'_>) -> Built,
}

impl Entry {
    /// Its parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        self.parameters.iter().copied().flatten()
    }
}

/// A program's name in a run, which opens its random streams.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    seed: u64,
}

impl Named<'_> {
    /// The stream for one purpose.
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

/// Every program.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter()
}

/// A program with its parameters: `apache-u:rate=2000,fsync=yes`. It is called `name` in the run, which must be its own if there are several;
/// everything that it draws follows from the name and `seed`.
///
/// # Errors
/// An unknown program or parameter, or a parameter that cannot be.
pub fn open(text: &str, name: &str, seed: u64) -> Built {
    let (program, options) = text.split_once(':').unwrap_or((text, ""));
    let program = program.trim();
    let Some(entry) = entries().find(|entry| entry.name == program) else {
        let unknown = Diagnostic::new(format!("unknown program `{program}`"));
        return Err(unknown.allowed(program, entries().map(|entry| entry.name)));
    };
    (entry.build)(&Options::read(text, options, entry.parameters)?, Named { name, seed })
}
