//! Coverage of intervals of batch means and of percentiles, and the end of a transient, on sequences with a known
//! truth.

use super::Draw;
use proptest::prelude::*;
use stats::{BatchMeans, Batched, HalfWidths, Histogram, Mser, Summary};
use std::f64::consts::{LN_2, LN_10};

/// Units of a histogram per mean.
const MEAN: f64 = 1e6;
const CONFIDENCE: f64 = 0.95;
/// The `p`-quantile of the exponential distribution of mean one is `-ln(1 - p)`.
const TRUE: [(f64, f64); 4] = [(0.0, 1.0), (0.5, LN_2), (0.9, LN_10), (0.99, 2.0 * LN_10)];

/// Returns, for the mean (as `p` of zero) and percentiles, the share of `runs` sequences of `length` whose interval
/// holds the true value.
fn coverage(
    runs: u32,
    length: u32,
    mut sequence: impl FnMut(&mut Draw, u32, &mut dyn FnMut(f64)),
) -> [f64; 4] {
    let mut draw = Draw(11);
    let mut held = [0u32; 4];
    for _ in 0..runs {
        let mut batched = Batched::new();
        sequence(&mut draw, length, &mut |x| batched.record((x * MEAN) as u64));
        let whole = batched.whole();
        for (held, (p, value)) in held.iter_mut().zip(TRUE) {
            let (estimate, half_width) = if p == 0.0 {
                (whole.mean().expect("values"), batched.mean_half_width(CONFIDENCE).expect("batches"))
            } else {
                let estimate = whole.percentile(p).expect("values") as f64;
                (estimate, batched.percentile_half_width(p, CONFIDENCE).expect("batches"))
            };
            *held += u32::from((estimate - value * MEAN).abs() <= half_width);
        }
    }
    held.map(|held| f64::from(held) / f64::from(runs))
}

/// Returns four standard errors of a share estimated from `runs`.
fn slack(share: f64, runs: u32) -> f64 {
    4.0 * (share * (1.0 - share) / f64::from(runs)).sqrt()
}

fn independent(draw: &mut Draw, length: u32, record: &mut dyn FnMut(f64)) {
    (0..length).for_each(|_| record(draw.exponential()));
}

/// Sojourn times in M/M/1 at a load: each is the previous one, less the time since, plus a service (D. V. Lindley
/// 1952). In equilibrium, exponential with mean `1 / (1 - load)` services; scaled to one. Begins in equilibrium.
fn queue(load: f64) -> impl FnMut(&mut Draw, u32, &mut dyn FnMut(f64)) {
    move |draw, length, record| {
        let mut response = draw.exponential() / (1.0 - load);
        for _ in 0..length {
            record(response * (1.0 - load));
            let passed = draw.exponential() / load;
            response = (response - passed).max(0.0) + draw.exponential();
        }
    }
}

#[test]
fn covers_independent_values() {
    for (share, (p, _)) in coverage(400, 12_000, independent).into_iter().zip(TRUE) {
        assert!((share - CONFIDENCE).abs() < slack(CONFIDENCE, 400), "{share} at {p}");
    }
}

#[test]
fn covers_correlated_values_once_batches_are_long() {
    // A queue at half load forgets within some 1 / (1 - 0.5)^2 jobs.
    for (share, (p, _)) in coverage(300, 60_000, queue(0.5)).into_iter().zip(TRUE) {
        assert!((share - CONFIDENCE).abs() < slack(CONFIDENCE, 300), "{share} at {p}");
    }
}

#[test]
fn short_batches_of_correlated_values_cover_too_little() {
    // Batches of 512 at a load of 95 %, which remembers 400 jobs and more.
    let [mean, _, _, p99] = coverage(100, 12_000, queue(0.95));
    assert!(mean < 0.85 && p99 < 0.85, "{mean} {p99}");
}

