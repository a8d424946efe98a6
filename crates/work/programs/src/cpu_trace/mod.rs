//! Recorded programs of a CPU as services of a server: Valgrind's lackey (and the files that `nandscape trace capture` makes of
//! it), memtrace, ChampSim, and plain lists of addresses.
//!
//! A trace is read twice. The first pass finds every fault in it and the pages that it touches; the second runs along
//! with the machine, one job at a time, so a trace may be larger than memory. Pages of 4 KiB, of data and of text
//! separately, are placed in the order of their first use: the address space is as large as the program's footprint.
//!
//! **Jobs.** The trace is cut into jobs of [`Options::job`] instructions. A job that begins takes the next cut, in
//! any slot, so the content of a job depends on how many have begun before it. After its end the trace starts over,
//! within a job as well, so all jobs have the same length.
//!
//! Properties that a trace does not record, or records in a special way:
//! * Instructions without memory accesses are grouped (`count`). If the format records the addresses of instructions,
//!   a group stays within a 64-byte line of text; if not, all of the text is one line, and fetching it never misses.
//! * Each access is an operation that counts as one instruction, so an instruction that loads and stores counts as
//!   two: the micro-operations of a core. Its stores depend on its loads. An access that crosses a 64-byte line
//!   becomes two.
//! * Only ChampSim's records have registers, and thus dependences; in the other formats only the store of a load and
//!   store depends on anything.
//! * Only ChampSim's records have branches; in the other formats every branch counts as predicted.
//! * ChampSim and lists of addresses do not record the width of an access: it is taken as 8 bytes, or up to the end
//!   of its line.
//! * The program's threads are one sequence, and its system calls take no time.
//! * Concurrent jobs are cuts of one program. Each core has its own copy of the program's data ([`Memory::Private`]),
//!   as if several processes ran; its threads share it, and all cores share the text. With [`Memory::Shared`] all
//!   jobs share one memory, stacks included: cores take lines from each other that the program alone would keep.

// A trace returns at most one diagnostic in its life: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod format;
mod ops;
mod recorded;

#[cfg(test)]
mod tests;

pub use recorded::{Memory, Options, PARAMETERS};

use config::Diagnostic;
use format::{FORMATS, Format, compact, lackey};
use ops::Space;
use proto::cpu::Service;
use recorded::Recorded;
use std::{
    fs::File,
    io::{Read, Write},
    path::Path,
};
use text::{Bad, Input, fault::name};

// Recording of lackey's output while the program runs, to a file of a few bytes per instruction.

/// Name of lackey's output in diagnostics.
const SOURCE: &str = "lackey's output";

/// Counts of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Number of instructions.
    pub instructions: u64,
    /// Number of loads, including those of a load and store.
    pub loads: u64,
    /// Number of stores, including those of a load and store.
    pub stores: u64,
    /// Pages of 4 KiB that are loaded or stored.
    pub data_pages: u64,
    /// Pages of 4 KiB that contain instructions.
    pub text_pages: u64,
}

/// Reads the output of lackey and writes it as a capture, up to its end, to `limit` instructions, or until `stop`
/// returns true; it is called at every instruction. The capture is complete in any case.
///
/// # Errors
/// If a line is not lackey's, or reading or writing fails.
pub fn record(
    from: impl Read + Send + 'static,
    to: impl Write,
    limit: Option<u64>,
    stop: impl Fn() -> bool,
) -> Result<Counts, Diagnostic> {
    let unreadable = |error: std::io::Error| Diagnostic::new(format!("cannot read {SOURCE}: {error}"));
    let unwritable = |error: std::io::Error| Diagnostic::new(format!("cannot write the capture: {error}"));
    let mut reader = (lackey::FORMAT.reader)(Input::new(from).map_err(unreadable)?, SOURCE);
    let mut writer = compact::Writer::new(to).map_err(unwritable)?;
    let (mut counts, mut space, mut one) = (Counts::default(), Space::default(), Instruction::default());
    while !stop() && limit.is_none_or(|limit| counts.instructions < limit) {
        match reader.next(&mut one) {
            Ok(true) => {}
            Ok(false) => break,
            // A stopped program does not end its line.
            Err(_) if stop() => break,
            Err(fault) => return Err(fault),
        }
        writer.write(&one).map_err(unwritable)?;
        space.touch(&one);
        let stores = one.accesses.iter().filter(|access| access.store).count() as u64;
        counts.instructions += u64::from(one.count);
        counts.loads += one.accesses.len() as u64 - stores;
        counts.stores += stores;
    }
    writer.finish().and_then(|mut to| to.flush()).map_err(unwritable)?;
    Ok(Counts { data_pages: space.data.len(), text_pages: space.text.len(), ..counts })
}

// Detection of recorded programs, by content.

/// Number of bytes that identify a file.
const START: u64 = 64 << 10;

fn format(path: &Path) -> Option<&'static Format> {
    // A pipe can be read only once.
    if !path.is_file() {
        return None;
    }
    let input = File::open(path).and_then(Input::new).ok()?;
    let mut start = Vec::new();
    // The readable part of a damaged file identifies it; opening it reports the damage.
    let whole = input.bytes.take(START).read_to_end(&mut start).is_ok();
    let all = whole && (start.len() as u64) < START;
    FORMATS.iter().find(|format| (format.is)(&start, all)).copied()
}

