//! Recorded programs of servers, and the jobs cut from them.

use super::{Target, texts};
use config::Diagnostic;
use programs::cpu_trace::{Options, is_cpu_trace, open};

pub(super) const TARGET: Target = Target {
    name: "recording",
    about: "recorded programs: captures, lackey, memtrace, ChampSim, lists of addresses",
    run,
    examples,
    reads,
    cases: 2_000,
};

const LACKEY: &str = "==77== Lackey, an example Valgrind tool
==77==
I  00401000,3
I  00401003,5
 L 1ffe000668,8
I  00401008,2
 S 1ffe00107c,8
I  00401030,4
 L 1ffe000000,16
I  0040103c,4
 M 00601000,4
--77-- a word of Valgrind's
==77== Exit code:       0
";
const ADDRESSES: &str = "l 0x10 1\ns 0x20 2\nl 0x1000 7\n";
const MEMTRACE: &str = "readi 0x10 4\nreadd 0x20 8\nreadi 0x14 4\nwrite 0x28 8\n";

/// Three records of ChampSim: an instruction, a load, a branch that is taken.
fn champsim() -> Vec<u8> {
    let mut bytes = vec![0_u8; 192];
    for n in 0..3 {
        bytes[n * 64..][..8].copy_from_slice(&(0x40_0000 + 4 * n as u64).to_le_bytes());
    }
    bytes[64 + 32..][..8].copy_from_slice(&0x7fff_0010_u64.to_le_bytes());
    (bytes[128 + 8], bytes[128 + 9]) = (1, 1);
    bytes
}

/// Reads the bytes as a file; runs two jobs of what can be read, whose operations stay inside its memory.
fn take(bytes: &[u8]) -> Result<(), Diagnostic> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    std::fs::write(&path, bytes).expect("a file");
    let known = is_cpu_trace(&path);
    let options = Options::read("job=40", "job=40").expect("an option");
    let mut service = open(&path, &options)?;
    assert!(known, "what is no recording was opened");
    let (footprint, text) = (service.footprint(), service.text());
    for job in 0..2 {
        service.start(0, job);
        loop {
            let mut tape = Vec::new();
            let more = service.step(0, &mut tape);
            assert!(!more || !tape.is_empty(), "a step without an operation");
            assert!(tape.iter().all(|op| op.address < footprint.max(1) && op.pc < text.max(1)));
            if !more {
                break;
            }
        }
    }
    Ok(())
}

fn run(bytes: &[u8]) {
    if let Err(fault) = take(bytes) {
        assert!(!fault.what.is_empty());
        assert!(fault.place.is_some(), "{fault}");
    }
}

fn examples() -> Vec<Vec<u8>> {
    let mut all = texts(&[LACKEY, ADDRESSES, MEMTRACE]);
    all.push(champsim());
    all
}

fn reads(bytes: &[u8]) -> bool {
    take(bytes).is_ok()
}
