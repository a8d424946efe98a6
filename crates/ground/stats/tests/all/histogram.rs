//! Histogram against sorted vectors and exact sums.

use proptest::prelude::*;
use stats::Histogram;

/// Values of every magnitude, many of them equal.
fn value() -> impl Strategy<Value = u64> {
    (0u32..64, any::<u64>(), 0u32..4).prop_map(|(shift, v, coarse)| {
        let v = v >> shift;
        if coarse == 0 { v & !0xff } else { v }
    })
}

fn filled(bits: u32, values: &[u64]) -> Histogram {
    let mut h = Histogram::with_bits(bits);
    values.iter().for_each(|&v| h.record(v));
    h
}

/// Two-pass reference around an exact rational mean, in 128-bit integers scaled by `n`.
fn naive_stddev(values: &[u64]) -> f64 {
    let n = values.len() as f64;
    let sum: u128 = values.iter().map(|&v| u128::from(v)).sum();
    let spread: f64 = values
        .iter()
        .map(|&v| {
            let scaled = i128::from(v) * values.len() as i128 - sum as i128;
            (scaled as f64 / n) * (scaled as f64 / n)
        })
        .sum();
    (spread / (n - 1.0)).sqrt()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn percentile_is_within_a_bucket_of_the_sorted_vector(
        bits in 0u32..12,
        mut values in prop::collection::vec(value(), 1..400),
        parts in 0u64..=1_000_000,
    ) {
        let h = filled(bits, &values);
        values.sort_unstable();
        let p = parts as f64 / 1e6;
        let rank = (values.len() as u64 * parts).div_ceil(1_000_000).max(1) as usize;
        let truth = values[rank - 1];
        let got = h.percentile_unchecked(p).unwrap();
        let bound = (u128::from(truth) >> bits) as u64;
        prop_assert!(got.abs_diff(truth) <= bound, "rank {rank}: {got} for {truth}");
        if truth < 2 << bits {
            prop_assert_eq!(got, truth);
        }
        let reported = values.len() as u64 * (1_000_000 - parts) >= 10_000_000;
        prop_assert_eq!(h.percentile(p), reported.then_some(got));
    }

    #[test]
    fn moments_are_exact(values in prop::collection::vec(value(), 2..200)) {
        let h = filled(7, &values);
        let sum: u128 = values.iter().map(|&v| u128::from(v)).sum();
        prop_assert_eq!(h.count(), values.len() as u64);
        prop_assert_eq!(h.sum(), sum);
        prop_assert_eq!(h.min(), values.iter().copied().min());
        prop_assert_eq!(h.max(), values.iter().copied().max());
        prop_assert_eq!(h.mean(), Some(sum as f64 / values.len() as f64));
        let (got, naive) = (h.stddev().unwrap(), naive_stddev(&values));
        prop_assert!((got - naive).abs() <= 1e-9 * naive, "{} for {}", got, naive);
    }

    #[test]
    fn merging_is_recording_both(
        a in prop::collection::vec(value(), 0..100),
        b in prop::collection::vec(value(), 0..100),
    ) {
        let mut merged = filled(7, &a);
        merged.merge(&filled(7, &b));
        prop_assert_eq!(merged, filled(7, &[a, b].concat()));
    }

    #[test]
    fn buckets_hold_every_value(values in prop::collection::vec(value(), 0..100)) {
        let h = filled(7, &values);
        let mut left = values.len() as u64;
        for b in h.buckets() {
            let inside = values.iter().filter(|v| (b.low..=b.high).contains(v)).count();
            prop_assert_eq!(b.count, inside as u64);
            prop_assert!(u128::from(b.high - b.low) * 128 <= u128::from(b.low));
            left -= b.count;
        }
        prop_assert_eq!(left, 0);
    }
}

#[test]
fn deviation_survives_a_large_mean() {
    // 10^18 ps and a spread of a few ps: f64 sums of squares would lose all of it.
    let h = filled(7, &[1_000_000_000_000_000_001, 1_000_000_000_000_000_003, 1_000_000_000_000_000_005]);
    assert_eq!(h.stddev(), Some(2.0));
    assert_eq!(filled(7, &[u64::MAX; 100]).stddev(), Some(0.0));
    assert_eq!(filled(7, &[42]).stddev(), Some(0.0));
}

#[test]
fn percentiles_out_of_range_or_of_nothing() {
    let h = filled(7, &[1; 100]);
    assert_eq!(h.percentile_unchecked(1.1), None);
    assert_eq!(h.percentile_unchecked(f64::NAN), None);
    assert_eq!(h.percentile(1.0), None);
    assert_eq!(h.percentile_unchecked(1.0), Some(1));
    assert_eq!(Histogram::new().percentile_unchecked(0.5), None);
}

#[test]
#[should_panic(expected = "different precision")]
fn merging_needs_equal_precision() {
    filled(7, &[1]).merge(&filled(8, &[1]));
}

/// Samples that lie evenly over a bucket are what a percentile takes them to be: each is found again, by its rank. Neither end of the
/// bucket would do.
#[test]
fn samples_that_lie_evenly_over_their_buckets_are_found_exactly() {
    for (bits, low, samples) in
        [(7, 1u64 << 20, 50u64), (7, 5 << 30, 1000), (3, 9 << 20, 32), (0, 1 << 12, 7)]
    {
        let mut one = Histogram::with_bits(bits);
        one.record(low);
        let bucket = one.buckets().next().expect("a bucket");
        assert_eq!(bucket.low, low);
        let span = bucket.high - bucket.low;
        let sample = |k: u64| low + span * (2 * k - 1) / (2 * samples);
        let mut even = Histogram::with_bits(bits);
        // Others below and above, so that the bucket's ends are not the least and the largest sample.
        (0..samples).for_each(|_| even.record(low / 4));
        (1..=samples).for_each(|k| even.record(sample(k)));
        (0..samples).for_each(|_| even.record(low * 4));
        for k in 1..=samples {
            let share = (samples + k) as f64 / (3 * samples) as f64;
            let rank = (share * 1e9).round() / 1e9 * (3 * samples) as f64;
            // A share counts to nine decimals: where it is rounded up, the next rank is meant.
            if rank <= (samples + k) as f64 {
                assert_eq!(
                    even.percentile_unchecked(share),
                    Some(sample(k)),
                    "{bits} bits, rank {k} of {samples}"
                );
            }
        }
    }
}

/// The bucket of the sample of a rank holds its percentile, strictly above its lower end where it has more than that one sample.
#[test]
fn a_percentile_lies_inside_the_bucket_of_its_sample() {
    let mut histogram = Histogram::new();
    let samples: Vec<u64> = (0..4000u64).map(|n| 1_000_000 + n * n * 37 % 30_000_000).collect();
    samples.iter().for_each(|sample| histogram.record(*sample));
    let mut sorted = samples;
    sorted.sort_unstable();
    let buckets: Vec<_> = histogram.buckets().collect();
    for percent in 1..100u64 {
        let found = histogram.percentile_unchecked(percent as f64 / 100.0).expect("samples");
        let exact = sorted[(percent * 40) as usize - 1];
        let bucket = buckets.iter().find(|b| b.low <= exact && exact <= b.high).expect("its bucket");
        assert!(bucket.low < found && found < bucket.high, "{percent} %: {found} for {exact} in {bucket:?}");
    }
}
