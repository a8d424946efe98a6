//! Text traces: lines and their faults, recognition of a text, and texts of fetches and accesses.

use std::io;

use config::Diagnostic;
use text::{Bad, Input, Line, Lines};

use super::super::{Access, Instruction, Reader};

/// Number of lines by which a text is recognised.
const SAMPLE: usize = 256;

/// Returns true if a text begins with lines of a format. `parse` returns none for a line that the format skips. A
/// text with a few bad lines still counts: reading it reports them.
pub(super) fn begins_with<T>(
    start: &[u8],
    all: bool,
    mut parse: impl FnMut(&[u8]) -> Result<Option<T>, Bad>,
) -> bool {
    let whole = if all { start.len() } else { memchr::memrchr(b'\n', start).unwrap_or(start.len()) };
    let (mut good, mut bad) = (0, 0);
    for line in start[..whole].split(|byte| *byte == b'\n') {
        match parse(line.strip_suffix(b"\r").unwrap_or(line)) {
            Ok(Some(_)) => good += 1,
            Ok(None) => {}
            Err(_) => bad += 1,
        }
        if good + bad == SAMPLE {
            break;
        }
    }
    good > 0 && good >= bad
}

/// Returns the fault of a file that cannot be read.
pub(super) fn unreadable(error: &io::Error) -> Bad {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Bad::new("the file ends within its compressed data: it is truncated")
            .help("copy or record it again"),
        _ => Bad::new(format!("cannot read the trace: {error}")),
    }
}

/// Lines of a text with content.
pub(super) struct Meant {
    lines: Lines,
    source: String,
}

impl Meant {
    pub(super) fn new(input: Input, source: &str) -> Meant {
        Meant { lines: Lines::new(input.bytes), source: source.to_owned() }
    }

    /// Returns the content of the next line that `parse` does not skip; `None` at the end.
    pub(super) fn next<T>(
        &mut self,
        mut parse: impl FnMut(&[u8]) -> Result<Option<T>, Bad>,
    ) -> Result<Option<T>, Diagnostic> {
        loop {
            let number = self.lines.number() + 1;
            let line = match self.lines.next() {
                Ok(Line::Text(line)) => line,
                Ok(Line::End) => return Ok(None),
                Ok(Line::TooLong(start)) => {
                    return Err(Bad::new("a line longer than 64 KiB").in_line(&self.source, number, start));
                }
                Err(error) => return Err(unreadable(&error).in_line(&self.source, number, b"")),
            };
            match parse(line) {
                Ok(None) => {}
                Ok(told) => return Ok(told),
                Err(bad) => return Err(bad.in_line(&self.source, number, line)),
            }
        }
    }
}

/// Returns an access with a recorded width; `at` is the position of the width in the line.
pub(super) fn access(address: u64, width: u64, store: bool, at: usize) -> Result<Access, Bad> {
    let allowed = || format!("an access has 1 to {} bytes", u16::MAX);
    let Some(width) = u16::try_from(width).ok().filter(|width| *width > 0) else {
        return Err(Bad::new(format!("an access of {width} bytes")).at(at).help(allowed()));
    };
    if address.checked_add(u64::from(width) - 1).is_none() {
        let what =
            format!("an access of {width} bytes at 0x{address:x} ends beyond the 64-bit address space");
        return Err(Bad::new(what)
            .at(at)
            .help("the last byte of an access must be at or below 0xffffffffffffffff"));
    }
    Ok(Access { address, width, store })
}

// Texts of fetches and accesses; accesses follow the fetch of their instruction.

/// Maximum accesses of an instruction; any more continue as a second instruction at the same place. A gather of
/// AVX-512 has 16.
const MOST: usize = 64;

/// Content of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// An instruction at an address.
    Fetch(u64),
    /// An access.
    Access(Access),
    /// A load and a store of the same bytes, given as the load.
    Modify(Access),
}

/// Parser of a line of the format; none if the line is skipped.
pub(super) type Parse = fn(&[u8]) -> Result<Option<Told>, Bad>;

/// Assigns accesses to their instructions. An access before all fetches is a separate instruction: traces of accesses
/// only have no fetches.
pub(super) struct Events {
    lines: Meant,
    parse: Parse,
    /// Instruction that has begun and of which no access has been read.
    begun: Option<u64>,
    /// True if a fetch has been read.
    fetched: bool,
}

impl Events {
    pub(super) fn new(input: Input, source: &str, parse: Parse) -> Events {
        Events { lines: Meant::new(input, source), parse, begun: None, fetched: false }
    }
}

impl Reader for Events {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, Diagnostic> {
        into.clear();
        into.pc = self.begun.take();
        while let Some(told) = self.lines.next(self.parse)? {
            match told {
                Told::Fetch(pc) => {
                    self.fetched = true;
                    if into.pc.is_some() {
                        self.begun = Some(pc);
                        return Ok(true);
                    }
                    into.pc = Some(pc);
                }
                Told::Access(access) => into.accesses.push(access),
                Told::Modify(load) => into.accesses.extend([load, Access { store: true, ..load }]),
            }
            let many = into.accesses.len() >= MOST;
            if many {
                self.begun = into.pc;
            }
            if many || !self.fetched {
                return Ok(true);
            }
        }
        Ok(into.pc.is_some())
    }
}
