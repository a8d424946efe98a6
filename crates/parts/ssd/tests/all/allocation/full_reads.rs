//! Reads of a buffer that is all dirty. A program takes a thousand times as long as all the rest, so that times are counted in programs.

use super::bench::{Bench, PAGE, PROGRAM, buffer, spec, writes};
use config::units::Share;
use ftl::buffer::destage::DestagePolicy;
use proto::IoOp;
use ssd::spec::{FlashSpec, FullReads};

/// Lines of the buffer.
const LINES: u64 = 8;

/// A drive of one plane, whose buffer gives nothing away before it is full.
fn drive(full_reads: Option<FullReads>) -> FlashSpec {
    let mut spec = spec([1, 1, 1, 1], "CWDP");
    let mut buffer = buffer(LINES);
    (buffer.high, buffer.low, buffer.reads) = (Share::percent(100), Share::percent(50), true);
    buffer.destage = Some(DestagePolicy::when_full);
    buffer.full_reads = full_reads;
    spec.buffer = Some(buffer);
    spec
}

/// The buffer holds `dirty` pages; then these pages are read at once. Programs that the reads took, in time and in number.
fn reads(full_reads: Option<FullReads>, dirty: u64, pages: &[u64]) -> (u64, u64) {
    let mut bench = Bench::filled(&drive(full_reads));
    bench.run(writes(0..dirty), 1);
    assert_eq!(bench.programs(), 0, "nothing leaves before it is full");
    let ios = pages.iter().map(|page| (IoOp::Read, page * PAGE, PAGE));
    let took = bench.run(ios, pages.len() as u64);
    ((took.ps() + PROGRAM.ps() / 2) / PROGRAM.ps(), bench.programs())
}

#[test]
fn a_read_passes_a_full_buffer_or_waits_for_the_program_of_a_line() {
    assert_eq!(reads(None, LINES, &[100]), (0, 0));
    assert_eq!(reads(Some(FullReads::pass), LINES, &[100]), (0, 0));
    assert_eq!(reads(Some(FullReads::wait), LINES, &[100]), (1, 1));
}

/// The second read does not find the line that the first one waits for: on one plane two programs follow each other.
#[test]
fn each_read_waits_for_a_line_of_its_own() {
    assert_eq!(reads(Some(FullReads::wait), LINES, &[100, 101]), (2, 2));
}

#[test]
fn a_read_that_has_its_line_or_finds_one_free_waits_for_nothing() {
    assert_eq!(reads(Some(FullReads::wait), LINES, &[3]), (0, 0));
    assert_eq!(reads(Some(FullReads::wait), LINES - 1, &[100]), (0, 0));
}

#[test]
fn a_buffer_that_keeps_no_reads_has_no_line_for_them() {
    let mut spec = drive(Some(FullReads::wait));
    spec.buffer.iter_mut().for_each(|buffer| buffer.reads = false);
    let built = ssd::spec::Built { seed: 1, name: "bench".into(), fold: true };
    let fault = spec.build(&built).err().expect("a read that takes no line cannot wait for one");
    assert!(fault.what.contains("wait for a line"), "{}", fault.what);
}
