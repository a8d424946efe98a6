//! Nests on a server against their sequential execution.

use crate::kernels::{self, Program};
use crate::service::of_kernels;
use nest::{Counts, Kernel, Piece, Section};
use proto::cpu::{Op, OpKind, Service};
use proto::memory::PAGE;

fn opened(texts: &[&str]) -> Result<Box<dyn Service>, config::Diagnostic> {
    let mut all = Vec::new();
    for text in texts {
        all.extend(kernels::open(text)?);
    }
    of_kernels(&all)
}

fn nest_of(text: &str) -> Kernel {
    match kernels::open(text).unwrap_or_else(|fault| panic!("{fault}")).pop().map(|one| one.program) {
        Some(Program::Nest(kernel)) => kernel,
        _ => panic!("{text} is no nest"),
    }
}

/// What a job writes, alone.
fn job(service: &mut dyn Service, number: u64) -> Vec<Op> {
    let mut tape = Vec::new();
    service.start(5, number);
    while service.step(5, &mut tape) {}
    tape
}

fn small(name: &str) -> String {
    let size = |(at, (size, _)): (usize, &(String, i64))| match size.as_str() {
        "t" | "tj" => format!("{size}=4"),
        "u" | "ti" => format!("{size}=3"),
        _ => format!("{size}={}", 9 + 2 * at),
    };
    format!("{name}:{}", nest_of(name).sizes().iter().enumerate().map(size).collect::<Vec<_>>().join(","))
}

/// Every access where and in the order in which the nest has it, and as many instructions as it counts.
#[test]
fn a_job_is_the_sequential_execution() {
    for (name, _) in nest::programs() {
        let text = small(name);
        let kernel = nest_of(&text);
        let mut service = opened(&[&format!("{text},instances=2")]).expect("a service");
        assert_eq!(service.jobs(), Some(2));
        // Inputs, then each instance's own, in pages.
        let pages = |is_shared: bool| {
            let own = kernel.arrays().iter().filter(|array| (array.section == Section::Input) == is_shared);
            own.map(|array| array.bytes().next_multiple_of(PAGE)).sum::<u64>()
        };
        let (shared, own) = (pages(true), pages(false));
        assert_eq!(service.footprint(), shared + 2 * own, "{name}");
        let mut counts = Counts::default();
        let (mut bases, mut ends) = (Vec::new(), [0, shared]);
        for array in kernel.arrays() {
            let end = &mut ends[usize::from(array.section != Section::Input)];
            bases.push(*end);
            *end += array.bytes().next_multiple_of(PAGE);
        }
        let mut expected = Vec::new();
        for at in 0..kernel.microblocks().len() {
            counts += kernel.counts(&Piece::whole(at));
            kernel.accesses(&Piece::whole(at), &mut |access| {
                expected.push((bases[access.array] + access.byte, access.write));
            });
        }
        let first = job(service.as_mut(), 0);
        let accesses: Vec<(u64, bool)> =
            first.iter().filter(|op| op.width > 0).map(|op| (op.address, op.kind == OpKind::Store)).collect();
        assert!(accesses == expected, "{name}");
        assert_eq!(first.iter().map(|op| u64::from(op.count)).sum::<u64>(), counts.operations(), "{name}");
        assert!(first.iter().all(|op| op.pc < service.text() && op.pc % 4 == 0), "{name}");
        // The second instance does the same to its own arrays.
        let second = job(service.as_mut(), 1);
        let moved = first
            .iter()
            .map(|op| Op { address: op.address + if op.address >= shared { own } else { 0 }, ..*op });
        let moved: Vec<Op> =
            moved.map(|op| if op.width == 0 { Op { address: 0, ..op } } else { op }).collect();
        assert!(second == moved, "{name}");
    }
}

/// A sum in memory is a chain: each load needs the addition that was stored, and that the load.
#[test]
fn a_load_needs_what_was_stored_there() {
    let mut service = opened(&["atax:m=2,n=6"]).expect("a service");
    let tape = job(service.as_mut(), 0);
    let adds: Vec<usize> = (0..tape.len())
        .filter(|n| tape[*n].kind == OpKind::Store)
        .map(|store| store - usize::from(tape[store].needs[1]))
        .take(7)
        .collect();
    // The first is the zero; the sum of the first product needs what was in a register.
    for pair in adds[1..].windows(2) {
        let load = pair[1] - usize::from(tape[pair[1]].needs[0]);
        assert_eq!(tape[load].kind, OpKind::Load);
        assert_eq!(load - usize::from(tape[load].needs[1]), pair[0]);
    }
}

#[test]
fn jobs_are_those_of_all_applications() {
    let mut service = opened(&["atax:m=4,n=4,instances=2", "mvt:n=5", "atax:m=4,n=4"]).expect("a service");
    assert_eq!(service.jobs(), Some(4));
    // The two of one kind share their input: A and x.
    let addresses = |tape: Vec<Op>| tape.into_iter().filter(|op| op.width > 0).map(|op| op.address).min();
    assert_eq!(addresses(job(service.as_mut(), 0)), Some(0));
    assert_eq!(addresses(job(service.as_mut(), 3)), Some(0));
    for (text, said) in [
        ("wc:bytes=1000B", "tatp"),
        ("atax:block=64", "of a GPU"),
        ("gemm:ni=1048576,nj=1048576,instances=1024", "fewer"),
    ] {
        let refused = opened(&[text]).err().unwrap_or_else(|| panic!("{text} is taken"));
        assert!(refused.to_string().contains(said), "{refused}");
    }
}
