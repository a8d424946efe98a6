//! Records of a warp: `trace_info_nvbit_small_s` of MacSim's `trace_read.h`, 64 bytes, little-endian.

use std::io::{self, Read};

use config::Diagnostic;
use text::{Bad, Input};

use super::super::{Builder, Windows};
use crate::simt_trace::code::{Static, Warp, WarpWriter, register, sources};
use crate::simt_trace::opcode::{self, Class};

/// Bytes of a record.
const RECORD: usize = 64;
/// Marker for a register count of none.
const NONE: u8 = 255;
/// Maximum registers of a kind in a record.
const REGISTERS: u8 = 4;
/// All functions are in one address space: program counters are absolute.
const FUNCTION: u32 = 0;

/// Content of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Record {
    opcode: u8,
    is_fp: bool,
    to: u8,
    from: [u8; 3],
    mask: u32,
    pc: u64,
    address: u64,
    /// Bytes that a lane accesses.
    size: u8,
}

impl Record {
    fn read(bytes: &[u8; RECORD]) -> Result<Record, Bad> {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let registers = |count: u8, at: usize, what: &str| {
            let count = if count == NONE { 0 } else { count };
            if count > REGISTERS {
                return Err(Bad::new(format!("{count} {what} registers; a record has room for {REGISTERS}")));
            }
            let mut all = [0; REGISTERS as usize];
            for (n, slot) in all.iter_mut().take(usize::from(count)).enumerate() {
                let number = u16_at(at + 2 * n);
                *slot = register(u32::from(number))
                    .ok_or_else(|| Bad::new(format!("{what} register {number}; SASS has 0 to 255")))?;
            }
            Ok(all)
        };
        let to = registers(bytes[5], 14, "destination")?;
        Ok(Record {
            opcode: bytes[0],
            is_fp: bytes[1] != 0,
            to: to.into_iter().find(|register| *register != 0).unwrap_or(0),
            from: sources(registers(bytes[4], 6, "source")?),
            mask: u32::from(u16_at(24)) | u32::from(u16_at(26)) << 16,
            pc: u64_at(32),
            address: u64_at(48),
            size: bytes[56],
        })
    }

    /// Returns the name and class of its opcode.
    fn opcode(&self) -> Result<(&'static str, Class), Bad> {
        match opcode::macsim().get(usize::from(self.opcode)) {
            Some((name, Class::Unreadable(why))) => Err(Bad::new(format!("{name} {why}"))),
            Some(known) => Ok(*known),
            None => {
                let last = opcode::macsim().len() - 1;
                let unknown = Bad::new(format!("unknown opcode {}; expected 0 to {last}", self.opcode));
                Err(unknown.help("the tracer writes 255 for an instruction that its list does not have"))
            }
        }
    }
}

/// A warp that was read, and what its records imply for the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recording {
    pub(super) warp: Warp,
    pub(super) records: u64,
    /// Highest register, as the machine numbers them.
    pub(super) registers: u8,
    /// End of the shared memory that it touches.
    pub(super) shared: u64,
}

/// An access: the record of the instruction, and those of further addresses after it.
#[derive(Default)]
struct Access {
    parent: Option<(Record, Class)>,
    /// Addresses, the parent's first.
    addresses: Vec<u64>,
    /// Bytes that a lane accesses.
    width: u8,
}

/// Reads a warp's file; `source` is its name in diagnostics.
pub(super) fn read(
    source: &str,
    bytes: impl Read + Send + 'static,
    builder: &mut Builder,
) -> Result<Recording, Diagnostic> {
    let io = |error: io::Error, record: u64| {
        let what = match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                "the file ends within its compressed data: it is truncated".to_owned()
            }
            _ => format!("cannot read the file: {error}"),
        };
        Bad::new(what).in_record(source, record)
    };
    let mut input = Input::new(bytes).map_err(|error| io(error, 1))?.bytes;
    let mut reader = WarpReader::default();
    let mut records = 0;
    let mut bytes = [0; RECORD];
    loop {
        let place = |bad: Bad| bad.in_record(source, records + 1);
        match fill(&mut input, &mut bytes).map_err(|error| io(error, records + 1))? {
            RECORD => {}
            0 => break,
            n => return Err(place(Bad::new(format!("{n} bytes of {RECORD}: the file is truncated")))),
        }
        Record::read(&bytes).and_then(|record| reader.record(record, builder)).map_err(place)?;
        records += 1;
    }
    let warp = reader.finish(builder).map_err(|bad| bad.in_record(source, records))?;
    Ok(Recording { warp, records, registers: reader.registers, shared: reader.shared })
}

