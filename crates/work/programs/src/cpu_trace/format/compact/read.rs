//! Reading captures.

use std::io::{BufReader, ErrorKind, Read};

use config::Diagnostic;
use text::varint::unzigzag;
use text::{Bad, Input};

use crate::cpu_trace::format::compact::{
    ACCESSES, BRANCH, BRANCH_MASK, COUNT, END, Last, MAGIC, MANY, PLACE, REGISTERS, VERSION,
};
use crate::cpu_trace::format::text::{access, unreadable};
use crate::cpu_trace::instruction::{Branch, Instruction, MOST_COUNT, Reader};

/// Accesses of an instruction at most: far more than any has, and few enough to be held.
const MOST_ACCESSES: u64 = 4096;

const HELP: &str = "the file is damaged: capture it again";

/// Reads records.
pub(super) struct Records {
    bytes: BufReader<Box<dyn Read + Send>>,
    source: String,
    last: Last,
    /// Records that have been read.
    records: u64,
    begun: bool,
}

impl Records {
    pub(super) fn new(input: Input, source: &str) -> Records {
        let bytes = BufReader::with_capacity(64 << 10, input.bytes);
        Records { bytes, source: source.to_owned(), last: Last::default(), records: 0, begun: false }
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<(), Bad> {
        self.bytes.read_exact(into).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                Bad::new("the file ends without its end: it is truncated").help("capture it again")
            }
            _ => unreadable(&error),
        })
    }

    fn byte(&mut self) -> Result<u8, Bad> {
        let mut byte = [0];
        self.fill(&mut byte)?;
        Ok(byte[0])
    }

    fn number(&mut self) -> Result<u64, Bad> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits > u64::MAX >> shift {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Bad::new("a number of more than 64 bits").help(HELP))
    }

    fn difference(&mut self) -> Result<u64, Bad> {
        Ok(unzigzag(self.number()?) as u64)
    }

    fn begin(&mut self) -> Result<(), Bad> {
        let mut magic = [0; MAGIC.len()];
        self.fill(&mut magic)?;
        if magic != MAGIC {
            return Err(Bad::new("no capture").help("a capture begins with `nandscape-cpu`"));
        }
        match self.byte()? {
            VERSION => Ok(()),
            other => Err(Bad::new(format!("a capture of version {other}")).help(format!(
                "version {VERSION} is read: capture it again, or take the nandscape that wrote it"
            ))),
        }
    }

    fn record(&mut self, into: &mut Instruction) -> Result<bool, Bad> {
        if !std::mem::replace(&mut self.begun, true) {
            self.begin()?;
        }
        into.clear();
        let head = self.byte()?;
        if head == END {
            return self.end().map(|()| false);
        }
        into.branch = match head >> BRANCH & BRANCH_MASK {
            0 => Branch::None,
            1 => Branch::NotTaken,
            2 => Branch::Taken,
            _ => return Err(Bad::new(format!("the head is 0x{head:02x}")).help(HELP)),
        };
        if head & PLACE != 0 {
            self.last.pc = self.last.pc.wrapping_add(self.difference()?);
            into.pc = Some(self.last.pc);
        }
        if head & COUNT != 0 {
            let count = self.number()?;
            let allowed = || Bad::new(format!("it stands for {count} instructions")).help(HELP);
            into.count =
                u16::try_from(count).ok().filter(|n| (1..=MOST_COUNT).contains(n)).ok_or_else(allowed)?;
        }
        if head & REGISTERS != 0 {
            self.fill_registers(into)?;
        }
        let accesses = match head >> ACCESSES {
            MANY => self.number()?,
            few => u64::from(few),
        };
        if accesses > MOST_ACCESSES {
            return Err(Bad::new(format!("{accesses} accesses of one instruction")).help(HELP));
        }
        for _ in 0..accesses {
            let told = self.number()?;
            let (width, store) = (told >> 1, told & 1 == 1);
            let address = self.last.addresses[usize::from(store)].wrapping_add(self.difference()?);
            self.last.addresses[usize::from(store)] = address;
            into.accesses.push(access(address, width, store, 0)?);
        }
        Ok(true)
    }

    fn fill_registers(&mut self, into: &mut Instruction) -> Result<(), Bad> {
        self.fill(&mut into.to)?;
        self.fill(&mut into.from)
    }

    fn end(&mut self) -> Result<(), Bad> {
        let (told, read) = (self.number()?, self.records);
        if told != read {
            let what = format!("the end tells of {told} records, and {read} have been read");
            return Err(Bad::new(what).help(HELP));
        }
        // What follows would be lost; and a decoder compares its checksum only when it is read to its end.
        match self.bytes.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Bad::new("something stands behind the end").help(HELP)),
            Err(error) => Err(unreadable(&error)),
        }
    }
}

impl Reader for Records {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, Diagnostic> {
        let read = self.record(into).map_err(|bad| bad.in_record(&self.source, self.records + 1))?;
        self.records += u64::from(read);
        Ok(read)
    }
}
