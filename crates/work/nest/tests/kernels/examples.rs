//! The kernels of `examples/kernels`, against plain programs.

use crate::read;
use nest::{Data, Kernel};

/// A kernel with these sizes, executed on drawn values; what each array held before and after.
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
