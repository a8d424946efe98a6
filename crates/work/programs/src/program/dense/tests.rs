//! Results against plain sequential implementations, and counts against formulas.

use super::{lanes, such, uniform};
use crate::program::dense::backprop::{self, Backprop, ETA, MOMENTUM, ROW, SIDE, squash};
use crate::program::dense::fdtd::Fdtd;
use crate::program::dense::gaussian::Gaussian;
use crate::program::dense::gramschmidt::GramSchmidt;
use crate::program::dense::hotspot::Hotspot;
use crate::program::dense::lavamd::{ALPHA, LavaMd};
use crate::program::{Census, Code, Slots, census, open};

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
    for rows in [45, 13, 70] {
        fdtd_of(rows, 45);
    }
}

fn fdtd_of(rows: usize, n: usize) {
    let launches = 8;
    let start = Fdtd::new([rows, n], launches);
    let (mut ex, mut ey, mut hz) = (wide(&start.ex), wide(&start.ey), wide(&start.hz));
    for launch in 0..launches {
        match launch % 3 {
            0 => {
                for i in 0..rows {
                    for j in 0..n {
                        let k = i * n + j;
                        ey[k] = if i == 0 { (launch / 3) as f64 } else { ey[k] - 0.5 * (hz[k] - hz[k - n]) };
                    }
                }
            }
            1 => {
                for i in 0..rows {
                    for j in 1..n {
                        ex[i * n + j] -= 0.5 * (hz[i * n + j] - hz[i * n + j - 1]);
                    }
                }
            }
            _ => {
                for i in 0..rows - 1 {
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
    // Lanes of loads and stores: a step touches all places, or those with a neighbour above, beside, or below and
    // beside.
    let blocks = 2 * rows.div_ceil(8) as u32;
    let (rows, n) = (rows as u64, n as u64);
    let (first, second, third) = ((rows - 1) * n, rows * (n - 1), (rows - 1) * (n - 1));
    assert_eq!(census.stores.lanes, 3 * rows * n + 3 * second + 2 * third);
    assert_eq!(census.loads.lanes, 3 * (n + 3 * first) + 3 * 3 * second + 2 * 5 * third);
    assert_eq!((census.kernels.len(), census.kernels[0].blocks, census.kernels[0].threads), (8, blocks, 256));
}

#[test]
fn elimination_is_the_sequential_one() {
    let square = [(37, 37, 5, 4), (37, 37, 36, 16), (64, 64, 3, 7)];
    for (rows, n, pivots, block) in square.into_iter().chain([(9, 40, 8, 4), (50, 21, 20, 7)]) {
        let start = Gaussian::new([rows, n], pivots, block);
        let (mut m, mut a, mut b) = (wide(&start.m), wide(&start.a), wide(&start.b));
        for t in 0..pivots {
            for i in t + 1..rows {
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
        // A pivot: a column below it, a rectangle of that by n - t, the right side.
        let (mut loads, mut stores) = (0, 0);
        for t in 0..pivots as u64 {
            let (below, right) = (rows as u64 - 1 - t, n as u64 - t);
            loads += 2 * below + 3 * below * right + 3 * below;
            stores += below + below * right + below;
        }
        assert_eq!((census.loads.lanes, census.stores.lanes), (loads, stores));
        assert_eq!((census.kernels.len(), census.kernels[1].threads), (2 * pivots, (block * block) as u32));
    }
}

#[test]
fn orthogonalisation_is_the_sequential_one() {
    for (rows, n) in [(70, 70), (11, 70), (300, 20)] {
        orthogonalisation_of(rows, n, 4);
    }
}

fn orthogonalisation_of(rows: usize, n: usize, columns: usize) {
    let start = GramSchmidt::new([rows, n], columns);
    let (mut a, mut r, mut q) = (wide(&start.a), wide(&start.r), wide(&start.q));
    for k in 0..columns {
        let norm = (0..rows).map(|i| a[i * n + k] * a[i * n + k]).sum::<f64>().sqrt();
        r[k * n + k] = norm;
        for i in 0..rows {
            q[i * n + k] = a[i * n + k] / norm;
        }
        for j in k + 1..n {
            r[k * n + j] = (0..rows).map(|i| q[i * n + k] * a[i * n + j]).sum();
            for i in 0..rows {
                a[i * n + j] -= q[i * n + k] * r[k * n + j];
            }
        }
    }
    let (census, slots) = run(start);
    let end = slots.code();
    close(&end.a, a, "a");
    close(&end.r, r, "r");
    close(&end.q, q, "q");
    let each = [1, rows.div_ceil(256) as u32, 1];
    let (mut loads, mut stores, rows, n) = (0, 0, rows as u64, n as u64);
    for k in 0..columns as u64 {
        let behind = n - 1 - k;
        loads += rows + 2 * rows + 5 * rows * behind;
        stores += 1 + rows + behind + 2 * rows * behind;
    }
    assert_eq!((census.loads.lanes, census.stores.lanes), (loads, stores));
    let blocks: Vec<u32> = census.kernels.iter().map(|kernel| kernel.blocks).collect();
    assert_eq!(blocks, each.repeat(columns));
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
    // A row to which no other is added holds its products.
    for j in 1..ROW {
        let got = f64::from(end.weights[2 * ROW + j]) * scale;
        assert!((got - product(2, j) * scale).abs() < 1e-5);
    }
    // Eight warps per block, eight barriers each; a row in two by tx = 0.
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

/// Computes the whole grid, one step at a time, in the precision of the source: the pyramid of shared memory does not
/// change a bit.
fn heated(sides: [usize; 2], steps: usize, mut now: Vec<f32>, power: &[f32]) -> Vec<f32> {
    let [rows, columns] = sides;
    let (height, width) = (0.016 / rows as f32, 0.016 / columns as f32);
    let (h, w, t) = (f64::from(height), f64::from(width), f64::from(0.0005_f32));
    let heat = (0.5 * 1.75e6 * t * w * h) as f32;
    let across = 1.0 / (w / (2.0 * 100.0 * t * h)) as f32;
    let down = 1.0 / (h / (2.0 * 100.0 * t * w)) as f32;
    let out = 1.0 / (0.0005 / (100.0 * height * width));
    let factor = (0.001 / f64::from((3.0e6 / (0.5 * t * 1.75e6)) as f32)) as f32 / heat;
    for _ in 0..steps {
        let before = now.clone();
        for row in 0..rows {
            for column in 0..columns {
                let at = |row: usize, column: usize| before[row * columns + column];
                let own = at(row, column);
                let north = at(row.saturating_sub(1), column);
                let south = at((row + 1).min(rows - 1), column);
                let west = at(row, column.saturating_sub(1));
                let east = at(row, (column + 1).min(columns - 1));
                let twice = 2.0 * f64::from(own);
                let sum = f64::from(power[row * columns + column])
                    + (f64::from(south + north) - twice) * f64::from(down)
                    + (f64::from(east + west) - twice) * f64::from(across)
                    + f64::from((80.0 - own) * out);
                now[row * columns + column] = (f64::from(own) + f64::from(factor) * sum) as f32;
            }
        }
    }
    now
}

#[test]
fn the_pyramid_heats_as_the_whole_grid_does() {
    // Sides that tiles cover exactly, and sides that they do not; a last kernel of fewer steps; a grid smaller than a
    // tile.
    for (sides, steps, pyramid) in [
        ([37, 50], 5, 2),
        ([48, 36], 4, 2),
        ([20, 21], 7, 7),
        ([30, 31], 3, 1),
        ([3, 5], 6, 4),
        ([1, 1], 2, 2),
    ] {
        let start = Hotspot::new(sides, steps, pyramid);
        let (first, power) = (start.temperature[0].clone(), start.power.clone());
        let expected = heated(sides, steps, first.clone(), &power);
        let (census, slots) = run(start);
        let kernels = steps.div_ceil(pyramid);
        let end = &slots.code().temperature[kernels % 2];
        assert_eq!(end, &expected, "{sides:?}, {steps} steps, {pyramid} a kernel");
        // A large chip's cells show the effect of a step's power; one cell's heat is too much for it.
        assert!(sides[0] < 20 || heated(sides, steps, first.clone(), &vec![0.0; power.len()]) != expected);
        assert!(sides[0] < 20 || heated(sides, 1, first, &power) != expected);
        let cells = (sides[0] * sides[1]) as u64;
        // Each kernel writes each cell once.
        assert_eq!(census.stores.lanes, kernels as u64 * cells);
        // A row is loaded by every block whose base contains it: base b begins at (16 - 2 i) b - p and has 16 rows.
        let mut loads = 0;
        for kernel in 0..kernels {
            let tile = 16 - 2 * pyramid.min(steps - kernel * pyramid);
            let blocks = |side: usize| side.div_ceil(16 - 2 * pyramid);
            let covers = |side: usize| {
                let base =
                    |b: usize| (0..16).filter(move |n| (pyramid..pyramid + side).contains(&(tile * b + n)));
                (0..blocks(side)).map(|b| base(b).count() as u64).sum::<u64>()
            };
            loads += 2 * covers(sides[0]) * covers(sides[1]);
            assert_eq!(census.kernels[kernel].blocks as usize, blocks(sides[0]) * blocks(sides[1]));
        }
        assert_eq!((census.loads.lanes, census.uneven_blocks), (loads, 0));
        assert_eq!(
            (census.kernels.len(), census.kernels[0].threads, census.kernels[0].shared),
            (kernels, 256, 3072)
        );
        // Eight warps; a barrier after the loads, two per step except the last.
        let per_kernel = |kernel: usize| 2 * pyramid.min(steps - kernel * pyramid) as u64;
        let each = u64::from(census.kernels[0].blocks);
        assert_eq!(census.barriers, 8 * (0..kernels).map(|kernel| each * per_kernel(kernel)).sum::<u64>());
    }
}

#[test]
fn particles_feel_those_of_the_boxes_around_them() {
    for (side, particles) in [(3, 100), (2, 7), (1, 130), (3, 33)] {
        let start = LavaMd::new(side, particles);
        let (place, charge) = (start.place.clone(), start.charge.clone());
        let near = |a: usize, b: usize| a.abs_diff(b) <= 1;
        let coordinates = |n: usize| [n % side, n / side % side, n / side / side];
        let boxes = side * side * side;
        let mut pairs = 0;
        let mut expected = vec![[0.0_f64; 4]; boxes * particles];
        for home in 0..boxes {
            let [x, y, z] = coordinates(home);
            let acts = |other: &usize| {
                let [a, b, c] = coordinates(*other);
                near(a, x) && near(b, y) && near(c, z)
            };
            for other in (0..boxes).filter(acts) {
                pairs += 1;
                for i in home * particles..(home + 1) * particles {
                    for j in other * particles..(other + 1) * particles {
                        let ([v, x, y, z], [w, a, b, c]) = (place[i], place[j]);
                        let squared = v + w - (x * a + y * b + z * c);
                        let felt = charge[j] * libm::exp(-2.0 * ALPHA * ALPHA * squared);
                        for (sum, part) in
                            expected[i].iter_mut().zip([1.0, 2.0 * (x - a), 2.0 * (y - b), 2.0 * (z - c)])
                        {
                            *sum += felt * part;
                        }
                    }
                }
            }
        }
        // (3 n - 2)^3 pairs of boxes, each with itself.
        assert_eq!(pairs, (3 * side - 2).pow(3));
        let (census, slots) = run(start);
        for (n, (got, expected)) in slots.code().force.iter().zip(&expected).enumerate() {
            for (got, expected) in got.iter().zip(expected) {
                assert!(
                    (got - expected).abs() <= 1e-11 * expected.abs().max(1.0),
                    "{n}: {got}, not {expected}"
                );
            }
        }
        assert_eq!(slots.code().force.len(), expected.len());
        let (boxes, pairs, n) = (boxes as u64, pairs as u64, particles as u64);
        // By all threads the home box's offset, the number of neighbours once a box and once to end, of a neighbour its
        // number, of each box its offset; of the particles four numbers, and four and the charge; the forces.
        let uniform = 128 * (boxes + pairs + boxes + (pairs - boxes) + pairs);
        assert_eq!(census.loads.lanes, uniform + 4 * n * boxes + (4 + 1 + 4) * n * pairs);
        assert_eq!(census.stores.lanes, 4 * n * pairs);
        assert_eq!((census.barriers, census.uneven_blocks), (4 * (boxes + 2 * pairs), 0));
        let kernel = census.kernels[0];
        assert_eq!((u64::from(kernel.blocks), kernel.threads), (boxes, 128));
        assert_eq!((u64::from(kernel.shared), census.kernels.len()), (72 * n, 1));
        // A structure of a box takes 656 bytes: 32 of its own, 26 neighbours of 24.
        let [d_box, d_rv, d_qv, d_fv] = [656 * boxes, 32 * n * boxes, 8 * n * boxes, 32 * n * boxes];
        let asked: Vec<u64> = slots.code().space().allocations().iter().map(|a| a.bytes).collect();
        assert_eq!(asked, [d_box, d_rv, d_qv, d_fv]);
    }
}

#[test]
fn what_cannot_be_a_pyramid_or_a_box_is_refused() {
    let wrong = |text: &str| open(&[text]).err().expect(text).to_string();
    assert!(wrong("hotspot:pyramid=8").contains("from 1 to 7"), "{}", wrong("hotspot:pyramid=8"));
    assert!(wrong("hotspot:row=8").contains("did you mean `rows`?"));
    assert!(wrong("lavamd:particles=0").contains("from 1 to 512"));
    assert!(wrong("lavaMD").contains("did you mean `lavamd`?"), "{}", wrong("lavaMD"));
    assert_eq!(open(&["hotspot:rows=16,cols=8", "lavamd:boxes1d=1"]).unwrap().len(), 2);
}

#[test]
fn numbers_are_even_and_streams_differ() {
    let mean = (0..10_000).map(|n| f64::from(uniform(1, n))).sum::<f64>() / 10_000.0;
    // The standard deviation of the mean is 1 / sqrt(12 * 10,000) = 0.0029.
    assert!((mean - 0.5).abs() < 0.012, "{mean}");
    assert!((0..100).any(|n| uniform(1, n) != uniform(2, n)));
}

#[test]
fn lanes_of_a_mask() {
    assert_eq!(lanes(0x8000_0011).collect::<Vec<_>>(), [0, 4, 31]);
    assert_eq!(such(0x8000_0011, |lane| lane > 3), 0x8000_0010);
}