#[test]
fn half_widths_are_those_of_the_plain_formula() {
    let values: Vec<u64> = (0..1_000_u64).map(|n| n * 7_919 % 10_007).collect();
    let mut batched = Batched::new();
    values.iter().for_each(|value| batched.record(*value));
    // 512 values have been joined into 16 batches of 32; 31 batches of 32 and 8 further values.
    let means: Vec<f64> = values.chunks_exact(32).map(|c| c.iter().sum::<u64>() as f64 / 32.0).collect();
    assert_eq!(means.len(), 31);
    let mean = means.iter().sum::<f64>() / 31.0;
    let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / 30.0;
    // t(0.975, 30) = 2.042 (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
    let expected = 2.042 * (variance / 31.0).sqrt();
    let found = batched.mean_half_width(0.95).expect("31 batches");
    assert!((found / expected - 1.0).abs() < 3e-4, "{found} {expected}");
    // Percentiles by sorting: for 90 %, three batches of 32 are joined, because fewer have less than ten values above
    // it.
    assert_eq!(batched.percentile_half_width(0.9, 0.95), None);
    let rank = |of: &[u64], p: f64| {
        let mut sorted = of.to_vec();
        sorted.sort_unstable();
        sorted[(p * of.len() as f64).ceil() as usize - 1] as f64
    };
    let (whole, own) = (rank(&values, 0.5), values.chunks_exact(32).map(|c| rank(c, 0.5)));
    let expected = 2.042 * (own.map(|m| (m - whole) * (m - whole)).sum::<f64>() / 30.0 / 31.0).sqrt();
    let found = batched.percentile_half_width(0.5, 0.95).expect("31 batches");
    // A percentile of a histogram is off by less than 0.8 % of a value up to 10,007.
    assert!((found / expected - 1.0).abs() < 0.05, "{found} {expected}");
}

