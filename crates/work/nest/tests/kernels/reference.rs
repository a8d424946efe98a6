//! Each shipped kernel against a separate plain program in 64 bits: results agree within 1e-9.
//!
//! The plain programs are PolyBench's loops without blocks, in PolyBench's order.

use std::collections::BTreeMap;

use crate::read;
use nest::{Data, Kernel, programs};

/// Values of arrays by name.
type Values = BTreeMap<String, Vec<f64>>;

fn values(kernel: &Kernel, data: &Data) -> Values {
    kernel
        .arrays()
        .iter()
        .zip(&data.arrays)
        .map(|(array, values)| (array.name.clone(), values.clone()))
        .collect()
}

/// Executes a kernel in 64 bits and its reference, and compares the resulting arrays.
fn compare(name: &str, sizes: &[(&str, i64)], outputs: &[&str], reference: impl Fn(&mut Values)) {
    compare_with(name, "f32", "f64", sizes, outputs, reference);
}

/// Compares as above, with part of the text replaced.
fn compare_with(
    name: &str,
    old: &str,
    new: &str,
    sizes: &[(&str, i64)],
    outputs: &[&str],
    reference: impl Fn(&mut Values),
) {
    let text = programs().iter().find(|(own, _)| *own == name).expect("a program").1;
    let text = text.replace(old, new);
    let sizes: Vec<(String, i64)> = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
    let kernel = read(&text, name, &sizes);
    let mut data = Data::generate(&kernel, 7);
    let mut expected = values(&kernel, &data);
    reference(&mut expected);
    kernel.execute(&mut data);
    let found = values(&kernel, &data);
    for output in outputs {
        let pairs = found[*output].iter().zip(&expected[*output]);
        for (at, (found, expected)) in pairs.enumerate() {
            let apart = (found - expected).abs() / expected.abs().max(1e-3);
            assert!(apart < 1e-9, "{name}: {output}, element {at}: {found}, expected {expected}");
        }
        assert!(expected[*output].iter().any(|value| *value != 0.0), "{name}: {output} is all zeros");
    }
}

const N: usize = 13;
const M: usize = 11;
const K: usize = 10;
const L: usize = 9;
const P: usize = 14;

fn product(a: &[f64], b: &[f64], (rows, inner, columns): (usize, usize, usize)) -> Vec<f64> {
    let mut c = vec![0.0; rows * columns];
    for i in 0..rows {
        for j in 0..columns {
            for k in 0..inner {
                c[i * columns + j] += a[i * inner + k] * b[k * columns + j];
            }
        }
    }
    c
}

fn transposed(a: &[f64], (rows, columns): (usize, usize)) -> Vec<f64> {
    (0..columns).flat_map(|j| (0..rows).map(move |i| a[i * columns + j])).collect()
}

