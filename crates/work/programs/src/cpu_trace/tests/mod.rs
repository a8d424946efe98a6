//! Handwritten samples of each format, with their operations.

mod served;

use std::path::PathBuf;

use proto::cpu::{Op, OpKind, Service};

use super::Access;
use crate::cpu_trace::{Options, is_cpu_trace, open};

/// Writes a file with this content; the folder holds it.
fn file(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    std::fs::write(&path, content).expect("a file");
    (folder, path)
}

fn service(content: &[u8], job: u64) -> Box<dyn Service> {
    let (_folder, path) = file(content);
    open(&path, &Options { job, ..Options::default() }).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Returns all operations of a slot's next job.
fn job(service: &mut dyn Service, slot: u32) -> Vec<Op> {
    service.start(slot, 0);
    let mut tape = Vec::new();
    while service.step(slot, &mut tape) {}
    tape
}

/// Returns the operations of a trace of `instructions` instructions as one job.
fn ops(content: &[u8], instructions: u64) -> Vec<Op> {
    job(service(content, instructions).as_mut(), 0)
}

fn compute(count: u16, pc: u32) -> Op {
    Op { kind: OpKind::Compute, width: 0, count, needs: [0; 2], pc, address: 0 }
}

fn access(kind: OpKind, count: u16, pc: u32, address: u64, width: u8, needs: [u16; 2]) -> Op {
    Op { kind, width, count, needs, pc, address }
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, content).expect("memory");
    packed.finish().expect("memory")
}

fn xz(content: &[u8]) -> Vec<u8> {
    let mut packed = liblzma::write::XzEncoder::new(Vec::new(), 1);
    std::io::Write::write_all(&mut packed, content).expect("memory");
    packed.finish().expect("memory")
}

const LACKEY: &str = "\
==77== Lackey, an example Valgrind tool
==77==
I  00401000,3
I  00401003,5
 L 1ffe000668,8
I  00401008,2
 S 1ffe00107c,8
I  00401030,4
I  00401038,4
 L 1ffe000000,16
I  0040103c,4
I  00402000,4
 M 00601000,4
--77-- a word of Valgrind's
==77== Exit code:       0
";

/// Returns the expected operations. Pages in the order of use are 0x1ffe000, 0x1ffe001 and 0x601 of data, 0x401 and
/// 0x402 of text.
fn lackey_ops() -> Vec<Op> {
    vec![
        // With the load at byte 3 of its line, two instructions of four bytes would begin before it.
        compute(1, 0),
        access(OpKind::Load, 1, 3, 0x668, 8, [0; 2]),
        access(OpKind::Store, 1, 8, 0x107c, 4, [0; 2]),
        access(OpKind::Store, 1, 8, 0x1080, 4, [0; 2]),
        access(OpKind::Load, 2, 0x38, 0, 16, [0; 2]),
        compute(1, 0x3c),
        access(OpKind::Load, 1, 0x1000, 0x2000, 4, [0; 2]),
        access(OpKind::Store, 1, 0x1000, 0x2000, 4, [1, 0]),
    ]
}

#[test]
fn lackey() {
    assert_eq!(ops(LACKEY.as_bytes(), 7), lackey_ops());
    let service = service(LACKEY.as_bytes(), 7);
    assert_eq!((service.footprint(), service.text()), (3 * 4096, 2 * 4096));
    for packed in [gzip(LACKEY.as_bytes()), xz(LACKEY.as_bytes()), LACKEY.replace('\n', "\r\n").into_bytes()]
    {
        assert_eq!(ops(&packed, 7), lackey_ops());
    }
}

#[test]
fn memtrace_tells_what_lackey_tells() {
    let lines = LACKEY.lines().filter_map(|line| {
        let (kind, rest) = line.trim_start().split_once(' ')?;
        let (address, size) = rest.trim_start().split_once(',')?;
        match kind {
            "I" => Some(format!("readi 0x{address} {size}\n")),
            "L" => Some(format!("readd 0x{address} {size}\n")),
            "S" => Some(format!("write 0x{address} {size}\n")),
            "M" => Some(format!("readd 0x{address} {size}\nwrite 0x{address} {size}\n")),
            _ => None,
        }
    });
    let text: String = lines.collect();
    assert_eq!(text.lines().count(), 7 + 5);
    assert_eq!(ops(text.as_bytes(), 7), lackey_ops());
}