/// Reads as much as there is, at most the whole buffer.
fn fill(from: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < to.len() {
        match from.read(&mut to[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[derive(Default)]
struct WarpReader {
    writer: WarpWriter,
    access: Access,
    registers: u8,
    shared: u64,
}

impl WarpReader {
    fn record(&mut self, record: Record, builder: &mut Builder) -> Result<(), Bad> {
        // An access is never executed twice in a row at one place: a second record is a further address of the first.
        if let Some((parent, _)) = &self.access.parent
            && parent.opcode == record.opcode
            && (parent.pc == record.pc || record.is_fp)
        {
            self.access.addresses.push(record.address);
            self.access.width = record.size;
            return Ok(());
        }
        self.close(builder)?;
        let (name, class) = record.opcode()?;
        let used = record.from.into_iter().chain([record.to]).max().unwrap_or(0);
        self.registers = self.registers.max(used);
        if class.is_access() && record.mask != 0 {
            if record.address == 0 && matches!(class, Class::Atomic(_)) {
                return Err(Bad::new(format!("{name} without an address"))
                    .help("this version of the tracer writes addresses only of loads and stores"));
            }
            self.access.parent = Some((record, class));
            self.access.addresses.push(record.address);
            self.access.width = record.size;
            return Ok(());
        }
        let inst = inst(&record, class, 0, builder)?;
        builder.push(&mut self.writer, inst, record.mask, None);
        Ok(())
    }

    /// Writes the collected access.
    fn close(&mut self, builder: &mut Builder) -> Result<(), Bad> {
        let Some((record, class)) = self.access.parent.take() else { return Ok(()) };
        let Some(window) = class.window() else { return Ok(()) };
        let width = self.access.width;
        if !matches!(width, 1 | 2 | 4 | 8 | 16) {
            return Err(Bad::new(format!("an access of {width} bytes a lane; it is 1, 2, 4, 8 or 16")));
        }
        let mask = spread(record.mask, width, &mut self.access.addresses)?;
        let addresses = &mut self.access.addresses;
        let place = builder.place(window, Windows::default(), width, addresses)?;
        if class.kind(true) != class.kind(false) && place == crate::simt_trace::code::Place::Shared {
            let end = addresses.iter().max().map_or(0, |last| last + u64::from(width));
            self.shared = self.shared.max(end);
        }
        let inst = inst(&record, class, width, builder)?;
        builder.push(&mut self.writer, inst, mask, Some((place, addresses)));
        self.access.addresses.clear();
        Ok(())
    }

    fn finish(&mut self, builder: &mut Builder) -> Result<Warp, Bad> {
        self.close(builder)?;
        Ok(builder.paths.take(&mut self.writer))
    }
}

fn inst(record: &Record, class: Class, width: u8, builder: &mut Builder) -> Result<Static, Bad> {
    let pc = builder.code.address(FUNCTION, record.pc)?;
    Ok(Static { class, width, to: record.to, from: record.from, pc })
}

/// Turns the recorded addresses into one address per lane.
///
/// A single address is that of the lowest lane, of an access whose lanes are adjacent. The tracer writes no more if
/// all lanes are within 256 bytes, so an access of all lanes to one place looks the same. Several addresses are the
/// 128-byte lines from the lowest to the highest, or each lane's; they are distributed to the active lanes, and to
/// further lanes if there are more addresses than active lanes.
fn spread(mask: u32, width: u8, addresses: &mut Vec<u64>) -> Result<u32, Bad> {
    let lanes = mask.count_ones() as usize;
    let recorded = addresses.len();
    if recorded > 32 {
        return Err(Bad::new(format!("{recorded} addresses of one instruction; there are 32 lanes")));
    }
    if recorded == 1 {
        let first = addresses[0];
        let last = (lanes as u64 - 1) * u64::from(width);
        if first.checked_add(last).is_none() {
            return Err(Bad::new(format!("an access beyond the 64-bit address space: 0x{first:x}")));
        }
        addresses.extend((1..lanes as u64).map(|lane| first + lane * u64::from(width)));
        return Ok(mask);
    }
    if recorded > lanes {
        return Ok(if recorded == 32 { u32::MAX } else { (1 << recorded) - 1 });
    }
    let given = std::mem::take(addresses);
    addresses.extend((0..lanes).map(|lane| given[lane * recorded / lanes]));
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn addresses_are_dealt_out_to_lanes() {
        let mut one = vec![0x1000];
        assert_eq!(spread(u32::MAX, 8, &mut one).unwrap(), u32::MAX);
        assert_eq!((one.len(), one[31]), (32, 0x1000 + 31 * 8));
        let mut two = vec![0, 128];
        assert_eq!(spread(0xf0, 4, &mut two).unwrap(), 0xf0);
        assert_eq!(two, [0, 0, 128, 128]);
        let mut three = vec![0, 128, 256];
        assert_eq!(spread(0x8000_0000, 4, &mut three).unwrap(), 0b111);
        assert_eq!(three, [0, 128, 256]);
        assert!(spread(1, 4, &mut vec![0; 33]).is_err());
        assert!(spread(3, 4, &mut vec![u64::MAX - 2]).is_err());
    }
}
