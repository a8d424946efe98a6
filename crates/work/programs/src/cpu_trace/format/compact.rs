//! Format written by `nandscape trace capture`: the content of all the others, in a few bytes per instruction.
//!
//! A file is compressed by gzip or uncompressed. It begins with `nandscape-cpu`, a line feed, and a byte with the
//! version, 1. Then comes a record for each instruction, followed by the end: a byte `0x0c` and the number of
//! records. A file without an end is truncated. Numbers are LEB128; a difference is a number whose lowest bit is its
//! sign (zigzag), from zero at the beginning.
//!
//! | part of a record | present if | content |
//! |---|---|---|
//! | head | always | a byte: bit 0 place, bit 1 count, bits 2 and 3 branch (1 not taken, 2 taken), bit 4 registers, bits 5 to 7 accesses (7: their number follows) |
//! | place | bit 0 | difference from the place of the previous record that has one |
//! | count | bit 1 | number of instructions, 1 to 1000; one if absent |
//! | registers | bit 4 | six bytes: two written, four read; zero for none |
//! | accesses | bits 5 to 7 are 7 | their number |
//! | access | each | bytes times two, plus one for a store; difference of its address from that of the previous
//! access of the same kind |

use super::super::{Branch, Instruction, MOST_COUNT, Reader};
use crate::cpu_trace::format::{
    Format,
    text::{access, unreadable},
};
use config::Diagnostic;
use flate2::{Compression, write::GzEncoder};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use text::{
    Bad, Input,
    varint::{put, put_difference, unzigzag},
};

pub(in crate::cpu_trace) static FORMAT: Format = Format {
    name: "capture",
    title: "a capture (`nandscape trace capture`)",
    is: |start, _| start.starts_with(MAGIC),
    reader: |input, source| Box::new(Records::new(input, source)),
};

const MAGIC: &[u8] = b"nandscape-cpu\n";
const VERSION: u8 = 1;

/// Bits of the record head.
const PLACE: u8 = 1;
const COUNT: u8 = 1 << 1;
const BRANCH: u32 = 2;
const BRANCH_MASK: u8 = 3;
const REGISTERS: u8 = 1 << 4;
const ACCESSES: u32 = 5;
/// Number of accesses that does not fit the head.
const MANY: u8 = 7;
/// Head of the end: the fourth branch value.
const END: u8 = 3 << BRANCH;

/// Bases of differences.
#[derive(Clone, Copy, Default)]
struct Last {
    pc: u64,
    /// Addresses of the last load and the last store.
    addresses: [u64; 2],
}

// Writer of captures.

/// Bytes that are buffered before compression.
const BUFFER: usize = 64 << 10;

/// Writer of a compressed capture.
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

    /// Ends the capture; returns the underlying writer.
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

// Reader of captures.

/// Maximum accesses of an instruction: far more than any has, and few enough to be held.
const MOST_ACCESSES: u64 = 4096;

const HELP: &str = "the file is damaged: capture it again";

/// Reader of records.
struct Records {
    bytes: BufReader<Box<dyn Read + Send>>,
    source: String,
    last: Last,
    /// Number of records read.
    records: u64,
    begun: bool,
}

impl Records {
    fn new(input: Input, source: &str) -> Records {
        let bytes = BufReader::with_capacity(64 << 10, input.bytes);
        Records { bytes, source: source.to_owned(), last: Last::default(), records: 0, begun: false }
    }

