//! Jobs of a trace; traces of the shared data, compared with counts of their lines.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;

use proto::cpu::{Op, OpKind};

use super::{Record, bytes, file, job, service};
use crate::cpu_trace::{Memory, Options, is_cpu_trace, open};

fn addresses(ops: &[Op]) -> Vec<u64> {
    ops.iter().filter(|op| op.width > 0).map(|op| op.address).collect()
}

#[test]
fn a_job_is_the_next_cut_whatever_its_slot_and_the_beginning_follows_the_end() {
    let text: String = (0..5).map(|n| format!("l 0x{:x} 0\n", n * 4096 + n * 8)).collect();
    let mut service = service(text.as_bytes(), 3);
    let at = |n: u64| n * 4096 + n * 8;
    assert_eq!(addresses(&job(service.as_mut(), 7)), [at(0), at(1), at(2)]);
    // Two jobs at a time, stepped in turn.
    service.start(0, 1);
    service.start(7, 2);
    let (mut tapes, mut goes_on) = ([Vec::new(), Vec::new()], [true; 2]);
    while goes_on != [false; 2] {
        for (n, slot) in [7, 0].into_iter().enumerate().filter(|(n, _)| goes_on[*n]).collect::<Vec<_>>() {
            goes_on[n] = service.step(slot, &mut tapes[n]);
        }
    }
    assert_eq!(addresses(&tapes[0]), [at(1), at(2), at(3)]);
    assert_eq!(addresses(&tapes[1]), [at(3), at(4), at(0)]);
    // More than once around.
    let mut service = super::service(text.as_bytes(), 12);
    let around: Vec<u64> = (0..12).map(|n| at(n % 5)).collect();
    assert_eq!(addresses(&job(service.as_mut(), 0)), around);
}

/// Slots of one core share one copy of the data, separate from that of a different core; `shared` has a single copy
/// for all.
#[test]
fn each_core_has_a_copy_of_the_data() {
    let text: String = (0..6).map(|n| format!("l 0x{:x} 0\n", 0x7000 + (n % 3) * 4096 + n * 8)).collect();
    let (_folder, path) = file(text.as_bytes());
    for (memory, copies) in [(Memory::Private, 4), (Memory::Shared, 1)] {
        let mut service = open(&path, &Options { job: 6, memory }).expect("a trace");
        assert!(service.notes().is_empty());
        service.serve_on(4, 2);
        assert_eq!(service.footprint(), copies * 3 * 4096);
        let cores = [0, 1, 2, 5, 7].map(|slot| addresses(&job(service.as_mut(), slot)));
        let alone: Vec<u64> = (0..6).map(|n| n % 3 * 4096 + n * 8).collect();
        for (core, found) in [0, 0, 1, 2, 3].into_iter().zip(cores) {
            let copy = if copies > 1 { core * 3 * 4096 } else { 0 };
            assert_eq!(found, alone.iter().map(|at| at + copy).collect::<Vec<_>>(), "{memory:?} {core}");
        }
        assert!(service.notes()[0].contains("each of the 4 cores has"), "{:?}", service.notes());
    }
}

#[test]
fn nothing_is_needed_over_the_end_or_a_cut() {
    // r1 += 1, in a chain.
    let records: Vec<Record> = (0..4)
        .map(|n| Record { ip: 0x1000 + 4 * n, to: [1, 0], from: [1, 0, 0, 0], ..Record::default() })
        .collect();
    let mut service = service(&bytes(&records), 6);
    let needs = |ops: Vec<Op>| ops.iter().map(|op| op.needs[0]).collect::<Vec<_>>();
    assert_eq!(needs(job(service.as_mut(), 0)), [0, 1, 1, 1, 0, 1]);
    assert_eq!(needs(job(service.as_mut(), 0)), [0, 1, 0, 1, 1, 1]);
}

#[test]
fn a_job_comes_in_pieces() {
    let text: String = (0..1000).map(|n| format!("s 0x{:x} 1\n", n * 64)).collect();
    let mut service = service(text.as_bytes(), 2000);
    service.start(0, 0);
    let (mut tape, mut steps) = (Vec::new(), 1);
    while service.step(0, &mut tape) {
        steps += 1;
    }
    assert_eq!((tape.len(), steps), (1000, 4));
    assert_eq!(service.footprint(), 64_000_u64.next_multiple_of(4096));
}

#[test]
#[should_panic(expected = "changed while it was read")]
fn a_file_that_is_changed_is_noticed() {
    let (_folder, path) = file(b"l 0x10 0\ns 0x20 0\n");
    let mut service = open(&path, &Options { job: 2, ..Options::default() }).expect("a trace");
    job(service.as_mut(), 0);
    std::fs::write(&path, "l 0x10 0\n").expect("a file");
    job(service.as_mut(), 0);
    job(service.as_mut(), 0);
}

fn data() -> Option<PathBuf> {
    let root = std::env::var_os("NANDSCAPE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
        PathBuf::from,
    );
    let there = root.join("cpu_mem").is_dir();
    if !there {
        println!("skipped: no data");
    }
    there.then_some(root)
}

#[test]
fn shared_lists_are_served_as_their_lines_say() {
    let Some(root) = data() else { return };
    // Pages and lines as counted in the data's own description.
    for (name, pages, lines) in [("gcc", 294, 3367), ("mcf", 1442, 90_077)] {
        let path = root.join("cpu_mem").join(format!("{name}.trace.gz"));
        let packed = std::fs::File::open(&path).expect("a trace");
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(packed).read_to_string(&mut text).expect("text");
        let fields = || text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let instructions: u64 = fields().map(|line| line[2].parse::<u64>().expect("a number") + 1).sum();
        let mut service = open(&path, &Options { job: instructions, ..Options::default() }).expect("a trace");
        assert_eq!((service.footprint(), service.text()), (pages * 4096, 4096), "{name}");
        let ops = job(service.as_mut(), 0);
        assert_eq!(ops.iter().map(|op| u64::from(op.count)).sum::<u64>(), instructions);
        let kinds = |kind| ops.iter().filter(|op| op.kind == kind).count();
        let told = |word| fields().filter(|line| line[0] == word).count();
        assert_eq!((kinds(OpKind::Load), kinds(OpKind::Store)), (told("l"), told("s")), "{name}");
        assert!(ops.iter().all(|op| op.address + u64::from(op.width) <= pages * 4096 && op.pc < 4096));
        let touched: BTreeSet<u64> = addresses(&ops).into_iter().map(|address| address / 64).collect();
        assert_eq!(touched.len(), lines, "{name}");
        // Each access keeps its offset in its page.
        let offsets = fields().map(|line| {
            u64::from_str_radix(line[1].trim_start_matches("0x"), 16).expect("an address") % 4096
        });
        assert!(addresses(&ops).into_iter().map(|address| address % 4096).eq(offsets), "{name}");
    }
}

#[test]
fn nothing_else_of_the_shared_data_is_a_recorded_program() {
    let Some(root) = data() else { return };
    let mut folders = vec![root];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let expected = folder.ends_with("cpu_mem") && path.extension().is_some_and(|end| end == "gz");
            assert_eq!(is_cpu_trace(&path), expected, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 10);
}
