//! Samples of each format written by hand, with the operations that they are.

mod bad;
mod champsim;
mod served;

use std::path::PathBuf;

use proto::cpu::{Op, OpKind, Service};

use crate::cpu_trace::{Options, open};

/// A file with a content; the folder holds it.
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

/// All operations of a slot's next job.
fn job(service: &mut dyn Service, slot: u32) -> Vec<Op> {
    service.start(slot, 0);
    let mut tape = Vec::new();
    while service.step(slot, &mut tape) {}
    tape
}

/// A trace of `instructions` instructions as one job.
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

/// Pages in the order of their use are 0x1ffe000, 0x1ffe001 and 0x601 of data, 0x401 and 0x402 of text.
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
        // To the end of its line, since nobody knows how wide it is.
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
    // Who is stopped ends within a line.
    let asked = std::cell::Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) >= 2;
    let cut = "I  00401000,3\nI  00401003,5\n L 1ff";
    let counts = crate::cpu_trace::record(cut.as_bytes(), Vec::new(), None, stop).unwrap();
    assert_eq!(counts.instructions, 1);
    assert!(crate::cpu_trace::record(cut.as_bytes(), Vec::new(), None, || false).is_err());
}