    fn fill(&mut self, into: &mut [u8]) -> Result<(), Bad> {
        self.bytes.read_exact(into).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                Bad::new("the file has no end record: it is truncated").help("capture it again")
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
            return Err(Bad::new("not a capture").help("a capture begins with `nandscape-cpu`"));
        }
        match self.byte()? {
            VERSION => Ok(()),
            other => Err(Bad::new(format!("unsupported capture version {other}")).help(format!(
                "version {VERSION} is supported: capture it again, or use the nandscape that wrote it"
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
            _ => return Err(Bad::new(format!("unknown record head 0x{head:02x}")).help(HELP)),
        };
        if head & PLACE != 0 {
            self.last.pc = self.last.pc.wrapping_add(self.difference()?);
            into.pc = Some(self.last.pc);
        }
        if head & COUNT != 0 {
            let count = self.number()?;
            let allowed = || Bad::new(format!("it has {count} instructions")).help(HELP);
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
            return Err(Bad::new(format!("one instruction has {accesses} accesses")).help(HELP));
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
            let what = format!("the end record counts {told} records, but {read} were read");
            return Err(Bad::new(what).help(HELP));
        }
        // Anything that follows would be lost; and a decoder checks its checksum only when it is read to its end.
        match self.bytes.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Bad::new("data after the end record").help(HELP)),
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use text::Input;

    use super::{MAGIC, VERSION, Writer};
    use crate::cpu_trace::{Access, Branch, Instruction, MOST_COUNT};

    fn written(instructions: &[Instruction]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        instructions.iter().for_each(|one| writer.write(one).unwrap());
        writer.finish().unwrap();
        bytes
    }

    fn plain(instructions: &[Instruction]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let packed = std::io::Cursor::new(written(instructions));
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut bytes).unwrap();
        bytes
    }

    fn read(bytes: Vec<u8>) -> Result<Vec<Instruction>, config::Diagnostic> {
        let input = Input::new(std::io::Cursor::new(bytes)).unwrap();
        let mut reader = (super::FORMAT.reader)(input, "t");
        let (mut all, mut one) = (Vec::new(), Instruction::default());
        while reader.next(&mut one)? {
            all.push(one.clone());
        }
        Ok(all)
    }

    fn access() -> impl Strategy<Value = Access> {
        (any::<u64>(), 1..=u16::MAX, any::<bool>()).prop_map(|(address, width, store)| Access {
            address: address.min(u64::MAX - u64::from(width) + 1),
            width,
            store,
        })
    }

    fn instruction() -> impl Strategy<Value = Instruction> {
        let branch = prop_oneof![Just(Branch::None), Just(Branch::NotTaken), Just(Branch::Taken)];
        let registers = prop_oneof![Just(([0; 2], [0; 4])), any::<([u8; 2], [u8; 4])>()];
        let pc = proptest::option::of(prop_oneof![any::<u64>(), 0x40_0000..0x40_0100_u64]);
        let accesses = proptest::collection::vec(access(), 0..10);
        (1..=MOST_COUNT, pc, branch, registers, accesses).prop_map(
            |(count, pc, branch, (to, from), accesses)| Instruction { count, pc, branch, to, from, accesses },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_is_written_is_read(instructions in proptest::collection::vec(instruction(), 0..40)) {
            prop_assert_eq!(&read(written(&instructions)).unwrap(), &instructions);
            prop_assert_eq!(read(plain(&instructions)).unwrap(), instructions);
        }

        #[test]
        fn every_truncation_is_said(instructions in proptest::collection::vec(instruction(), 1..8), cut in any::<prop::sample::Index>()) {
            for whole in [written(&instructions), plain(&instructions)] {
                let cut = 20.max(cut.index(whole.len()));
                if cut < whole.len() {
                    let refused = read(whole[..cut].to_vec()).unwrap_err();
                    prop_assert!(refused.what.contains("truncated"), "{}", refused);
                }
            }
        }
    }

    #[test]
    fn bytes_are_those_of_the_format() {
        let first = Instruction { pc: Some(0x40), ..Instruction::default() };
        let second = Instruction {
            pc: Some(0x3f),
            count: 300,
            branch: Branch::Taken,
            to: [1, 0],
            from: [2, 3, 0, 0],
            accesses: vec![
                Access { address: 2, width: 8, store: false },
                Access { address: 1, width: 4, store: true },
                Access { address: 1, width: 4, store: false },
            ],
        };
        let mut expected = MAGIC.to_vec();
        expected.push(VERSION);
        // Zigzag: 0x40 is 0x80, in two bytes; -1 is 1; 2 is 4. 300 is 0xac 0x02.
        expected.extend([0x01, 0x80, 0x01]);
        expected.extend([0x01 | 0x02 | 2 << 2 | 1 << 4 | 3 << 5, 1, 0xac, 0x02, 1, 0, 2, 3, 0, 0]);
        expected.extend([16, 4, 9, 2, 8, 1]);
        expected.extend([0x0c, 2]);
        assert_eq!(plain(&[first, second]), expected);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_record() {
        let with = |version: u8, records: &[u8]| read([MAGIC, &[version], records].concat()).unwrap_err();
        for (version, records, said) in [
            (2, &[0x0c, 0][..], "version 2"),
            (1, &[0x02, 0, 0x0c, 1], "record 1: it has 0 instructions"),
            (1, &[0, 0x02, 0xe9, 0x07, 0x0c, 2], "record 2: it has 1001 instructions"),
            (1, &[0x20, 1, 0, 0x0c, 1], "record 1: an access of 0 bytes"),
            (1, &[0x20, 8, 1, 0x0c, 1], "record 1: an access of 4 bytes at 0xffffffffffffffff"),
            (1, &[0, 0x0c, 7], "the end record counts 7 records, but 1 were read"),
            (1, &[0x0d, 1], "record 1: unknown record head 0x0d"),
            (1, &[0, 0x0c, 1, 9], "after the end record"),
            (1, &[0xe0, 0xff, 0xff, 0xff, 0xff, 0x0f], "record 1: one instruction has 4294967295 accesses"),
            (
                1,
                &[1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2],
                "record 1: a number of more than 64 bits",
            ),
        ] {
            let refused = with(version, records);
            assert!(refused.what.contains(said), "{said}: {refused}");
            assert!(refused.help.is_some(), "{refused}");
        }
    }
}
