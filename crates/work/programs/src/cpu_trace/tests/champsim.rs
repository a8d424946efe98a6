//! ChampSim's records and their dependences, by hand.

use proto::cpu::{Op, OpKind};

use super::{access, compute, ops};

#[derive(Default)]
pub(super) struct Record {
    pub(super) ip: u64,
    pub(super) branch: [u8; 2],
    pub(super) to: [u8; 2],
    pub(super) from: [u8; 4],
    pub(super) stores: [u64; 2],
    pub(super) loads: [u64; 4],
}

pub(super) fn bytes(records: &[Record]) -> Vec<u8> {
    let mut all = Vec::new();
    for Record { ip, branch, to, from, stores, loads } in records {
        all.extend(ip.to_le_bytes());
        all.extend(branch);
        all.extend(to);
        all.extend(from);
        stores.iter().chain(loads).for_each(|address| all.extend(address.to_le_bytes()));
    }
    assert_eq!(all.len(), records.len() * 64);
    all
}

const TEXT: u64 = 0x40_0000;

fn at(ip: u64) -> Record {
    Record { ip: TEXT + ip, ..Record::default() }
}

fn branch(kind: OpKind, pc: u32, needs: [u16; 2]) -> Op {
    Op { kind, needs, ..compute(1, pc) }
}

#[test]
fn registers_are_dependences() {
    let records = [
        // r1 = [r2]
        Record { to: [1, 0], from: [2, 0, 0, 0], loads: [0x10000, 0, 0, 0], ..at(0) },
        // r3 = r1 + r2, flags
        Record { to: [3, 25], from: [1, 2, 0, 0], ..at(4) },
        // a conditional branch that is taken
        Record { branch: [1, 1], to: [26, 0], from: [26, 25, 0, 0], ..at(8) },
        // r4 = [r3 + r1]
        Record { to: [4, 0], from: [3, 1, 0, 0], loads: [0x20000, 0, 0, 0], ..at(0x100) },
        // [r3 + r1] = r4: the two that are written last
        Record { from: [1, 3, 4, 0], stores: [0x10008, 0], ..at(0x104) },
        // [r2] += r4
        Record { from: [2, 4, 0, 0], stores: [0x1003c, 0], loads: [0x1003c, 0, 0, 0], ..at(0x108) },
        // [r7] and [r8] are compared: flags
        Record { to: [25, 0], from: [7, 8, 0, 0], loads: [0x10020, 0x20020, 0, 0], ..at(0x10c) },
        // a conditional branch that is not taken
        Record { branch: [1, 0], to: [26, 0], from: [26, 25, 0, 0], ..at(0x110) },
        // a branch on a register, as other instruction sets have them
        Record { branch: [1, 1], to: [26, 0], from: [26, 4, 0, 0], ..at(0x114) },
    ];
    let expected = [
        access(OpKind::Load, 1, 0, 0, 8, [0, 0]),
        Op { needs: [1, 0], ..compute(1, 4) },
        branch(OpKind::Taken, 8, [1, 0]),
        access(OpKind::Load, 1, 0x100, 0x1000, 8, [2, 3]),
        access(OpKind::Store, 1, 0x104, 8, 8, [1, 3]),
        access(OpKind::Load, 1, 0x108, 0x3c, 4, [2, 0]),
        access(OpKind::Store, 1, 0x108, 0x3c, 4, [1, 3]),
        access(OpKind::Load, 1, 0x10c, 0x20, 8, [0, 0]),
        access(OpKind::Load, 1, 0x10c, 0x1020, 8, [0, 0]),
        Op { needs: [2, 1], ..compute(1, 0x10c) },
        branch(OpKind::NotTaken, 0x110, [1, 0]),
        branch(OpKind::Taken, 0x114, [8, 0]),
    ];
    assert_eq!(ops(&bytes(&records), 9), expected);
}

#[test]
fn the_stack_pointer_of_pushes_and_calls_is_known() {
    let records = [
        // nop; push r1: [sp] = r1, sp
        at(0x20),
        Record { to: [6, 0], from: [6, 1, 0, 0], stores: [0x1fff8, 0], ..at(0x24) },
        // call: no condition
        Record { branch: [1, 1], to: [26, 6], from: [26, 6, 0, 0], stores: [0x1fff0, 0], ..at(0x28) },
        // sp -= 32, flags
        Record { to: [6, 25], from: [6, 0, 0, 0], ..at(0x80) },
        // sp -= r1, flags: nobody knows it before r1
        Record { to: [6, 25], from: [6, 1, 0, 0], ..at(0x84) },
        // a load from the stack, and the return: no condition
        Record { to: [2, 0], from: [6, 0, 0, 0], loads: [0x1fff8, 0, 0, 0], ..at(0x88) },
        Record { branch: [1, 1], to: [26, 6], from: [6, 26, 0, 0], loads: [0x1fff0, 0, 0, 0], ..at(0x8c) },
        // jumps: to a place, and to what r2 says
        Record { branch: [1, 1], to: [26, 0], from: [26, 0, 0, 0], ..at(0x90) },
        Record { branch: [1, 1], to: [26, 0], from: [2, 0, 0, 0], ..at(0xc0) },
    ];
    let expected = [
        access(OpKind::Store, 2, 0x24, 0xff8, 8, [0, 0]),
        access(OpKind::Store, 1, 0x28, 0xff0, 8, [0, 0]),
        compute(1, 0x80),
        compute(1, 0x84),
        access(OpKind::Load, 1, 0x88, 0xff8, 8, [1, 0]),
        access(OpKind::Load, 1, 0x8c, 0xff0, 8, [2, 0]),
        compute(1, 0x90),
        Op { needs: [3, 0], ..compute(1, 0xc0) },
    ];
    assert_eq!(ops(&bytes(&records), 9), expected);
}

#[test]
fn what_is_further_away_than_the_window_is_not_needed() {
    let mut records = vec![Record { to: [1, 0], from: [9, 0, 0, 0], ..at(0) }];
    // Each is an operation, since it reads a register.
    records.extend((0..1023).map(|n| Record { from: [9, 0, 0, 0], ..at(4 + 4 * n) }));
    records.push(Record { to: [2, 0], from: [1, 0, 0, 0], ..at(0x2000) });
    records.push(Record { to: [3, 0], from: [1, 2, 0, 0], ..at(0x2004) });
    let ops = ops(&bytes(&records), 1026);
    assert_eq!(ops.len(), 1026);
    assert_eq!((ops[1024].needs, ops[1025].needs), ([1024, 0], [1, 0]));
}