fn scaled(a: &[f64], by: f64) -> Vec<f64> {
    a.iter().map(|value| by * value).collect()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn set(values: &mut Values, name: &str, value: Vec<f64>) {
    values.insert(name.to_owned(), value);
}

#[test]
fn matrices_times_vectors() {
    compare("atax", &[("m", M as i64), ("n", N as i64)], &["y"], |v| {
        let tmp = product(&v["A"], &v["x"], (M, N, 1));
        let y = product(&transposed(&v["A"], (M, N)), &tmp, (N, M, 1));
        set(v, "y", y);
    });
    compare("bicg", &[("m", M as i64), ("n", N as i64)], &["q", "s"], |v| {
        let q = product(&v["A"], &v["p"], (N, M, 1));
        let s = product(&transposed(&v["A"], (N, M)), &v["r"], (M, N, 1));
        set(v, "q", q);
        set(v, "s", s);
    });
    compare("mvt", &[("n", N as i64), ("t", 4)], &["x1", "x2"], |v| {
        let x1 = sum(&v["x1"], &product(&v["A"], &v["y1"], (N, N, 1)));
        let x2 = sum(&v["x2"], &product(&transposed(&v["A"], (N, N)), &v["y2"], (N, N, 1)));
        set(v, "x1", x1);
        set(v, "x2", x2);
    });
    compare("serial", &[("p", N as i64), ("s", K as i64), ("m", M as i64)], &["y", "z"], |v| {
        let sum = 1.5 * v["x"].iter().sum::<f64>();
        set(v, "y", vec![sum; N]);
        set(v, "z", vec![sum; K]);
    });
    compare("gesum", &[("n", N as i64)], &["y"], |v| {
        let a = product(&v["A"], &v["x"], (N, N, 1));
        let b = product(&v["B"], &v["x"], (N, N, 1));
        set(v, "y", sum(&scaled(&a, 1.5), &scaled(&b, 1.2)));
    });
}

#[test]
fn products_of_matrices() {
    let sizes = [("ni", N as i64), ("nj", M as i64), ("nk", K as i64), ("t", 4), ("u", 3)];
    compare("gemm", &sizes, &["C"], |v| {
        let c = sum(&scaled(&product(&v["A"], &v["B"], (N, K, M)), 1.5), &scaled(&v["C"], 1.2));
        set(v, "C", c);
    });
    let sizes = [&sizes[..], &[("nl", L as i64)]].concat();
    compare("2mm", &sizes, &["D"], |v| {
        let tmp = scaled(&product(&v["A"], &v["B"], (N, K, M)), 1.5);
        let d = sum(&product(&tmp, &v["C"], (N, M, L)), &scaled(&v["D"], 1.2));
        set(v, "D", d);
    });
    let sizes = [&sizes[..], &[("nm", P as i64)]].concat();
    compare("3mm", &sizes, &["G"], |v| {
        let e = product(&v["A"], &v["B"], (N, K, M));
        let f = product(&v["C"], &v["D"], (M, P, L));
        set(v, "G", product(&e, &f, (N, M, L)));
    });
    let sizes = [("n", N as i64), ("m", M as i64), ("t", 4), ("u", 3)];
    compare("syrk", &sizes, &["C"], |v| {
        let square = product(&v["A"], &transposed(&v["A"], (N, M)), (N, M, N));
        set(v, "C", sum(&scaled(&square, 1.5), &scaled(&v["C"], 1.2)));
    });
    compare("syr2k", &sizes, &["C"], |v| {
        let one = product(&v["A"], &transposed(&v["B"], (N, M)), (N, M, N));
        let other = product(&v["B"], &transposed(&v["A"], (N, M)), (N, M, N));
        set(v, "C", scaled(&sum(&one, &other), 1.5));
    });
}

/// Means of columns.
fn means(data: &[f64]) -> Vec<f64> {
    (0..M).map(|j| (0..N).map(|i| data[i * M + j]).sum::<f64>() / N as f64).collect()
}

#[test]
fn matrices_of_statistics() {
    let sizes = [("n", N as i64), ("m", M as i64), ("t", 4), ("u", 3)];
    compare("covar", &sizes, &["symmat", "data", "mean"], |v| {
        let mean = means(&v["data"]);
        let data: Vec<f64> = v["data"].iter().enumerate().map(|(at, x)| x - mean[at % M]).collect();
        let square = product(&transposed(&data, (N, M)), &data, (M, N, M));
        let upper = square.iter().enumerate().map(|(at, x)| if at / M <= at % M { *x } else { 0.0 });
        set(v, "symmat", upper.collect());
        set(v, "data", data);
        set(v, "mean", mean);
    });
    compare("corr", &sizes, &["symmat", "data", "stddev"], |v| {
        let mean = means(&v["data"]);
        let deviation = |j: usize| {
            let squares = (0..N).map(|i| (v["data"][i * M + j] - mean[j]).powi(2)).sum::<f64>();
            let root = (squares / N as f64).sqrt();
            if root <= 0.1 { 1.0 } else { root }
        };
        let deviations: Vec<f64> = (0..M).map(deviation).collect();
        let root = (N as f64).sqrt();
        let centred = v["data"].iter().enumerate();
        let data: Vec<f64> =
            centred.map(|(at, x)| (x - mean[at % M]) / (root * deviations[at % M])).collect();
        let square = product(&transposed(&data, (N, M)), &data, (M, N, M));
        let upper = square.iter().enumerate().map(|(at, x)| match (at / M).cmp(&(at % M)) {
            std::cmp::Ordering::Less => *x,
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Greater => 0.0,
        });
        set(v, "symmat", upper.collect());
        set(v, "data", data);
        set(v, "stddev", deviations);
    });
}

#[test]
fn a_convolution() {
    compare("2dcon", &[("ni", N as i64), ("nj", M as i64)], &["B"], |v| {
        let weights = [[0.2, -0.3, 0.4], [0.5, 0.6, 0.7], [-0.8, -0.9, 0.1]];
        let mut b = vec![0.0; N * M];
        for i in 1..N - 1 {
            for j in 1..M - 1 {
                // The first number of a weight goes with the column, the second with the row.
                for (dj, column) in weights.iter().enumerate() {
                    for (di, weight) in column.iter().enumerate() {
                        b[i * M + j] += weight * v["A"][(i + di - 1) * M + j + dj - 1];
                    }
                }
            }
        }
        set(v, "B", b);
    });
}

#[test]
fn one_step_in_time() {
    compare("fdtd", &[("nx", N as i64), ("ny", M as i64)], &["ex", "ey", "hz"], |v| {
        let at = |i: usize, j: usize| i * M + j;
        let (mut ex, mut ey, mut hz) = (v["ex"].clone(), v["ey"].clone(), v["hz"].clone());
        ey[..M].fill(v["fict"][0]);
        for i in 1..N {
            for j in 0..M {
                ey[at(i, j)] -= 0.5 * (hz[at(i, j)] - hz[at(i - 1, j)]);
            }
        }
        for i in 0..N {
            for j in 1..M {
                ex[at(i, j)] -= 0.5 * (hz[at(i, j)] - hz[at(i, j - 1)]);
            }
        }
        for i in 0..N - 1 {
            for j in 0..M - 1 {
                let curl = ex[at(i, j + 1)] - ex[at(i, j)] + ey[at(i + 1, j)] - ey[at(i, j)];
                hz[at(i, j)] -= 0.7 * curl;
            }
        }
        set(v, "ex", ex);
        set(v, "ey", ey);
        set(v, "hz", hz);
    });
    compare("adi", &[("n", N as i64)], &["X", "B"], |v| {
        let at = |i: usize, j: usize| i * N + j;
        let (mut x, mut b, a) = (v["X"].clone(), v["B"].clone(), v["A"].clone());
        for i1 in 0..N {
            for i2 in 1..N {
                x[at(i1, i2)] -= x[at(i1, i2 - 1)] * a[at(i1, i2)] / b[at(i1, i2 - 1)];
                b[at(i1, i2)] -= a[at(i1, i2)] * a[at(i1, i2)] / b[at(i1, i2 - 1)];
            }
        }
        for i1 in 0..N {
            x[at(i1, N - 1)] /= b[at(i1, N - 1)];
        }
        for i1 in 0..N {
            for i2 in 0..N - 2 {
                let here = N - 2 - i2;
                x[at(i1, here)] =
                    (x[at(i1, here)] - x[at(i1, here - 1)] * a[at(i1, here - 1)]) / b[at(i1, here - 1)];
            }
        }
        for i1 in 1..N {
            for i2 in 0..N {
                x[at(i1, i2)] -= x[at(i1 - 1, i2)] * a[at(i1, i2)] / b[at(i1 - 1, i2)];
                b[at(i1, i2)] -= a[at(i1, i2)] * a[at(i1, i2)] / b[at(i1 - 1, i2)];
            }
        }
        for i2 in 0..N {
            x[at(N - 1, i2)] /= b[at(N - 1, i2)];
        }
        for i1 in 0..N - 2 {
            let here = N - 2 - i1;
            for i2 in 0..N {
                x[at(here, i2)] =
                    (x[at(here, i2)] - x[at(here - 1, i2)] * a[at(here - 1, i2)]) / b[at(here, i2)];
            }
        }
        set(v, "X", x);
        set(v, "B", b);
    });
}

/// Checks the score of an alignment against a plain table, in blocks that do not fill it, with high and low gap
/// costs.
#[test]
fn an_alignment() {
    for (ti, tj) in [(4, 5), (13, 13), (1, 2)] {
        for gap in [10.0, 1.0] {
            let sizes = [("n", N as i64), ("ti", ti), ("tj", tj)];
            compare_with("nw", "gap = 10", &format!("gap = {gap}"), &sizes, &["items"], |v| {
                let side = N + 1;
                let mut items = vec![0.0; side * side];
                for at in 1..side {
                    (items[at], items[at * side]) = (-gap * at as f64, -gap * at as f64);
                }
                for i in 1..side {
                    for j in 1..side {
                        let aligned = items[(i - 1) * side + j - 1] + v["reference"][(i - 1) * N + j - 1];
                        let skipped = items[(i - 1) * side + j].max(items[i * side + j - 1]) - gap;
                        items[i * side + j] = aligned.max(skipped);
                    }
                }
                set(v, "items", items);
            });
        }
    }
}

/// Checks the cheapest path to each column of the last row against the minimum over all paths.
#[test]
fn a_way_through_a_grid() {
    fn cheapest(wall: &[f64], row: usize, column: usize) -> f64 {
        let above = || column.saturating_sub(1)..=(column + 1).min(M - 1);
        let least = |row: usize| above().map(|column| cheapest(wall, row, column)).fold(f64::MAX, f64::min);
        wall[row * M + column] + if row == 0 { 0.0 } else { least(row - 1) }
    }
    for rows in [2, 3, 6, 7] {
        compare("path", &[("rows", rows), ("columns", M as i64)], &["result"], |v| {
            let result = (0..M).map(|column| cheapest(&v["wall"], rows as usize - 1, column)).collect();
            set(v, "result", result);
        });
    }
}
