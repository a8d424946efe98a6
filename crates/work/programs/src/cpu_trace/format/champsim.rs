//! ChampSim: records of 64 bytes, little-endian, `input_instr` of ChampSim's `inc/trace_instruction.h`.
//!
//! The kind of a branch follows ChampSim's interpretation of the registers (`inc/instruction.h`). A branch is
//! conditional if it does not touch the stack pointer and reads the flags, or the instruction pointer and another
//! register; a branch that was not taken is conditional whatever it reads. As in ChampSim, the stack pointer of
//! pushes, pops, calls and returns is known when they are decoded (`do_stack_pointer_folding` of `src/ooo_cpu.cc`),
//! and nothing waits for the instruction pointer.

use std::io::{self, BufReader, Read};

use config::Diagnostic;
use text::Bad;

use super::super::{Access, Branch, Instruction, Reader};
use crate::cpu_trace::format::Format;
use crate::cpu_trace::format::text::unreadable;

pub(in crate::cpu_trace) static FORMAT: Format = Format {
    name: "champsim",
    title: "ChampSim (records of 64 bytes)",
    is: |start, _| is(start),
    reader: |input, source| {
        Box::new(Records { bytes: BufReader::new(input.bytes), source: source.to_owned(), number: 0 })
    },
};

/// Bytes of a record.
const RECORD: usize = 64;
/// Registers with a special meaning.
const STACK_POINTER: u8 = 6;
const FLAGS: u8 = 25;
const INSTRUCTION_POINTER: u8 = 26;
/// Usual maximum distance between consecutive instructions of a program, in bytes.
const NEAR: u64 = 16 << 20;

fn word(record: &[u8; RECORD], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&record[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Returns true if bytes can be records. Without a magic number, every record must be valid, addresses must be of
/// 57 bits or of the kernel, and half of the instructions must be near the previous one.
fn is(start: &[u8]) -> bool {
    let (records, _) = start.as_chunks::<RECORD>();
    let canonical = |address: u64| address >> 56 == 0 || address >> 56 == 0xff;
    let possible = |record: &[u8; RECORD]| {
        let pc = word(record, 0);
        let addresses = (16..RECORD).step_by(8).map(|at| word(record, at));
        read(record, &mut Instruction::default()).is_ok()
            && pc != 0
            && canonical(pc)
            && addresses.into_iter().all(canonical)
    };
    let near = |pair: &&[[u8; RECORD]]| word(&pair[0], 0).abs_diff(word(&pair[1], 0)) < NEAR;
    let nears = records.windows(2).filter(near).count();
    !records.is_empty() && records.iter().all(possible) && nears * 2 >= records.len() - 1
}

/// Reads a record.
fn read(record: &[u8; RECORD], into: &mut Instruction) -> Result<(), Bad> {
    into.clear();
    let flag = |value: u8, what: &str| match value {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Bad::new(format!("`{what}` is {other}")).help(format!("`{what}` is 0 or 1"))),
    };
    let is_branch = flag(record[8], "is_branch")?;
    let taken = flag(record[9], "branch_taken")?;
    if taken && !is_branch {
        let help = "`branch_taken` must be 0 where `is_branch` is 0";
        return Err(Bad::new("`branch_taken` is 1 for an instruction that is not a branch").help(help));
    }
    let to = [record[10], record[11]];
    let from = [record[12], record[13], record[14], record[15]];
    let loads = (32..RECORD).step_by(8).map(|at| (word(record, at), false));
    let stores = (16..32).step_by(8).map(|at| (word(record, at), true));
    for (address, store) in loads.chain(stores).filter(|(address, _)| *address != 0) {
        into.accesses.push(Access::untold(address, store));
    }
    into.pc = Some(word(record, 0));
    if is_branch {
        into.branch = match (taken, is_conditional(to, from)) {
            (false, _) => Branch::NotTaken,
            (true, true) => Branch::Taken,
            (true, false) => Branch::None,
        };
    }
    let known = to.contains(&STACK_POINTER)
        && (is_branch || !into.accesses.is_empty() || !from.into_iter().any(is_ordinary));
    into.to = to.map(|register| if known && register == STACK_POINTER { 0 } else { waited_for(register) });
    into.from = from.map(waited_for);
    Ok(())
}

/// Returns a register, if an instruction can wait for it.
fn waited_for(register: u8) -> u8 {
    if register == INSTRUCTION_POINTER { 0 } else { register }
}

/// Returns true if a register has no special meaning.
fn is_ordinary(register: u8) -> bool {
    ![0, STACK_POINTER, FLAGS, INSTRUCTION_POINTER].contains(&register)
}

fn is_conditional(to: [u8; 2], from: [u8; 4]) -> bool {
    let others = from.into_iter().any(is_ordinary);
    let stack = to.contains(&STACK_POINTER) || from.contains(&STACK_POINTER);
    !stack && (from.contains(&FLAGS) || from.contains(&INSTRUCTION_POINTER) && others)
}

struct Records {
    bytes: BufReader<Box<dyn Read + Send>>,
    source: String,
    /// Number of records read.
    number: u64,
}

impl Reader for Records {
    fn next(&mut self, into: &mut Instruction) -> Result<bool, Diagnostic> {
        let mut record = [0; RECORD];
        let mut filled = 0;
        let bad = |bad: Bad, number: u64| bad.in_record(&self.source, number + 1);
        while filled < RECORD {
            match self.bytes.read(&mut record[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => {
                    let what = format!(
                        "the file ends after {filled} of the {RECORD} bytes of a record: it is truncated"
                    );
                    return Err(bad(Bad::new(what).help("copy or record it again"), self.number));
                }
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(bad(unreadable(&error), self.number)),
            }
        }
        read(&record, into).map_err(|fault| bad(fault, self.number))?;
        self.number += 1;
        Ok(true)
    }
}
