//! Programs of a server, executed on their data as the machine requests their operations.
//!
//! A [`Service`] holds terabytes of simulated data in megabytes: the initial data follow from formulas (which keys
//! exist, where each object is, what points to what) and only jobs' changes are kept. A program executes a job piece
//! by piece and writes the operations of each piece, so that addresses, branches and dependences come from the data
//! and from the changes by other jobs between the pieces.
//!
//! **A piece is atomic for the data.** A program executes everything under a lock in one piece, which also writes the
//! operations that take and release the lock. So locks have their cost, and conflicts between jobs show as changed
//! versions, but no job waits for a lock held by a different job. Threads are switched only at misses, so a spinning
//! thread would never let the lock's holder run if that waited on the same core.
//!
//! An address space begins with a page for each slot (request, stack, reply), followed by the tables of the program.
//! Around its data accesses a job executes `work` instructions, which represent everything else that a server does
//! for a request.
//!
//! [`open`] finds the programs by name.

// A program returns at most one diagnostic in its life: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod common;
mod exponential;
mod hash;
mod jobs;
mod loaded;
mod masstree;
mod nest;
mod rbt;
mod silo;
mod swap;
mod tatp;
mod tpcc;

#[cfg(test)]
mod drive;

pub use proto::cpu::{Op, OpKind, Service};

use crate::{
    kernels::Application,
    program::{Key, Params},
};
use common::POPULARITY;
use config::Diagnostic;
use std::path::PathBuf;

// Programs of a server, in one list.

/// A program, or the diagnostic of its parameters.
pub type Built = Result<Box<dyn Service>, Diagnostic>;

/// Entry of a program in the list.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// Benchmark or paper of origin.
    pub source: &'static str,
    /// Description, in one sentence.
    pub what: &'static str,
    /// Parameters.
    pub keys: &'static [Key],
    /// Function that builds it.
    pub build: fn(&Params) -> Built,
}

const ENTRIES: &[Entry] = &[
    swap::ENTRY,
    rbt::ENTRY,
    hash::ENTRY,
    tatp::ENTRY,
    tpcc::ENTRY,
    silo::ENTRY,
    masstree::ENTRY,
    exponential::ENTRY,
];

/// Returns every program.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter()
}

/// Opens a program with its parameters, loaded: `tatp:size=256GiB,theta=0.9,seed=2`. It uses the slots below 4096,
/// and panics if a job begins in a different one.
///
/// # Errors
/// If a program or parameter is unknown, or a parameter is invalid.
pub fn open(text: &str) -> Built {
    let (name, options) = text.split_once(':').unwrap_or((text, ""));
    let name = name.trim();
    let Some(entry) = entries().find(|entry| entry.name == name) else {
        let unknown = Diagnostic::new(format!("unknown program `{name}`"));
        return Err(unknown.allowed(name, entries().map(|entry| entry.name)));
    };
    (entry.build)(&Params::read(text, options, entry.keys)?)
}

/// Returns a service that executes loop nests: each instance is a job, and nothing else is.
///
/// # Errors
/// If an application is not a nest, has threads of a GPU's block, or has more data than there are addresses.
pub fn of_kernels(applications: &[Application]) -> Built {
    nest::service(applications)
}

/// Returns the file that a program also opens, if any: its content affects what the program does.
pub fn file_of(text: &str) -> Option<PathBuf> {
    let (name, options) = text.split_once(':').unwrap_or((text, ""));
    let entry = entries().find(|entry| entry.name == name.trim())?;
    let params = Params::read(text, options, entry.keys).ok()?;
    let mut values = params.values();
    let file = values.find(|(key, _)| key.name == POPULARITY.name).map(|(_, value)| value)?;
    (!file.is_empty()).then(|| PathBuf::from(file))
}

#[cfg(test)]
mod tests {
    use super::jobs::{BLOCK, FIRST_BLOCK};
    use super::*;
    use proto::cpu::Op;

