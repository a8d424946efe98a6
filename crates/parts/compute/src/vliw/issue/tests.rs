//! Intervals worked out by hand. Units and latencies are those of a C66x core: two multipliers, four general units, two for memory; a load takes 5 cycles, a
//! multiplication 4, an addition 3.

use super::*;
use crate::vliw::spec::LatencySpec;

fn core() -> CoreSpec {
    let c66x = crate::vliw::testing::core();
    let latency = LatencySpec { divide: 28, square_root: 33, ..c66x.latency };
    let divide = ExpansionSpec { multiply: 4, general: 3 };
    CoreSpec { latency, divide, square_root: ExpansionSpec { multiply: 7, general: 3 }, ..c66x }
}

fn kernel(arrays: &[(&str, &str, &str)], code: &str) -> Kernel {
    let arrays: String = arrays
        .iter()
        .map(|(name, shape, section)| {
            format!("[arrays.{name}]\nshape = [{shape}]\nelement = \"f32\"\nsection = \"{section}\"\n")
        })
        .collect();
    let text = format!(
        "name = \"test\"\nabout = \"a test\"\n[sizes]\nn = 64\n[scalars]\na = 2.0\n{arrays}[[microblocks]]\ncode = \"\"\"\n{code}\n\"\"\"\n"
    );
    Kernel::read(&text, "test.toml", &[]).expect("a kernel")
}

const MATRICES: &[(&str, &str, &str)] =
    &[("A", "\"n\", \"n\"", "input"), ("B", "\"n\", \"n\"", "input"), ("C", "\"n\", \"n\"", "inout")];

fn innermost(kernel: &Kernel) -> LoopCycles {
    let microblock = &kernel.microblocks()[0];
    let at = microblock.loops.iter().position(|one| one.is_innermost()).expect("a loop");
    core().loops(microblock)[at]
}

/// `C[i][j] += a * A[i][k] * B[k][j]` over `k`: 4 loads and stores on two units, 2 multiplications on two, 1 addition, 3 addresses and 3 of the loop on four: two cycles by
/// units. The sum is in memory: load 5, add 3, store 1 cycle, then the next: 9.
#[test]
fn a_sum_in_memory_waits_for_itself() {
    let code = "for i in 0..n { for j in 0..n { for k in 0..n { C[i][j] += a * A[i][k] * B[k][j]; } } }";
    let found = innermost(&kernel(MATRICES, code));
    assert_eq!((found.resources, found.recurrence, found.interval()), (2, 9, 9));
    // Load 5, multiply 4, multiply 4, add 3, store 1.
    assert_eq!((found.chain, found.drain()), (17, 8));
}

/// The same over `j` in the innermost loop: each iteration has an element of its own, and units alone bound it.
#[test]
fn independent_iterations_are_bound_by_units() {
    let code = "for i in 0..n { for k in 0..n { for j in 0..n { C[i][j] += a * A[i][k] * B[k][j]; } } }";
    let found = innermost(&kernel(MATRICES, code));
    assert_eq!((found.resources, found.recurrence, found.interval()), (2, 0, 2));
}

/// `x[i] = x[i - 2] * a`: load 5, multiply 4, store 1 go round in two iterations: 5 cycles each.
#[test]
fn a_longer_distance_divides_the_chain() {
    let found = innermost(&kernel(&[("x", "\"n\"", "inout")], "for i in 2..n { x[i] = x[i-2] * a; }"));
    assert_eq!((found.resources, found.recurrence), (1, 5));
}

/// Through two statements: `y[i] = x[i-1] + a` then `x[i] = y[i] * a`: 5 + 3 + 1 and 5 + 4 + 1 in one iteration.
#[test]
fn a_chain_goes_through_statements() {
    let code = "for i in 1..n { y[i] = x[i-1] + a; x[i] = y[i] * a; }";
    let found = innermost(&kernel(&[("x", "\"n\"", "inout"), ("y", "\"n\"", "output")], code));
    assert_eq!((found.recurrence, found.chain), (19, 19));
}

/// A division has no unit: 4 multiplications and 3 other operations each, its latency in the chain.
#[test]
fn a_division_is_a_sequence() {
    let found = innermost(&kernel(
        &[("x", "\"n\"", "input"), ("y", "\"n\"", "output")],
        "for i in 0..n { y[i] = x[i] / a; }",
    ));
    // Two of memory; 4 multiplications on two units; 3 and 3 on four.
    assert_eq!((found.resources, found.chain), (2, 5 + 28 + 1));
}

/// A piece: 64 x 64 x 64 iterations of 9 cycles; 64 x 64 times the innermost loop is left, after 8 more. Around it nothing but loops: 3 operations on four units.
#[test]
fn a_piece_is_the_sum_of_its_loops() {
    let code = "for i in 0..n { for j in 0..n { for k in 0..n { C[i][j] += a * A[i][k] * B[k][j]; } } }";
    let kernel = kernel(MATRICES, code);
    let loops = core().loops(&kernel.microblocks()[0]);
    let cycles = core().cycles(&kernel, &Piece::whole(0), &loops, &mut Vec::new());
    let n = 64_u64;
    assert_eq!(cycles, n * n * n * 9 + n * n * 8 + n * n + n);
}

/// A sum in a register: loads of `A` and `B` on two units, 2 multiplications, 1 addition, 2 addresses and 3 of the loop on four: two cycles by units. The next iteration waits for the addition alone, 3
/// cycles. The last is through when its addition is: 5, 4, 4 and 3 cycles. Around the loop stand a load and a store of `C`, 5 and 1 cycles one behind the other.
#[test]
fn a_sum_in_a_register_waits_for_its_addition() {
    let code = "for i in 0..n { for j in 0..n { for k in 0..n { C[i][j] += a * A[i][k] * B[k][j]; } } }";
    let kernel = kernel(MATRICES, code).with_sums_in_registers();
    let found = innermost(&kernel);
    assert_eq!((found.resources, found.recurrence, found.interval()), (2, 3, 3));
    assert_eq!((found.chain, found.drain()), (16, 13));
    let loops = core().loops(&kernel.microblocks()[0]);
    let around = LoopCycles { resources: 1, recurrence: 0, chain: 6, overlaps: false };
    assert_eq!((loops[1], loops[1].interval()), (around, 6));
    let cycles = core().cycles(&kernel, &Piece::whole(0), &loops, &mut Vec::new());
    let n = 64_u64;
    assert_eq!(cycles, n * n * n * 3 + n * n * 13 + n * n * 6 + n);
}

/// Over `j` in the innermost loop the sum's address changes: nothing is kept, and loops are what they were.
#[test]
fn a_sum_whose_loop_is_not_innermost_stays_in_memory() {
    let code = "for i in 0..n { for k in 0..n { for j in 0..n { C[i][j] += a * A[i][k] * B[k][j]; } } }";
    let memory = kernel(MATRICES, code);
    assert_eq!(memory.clone().with_sums_in_registers(), memory);
}

/// A sum that another statement of its loop reads: 3 cycles from one addition to the next, and no load of `y[0]` in front of the multiplication.
#[test]
fn what_reads_a_kept_sum_reads_the_register() {
    let arrays = &[("x", "\"n\"", "input"), ("y", "\"n\"", "inout"), ("z", "\"n\"", "output")];
    let kernel = kernel(arrays, "for i in 0..n { y[0] += x[i]; z[i] = y[0] * a; }").with_sums_in_registers();
    let found = innermost(&kernel);
    // A load and a store; the sum, 3 of the loop; load 5, add 3, multiply 4, store 1.
    assert_eq!((found.resources, found.recurrence, found.chain), (1, 3, 13));
}
