//! Nests of GPU programs: entries that are repeated together, and threads in lockstep.

use crate::{counted, read, small};
use nest::{
    Access, Data, Grid, Kernel, LANES, Lanes, Microblock, Passed, Piece, Term, programs, programs_of_gpus,
};
use std::collections::BTreeMap;

fn of_gpu(name: &str, sizes: &[(&str, i64)]) -> Kernel {
    let (_, text) = programs_of_gpus().iter().find(|(own, _)| *own == name).expect("a program");
    let sizes: Vec<(String, i64)> = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
    read(text, name, &sizes)
}

#[track_caller]
fn close(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!(
            (got - expected).abs() <= 1e-4 * expected.abs().max(1.0),
            "{what}[{at}]: {got}, not {expected}"
        );
    }
}

fn place(kernel: &Kernel, name: &str) -> usize {
    kernel.arrays().iter().position(|array| array.name == name).expect("an array")
}

#[test]
fn entries_take_turns() {
    let kernel = of_gpu("gaus", &[("n", 6), ("pivots", 3)]);
    let order: Vec<usize> = kernel.microblocks().iter().map(|one| one.text).collect();
    assert_eq!(order, [0, 1, 0, 1, 0, 1]);
    let screens = kernel.microblocks().iter().map(|one| one.split.as_ref().expect("split").trips);
    assert_eq!(screens.collect::<Vec<_>>(), [5, 5, 4, 4, 3, 3]);
    // No rows are below the last pivot.
    assert_eq!(of_gpu("gaus", &[("n", 6), ("pivots", 6)]).microblocks().len(), 12);
    let code = |entries: &str| {
        let text = format!(
            "name = \"x\"\n[sizes]\nn = 8\n[arrays.y]\nshape = [\"n\"]\nelement = \"f32\"\nsection = \"output\"\n{entries}"
        );
        Kernel::read(&text, "x.toml", &[])
            .map(|kernel| kernel.microblocks().len())
            .map_err(|fault| fault.to_string())
    };
    let one = |keys: &str| format!("[[microblocks]]\n{keys}\ncode = \"y[0] = 1;\"\n");
    let both = |first: &str, second: &str| code(&(one(first) + &one(second)));
    assert_eq!(both("repeat = \"r in 0..3\"", "together = true"), Ok(6));
    assert_eq!(
        both("repeat = \"r in 0..129\"", "together = true").map_err(|told| told.contains("256")),
        Err(true)
    );
    for (first, second) in [
        ("", "together = true"),
        ("repeat = \"r in 0..3\"", "together = true\nrepeat = \"r in 0..3\""),
        ("together = true\nrepeat = \"r in 0..3\"", ""),
    ] {
        let told = both(first, second).expect_err("nothing to be together with");
        assert!(told.contains("together") && told.contains("x.toml:"), "{told}");
    }
}

/// Rows below the pivot's are written, and the pivot's is read: they never coincide.
#[test]
fn elimination() {
    let (n, pivots) = (9, 5);
    let kernel = of_gpu("gaus", &[("n", n), ("pivots", pivots)]);
    let (n, mut data) = (n as usize, Data::generate(&kernel, 3));
    let [m, a, b] = ["m", "a", "b"].map(|name| place(&kernel, name));
    for t in 0..n {
        data.arrays[a][t * n + t] += n as f64;
    }
    let [mut of_m, mut of_a, mut of_b] = [m, a, b].map(|array| data.arrays[array].clone());
    for t in 0..pivots as usize {
        for i in t + 1..n {
            of_m[i * n + t] = of_a[i * n + t] / of_a[t * n + t];
            for j in t..n {
                of_a[i * n + j] -= of_m[i * n + t] * of_a[t * n + j];
            }
            of_b[i] -= of_m[i * n + t] * of_b[t];
        }
    }
    kernel.execute(&mut data);
    close(&data.arrays[m], &of_m, "m");
    close(&data.arrays[a], &of_a, "a");
    close(&data.arrays[b], &of_b, "b");
}

#[test]
fn orthogonalisation() {
    let (n, columns) = (8, 3);
    let kernel = of_gpu("gram", &[("n", n), ("columns", columns)]);
    let (n, mut data) = (n as usize, Data::generate(&kernel, 4));
    let [a, r, q] = ["a", "r", "q"].map(|name| place(&kernel, name));
    let [mut of_a, mut of_r, mut of_q] = [a, r, q].map(|array| data.arrays[array].clone());
    for k in 0..columns as usize {
        let norm = (0..n).map(|i| of_a[i * n + k] * of_a[i * n + k]).sum::<f64>().sqrt();
        of_r[k * n + k] = norm;
        (0..n).for_each(|i| of_q[i * n + k] = of_a[i * n + k] / norm);
        for j in k + 1..n {
            of_r[k * n + j] = (0..n).map(|i| of_q[i * n + k] * of_a[i * n + j]).sum();
            (0..n).for_each(|i| of_a[i * n + j] -= of_q[i * n + k] * of_r[k * n + j]);
        }
    }
    kernel.execute(&mut data);
    close(&data.arrays[a], &of_a, "a");
    close(&data.arrays[r], &of_r, "r");
    close(&data.arrays[q], &of_q, "q");
}

