//! What cannot be read: one diagnostic, with the place.

use super::champsim::{Record, bytes};
use super::{LACKEY, file, gzip};
use crate::cpu_trace::{Options, is_cpu_trace, open};

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
        (LACKEY, "I  0040100g,3", "the address is no number of 64 bits: `0040100g`"),
        (LACKEY, " L 1ffe000668", "the line ends before the size"),
        (LACKEY, " L 1ffe000668,x", "the size is no number of 64 bits: `x`"),
        (LACKEY, " L 1ffe000668,0", "an access of 0 bytes"),
        (LACKEY, " S 1ffe000668,70000", "1 to 65535 bytes"),
        (LACKEY, " S ffffffffffffffff,2", "ends beyond 64 bits"),
        (LACKEY, "Hello, world", "no line of lackey"),
        (LACKEY, " X 1ffe000668,8", "no line of lackey"),
        (words, "reads 0x10 4", "did you mean `readi`?"),
        (words, "write 0x10", "ends before the size"),
        (words, "write 0x10 4 5", "more than the line needs: `5`"),
        (list, "x 0x10 1", "unknown operation: `x`"),
        (list, "l 0xfffffffffffffffff 1", "the address is no number"),
        (list, "l 0x10", "ends before the number of instructions"),
        (list, "l 0x10 -1", "the number of instructions is no number: `-1`"),
        (list, "l 0x10 4294967296", "4294967296 instructions between"),
        (list, "l 0x10 1 1", "more than the line needs"),
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
    // Behind what recognises the trace.
    let with = |last: Record| {
        let mut records: Vec<Record> = (0..1024).map(|_| good()).collect();
        records.push(last);
        refused(&bytes(&records))
    };
    let fault = with(Record { branch: [2, 0], ..good() });
    assert!(fault.contains("record 1025: `is_branch` is 2"), "{fault}");
    let fault = with(Record { branch: [0, 1], ..good() });
    assert!(
        fault.contains("record 1025: `branch_taken` is 1 for an instruction that is no branch"),
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
        assert!(fault.contains("no recorded program of a CPU") && fault.contains("ChampSim"), "{fault}");
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
