//! Nests of programs of a GPU, and entries that are repeated together.

use crate::{read, small};
use nest::{Data, Grid, Kernel, Piece, programs_of_gpus};

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
    // Of the last pivot there are no rows below.
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

/// Rows below the pivot's are written, and the pivot's is read: they are never the same one.
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

/// Closed forms, screens and the threads of a GPU: an element each where both loops are independent.
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