#[test]
fn fields() {
    let (n, steps) = (7, 2);
    let kernel = of_gpu("FDT", &[("n", n), ("steps", steps)]);
    let (n, mut data) = (n as usize, Data::generate(&kernel, 5));
    let [source, ex, ey, hz] = ["_fict_", "ex", "ey", "hz"].map(|name| place(&kernel, name));
    let [of_source, mut of_ex, mut of_ey, mut of_hz] =
        [source, ex, ey, hz].map(|array| data.arrays[array].clone());
    for of_step in &of_source[..steps as usize] {
        for k in 0..n * n {
            of_ey[k] = if k < n { *of_step } else { of_ey[k] - 0.5 * (of_hz[k] - of_hz[k - n]) };
        }
        for k in (0..n * n).filter(|k| k % n > 0) {
            of_ex[k] -= 0.5 * (of_hz[k] - of_hz[k - 1]);
        }
        for k in (0..n * (n - 1)).filter(|k| k % n < n - 1) {
            of_hz[k] -= 0.7 * (of_ex[k + 1] - of_ex[k] + of_ey[k + n] - of_ey[k]);
        }
    }
    kernel.execute(&mut data);
    close(&data.arrays[ex], &of_ex, "ex");
    close(&data.arrays[ey], &of_ey, "ey");
    close(&data.arrays[hz], &of_hz, "hz");
}

/// Closed forms, screens and the threads of a GPU: one element each where both loops are independent.
#[test]
fn counts_and_threads() {
    for (name, text) in programs_of_gpus() {
        let kernel = small(name, text);
        assert_eq!(kernel.name(), *name);
        for at in 0..kernel.microblocks().len() {
            let piece = Piece::whole(at);
            assert_eq!(kernel.counts(&piece), crate::counted(&kernel, &piece), "{name}, {at}");
        }
    }
    let kernel = of_gpu("FDT", &[("n", 50)]);
    let threads: Vec<[u64; 2]> = kernel.microblocks().iter().map(|one| Grid::of(one).threads()).collect();
    assert_eq!(threads, [[50, 1], [50, 49], [49, 50], [49, 49]]);
}

// Examples of `docs/kernels.md`, which must be valid kernels.

const PAGE: &str = include_str!("../../../../../docs/kernels.md");

/// Returns the texts of the page's TOML blocks.
fn examples() -> Vec<&'static str> {
    PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn examples_are_read_and_counted() {
    let examples = examples();
    assert_eq!(examples.len(), 3);
    for text in examples {
        let whole = read(text, "kernels.md", &[]);
        let sizes: Vec<_> = whole.sizes().iter().map(|(name, size)| (name.clone(), 5 + size % 7)).collect();
        let small: Kernel = read(text, "kernels.md", &sizes);
        for at in 0..small.microblocks().len() {
            let piece = Piece::whole(at);
            assert_eq!(small.counts(&piece), counted(&small, &piece), "{}", small.name());
        }
    }
}

/// Checks that a text only needs the differences from the kernel that it inherits.
#[test]
fn a_kernel_inherits_a_shipped_one() {
    let kernel = read("inherits = \"gemm\"\nname = \"mine\"\n[sizes]\nni = 10\n", "mine.toml", &[]);
    assert_eq!(kernel.name(), "mine");
    let rows =
        |name: &str| kernel.arrays().iter().find(|array| array.name == name).map(|array| array.shape[0]);
    assert_eq!((rows("A"), rows("B")), (Some(10), Some(4000)));
}

#[test]
fn the_page_names_every_shipped_kernel() {
    for (name, _) in nest::programs() {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
}

// Kernels of `examples/kernels`, against plain programs.

/// Executes a kernel with these sizes on generated values; returns the contents of the arrays before and after.
fn executed(text: &str, sizes: &[(&str, i64)]) -> (Kernel, Data, Data) {
    let sizes: Vec<_> = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
    let kernel = read(text, "example", &sizes);
    let before = Data::generate(&kernel, 5);
    let mut after = before.clone();
    kernel.execute(&mut after);
    (kernel, before, after)
}

fn array<'d>(kernel: &Kernel, data: &'d Data, name: &str) -> &'d [f64] {
    let at = kernel.arrays().iter().position(|array| array.name == name);
    &data.arrays[at.unwrap_or_else(|| panic!("no array {name}"))]
}

