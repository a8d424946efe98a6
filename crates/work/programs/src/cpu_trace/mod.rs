//! Recorded programs of a CPU as services of a server: Valgrind's lackey (and the files that `nandscape trace capture` makes of
//! it), memtrace, ChampSim, and plain lists of addresses.
//!
//! A trace is read twice. The first reading finds every fault in it and the pages that it touches; the second goes on while the
//! machine runs, a job at a time, so that a trace may be longer than memory. Pages of 4 KiB, of data and of text apart, are laid
//! one behind the other in the order of their first use: the address space is as large as the program's footprint.
//!
//! **Jobs.** The trace is cut into jobs of [`Options::job`] instructions. A job that begins takes the next cut, in whatever slot, so
//! what a job asks for depends on how many have begun before it. Behind the end of the trace comes its beginning, within a job
//! as well, so that all jobs are of one length.
//!
//! What a trace does not say, or says in a way that must be known:
//! * Instructions without an access to memory stand in groups (`count`). Where the format says where instructions lie, a group
//!   stays within a line of 64 bytes of text; where it does not, all of the text is one line, and fetching it never misses.
//! * Each access is an operation that counts one instruction, so an instruction that loads and stores counts two: the
//!   micro-operations of a core. Its stores need what it loads. An access that crosses a line of 64 bytes becomes two.
//! * Registers, thus dependences, are in ChampSim's records alone; in the other formats only the store of a
//!   load and store needs anything.
//! * Branches are in ChampSim's records alone; in the other formats every branch counts as predicted.
//! * ChampSim and lists of addresses do not say how wide an access is: it is taken for one of 8 bytes, or to the end of its line.
//! * The program's threads are one sequence, and its system calls take no time.
//! * Jobs that run at a time are cuts of one program. Each core has a copy of the program's data of its own ([`Memory::Private`]), as if
//!   as many processes ran; its threads share it, and all cores share the text. With [`Memory::Shared`] all jobs have one memory, stacks
//!   included: cores take lines from each other that the program alone would keep.

// A diagnostic is returned once in the life of a trace: its size costs nothing, a box would cost every caller.
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

// Recording: what lackey writes while the program runs, as a file of a few bytes an instruction.

/// What lackey's output is called in diagnostics.
const SOURCE: &str = "lackey's output";

/// What has been recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Instructions.
    pub instructions: u64,
    /// Loads, those of a load and store included.
    pub loads: u64,
    /// Stores, those of a load and store included.
    pub stores: u64,
    /// Pages of 4 KiB that are loaded or stored.
    pub data_pages: u64,
    /// Pages of 4 KiB that instructions lie on.
    pub text_pages: u64,
}

/// Reads what lackey writes and writes it as a capture, up to its end, to `limit` instructions or until `stop` says so, which it
/// is asked at every instruction. Whatever ends it, the capture is whole.
///
/// # Errors
/// What is no line of lackey, and what cannot be read or written.
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
            // Who is stopped does not end his line.
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

// Which recorded program a path is, by content.

/// How much of a file says what it is.
const START: u64 = 64 << 10;

fn format(path: &Path) -> Option<&'static Format> {
    // A pipe gives its bytes only once.
    if !path.is_file() {
        return None;
    }
    let input = File::open(path).and_then(Input::new).ok()?;
    let mut start = Vec::new();
    // What can be read of a damaged file says what it is; opening it says what is wrong.
    let whole = input.bytes.take(START).read_to_end(&mut start).is_ok();
    let all = whole && (start.len() as u64) < START;
    FORMATS.iter().find(|format| (format.is)(&start, all)).copied()
}

/// Whether content begins as one does; `all` says that it is the whole of it.
pub(crate) fn is_beginning(start: &[u8], all: bool) -> bool {
    FORMATS.iter().any(|format| (format.is)(start, all))
}

/// Name and title of every format, in the order in which content is tried.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMATS.iter().map(|format| (format.name, format.title))
}

/// Whether a file is a recorded program of a CPU, by content.
pub fn is_cpu_trace(path: &Path) -> bool {
    format(path).is_some()
}

/// A recorded program as a service: a capture, what Valgrind's lackey or memtrace writes, ChampSim's records or a list of addresses,
/// also compressed. Reads all of it: every fault is found here.
///
/// # Errors
/// A file that is none of them, whatever in it cannot be read (the diagnostic names the file and the line or record), and options
/// that cannot be.
///
/// # Panics
/// The service panics when it comes to what has been changed in the file since.
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

// An instruction as the formats tell of it, before it is an operation of a machine.

/// Bytes of a line, which no access of an operation crosses.
const LINE: u64 = proto::memory::CPU_LINE;

/// Instructions that one [`Instruction`] stands for at most: a core that takes one in is not far ahead of the clock then.
const MOST_COUNT: u16 = 1000;

/// Bytes of an access where the format does not say.
const UNTOLD: u64 = 8;

/// An access to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Access {
    /// First byte, as recorded.
    address: u64,
    /// Bytes, at least one; the last one's address is one of 64 bits.
    width: u16,
    /// Whether it stores.
    store: bool,
}

impl Access {
    /// An access whose width the format does not say.
    fn untold(address: u64, store: bool) -> Access {
        Access { address, width: UNTOLD.min(LINE - address % LINE) as u16, store }
    }

    /// Its parts, each within a line: address and bytes.
    fn parts(self) -> impl Iterator<Item = (u64, u8)> {
        let (mut at, mut left) = (self.address, u64::from(self.width));
        std::iter::from_fn(move || {
            let bytes = left.min(LINE - at % LINE);
            let part = (at, bytes as u8);
            // Behind the last byte of all there is none, and nothing is left.
            (at, left) = (at.wrapping_add(bytes), left - bytes);
            (bytes > 0).then_some(part)
        })
    }
}

/// What a branch did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Branch {
    /// It is none, or one that always goes where it goes.
    #[default]
    None,
    /// Conditional, not taken.
    NotTaken,
    /// Conditional, taken.
    Taken,
}

/// An instruction, or several of which the last is told of.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Instruction {
    /// Instructions that it stands for, itself the last: 1 to [`MOST_COUNT`]. Those before touch no memory.
    count: u16,
    /// Where it lies, as recorded, if the format says so.
    pc: Option<u64>,
    /// What it did if it is a conditional branch.
    branch: Branch,
    /// Registers that it writes; zero is none.
    to: [u8; 2],
    /// Registers that it reads; zero is none.
    from: [u8; 4],
    /// What it loads and stores, in order.
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
    /// Makes it one of which nothing is known; keeps its memory.
    fn clear(&mut self) {
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.clear();
        *self = Instruction { accesses, ..Instruction::default() };
    }

    /// Whether it is one of many that do nothing to be told of.
    fn is_plain(&self) -> bool {
        self.accesses.is_empty() && self.branch == Branch::None && self.to == [0; 2] && self.from == [0; 4]
    }
}

/// Reads a trace, instruction by instruction.
trait Reader {
    /// The next instruction, whole in place of what was there; false behind the last.
    ///
    /// # Errors
    /// What is wrong with the next line or record. Nothing is to be read behind it.
    fn next(&mut self, into: &mut Instruction) -> Result<bool, Diagnostic>;
}