#[test]
fn accesses_without_fetches_are_instructions_of_one_line_of_text() {
    let text = " L 04000010,8\n S 04000018,8\n M 04000020,4\n";
    let expected = [
        access(OpKind::Load, 1, 60, 0x10, 8, [0; 2]),
        access(OpKind::Store, 1, 60, 0x18, 8, [0; 2]),
        access(OpKind::Load, 1, 60, 0x20, 4, [0; 2]),
        access(OpKind::Store, 1, 60, 0x20, 4, [1, 0]),
    ];
    assert_eq!(ops(text.as_bytes(), 3), expected);
    assert_eq!(service(text.as_bytes(), 3).text(), 4096);
}

#[test]
fn lists_of_addresses() {
    let text = "s 0x1fffff50 1\nl 0x1fffff7c 0\n\nl 0x3058a998 2500\nl 0x1fffff50 6\n";
    let expected = [
        access(OpKind::Store, 2, 60, 0xf50, 8, [0; 2]),
        // Up to the end of its line, since the width is unknown.
        access(OpKind::Load, 1, 60, 0xf7c, 4, [0; 2]),
        compute(1000, 60),
        compute(1000, 60),
        access(OpKind::Load, 501, 60, 0x1998, 8, [0; 2]),
        access(OpKind::Load, 7, 60, 0xf50, 8, [0; 2]),
    ];
    assert_eq!(ops(text.as_bytes(), 2 + 1 + 2501 + 7), expected);
    assert_eq!(service(text.as_bytes(), 1).footprint(), 2 * 4096);
}

#[test]
fn a_capture_of_lackeys_output_is_served_as_the_output_itself() {
    let mut capture = Vec::new();
    let counts = crate::cpu_trace::record(LACKEY.as_bytes(), &mut capture, None, || false).unwrap();
    let expected =
        crate::cpu_trace::Counts { instructions: 7, loads: 3, stores: 2, data_pages: 3, text_pages: 2 };
    assert_eq!(counts, expected);
    assert_eq!(ops(&capture, 7), lackey_ops());
    let mut limited = Vec::new();
    let counts = crate::cpu_trace::record(LACKEY.as_bytes(), &mut limited, Some(3), || false).unwrap();
    assert_eq!((counts.instructions, counts.loads, counts.stores), (3, 1, 1));
    assert_eq!(ops(&limited, 3), lackey_ops()[..4]);
    // A stopped program ends within a line.
    let asked = std::cell::Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) >= 2;
    let cut = "I  00401000,3\nI  00401003,5\n L 1ff";
    let counts = crate::cpu_trace::record(cut.as_bytes(), Vec::new(), None, stop).unwrap();
    assert_eq!(counts.instructions, 1);
    assert!(crate::cpu_trace::record(cut.as_bytes(), Vec::new(), None, || false).is_err());
}

// Unreadable traces: one diagnostic, with the place.

fn refused(content: &[u8]) -> String {
    let (_folder, path) = file(content);
    let fault = open(&path, &Options::default()).err().expect("it is taken");
    assert!(fault.help.is_some() || fault.nearest.is_some(), "{fault}");
    assert!(fault.also.is_empty());
    fault.to_string()
}

#[test]
fn a_bad_line_is_said_with_its_number() {
    let list = "l 0x10 1\ns 0x20 2\n";
    let words = "readi 0x10 4\nreadd 0x20 8\n";
    for (good, bad, said) in [
        (LACKEY, "I  0040100g,3", "the address is not a number of 64 bits: `0040100g`"),
        (LACKEY, " L 1ffe000668", "the line ends before the size"),
        (LACKEY, " L 1ffe000668,x", "the size is not a number of 64 bits: `x`"),
        (LACKEY, " L 1ffe000668,0", "an access of 0 bytes"),
        (LACKEY, " S 1ffe000668,70000", "1 to 65535 bytes"),
        (LACKEY, " S ffffffffffffffff,2", "ends beyond the 64-bit"),
        (LACKEY, "Hello, world", "not a line of lackey"),
        (LACKEY, " X 1ffe000668,8", "not a line of lackey"),
        (words, "reads 0x10 4", "did you mean `readi`?"),
        (words, "write 0x10", "ends before the size"),
        (words, "write 0x10 4 5", "text after the last field: `5`"),
        (list, "x 0x10 1", "unknown operation: `x`"),
        (list, "l 0xfffffffffffffffff 1", "the address is not a number"),
        (list, "l 0x10", "ends before the number of instructions"),
        (list, "l 0x10 -1", "the number of instructions is not a number: `-1`"),
        (list, "l 0x10 4294967296", "instructions between two accesses: 4294967296"),
        (list, "l 0x10 1 1", "text after the last field"),
    ] {
        let text = format!("{good}{bad}\n");
        let fault = refused(text.as_bytes());
        assert!(fault.contains(said), "{bad}: {fault}");
        assert!(fault.contains(&format!("trace:{}", good.lines().count() + 1)), "{bad}: {fault}");
        assert_eq!(refused(&gzip(text.as_bytes())).lines().next(), fault.lines().next());
    }
}