#[test]
fn heat_goes_on_from_plate_to_plate() {
    let n = 9;
    let text = include_str!("../../../../../examples/kernels/heat.toml");
    let (kernel, before, after) = executed(text, &[("n", n as i64), ("steps", 3)]);
    let mut plate: Vec<f32> = array(&kernel, &before, "start").iter().map(|value| *value as f32).collect();
    for _ in 0..3 {
        let old = plate.clone();
        for i in 1..n - 1 {
            for j in 1..n - 1 {
                let at = i * n + j;
                plate[at] = 0.2 * (old[at] + old[at - n] + old[at + n] + old[at - 1] + old[at + 1]);
            }
        }
    }
    let end = array(&kernel, &after, "end");
    assert_eq!(end.len(), plate.len());
    for (at, (value, wanted)) in end.iter().zip(&plate).enumerate() {
        assert!((value - f64::from(*wanted)).abs() < 1e-6, "{at}: {value}, not {wanted}");
    }
}

#[test]
fn values_above_a_limit_get_places_one_after_another() {
    let text = include_str!("../../../../../examples/kernels/above.toml");
    let (kernel, before, after) = executed(text, &[("blocks", 7), ("width", 13)]);
    let mut count = 0.0;
    let of = |name: &str| array(&kernel, &after, name);
    for (at, value) in array(&kernel, &before, "values").iter().enumerate() {
        let is_above = *value > 0.75;
        count += f64::from(u8::from(is_above));
        assert_eq!((of("is_above")[at], of("place")[at]), (f64::from(u8::from(is_above)), count), "{at}");
    }
    assert!(count > 10.0 && count < 80.0, "{count} of 91, a third of which are expected");
    assert_eq!(of("all"), [count]);
}

#[test]
fn a_product_is_scaled_to_its_largest() {
    let n = 11;
    let text = include_str!("../../../../../examples/kernels/scaled-product.toml");
    let (kernel, before, after) = executed(text, &[("n", n as i64), ("t", 4), ("u", 3)]);
    let (a, b) = (array(&kernel, &before, "A"), array(&kernel, &before, "B"));
    let product: Vec<f64> =
        (0..n * n).map(|at| (0..n).map(|k| a[at / n * n + k] * b[k * n + at % n]).sum()).collect();
    let largest = product.iter().copied().fold(0.0, f64::max);
    for (at, value) in array(&kernel, &after, "C").iter().enumerate() {
        assert!((value - product[at] / largest).abs() < 1e-5, "{at}: {value}");
    }
}

#[test]
fn entries_are_booked_on_their_balances() {
    let text = include_str!("../../../../../examples/kernels/balances.toml");
    let (kernel, before, after) = executed(text, &[("n", 50)]);
    let (entries, balances) = (array(&kernel, &before, "entries"), array(&kernel, &before, "balances"));
    for (at, value) in array(&kernel, &after, "balances").iter().enumerate() {
        assert_eq!(*value, f64::from(balances[at] as f32 + entries[at] as f32), "{at}");
    }
}

// Threads in lockstep: together they do the work of a single one, and their shares are independent.

/// Counts of how often each byte of each array is read and written, and each statement executed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    accesses: BTreeMap<(usize, u64, bool), u64>,
    statements: BTreeMap<usize, u64>,
}

/// For each byte of each array, whether it is written, and by which threads it is touched.
type Touched = BTreeMap<(usize, u64), (bool, Vec<(u64, u64)>)>;

/// Executes all threads of a microblock, warp by warp; records which of them touch what.
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

/// Counts a sequential execution.
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
        // A byte written by one thread is touched by no other thread.
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

/// Larger than a warp, so that threads are in several warps.
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

/// Returns the axes of each microblock of a program.
fn axes(name: &str) -> Vec<(Option<String>, Option<String>)> {
    let (_, text) = programs().iter().find(|(own, _)| *own == name).expect("a program");
    let grids = read(text, name, &[]).microblocks().iter().map(Grid::of).collect::<Vec<_>>();
    grids.into_iter().map(|grid| (grid.x.map(|axis| axis.name), grid.y.map(|axis| axis.name))).collect()
}

/// As PolyBench/GPU distributes them: ATAX one row per thread, then one column; FDTD, 2DCONV one element; GEMM here
/// one column of a block of rows; ADI rows, rows, then columns.
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

/// Bounds that differ between lanes, reversed loops, steps, loops of one name with different bounds, no axis at all.
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
