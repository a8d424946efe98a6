//! Where a transient is seen to end, on sequences whose transient is known.

use crate::draw::Draw;
use stats::Mser;

/// The rule by its definition, over the whole list.
fn naive(values: &[f64], size: usize) -> Option<usize> {
    let means: Vec<f64> = values.chunks_exact(size).map(|c| c.iter().sum::<f64>() / size as f64).collect();
    let error = |d: usize| {
        let rest = &means[d..];
        let (n, mean) = (rest.len() as f64, rest.iter().sum::<f64>() / rest.len() as f64);
        rest.iter().map(|y| (y - mean) * (y - mean)).sum::<f64>() / (n * n)
    };
    let best = (0..means.len() - 5).min_by(|a, b| error(*a).total_cmp(&error(*b)))?;
    (2 * best <= means.len()).then_some(best * size)
}

#[test]
fn is_the_rule_by_its_definition() {
    let mut draw = Draw(3);
    let (mut mser, mut values) = (Mser::new(), Vec::new());
    let mut answers = [0, 0];
    for n in 0..3000 {
        // A rise over the first thousand, which is noise at first.
        values.push(draw.exponential() + 4.0 * f64::min(f64::from(n) / 1000.0, 1.0));
        mser.push(values[values.len() - 1]);
        let mut size = 5;
        while values.len() / size >= 128 {
            size *= 2;
        }
        if values.len() / size >= 32 {
            let expected = naive(&values, size);
            answers[usize::from(expected.is_some())] += 1;
            assert_eq!(mser.transient().map(|d| d as usize), expected, "after {}", values.len());
        } else {
            assert_eq!(mser.transient(), None);
        }
    }
    assert!(answers[0] > 500 && answers[1] > 500, "{answers:?}");
}

/// After how many values of `from` and more a sequence is seen to be steady.
fn steady_from(
    from: u32,
    length: u32,
    mut value: impl FnMut(u32, &mut Draw) -> f64,
    seed: u64,
) -> Option<u32> {
    let (mut mser, mut draw) = (Mser::new(), Draw(seed));
    (1..=length).find(|n| {
        mser.push(value(n - 1, &mut draw));
        *n >= from && mser.is_steady()
    })
}

/// Least, median and most of 100 seeds.
fn spread(mut of: impl FnMut(u64) -> Option<u32>) -> [u32; 3] {
    let mut all: Vec<u32> = (0..100).map(|seed| of(seed).expect("steady")).collect();
    all.sort_unstable();
    [all[0], all[50], all[99]]
}

#[test]
fn independent_values_are_steady_early() {
    // 32 batches of five, and a fourth as many again, are the least.
    let [least, median, most] = spread(|seed| steady_from(1, 10_000, |_, draw| draw.exponential(), seed));
    assert!(least == 200 && median <= 250 && most < 1000, "{least} {median} {most}");
}

#[test]
fn a_transient_is_cut_behind_its_end_and_not_much_later() {
    // A step is over when it lies in the former half; and the rule must have held for a fifth.
    let step = |n, draw: &mut Draw| draw.exponential() + if n < 2000 { 10.0 } else { 0.0 };
    let [least, median, most] = spread(|seed| steady_from(2500, 100_000, step, seed));
    assert!(least >= 4000 && median < 5500 && most < 10_000, "{least} {median} {most}");
    // A decay from three times the mean: after four time constants it is below 4 % of the mean, after ten nothing is left.
    let decay = |n, draw: &mut Draw| draw.exponential() * (1.0 + 2.0 * libm::exp(-f64::from(n) / 500.0));
    let [least, median, most] = spread(|seed| steady_from(2000, 100_000, decay, seed));
    assert!(least >= 2000 && median < 3500 && most < 6000, "{least} {median} {most}");
}

#[test]
fn what_grows_for_ever_is_never_steady() {
    for seed in 0..50 {
        // Waiting in a queue whose load is 120 %: each job waits a fifth of a service longer than the one before, give or take.
        let mut waits = 0.0f64;
        let queue = |_, draw: &mut Draw| {
            waits = (waits + draw.exponential() - draw.exponential() / 1.2).max(0.0);
            waits
        };
        assert_eq!(steady_from(2000, 50_000, queue, seed), None, "{seed}");
        // A trend of a hundredth of the noise a value.
        let trend = |n, draw: &mut Draw| draw.exponential() + f64::from(n) / 100.0;
        assert_eq!(steady_from(2000, 50_000, trend, seed), None, "{seed}");
    }
}

#[test]
fn a_constant_has_no_transient() {
    assert_eq!(steady_from(1, 1000, |_, _| 7.0, 0), Some(200));
}