#[test]
fn a_bad_record_is_said_with_its_number() {
    let good = || Record { ip: 0x40_0000, ..Record::default() };
    let records = bytes(&[good(), good(), good()]);
    let fault = refused(&records[..150]);
    assert!(fault.contains("record 3") && fault.contains("after 22 of the 64 bytes"), "{fault}");
    // After the part that identifies the trace.
    let with = |last: Record| {
        let mut records: Vec<Record> = (0..1024).map(|_| good()).collect();
        records.push(last);
        refused(&bytes(&records))
    };
    let fault = with(Record { branch: [2, 0], ..good() });
    assert!(fault.contains("record 1025: `is_branch` is 2"), "{fault}");
    let fault = with(Record { branch: [0, 1], ..good() });
    assert!(
        fault.contains("record 1025: `branch_taken` is 1 for an instruction that is not a branch"),
        "{fault}"
    );
}

#[test]
fn a_truncated_archive_is_said() {
    let long = LACKEY.repeat(2000);
    let mut packed = gzip(long.as_bytes());
    packed.truncate(packed.len() - 20);
    let fault = refused(&packed);
    assert!(fault.contains("truncated"), "{fault}");
}

#[test]
fn what_is_no_trace_is_no_trace() {
    let zeros = vec![0; 6400];
    let noise: Vec<u8> = (0..6400_u64).map(|n| engine::mix(n) as u8).collect();
    let foreign: [&[u8]; 8] = [
        b"",
        b"0 0 8 8 1\n100 0 16 8 0\n",
        b"[global]\nrw=read\n",
        b"Hello\nI  am,7\n",
        b"==1== only Valgrind's words\n",
        b"-kernel name = k\n",
        &zeros,
        &noise,
    ];
    for content in foreign {
        let (_folder, path) = file(content);
        assert!(!is_cpu_trace(&path), "{}", content.escape_ascii());
        let fault = refused(content);
        assert!(fault.contains("not a recorded program of a CPU") && fault.contains("ChampSim"), "{fault}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    assert!(!is_cpu_trace(folder.path()));
    let of = |path: &std::path::Path| open(path, &Options::default()).err().expect("it is taken").to_string();
    assert!(of(folder.path()).contains("it must be a file"));
    assert!(of(&folder.path().join("absent")).contains("cannot read the trace"));
}

#[test]
fn jobs_that_cannot_be_are_refused() {
    let (_folder, path) = file(LACKEY.as_bytes());
    for job in [0, 10_000_001] {
        let fault = open(&path, &Options { job, ..Options::default() }).err().expect("it is taken");
        assert!(fault.to_string().contains("1 to 10000000"), "{fault}");
    }
}

// ChampSim's records and their dependences, by hand.

#[derive(Default)]
struct Record {
    ip: u64,
    branch: [u8; 2],
    to: [u8; 2],
    from: [u8; 4],
    stores: [u64; 2],
    loads: [u64; 4],
}

fn bytes(records: &[Record]) -> Vec<u8> {
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
        // sp -= r1, flags: unknown before r1
        Record { to: [6, 25], from: [6, 1, 0, 0], ..at(0x84) },
        // a load from the stack, and the return: no condition
        Record { to: [2, 0], from: [6, 0, 0, 0], loads: [0x1fff8, 0, 0, 0], ..at(0x88) },
        Record { branch: [1, 1], to: [26, 6], from: [6, 26, 0, 0], loads: [0x1fff0, 0, 0, 0], ..at(0x8c) },
        // jumps: to a place, and to the address in r2
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

#[test]
fn an_access_is_cut_at_lines() {
    let parts = |address, width| Access { address, width, store: false }.parts().collect::<Vec<_>>();
    assert_eq!(parts(64, 64), [(64, 64)]);
    assert_eq!(parts(62, 4), [(62, 2), (64, 2)]);
    assert_eq!(parts(100, 160), [(100, 28), (128, 64), (192, 64), (256, 4)]);
    assert_eq!(parts(u64::MAX, 1), [(u64::MAX, 1)]);
    assert_eq!(Access::untold(0x1000, false).width, 8);
    assert_eq!(Access::untold(0x103e, true), Access { address: 0x103e, width: 2, store: true });
    assert_eq!(Access::untold(u64::MAX, true).width, 1);
}
