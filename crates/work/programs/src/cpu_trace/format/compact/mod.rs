//! The format that `nandscape trace capture` writes: what all the others say, in a few bytes an instruction.
//!
//! A file is compressed by gzip, or not at all, and begins with `nandscape-cpu` and a line feed, and a byte with the version, 1. Then
//! comes a record for each instruction, and behind them an end: a byte `0x0c` and the number of records. A file without an
//! end is truncated. Numbers are LEB128; a difference is a number whose lowest bit is its sign (zigzag), from zero at the beginning.
//!
//! | part of a record | there if | content |
//! |---|---|---|
//! | head | always | a byte: bit 0 place, bit 1 count, bits 2 and 3 branch (1 not taken, 2 taken), bit 4 registers, bits 5 to 7 accesses (7: their number follows) |
//! | place | bit 0 | difference from the place of the record before that has one |
//! | count | bit 1 | instructions that it stands for, 1 to 1000; one if left out |
//! | registers | bit 4 | six bytes: two written, four read; zero is none |
//! | accesses | bits 5 to 7 are 7 | their number |
//! | access | each | bytes times two, plus one for a store; difference of its address from that of the access of the same kind before |

mod read;
mod write;

pub(in crate::cpu_trace) use write::Writer;

use crate::cpu_trace::format::Format;

pub(in crate::cpu_trace) static FORMAT: Format = Format {
    name: "capture",
    title: "a capture (`nandscape trace capture`)",
    is: |start, _| start.starts_with(MAGIC),
    reader: |input, source| Box::new(read::Records::new(input, source)),
};

const MAGIC: &[u8] = b"nandscape-cpu\n";
const VERSION: u8 = 1;

/// Bits of the head.
const PLACE: u8 = 1;
const COUNT: u8 = 1 << 1;
const BRANCH: u32 = 2;
const BRANCH_MASK: u8 = 3;
const REGISTERS: u8 = 1 << 4;
const ACCESSES: u32 = 5;
/// Accesses that the head has no room for.
const MANY: u8 = 7;
/// The head of the end: the fourth branch.
const END: u8 = 3 << BRANCH;

/// What differences are taken from.
#[derive(Clone, Copy, Default)]
struct Last {
    pc: u64,
    /// Addresses of the last load and the last store.
    addresses: [u64; 2],
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use text::Input;

    use super::{MAGIC, VERSION, Writer};
    use crate::cpu_trace::instruction::{Access, Branch, Instruction, MOST_COUNT};

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
            (1, &[0x02, 0, 0x0c, 1], "record 1: it stands for 0 instructions"),
            (1, &[0, 0x02, 0xe9, 0x07, 0x0c, 2], "record 2: it stands for 1001 instructions"),
            (1, &[0x20, 1, 0, 0x0c, 1], "record 1: an access of 0 bytes"),
            (1, &[0x20, 8, 1, 0x0c, 1], "record 1: an access of 4 bytes at 0xffffffffffffffff"),
            (1, &[0, 0x0c, 7], "the end tells of 7 records, and 1 have been read"),
            (1, &[0x0d, 1], "record 1: the head is 0x0d"),
            (1, &[0, 0x0c, 1, 9], "behind the end"),
            (1, &[0xe0, 0xff, 0xff, 0xff, 0xff, 0x0f], "record 1: 4294967295 accesses"),
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