/// Returns true if content begins like a recorded program; `all` says that it is complete.
pub(crate) fn is_beginning(start: &[u8], all: bool) -> bool {
    FORMATS.iter().any(|format| (format.is)(start, all))
}

/// Returns name and title of every format, in the order in which content is tried.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMATS.iter().map(|format| (format.name, format.title))
}

/// Returns true if a file is a recorded program of a CPU, by content.
pub fn is_cpu_trace(path: &Path) -> bool {
    format(path).is_some()
}

/// Opens a recorded program as a service: a capture, output of Valgrind's lackey or memtrace, ChampSim's records or a
/// list of addresses, also compressed. Reads all of it: every fault is found here.
///
/// # Errors
/// If a file is none of these, has a bad line or record (the diagnostic names the file and the place), or an option
/// is invalid.
///
/// # Panics
/// The service panics if it reaches a part of the file that has changed since.
pub fn open(path: &Path, options: &Options) -> Result<Box<dyn Service>, Diagnostic> {
    let source = name(path);
    let unreadable =
        |error: std::io::Error| Bad::new(format!("cannot read the trace: {error}")).in_file(&source);
    if !path.metadata().map_err(unreadable)?.is_file() {
        let help = "a trace is read twice: it must be a file, not a folder or a pipe";
        return Err(Bad::new("no file").help(help).in_file(&source));
    }
    let file = File::open(path).map_err(unreadable)?;
    let Some(format) = format(path) else {
        let titles: Vec<&str> = FORMATS.iter().map(|format| format.title).collect();
        let help = format!("a recorded program is {}", titles.join(", "));
        return Err(Bad::new("not a recorded program of a CPU").help(help).in_file(&source));
    };
    Ok(Box::new(Recorded::new(file, format, source, options)?))
}

// Instructions as the formats record them, before they become operations of a machine.

/// Bytes of a line; no access of an operation crosses one.
const LINE: u64 = proto::memory::CPU_LINE;

/// Maximum number of instructions per [`Instruction`]: a core that takes one in does not get far ahead of the clock.
const MOST_COUNT: u16 = 1000;

/// Bytes of an access if the format does not record them.
const UNTOLD: u64 = 8;

/// A memory access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Access {
    /// Address of the first byte, as recorded.
    address: u64,
    /// Width in bytes, at least one; the last byte has a 64-bit address.
    width: u16,
    /// True for a store.
    store: bool,
}

impl Access {
    /// Returns an access whose width the format does not record.
    fn untold(address: u64, store: bool) -> Access {
        Access { address, width: UNTOLD.min(LINE - address % LINE) as u16, store }
    }

    /// Returns its parts, each within a line: address and bytes.
    fn parts(self) -> impl Iterator<Item = (u64, u8)> {
        let (mut at, mut left) = (self.address, u64::from(self.width));
        std::iter::from_fn(move || {
            let bytes = left.min(LINE - at % LINE);
            let part = (at, bytes as u8);
            // Nothing follows the last byte of the address space, and nothing is left.
            (at, left) = (at.wrapping_add(bytes), left - bytes);
            (bytes > 0).then_some(part)
        })
    }
}

/// Outcome of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Branch {
    /// Not a branch, or an unconditional one.
    #[default]
    None,
    /// Conditional, not taken.
    NotTaken,
    /// Conditional, taken.
    Taken,
}

/// An instruction, or several of which only the last is described.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Instruction {
    /// Number of instructions, the described one last: 1 to [`MOST_COUNT`]. The earlier ones do not access memory.
    count: u16,
    /// Address as recorded, if the format has it.
    pc: Option<u64>,
    /// Outcome if it is a conditional branch.
    branch: Branch,
    /// Registers that it writes; zero for none.
    to: [u8; 2],
    /// Registers that it reads; zero for none.
    from: [u8; 4],
    /// Loads and stores, in order.
    accesses: Vec<Access>,
}

impl Default for Instruction {
    fn default() -> Instruction {
        Instruction {
            count: 1,
            pc: None,
            branch: Branch::None,
            to: [0; 2],
            from: [0; 4],
            accesses: Vec::new(),
        }
    }
}

impl Instruction {
    /// Resets it to an unknown instruction; keeps its memory.
    fn clear(&mut self) {
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.clear();
        *self = Instruction { accesses, ..Instruction::default() };
    }

    /// Returns true if it is one of many without any effect to describe.
    fn is_plain(&self) -> bool {
        self.accesses.is_empty() && self.branch == Branch::None && self.to == [0; 2] && self.from == [0; 4]
    }
}

/// Reader of a trace, instruction by instruction.
trait Reader {
    /// Reads the next instruction, replacing the old content; false at the end.
    ///
    /// # Errors
    /// If the next line or record is bad. Nothing may be read after it.
    fn next(&mut self, into: &mut Instruction) -> Result<bool, Diagnostic>;
}