    /// Returns the programs that have data.
    fn with_data() -> impl Iterator<Item = &'static Entry> {
        entries().filter(|entry| entry.keys.iter().any(|key| key.name == "size"))
    }

    /// Writes of three slots for 60 jobs, stepped in turn.
    fn run(service: &mut dyn Service) -> Vec<Op> {
        let mut tape = Vec::new();
        let (mut next, mut running) = (0..60, [false; 3]);
        for turn in 0.. {
            let slot = turn % 3;
            if !running[slot] {
                let Some(job) = next.next() else {
                    if running == [false; 3] {
                        break;
                    }
                    continue;
                };
                service.start(slot as u32, job);
            }
            running[slot] = service.step(slot as u32, &mut tape);
        }
        tape
    }

    #[test]
    fn every_program_serves_within_its_bounds_and_repeats_itself() {
        for entry in with_data() {
            let text = format!("{}:size=1GiB,work=900", entry.name);
            let mut service = open(&text).unwrap();
            assert!(service.footprint() <= 1 << 30 && service.footprint() > 900 << 20, "{}", entry.name);
            let tape = run(service.as_mut());
            let (footprint, text_end) = (service.footprint(), service.text());
            assert!(tape.iter().all(|op| op.address + u64::from(op.width) <= footprint && op.pc < text_end));
            let handling: u32 =
                tape.iter().filter(|op| op.pc < FIRST_BLOCK * BLOCK).map(|op| u32::from(op.count)).sum();
            // Each half in whole turns of 240 instructions; or what the lines of an order have, less a turn that is not whole.
            let of_lines = 60 * (900 * 9 / 10 - 240)..60 * 900 * 11 / 10;
            let is_work =
                if entry.name == "tpcc" { of_lines.contains(&handling) } else { handling == 60 * 2 * 480 };
            assert!(is_work, "{}: {handling}", entry.name);
            assert_eq!(tape, run(open(&text).unwrap().as_mut()), "{}", entry.name);
            assert_ne!(tape, run(open(&format!("{text},seed=9")).unwrap().as_mut()), "{}", entry.name);
        }
    }

    /// Jobs are executed, then others; the others write the same if what the first have left is saved and loaded between them.
    #[test]
    fn a_program_goes_on_from_what_was_saved() {
        let mut changed = Vec::new();
        for entry in entries() {
            let text = match entry.name {
                "exponential" => "exponential:mean=500,touches=2".to_owned(),
                name => format!("{name}:size=128MiB,work=0,theta=1.1"),
            };
            let mut first = open(&text).unwrap();
            let mut tape = Vec::new();
            for job in 0..3_000 {
                first.start(0, 1 << 40 | job);
                while first.step(0, &mut tape) {}
                tape.clear();
            }
            let mut saved = Vec::new();
            first.save(&mut saved);
            let (mut second, mut input) = (open(&text).unwrap(), saved.as_slice());
            assert!(second.load(&mut input).is_some() && input.is_empty(), "{}", entry.name);
            let mut again = Vec::new();
            second.save(&mut again);
            assert!(saved == again, "{}", entry.name);
            let goes_on = run(first.as_mut());
            assert!(goes_on == run(second.as_mut()), "{}", entry.name);
            if saved.is_empty() {
                continue;
            }
            if goes_on != run(open(&text).unwrap().as_mut()) {
                changed.push(entry.name);
            }
            for cut in (0..saved.len()).step_by(saved.len() / 20 + 1) {
                assert!(open(&text).unwrap().load(&mut &saved[..cut]).is_none(), "{}: {cut}", entry.name);
            }
        }
        // Of the others, data decide no address.
        assert!(changed.contains(&"rbt") && changed.contains(&"hash"), "{changed:?}");
    }

    #[test]
    fn the_file_of_a_program_is_its_popularity() {
        assert_eq!(file_of("tatp:size=1GiB,popularity=a/b.json"), Some(PathBuf::from("a/b.json")));
        assert_eq!(
            [file_of("tatp:size=1GiB"), file_of("exponential"), file_of("a/b.nst")],
            [None, None, None]
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let refused = |text: &str| open(text).err().unwrap_or_else(|| panic!("{text} is taken"));
        assert_eq!(refused("tapt").nearest.as_deref(), Some("tatp"));
        assert_eq!(refused("rbt:sizes=1GiB").nearest.as_deref(), Some("size"));
        assert_eq!(refused("swap:placement=scatter").nearest.as_deref(), Some("scattered"));
        for text in ["swap:theta=0", "swap:theta=-1", "swap:theta=x", "hash:lookups=101", "tatp:seed=-1"] {
            refused(text);
        }
        assert!(refused("swap:theta=1,popularity=x").to_string().contains("exclude each other"));
        assert!(refused("swap:popularity=no/such").to_string().contains("cannot read `no/such`"));
        for entry in with_data() {
            for size in ["16MiB", "0B", "1PiB", "huge"] {
                let refused = refused(&format!("{}:size={size}", entry.name));
                assert!(refused.to_string().contains("64TiB"), "{refused}");
            }
        }
    }
}
