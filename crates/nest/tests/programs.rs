//! The shipped kernels at small sizes: what is said of them in closed form against executing them.

mod common;

use common::{counted, small};
use nest::{Kernel, Piece, programs};

#[test]
fn each_is_read_at_its_own_sizes() {
    for (name, text) in programs() {
        let kernel = Kernel::read(text, name, &[]).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(kernel.name(), *name);
        let paper = kernel.paper().expect("a row of Table 2");
        assert_eq!(kernel.microblocks().len(), paper.microblocks, "{name}");
        let serial = kernel.microblocks().iter().filter(|one| one.split.is_none()).count();
        assert_eq!(serial, paper.serial, "{name}");
    }
}

#[test]
fn counts_are_those_of_executing_them() {
    for (name, text) in programs() {
        let kernel = small(name, text);
        for at in 0..kernel.microblocks().len() {
            let piece = Piece::whole(at);
            assert_eq!(kernel.counts(&piece), counted(&kernel, &piece), "{name}, microblock {at}");
        }
    }
}

/// Table 2: GEMM's inner loop has loads of C, A and B, the store of C, two multiplications, an addition, three addresses, and
/// the loop's three: 4 of 13 operations are loads and stores, 30.77 %.
#[test]
fn the_inner_loop_of_gemm_has_four_loads_and_stores_of_thirteen_operations() {
    let text = programs().iter().find(|(name, _)| *name == "gemm").expect("a program").1;
    let kernel = Kernel::read(text, "gemm", &[]).expect("a kernel");
    let microblock = &kernel.microblocks()[0];
    let innermost = microblock.loops.iter().position(|one| one.name == "k").expect("a loop");
    let own = microblock.own(Some(innermost));
    assert_eq!((own.loads + own.stores, own.operations()), (4, 13));
    assert_eq!(own.multiplies, 2);
}