#[test]
fn intervals_appear_with_the_least_number_of_values() {
    let shown = |n: u64| {
        let mut batched = Batched::new();
        (0..n).for_each(|value| batched.record(value));
        let found = HalfWidths::from_ps(&batched);
        [found.mean, found.p50, found.p90, found.p95, found.p99, found.p99_9].map(|width| width.is_some())
    };
    // Ten batches of 16 for the mean.
    assert_eq!(shown(159), [false; 6]);
    assert_eq!(shown(160), [true, false, false, false, false, false]);
    for (n, p) in [(2, 0.5), (3, 0.9), (4, 0.95), (5, 0.99), (6, 0.999)] {
        let least = Batched::least_for(p);
        let expected = |n| std::array::from_fn(|i| i < n);
        assert_eq!((shown(least - 1), shown(least)), (expected(n - 1), expected(n)), "{p}");
        // Ten batches with a percentile each, and at most the cost of joining.
        let ideal = 10 * Histogram::least_for(p);
        assert!(least >= ideal && least < 2 * ideal, "{least} for {p}");
    }
    assert_eq!(Histogram::least_for(0.99), 1000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Joined batches equal batches of that size made at once, and nothing is lost.
    #[test]
    fn joined_batches_are_batches(values in prop::collection::vec(0u64..1 << 40, 1..3000)) {
        let (mut batched, mut whole) = (Batched::new(), Histogram::new());
        for value in &values {
            batched.record(*value);
            whole.record(*value);
        }
        prop_assert_eq!(batched.count(), values.len() as u64);
        prop_assert_eq!(Summary::from_ps(&batched.whole()), Summary::from_ps(&whole));
        let mut size = 16;
        while values.len() / size >= 32 {
            size *= 2;
        }
        let remade: Vec<Histogram> = values.chunks_exact(size).map(|chunk| {
            let mut batch = Histogram::new();
            chunk.iter().for_each(|value| batch.record(*value));
            batch
        }).collect();
        prop_assert_eq!(batched.batches().len(), remade.len());
        for (ours, theirs) in batched.batches().iter().zip(&remade) {
            prop_assert!(ours.buckets().eq(theirs.buckets()));
            prop_assert_eq!((ours.sum(), ours.min(), ours.max()), (theirs.sum(), theirs.min(), theirs.max()));
        }
        batched.clear();
        prop_assert_eq!(batched, Batched::new());
    }
}

// Detected end of a transient, on sequences with a known transient.

/// Rule by its definition, over the whole list.
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

/// Returns the number of values, at least `from`, after which a sequence is detected as steady.
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

/// Returns minimum, median and maximum over 100 seeds.
fn spread(mut of: impl FnMut(u64) -> Option<u32>) -> [u32; 3] {
    let mut all: Vec<u32> = (0..100).map(|seed| of(seed).expect("steady")).collect();
    all.sort_unstable();
    [all[0], all[50], all[99]]
}

#[test]
fn independent_values_are_steady_early() {
    // The minimum is 32 batches of five, and a fourth more.
    let [least, median, most] = spread(|seed| steady_from(1, 10_000, |_, draw| draw.exponential(), seed));
    assert!(least == 200 && median <= 250 && most < 1000, "{least} {median} {most}");
}

#[test]
fn a_transient_is_cut_behind_its_end_and_not_much_later() {
    // A step is over once it lies in the first half; the rule must then have held for a fifth.
    let step = |n, draw: &mut Draw| draw.exponential() + if n < 2000 { 10.0 } else { 0.0 };
    let [least, median, most] = spread(|seed| steady_from(2500, 100_000, step, seed));
    assert!(least >= 4000 && median < 5500 && most < 10_000, "{least} {median} {most}");
    // A decay from three times the mean: after four time constants it is below 4 % of the mean, after ten nothing is
    // left.
    let decay = |n, draw: &mut Draw| draw.exponential() * (1.0 + 2.0 * libm::exp(-f64::from(n) / 500.0));
    let [least, median, most] = spread(|seed| steady_from(2000, 100_000, decay, seed));
    assert!(least >= 2000 && median < 3500 && most < 6000, "{least} {median} {most}");
}

#[test]
fn what_grows_for_ever_is_never_steady() {
    for seed in 0..50 {
        // Waiting in a queue with a load of 120 %: each job waits about a fifth of a service longer than the previous
        // one.
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

// Coverage of batch-means intervals on sequences whose mean is known.

/// Standard normal numbers: SplitMix64 (G. Steele et al., OOPSLA 2014) and Box-Muller.
struct Normal(u64);

impl Normal {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
    fn next(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }
}

/// Returns the share of `runs` AR(1) sequences x' = mean + phi (x - mean) + noise whose interval holds the mean.
fn coverage_of_means(phi: f64, length: u32, confidence: f64, runs: u32) -> f64 {
    const MEAN: f64 = 100.0;
    let mut noise = Normal(7);
    let mut held = 0;
    for _ in 0..runs {
        let mut b = BatchMeans::new();
        // Started in the stationary distribution.
        let mut x = noise.next() / (1.0 - phi * phi).sqrt();
        for _ in 0..length {
            b.push(MEAN + x);
            x = phi * x + noise.next();
        }
        let i = b.interval(confidence).unwrap();
        held += u32::from((i.mean - MEAN).abs() <= i.half_width);
    }
    f64::from(held) / f64::from(runs)
}

#[test]
fn covers_independent_observations() {
    for confidence in [0.95, 0.99] {
        let c = coverage_of_means(0.0, 1000, confidence, 2000);
        assert!((c - confidence).abs() < slack(confidence, 2000), "{c} for {confidence}");
    }
}

#[test]
fn covers_correlated_observations_once_batches_are_long() {
    for confidence in [0.95, 0.99] {
        let c = coverage_of_means(0.8, 10_000, confidence, 1000);
        assert!((c - confidence).abs() < slack(confidence, 1000), "{c} for {confidence}");
    }
}

#[test]
fn short_batches_of_correlated_observations_cover_too_little() {
    assert!(coverage_of_means(0.95, 100, 0.95, 500) < 0.85);
}

#[test]
fn batches_stay_bounded_and_match_the_plain_formula() {
    let mut b = BatchMeans::new();
    assert!(b.interval(0.95).is_none());
    let xs: Vec<f64> = (0..100).map(|i| f64::from(i * 37 % 101)).collect();
    xs.iter().for_each(|x| b.push(*x));
    let i = b.interval(0.95).unwrap();
    // 100 observations: 25 batches of 4.
    assert_eq!((i.batches, i.batch_size), (25, 4));
    let means: Vec<f64> = xs.chunks(4).map(|c| c.iter().sum::<f64>() / 4.0).collect();
    let mean = means.iter().sum::<f64>() / 25.0;
    let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / 24.0;
    // t(0.975, 24) = 2.064 (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
    let expected = 2.064 * (variance / 25.0).sqrt();
    assert!((i.mean - mean).abs() < 1e-12);
    assert!((i.half_width - expected).abs() < 3e-4 * expected, "{} for {expected}", i.half_width);
}
