//! Results against plain sequential implementations, and counts against formulas.

use crate::program::dense::backprop::{self, Backprop, ETA, MOMENTUM, ROW, SIDE, squash};
use crate::program::dense::data::uniform;
use crate::program::dense::fdtd::Fdtd;
use crate::program::dense::gaussian::Gaussian;
use crate::program::dense::gramschmidt::GramSchmidt;
use crate::program::{Census, Code, Slots, census};

fn run<C: Code>(code: C) -> (Census, Slots<C>) {
    let mut slots = Slots::new(code);
    let census = census(&mut slots);
    (census, slots)
}

fn close(got: &[f32], expected: impl IntoIterator<Item = f64>, what: &str) {
    let mut count = 0;
    for (n, (got, expected)) in got.iter().zip(expected).enumerate() {
        let error = (f64::from(*got) - expected).abs();
        assert!(error <= 1e-4 * expected.abs().max(1.0), "{what}[{n}]: {got} instead of {expected}");
        count += 1;
    }
    assert_eq!(count, got.len(), "{what}");
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

#[test]
fn fdtd_is_the_sequential_stencil() {
    let (n, launches) = (45, 8);
    let start = Fdtd::new(n, launches);
    let (mut ex, mut ey, mut hz) = (wide(&start.ex), wide(&start.ey), wide(&start.hz));
    for launch in 0..launches {
        match launch % 3 {
            0 => {
                for i in 0..n {
                    for j in 0..n {
                        let k = i * n + j;
                        ey[k] = if i == 0 { (launch / 3) as f64 } else { ey[k] - 0.5 * (hz[k] - hz[k - n]) };
                    }
                }
            }
            1 => {
                for i in 0..n {
                    for j in 1..n {
                        ex[i * n + j] -= 0.5 * (hz[i * n + j] - hz[i * n + j - 1]);
                    }
                }
            }
            _ => {
                for i in 0..n - 1 {
                    for j in 0..n - 1 {
                        let k = i * n + j;
                        hz[k] -= 0.7 * (ex[k + 1] - ex[k] + ey[k + n] - ey[k]);
                    }
                }
            }
        }
    }
    let (census, slots) = run(start);
    let end = slots.code();
    close(&end.ex, ex, "ex");
    close(&end.ey, ey, "ey");
    close(&end.hz, hz, "hz");
    // Lanes of loads and stores: a step touches n^2, (n - 1) n or (n - 1)^2 places.
    let n = n as u64;
    let (first, second, third) = (n * (n - 1), n * (n - 1), (n - 1) * (n - 1));
    assert_eq!(census.stores.lanes, 3 * n * n + 3 * second + 2 * third);
    assert_eq!(census.loads.lanes, 3 * (n + 3 * first) + 3 * 3 * second + 2 * 5 * third);
    assert_eq!((census.kernels.len(), census.kernels[0].blocks, census.kernels[0].threads), (8, 2 * 6, 256));
}

#[test]
fn elimination_is_the_sequential_one() {
    for (n, pivots, block) in [(37, 5, 4), (37, 36, 16), (64, 3, 7)] {
        let start = Gaussian::new(n, pivots, block);
        let (mut m, mut a, mut b) = (wide(&start.m), wide(&start.a), wide(&start.b));
        for t in 0..pivots {
            for i in t + 1..n {
                m[i * n + t] = a[i * n + t] / a[t * n + t];
                for j in t..n {
                    a[i * n + j] -= m[i * n + t] * a[t * n + j];
                }
                b[i] -= m[i * n + t] * b[t];
            }
        }
        let (census, slots) = run(start);
        let end = slots.code();
        close(&end.m, m, "m");
        close(&end.a, a, "a");
        close(&end.b, b, "b");
        // A pivot: a column of n - 1 - t, a rectangle of that by n - t, the right side.
        let (mut loads, mut stores) = (0, 0);
        for t in 0..pivots as u64 {
            let (below, right) = (n as u64 - 1 - t, n as u64 - t);
            loads += 2 * below + 3 * below * right + 3 * below;
            stores += below + below * right + below;
        }
        assert_eq!((census.loads.lanes, census.stores.lanes), (loads, stores));
        assert_eq!((census.kernels.len(), census.kernels[1].threads), (2 * pivots, (block * block) as u32));
    }
}

#[test]
fn orthogonalisation_is_the_sequential_one() {
    let (n, columns) = (70, 4);
    let start = GramSchmidt::new(n, columns);
    let (mut a, mut r, mut q) = (wide(&start.a), wide(&start.r), wide(&start.q));
    for k in 0..columns {
        let norm = (0..n).map(|i| a[i * n + k] * a[i * n + k]).sum::<f64>().sqrt();
        r[k * n + k] = norm;
        for i in 0..n {
            q[i * n + k] = a[i * n + k] / norm;
        }
        for j in k + 1..n {
            r[k * n + j] = (0..n).map(|i| q[i * n + k] * a[i * n + j]).sum();
            for i in 0..n {
                a[i * n + j] -= q[i * n + k] * r[k * n + j];
            }
        }
    }
    let (census, slots) = run(start);
    let end = slots.code();
    close(&end.a, a, "a");
    close(&end.r, r, "r");
    close(&end.q, q, "q");
    let (mut loads, mut stores, n) = (0, 0, n as u64);
    for k in 0..columns as u64 {
        let behind = n - 1 - k;
        loads += n + 2 * n + 5 * n * behind;
        stores += 1 + n + behind + 2 * n * behind;
    }
    assert_eq!((census.loads.lanes, census.stores.lanes), (loads, stores));
    let blocks: Vec<u32> = census.kernels.iter().map(|kernel| kernel.blocks).collect();
    assert_eq!(blocks, [1, 1, 1].repeat(columns));
}

#[test]
fn a_layer_forward_sums_its_products() {
    let inputs = 80;
    let start = Backprop::new(inputs, 1);
    let (units, weights) = (wide(&start.units), wide(&start.weights));
    let (census, slots) = run(start);
    let end = slots.code();
    let product = |unit: usize, j: usize| units[unit] * weights[unit * ROW + j];
    let sums = (0..inputs).map(|n| (1..=SIDE).map(|ty| product(n / SIDE * SIDE + ty, n % SIDE + 1)).sum());
    // Relative to the products, which are small.
    let scale = inputs as f64;
    let scaled: Vec<f32> = end.partial.iter().map(|sum| sum * scale as f32).collect();
    close(&scaled, sums.map(|sum: f64| sum * scale), "partial");
    // A row that no other is added to holds its products.
    for j in 1..ROW {
        let got = f64::from(end.weights[2 * ROW + j]) * scale;
        assert!((got - product(2, j) * scale).abs() < 1e-5);
    }
    // Eight warps a block, eight barriers each; a row in two by tx = 0.
    let blocks = (inputs / SIDE) as u64;
    assert_eq!((census.barriers, census.uneven_blocks), (blocks * 8 * 8, 0));
    assert_eq!(census.loads.lanes, blocks * (256 + 16));
    assert_eq!(census.stores.lanes, blocks * (256 + 16));
    // node, weight; weight, node, weight; in the tree 8 + 4 + 2 + 1 rows, that is 8, 4, 2, 1 warps; weight; sum.
    assert_eq!(census.shared, blocks * (8 * (2 + 3 + 2) + 3 * (8 + 4 + 2 + 1)));
    let kernel = census.kernels[0];
    assert_eq!((kernel.blocks, kernel.threads, kernel.shared), (blocks as u32, 256, 1088));
}

#[test]
fn weights_follow_the_errors_of_the_hidden_units() {
    let inputs = 48;
    let (census, slots) = run(Backprop::new(inputs, 2));
    let end = slots.code();
    let weights: Vec<f64> = (0..(inputs + 1) * ROW).map(|n| f64::from(backprop::weight(inputs, n))).collect();
    // The hidden units from the sums over all inputs, threshold included.
    let unit = |n: usize| f64::from(end.units[n]);
    let hidden: Vec<f64> = (0..ROW)
        .map(|j| {
            let sum: f64 = (0..=inputs).map(|k| unit(k) * weights[k * ROW + j]).sum();
            if j == 0 { 1.0 } else { 1.0 / (1.0 + libm::exp(-sum)) }
        })
        .collect();
    let outer = |j: usize| f64::from(uniform(3, j)) - 0.5;
    let output = 1.0 / (1.0 + libm::exp(-(0..ROW).map(|j| outer(j) * hidden[j]).sum::<f64>()));
    let error = output * (1.0 - output) * (f64::from(uniform(4, 0)) - output);
    let delta = |j: usize| if j == 0 { 0.0 } else { hidden[j] * (1.0 - hidden[j]) * error * outer(j) };
    let change = |k: usize, j: usize| f64::from(ETA) * delta(j) * unit(k);
    let scaled = |values: &[f32]| values.iter().map(|value| value * 1000.0).collect::<Vec<f32>>();
    let places = || (0..=inputs).flat_map(|k| (0..ROW).map(move |j| (k, j)));
    close(&scaled(&end.changes), places().map(|(k, j)| 1000.0 * change(k, j)), "changes");
    let expected = places().map(|(k, j)| 1000.0 * (weights[k * ROW + j] + change(k, j)));
    close(&scaled(&end.weights), expected, "weights");
    assert!(end.changes.iter().any(|change| change.abs() > 1e-4) && MOMENTUM > 0.0);
    assert!((f64::from(squash(0.0)) - 0.5).abs() < 1e-9);
    let blocks = inputs as u64 / 16;
    assert_eq!(census.loads.lanes, blocks * (272 + 7 * 256) + 16 * 5);
    assert_eq!(census.stores.lanes, blocks * (272 + 2 * 256) + 16 * 2);
}
