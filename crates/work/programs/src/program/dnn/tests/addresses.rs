//! Loads and stores of kernels, element by element, against naive loops.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Bases, Traffic, traffic};
use crate::program::dnn::eager::{Eager, Window, work};
use crate::program::dnn::kernels::Ids;
use crate::program::dnn::memory::Store;

/// Counts of elements, by address.
#[derive(Default)]
struct Expected(BTreeMap<u64, u64>);

impl Expected {
    fn add(&mut self, base: u64, element: u64, width: u8, times: u64) {
        if times > 0 {
            *self.0.entry(base + element * u64::from(width)).or_default() += times;
        }
    }
}

/// Returns every element of a tensor once.
fn once(base: u64, count: u64, width: u8) -> BTreeMap<u64, u64> {
    (0..count).map(|n| (base + n * u64::from(width), 1)).collect()
}

/// Returns the side of a tile, by the documented rule.
fn side(m: u64, n: u64, batch: u64) -> u64 {
    if m.div_ceil(64) * n.div_ceil(64) * batch < 32 { 32 } else { 64 }
}

/// Returns a product of which each factor may be stored transposed.
fn product(batch: u64, [m, n, k]: [u64; 3], turned: [bool; 2], width: u8) -> (Traffic, Bases) {
    let mut store = Store::default();
    let dims = |rows, columns, turned| if turned { [batch, columns, rows] } else { [batch, rows, columns] };
    let a = store.parameter("a", &dims(m, k, turned[0]), width);
    let b = store.parameter("b", &dims(k, n, turned[1]), width);
    let turn =
        |x: &super::super::memory::View, turned| if turned { x.permute(&[0, 2, 1]) } else { x.clone() };
    let (a, b) = (turn(&a, turned[0]), turn(&b, turned[1]));
    traffic(store, u64::from(width), move |eager: &mut Eager| {
        eager.matmul(&a, &b);
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn products_touch_both_factors_tile_by_tile(
        batch in 1_u64..4, m in 2_u64..90, n in 1_u64..90, k in 1_u64..70,
        left in any::<bool>(), right in any::<bool>(), half in any::<bool>(),
    ) {
        let width = if half { 2 } else { 4 };
        let (got, bases) = product(batch, [m, n, k], [left, right], width);
        let side = side(m, n, batch);
        let mut loads = Expected::default();
        for element in 0..batch * m * k {
            loads.add(bases[0], element, width, n.div_ceil(side));
        }
        for element in 0..batch * k * n {
            loads.add(bases[1], element, width, m.div_ceil(side));
        }
        prop_assert_eq!(got.loads, loads.0);
        prop_assert_eq!(got.stores, once(bases[2], batch * m * n, width));
    }

    #[test]
    fn vectors_are_read_once_for_each_group_of_results(
        batch in 1_u64..4, n in 1_u64..80, k in 1_u64..300, right in any::<bool>(),
    ) {
        let (got, bases) = product(batch, [1, n, k], [false, right], 4);
        // Every result reads the whole vector: a warp's lanes share k, or each lane takes all of it.
        let mut loads = Expected::default();
        for element in 0..batch * k {
            loads.add(bases[0], element, 4, n);
        }
        for element in 0..batch * k * n {
            loads.add(bases[1], element, 4, 1);
        }
        prop_assert_eq!(got.loads, loads.0);
        prop_assert_eq!(got.stores, once(bases[2], batch * n, 4));
    }

    #[test]
    fn convolutions_read_what_lies_under_the_filter(
        images in 1_u64..3, channels in 1_u64..5, outputs in 1_u64..40, height in 3_u64..14, width in 3_u64..14,
        filter in 1_u64..4, stride in 1_u64..3, pad in 0_u64..3, dilation in 1_u64..3, groups in 1_u64..3,
    ) {
        let reach = dilation * (filter - 1) + 1;
        prop_assume!(height + 2 * pad >= reach && width + 2 * pad >= reach);
        let (outputs, all) = (outputs * groups, channels * groups);
        let mut store = Store::default();
        let x = store.buffer("x", &[images, all, height, width], 4);
        let w = store.parameter("w", &[outputs, channels, filter, filter], 4);
        let b = store.parameter("b", &[outputs], 4);
        let window = Window { size: [filter; 2], stride: [stride; 2], dilation: [dilation; 2], pad: [pad; 4] };
        let (got, bases) = traffic(store, 4, move |eager: &mut Eager| {
            eager.conv(&x, &w, Some(&b), window, groups);
        });
        let oh = (height + 2 * pad - reach) / stride + 1;
        let ow = (width + 2 * pad - reach) / stride + 1;
        let (m, pixels) = (outputs / groups, oh * ow);
        let side = side(m, images * pixels, groups);
        let (down, across) = (m.div_ceil(side), (images * pixels).div_ceil(side));
        let mut loads = Expected::default();
        for image in 0..images {
            for oy in 0..oh {
                for ox in 0..ow {
                    for c in 0..all {
                        for dy in 0..filter {
                            for dx in 0..filter {
                                let y = (oy * stride + dy * dilation) as i64 - pad as i64;
                                let x = (ox * stride + dx * dilation) as i64 - pad as i64;
                                if y >= 0 && x >= 0 && y < height as i64 && x < width as i64 {
                                    let plane = image * all + c;
                                    let element = (plane * height + y as u64) * width + x as u64;
                                    loads.add(bases[0], element, 4, down);
                                }
                            }
                        }
                    }
                }
            }
        }
        for element in 0..outputs * channels * filter * filter {
            loads.add(bases[1], element, 4, across);
        }
        // The bias is read by each of the threads along a row of a tile, four columns each, even beyond the edge.
        for row in 0..outputs {
            loads.add(bases[2], row, 4, across * side / 4);
        }
        prop_assert_eq!(got.loads, loads.0);
        prop_assert_eq!(got.stores, once(bases[3], images * outputs * pixels, 4));
    }

    #[test]
    fn rows_are_passed_over_as_often_as_their_kernel_says(rows in 1_u64..12, columns in 1_u64..2600) {
        let mut store = Store::default();
        let x = store.buffer("x", &[rows, columns], 4);
        let (g, b) = (store.parameter("g", &[columns], 4), store.parameter("b", &[columns], 4));
        let (of_softmax, of_norm, of_mean) = (x.clone(), x.clone(), x);
        let (got, bases) = traffic(store.clone(), 4, move |e: &mut Eager| { e.softmax(&of_softmax); });
        let passes = if columns <= 1024 { 1 } else { 3 };
        let every = |times: u64| (0..rows * columns).map(|n| (bases[0] + 4 * n, times)).collect::<BTreeMap<_, _>>();
        prop_assert_eq!(got.loads, every(passes));
        prop_assert_eq!(got.stores, once(bases[3], rows * columns, 4));
        let (got, bases) = traffic(store.clone(), 4, move |e: &mut Eager| { e.layer_norm(&of_norm, &g, &b); });
        let mut loads = every(2);
        for base in &bases[1..3] {
            loads.extend((0..columns).map(|n| (base + 4 * n, rows)));
        }
        prop_assert_eq!(got.loads, loads);
        prop_assert_eq!(got.stores, once(bases[3], rows * columns, 4));
        let (got, bases) = traffic(store, 4, move |e: &mut Eager| { e.reduce("mean", &of_mean, 1, 4); });
        prop_assert_eq!(got.loads, every(1));
        prop_assert_eq!(got.stores, once(bases[3], rows, 4));
    }

    #[test]
    fn element_wise_kernels_repeat_what_is_shorter(
        dims in proptest::collection::vec(1_u64..9, 1..5), repeated in any::<[bool; 4]>(), turned in any::<bool>(),
    ) {
        let mut store = Store::default();
        let own: Vec<u64> = dims.iter().zip(repeated).map(|(d, r)| if r { 1 } else { *d }).collect();
        let rank = dims.len();
        let order: Vec<usize> = if turned { (0..rank).rev().collect() } else { (0..rank).collect() };
        let stored: Vec<u64> = order.iter().map(|n| dims[*n]).collect();
        let a = store.buffer("a", &stored, 4).permute(&order);
        let b = store.buffer("b", &own, 4);
        let (got, bases) = traffic(store, 4, move |e: &mut Eager| { e.map("add", &[&a, &b], 4, work::ONE); });
        let count: u64 = dims.iter().product();
        let mut loads = Expected::default();
        for n in 0..count {
            let mut rest = n;
            let mut at = vec![0; rank];
            for i in (0..rank).rev() {
                at[i] = rest % dims[i];
                rest /= dims[i];
            }
            let place = |dims: &[u64], at: &[u64]| dims.iter().zip(at).fold(0, |p, (d, c)| p * d + c % d);
            let there: Vec<u64> = order.iter().map(|i| at[*i]).collect();
            loads.add(bases[0], place(&stored, &there), 4, 1);
            loads.add(bases[1], place(&own, &at), 4, 1);
        }
        prop_assert_eq!(got.loads, loads.0);
        prop_assert_eq!(got.stores, once(bases[2], count, 4));
    }
}

#[test]
fn long_tensors_in_order_go_four_at_a_time() {
    for (count, width) in [(512_u64, 4_u8), (1030, 4), (5000, 2)] {
        let mut store = Store::default();
        let a = store.buffer("a", &[count], width);
        let (got, bases) = traffic(store, u64::from(width), move |e: &mut Eager| {
            e.map("relu", &[&a], width, work::ONE);
        });
        assert_eq!(got.loads, once(bases[0], count, width));
        assert_eq!(got.stores, once(bases[1], count, width));
    }
}

#[test]
fn a_bias_is_loaded_for_every_column() {
    let mut store = Store::default();
    let (m, n, k) = (45, 70, 20);
    let x = store.buffer("x", &[m, k], 4);
    let w = store.parameter("w", &[n, k], 4);
    let b = store.parameter("b", &[n], 4);
    let (got, bases) = traffic(store, 4, move |e: &mut Eager| {
        e.linear(&x, &w, Some(&b));
    });
    let of_bias: Vec<u64> = got.loads.range(bases[2]..bases[2] + 4 * n).map(|(_, times)| *times).collect();
    // By each of the eight rows of threads of both tiles down.
    assert_eq!(of_bias, vec![2 * 8; n as usize]);
}

#[test]
fn windows_of_a_pool_end_at_the_edge() {
    let mut store = Store::default();
    let x = store.buffer("x", &[2, 3, 7, 5], 4);
    let (got, bases) = traffic(store, 4, move |e: &mut Eager| {
        e.pool("max_pool", &x, Window::square(3, 2, 1));
    });
    let mut loads = Expected::default();
    for (plane, oy, ox, dy, dx) in (0..6)
        .flat_map(|p| (0..4).flat_map(move |y| (0..3).map(move |x| (p, y, x))))
        .flat_map(|(p, y, x)| (0..9_i64).map(move |d| (p, y, x, d / 3, d % 3)))
    {
        let (y, x) = (oy * 2 + dy - 1, ox * 2 + dx - 1);
        if (0..7).contains(&y) && (0..5).contains(&x) {
            loads.add(bases[0], (plane * 35 + y * 5 + x) as u64, 4, 1);
        }
    }
    assert_eq!(got.loads, loads.0);
    assert_eq!(got.stores, once(bases[1], 6 * 4 * 3, 4));
}

#[test]
fn embeddings_copy_the_rows_that_are_picked() {
    let mut store = Store::default();
    let table = store.parameter("table", &[10, 6], 4);
    let numbers = store.buffer("numbers", &[4], 8);
    let (got, bases) = traffic(store, 4, move |e: &mut Eager| {
        e.embedding(&table, &numbers, Ids::From(3));
    });
    let of_table: Vec<u64> = got.loads.range(..bases[1]).map(|(at, _)| (at - bases[0]) / 4).collect();
    assert_eq!(of_table, (18..42).collect::<Vec<u64>>());
    assert_eq!(got.stores, once(bases[2], 24, 4));
}

#[test]
fn a_sum_over_the_first_dimension_goes_down_the_columns() {
    let mut store = Store::default();
    let x = store.buffer("x", &[9, 37], 4);
    let (got, bases) = traffic(store, 4, move |e: &mut Eager| {
        e.reduce_columns(&x, 0);
    });
    assert_eq!((got.loads, got.stores), (once(bases[0], 9 * 37, 4), once(bases[1], 37, 4)));
}

#[test]
fn words_follow_zipf() {
    use crate::program::dnn::kernels::{At, Gather};
    let at = At { tensor: 0, address: 0 };
    let (rows, picked) = (30_522, 100_000);
    let gather =
        Gather { ids: Ids::Words, rows, picked, columns: 1, numbers: at, table: at, output: at, width: 4 };
    let words = gather.pick(7);
    assert!(words.iter().all(|word| u64::from(*word) < rows));
    // The share of the first k of V words is ln(k + 1) / ln(V + 1); standard deviation 0.0016.
    for k in [1, 100, 5_000] {
        let share = words.iter().filter(|word| **word < k).count() as f64 / picked as f64;
        let expected = libm::log(f64::from(k) + 1.0) / libm::log(rows as f64 + 1.0);
        assert!((share - expected).abs() < 0.008, "{k}: {share} instead of {expected}");
    }
    assert_ne!(gather.pick(8), words);
    assert_eq!(gather.pick(7), words);
}
