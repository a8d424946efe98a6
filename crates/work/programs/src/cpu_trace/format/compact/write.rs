//! Writing captures.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use text::varint::{put, put_difference};

use crate::cpu_trace::format::compact::{
    ACCESSES, BRANCH, COUNT, END, Last, MAGIC, MANY, PLACE, REGISTERS, VERSION,
};
use crate::cpu_trace::instruction::{Branch, Instruction};

/// Bytes that are gathered before they are compressed.
const BUFFER: usize = 64 << 10;

/// Writes a capture, compressed.
pub(in crate::cpu_trace) struct Writer<W: Write> {
    to: GzEncoder<W>,
    buffer: Vec<u8>,
    last: Last,
    records: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a capture.
    pub(in crate::cpu_trace) fn new(to: W) -> io::Result<Writer<W>> {
        let mut to = GzEncoder::new(to, Compression::fast());
        to.write_all(MAGIC)?;
        to.write_all(&[VERSION])?;
        Ok(Writer { to, buffer: Vec::with_capacity(2 * BUFFER), last: Last::default(), records: 0 })
    }

    /// Appends an instruction.
    pub(in crate::cpu_trace) fn write(&mut self, instruction: &Instruction) -> io::Result<()> {
        let Instruction { count, pc, branch, to, from, accesses } = instruction;
        let buffer = &mut self.buffer;
        let registers = (*to, *from) != ([0; 2], [0; 4]);
        let branch: u8 = match branch {
            Branch::None => 0,
            Branch::NotTaken => 1,
            Branch::Taken => 2,
        };
        let few = u8::try_from(accesses.len()).unwrap_or(MANY).min(MANY);
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let told = flag(pc.is_some(), PLACE) | flag(*count > 1, COUNT) | flag(registers, REGISTERS);
        buffer.push(told | branch << BRANCH | few << ACCESSES);
        if let Some(pc) = pc {
            put_difference(buffer, pc.wrapping_sub(self.last.pc));
            self.last.pc = *pc;
        }
        if *count > 1 {
            put(buffer, u64::from(*count));
        }
        if registers {
            buffer.extend(to);
            buffer.extend(from);
        }
        if few == MANY {
            put(buffer, accesses.len() as u64);
        }
        for access in accesses {
            put(buffer, u64::from(access.width) << 1 | u64::from(access.store));
            let last = &mut self.last.addresses[usize::from(access.store)];
            put_difference(buffer, access.address.wrapping_sub(*last));
            *last = access.address;
        }
        self.records += 1;
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Ends the capture; what it was written to.
    pub(in crate::cpu_trace) fn finish(mut self) -> io::Result<W> {
        self.buffer.push(END);
        put(&mut self.buffer, self.records);
        self.flush()?;
        self.to.finish()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
