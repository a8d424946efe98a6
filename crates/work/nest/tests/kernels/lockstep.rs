//! Threads in lockstep: together they do what one does alone, and what is dealt out to them is independent.

use crate::{read, small};
use nest::{Access, Grid, Kernel, LANES, Lanes, Microblock, Passed, Piece, Term, programs, programs_of_gpus};
use std::collections::BTreeMap;

/// How often each byte of each array is read and written, and how often each statement is executed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    accesses: BTreeMap<(usize, u64, bool), u64>,
    statements: BTreeMap<usize, u64>,
}

/// Of each byte of each array, whether it is written, and by which threads it is touched.
type Touched = BTreeMap<(usize, u64), (bool, Vec<(u64, u64)>)>;

/// All threads of a microblock, warp by warp; also which of them touch what.
fn dealt(microblock: &Microblock, grid: &Grid, touched: &mut Touched) -> Seen {
    let mut seen = Seen::default();
    let [across, down] = grid.threads();
    for y in 0..down {
        for x in (0..across).step_by(LANES) {
            let here = (across - x).min(LANES as u64);
            let mut lanes = Lanes::new(x, y, ((1u64 << here) - 1) as u32);
            while let Some(passed) = lanes.next(microblock, grid) {
                let Passed::Statement(id, mask) = passed else { continue };
                let statement = &microblock.statements[id];
                let loads = statement.terms.iter().filter_map(|term| match term {
                    Term::Load(reference) => Some((*reference, false)),
                    _ => None,
                });
                let mut all: Vec<_> = loads.collect();
                all.push((0, true));
                *seen.statements.entry(id).or_default() += u64::from(mask.count_ones());
                for (reference, write) in all {
                    let bytes = lanes.bytes(microblock, grid, id, reference);
                    for lane in (0..LANES).filter(|lane| mask >> lane & 1 == 1) {
                        let (array, byte) = (statement.references[reference].array, bytes.of(lane) as u64);
                        *seen.accesses.entry((array, byte, write)).or_default() += 1;
                        let who = touched.entry((array, byte)).or_default();
                        who.0 |= write;
                        who.1.push((x + lane as u64, y));
                    }
                }
            }
        }
    }
    seen
}

/// A sequential execution.
fn alone(kernel: &Kernel, at: usize) -> BTreeMap<(usize, u64, bool), u64> {
    let mut seen = BTreeMap::new();
    kernel.accesses(&Piece::whole(at), &mut |Access { array, byte, write, .. }| {
        *seen.entry((array, byte, write)).or_default() += 1;
    });
    seen
}

#[track_caller]
fn agrees(kernel: &Kernel) {
    for (at, microblock) in kernel.microblocks().iter().enumerate() {
        let (grid, mut touched) = (Grid::of(microblock), Touched::new());
        let seen = dealt(microblock, &grid, &mut touched);
        let name = kernel.name();
        assert_eq!(seen.accesses, alone(kernel, at), "{name}, microblock {at}, {grid:?}");
        let counts = kernel.counts(&Piece::whole(at));
        let arithmetic: u64 = seen
            .statements
            .iter()
            .map(|(id, times)| microblock.statements[*id].counts().times(*times).arithmetic())
            .sum();
        assert_eq!(arithmetic, counts.arithmetic(), "{name}, microblock {at}");
        // What one thread writes no other one touches.
        for ((array, byte), (is_written, mut who)) in touched {
            who.dedup();
            let first = who[0];
            assert!(
                !is_written || who.iter().all(|one| *one == first),
                "{name}, {at}: {array} {byte} {who:?}"
            );
        }
    }
}

#[test]
fn threads_together_do_what_one_does_alone() {
    for (name, text) in programs().iter().chain(programs_of_gpus()) {
        agrees(&small(name, text));
    }
}

/// Larger than a warp, so that threads lie in several.
#[test]
fn so_do_those_of_several_warps() {
    for name in ["atax", "fdtd", "covar", "gemm", "adi"] {
        let (_, text) = programs().iter().find(|(own, _)| *own == name).expect("a program");
        let sizes: Vec<(String, i64)> = read(text, name, &[])
            .sizes()
            .iter()
            .map(|(size, _)| (size.clone(), if ["t", "u"].contains(&size.as_str()) { 20 } else { 45 }))
            .collect();
        agrees(&read(text, name, &sizes));
    }
}

/// The axes of each microblock of a program.
fn axes(name: &str) -> Vec<(Option<String>, Option<String>)> {
    let (_, text) = programs().iter().find(|(own, _)| *own == name).expect("a program");
    let grids = read(text, name, &[]).microblocks().iter().map(Grid::of).collect::<Vec<_>>();
    grids.into_iter().map(|grid| (grid.x.map(|axis| axis.name), grid.y.map(|axis| axis.name))).collect()
}

/// As PolyBench/GPU deals them out: ATAX a row a thread, then a column; FDTD, 2DCONV an element; GEMM a column of a block of rows here; ADI
/// rows, rows, then columns.
#[test]
fn what_is_independent_is_dealt_out() {
    let names = |x: &str, y: &str| {
        let name = |one: &str| (!one.is_empty()).then(|| one.to_owned());
        (name(x), name(y))
    };
    assert_eq!(axes("atax"), [names("i", ""), names("j", "")]);
    assert_eq!(axes("2dcon"), [names("j", "i")]);
    assert_eq!(axes("fdtd"), [names("j", ""), names("j", "i"), names("j", "i")]);
    assert_eq!(axes("gemm"), [names("j", "r")]);
    assert_eq!(axes("adi"), [names("i", ""), names("i", ""), names("j", "")]);
    assert_eq!(axes("corr"), [names("j", ""), names("j", ""), names("j", "i"), names("r", "")]);
}

fn own(code: &str) -> Kernel {
    let text = format!(
        "name = \"own\"\n[sizes]\nn = 70\n[arrays.A]\nshape = [\"n\", \"n\"]\nelement = \"f32\"\nsection = \"inout\"\n\
         [arrays.y]\nshape = [\"n\"]\nelement = \"f64\"\nsection = \"output\"\n[[microblocks]]\ncode = '''{code}'''\n"
    );
    read(&text, "own", &[])
}

/// Bounds that lanes differ in, backwards, steps, loops of one name with different bounds, no axis at all.
#[test]
fn lanes_with_fewer_iterations_wait() {
    for (code, threads) in [
        ("for i in 0..n { y[i] = 0; for j in i..n { y[i] += A[i][j]; A[i][j] = 1; } }", [70, 1]),
        (
            "for i in 1..n - 1 reversed { y[i] = i; for j in i + 1..n reversed { A[j][i] += A[j - 1][i + 1]; } }",
            [1, 1],
        ),
        ("for i in 3..n step 4 { for j in 1..i { A[i][j] = A[i + 0][j - 1]; y[i] = j; } }", [17, 1]),
        (
            "for i in 2..n { y[i] = A[i][0]; } for i in 0..n - 5 reversed { A[i][0] += y[i]; A[i][1] = 2; }",
            [70, 1],
        ),
        ("for i in 0..n { y[0] += A[i][i]; A[0][0] = y[0]; }", [1, 1]),
        ("y[3] = 1; A[0][0] = 2; for i in 0..n { y[i] = A[0][0]; }", [1, 1]),
    ] {
        let kernel = own(code);
        assert_eq!(Grid::of(&kernel.microblocks()[0]).threads(), threads, "{code}");
        agrees(&kernel);
    }
}
