//! Sums in registers: counts by formula, and against executing kernels with registers and without.

use crate::pieces::{Random, check};
use crate::{read, small};
use nest::{Counts, Data, Kernel, Piece, programs};
use proptest::prelude::*;

/// A product without blocks; the order of the loops is given.
fn product(loops: [&str; 3]) -> Kernel {
    let array = |name: &str| {
        format!(
            "[arrays.{name}]\nshape = [\"n\", \"n\"]\nelement = \"f32\"\nsection = \"{}\"\n",
            if name == "C" { "inout" } else { "input" }
        )
    };
    let [a, b, c] = loops.map(|name| format!("for {name} in 0..n {{"));
    let text = format!(
        "name = \"product\"\n[sizes]\nn = 7\n{}{}{}[[microblocks]]\ncode = '''{a} {b} {c} C[i][j] += A[i][k] * B[k][j]; }} }} }}'''\n",
        array("A"),
        array("B"),
        array("C")
    );
    read(&text, "product", &[])
}

/// n = 7: each of n^3 iterations loads `A` and `B`. In memory it also loads and stores `C`; in a register that is done n^2 times, once for each element. An address is worked out for each element with two subscripts.
#[test]
fn a_product_loads_and_stores_its_sum_once_an_element() {
    let (n, n2, n3) = (7, 49, 343);
    let loops = n + n2 + n3;
    let memory = product(["i", "j", "k"]);
    let counts = memory.counts(&Piece::whole(0));
    assert_eq!((counts.loads, counts.stores, counts.addresses), (3 * n3, n3, 3 * n3));
    let registers = memory.clone().with_sums_in_registers();
    let expected = Counts {
        loads: 2 * n3 + n2,
        stores: n2,
        addresses: 2 * n3 + n2,
        adds: n3,
        multiplies: n3,
        iterations: loops,
        ..Counts::default()
    };
    assert_eq!(registers.counts(&Piece::whole(0)), expected);
    // An inner iteration has 2 loads instead of 4 loads and stores, and an address less: 9 operations of 12.
    let own = |kernel: &Kernel| kernel.microblocks()[0].own(Some(2));
    assert_eq!((own(&memory).loads + own(&memory).stores, own(&memory).operations()), (4, 12));
    assert_eq!((own(&registers).loads + own(&registers).stores, own(&registers).operations()), (2, 9));
    // Around it stand the load, the store, their address and the loop's own three.
    assert_eq!(registers.microblocks()[0].own(Some(1)).operations(), 6);
}

#[test]
fn a_product_whose_innermost_loop_is_another_stays_as_it_is() {
    for order in [["i", "k", "j"], ["k", "j", "i"], ["k", "i", "j"]] {
        let kernel = product(order);
        assert_eq!(kernel.clone().with_sums_in_registers(), kernel);
    }
}

/// One loop nest over `a` and `b`: how many elements it keeps.
fn kept(code: &str) -> usize {
    let array =
        |name: &str| format!("[arrays.{name}]\nshape = [\"20\"]\nelement = \"f32\"\nsection = \"scratch\"\n");
    let text = format!(
        "name = \"x\"\n[sizes]\nn = 8\n{}{}[[microblocks]]\ncode = '''{code}'''\n",
        array("a"),
        array("b")
    );
    read(&text, "x", &[]).with_sums_in_registers().microblocks()[0].held.len()
}

#[test]
fn what_may_be_the_same_element_stays_in_memory() {
    assert_eq!(kept("for i in 0..n { a[3] += b[i]; }"), 1);
    // Written, not added to.
    assert_eq!(kept("for i in 0..n { a[3] = b[i]; }"), 0);
    // Another element that is surely another; one that may be it.
    assert_eq!(kept("for i in 0..n { a[3] += a[4] * b[i]; }"), 1);
    assert_eq!(kept("for i in 0..n { a[3] += a[i] * b[i]; }"), 0);
    // Two sums; one of two statements.
    assert_eq!(kept("for i in 0..n { a[3] += b[i]; a[4] += b[i]; }"), 2);
    assert_eq!(kept("for i in 0..n { a[3] += b[i]; a[3] *= 2; }"), 1);
    // The loop around is not innermost.
    assert_eq!(kept("for i in 0..n { a[3] += b[i]; for j in 0..n { b[j] = 1; } }"), 0);
}

/// Row `i` of a triangle has `i` elements: the first has none and is not entered. 28 loads, 7 sums.
#[test]
fn a_loop_without_iterations_loads_nothing() {
    let text = "name = \"rows\"\n[sizes]\nn = 8\n[arrays.x]\nshape = [\"n\", \"n\"]\nelement = \"f32\"\nsection = \"input\"\n\
                [arrays.y]\nshape = [\"n\"]\nelement = \"f32\"\nsection = \"inout\"\n\
                [[microblocks]]\nsplit = \"i\"\ncode = \"for i in 0..n { for j in 0..i { y[i] += x[i][j]; } }\"\n";
    let kernel = read(text, "rows", &[]).with_sums_in_registers();
    let counts = kernel.counts(&Piece::whole(0));
    assert_eq!((counts.loads, counts.stores), (28 + 7, 7));
    // Four screens: that of the first two rows enters once.
    let stores: Vec<u64> = kernel.screens(0, 4).map(|screen| kernel.counts(&screen).stores).collect();
    assert_eq!(stores, [1, 2, 2, 2]);
}

/// Values after a run with registers and without are compared. They begin with others than zero.
fn check_values(memory: &Kernel, registers: &Kernel) {
    let mut data = Data::generate(memory, 5);
    for (at, value) in data.arrays.iter_mut().flatten().enumerate() {
        *value += (at % 7) as f64;
    }
    let mut kept = data.clone();
    memory.execute(&mut data);
    registers.execute(&mut kept);
    // Roots of negative values are NaN, which equals nothing.
    let bits = |data: &Data| data.arrays.iter().flatten().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert!(bits(&data) == bits(&kept), "{}", memory.name());
}

#[test]
fn shipped_kernels_leave_what_they_left() {
    let mut keep = Vec::new();
    for (name, text) in programs() {
        let memory = small(name, text);
        let registers = memory.clone().with_sums_in_registers();
        check_values(&memory, &registers);
        for at in 0..registers.microblocks().len() {
            for screen in registers.screens(at, 3).chain([Piece::whole(at)]) {
                registers
                    .sections(screen, 700, 1)
                    .chain([screen])
                    .for_each(|piece| check(&registers, &piece));
            }
        }
        if registers != memory {
            keep.push(*name);
        }
    }
    // Sums over rows and products; stencils, eliminations and what a paper has in section 5.6 have none.
    let expected =
        ["atax", "bicg", "mvt", "gesum", "syrk", "3mm", "covar", "gemm", "2mm", "syr2k", "corr", "serial"];
    keep.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(keep, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn random_kernels_with_registers_are_what_executing_them_shows(seed: u64) {
        let memory = Random::kernel(seed);
        let registers = memory.clone().with_sums_in_registers();
        check(&registers, &Piece::whole(0));
        check_values(&memory, &registers);
    }
}
