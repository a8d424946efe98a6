//! Histograms and time-weighted meters against naive references, and the shapes that the result document promises.

use engine::Time;
use proptest::prelude::*;
use stats::{Breakdown, Busy, Histogram, Little, Milestones, Series, Summary};

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

/// Samples spread evenly over a bucket match the assumption of a percentile: each is found again by its rank. Neither
/// end of the bucket would do.
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
        // Further values below and above, so that the bucket's ends are not the minimum and maximum sample.
        (0..samples).for_each(|_| even.record(low / 4));
        (1..=samples).for_each(|k| even.record(sample(k)));
        (0..samples).for_each(|_| even.record(low * 4));
        for k in 1..=samples {
            let share = (samples + k) as f64 / (3 * samples) as f64;
            let rank = (share * 1e9).round() / 1e9 * (3 * samples) as f64;
            // A share counts to nine decimals: if it is rounded up, the next rank is meant.
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

// The shapes that the result document promises.

#[test]
fn latency_has_the_promised_keys_and_null_for_the_unsupported() {
    let mut h = Histogram::new();
    (0..100).for_each(|_| h.record(2_500));
    let text = serde_json::to_string(&Summary::from_ps(&h)).unwrap();
    assert_eq!(
        text,
        r#"{"mean":2.5,"stddev":0.0,"min":2.5,"max":2.5,"p50":2.5,"p90":2.5,"p95":null,"p99":null,"p99_9":null,"p99_99":null,"p99_999":null}"#
    );
}

#[test]
fn breakdown_is_a_map_of_means_in_order() {
    let mut b = Breakdown::new(["queue", "die"]);
    let mut task = Milestones::new(Time::ZERO);
    task.reach(1, Time::from_ns(3));
    task.reach(0, Time::from_ns(4));
    b.record(&task, Time::from_ns(4));
    assert_eq!(serde_json::to_string(&b).unwrap(), r#"{"queue":1.0,"die":3.0}"#);
}

#[test]
fn series_is_a_sequence_of_windows() {
    let mut s = Series::new(Time::ZERO, Time::from_ns(10), 8);
    s.record(Time::from_ns(12), 4096, Time::from_ns(2));
    assert_eq!(
        serde_json::to_string(&s).unwrap(),
        concat!(
            r#"[{"start_ns":0.0,"width_ns":10.0,"requests":0,"bytes":0,"latency_ns_mean":null,"p50_ns":null,"p99_ns":null,"queue_depth":0.0},"#,
            // The window ends with the last completion, which was in flight for all of it.
            r#"{"start_ns":10.0,"width_ns":2.0,"requests":1,"bytes":4096,"latency_ns_mean":2.0,"p50_ns":2.0,"p99_ns":null,"queue_depth":1.0}]"#
        )
    );
}

// Time-weighted meters against naive references.

fn ps(t: u64) -> Time {
    Time::from_ps(t)
}

/// Picosecond by picosecond: how many of `from..until` lie in some interval.
fn naive_busy(intervals: &[(u64, u64)], from: u64, until: u64) -> u64 {
    (from..until).filter(|t| intervals.iter().any(|(a, b)| a <= t && t < b)).count() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whole intervals and begin/end pairs, overlapping at will, with a reset in between.
    #[test]
    fn busy_is_the_union(
        raw in prop::collection::vec((0u64..300, 0u64..40, any::<bool>()), 0..25),
        reset in 0u64..300,
        until in 0u64..400,
    ) {
        enum Call { Reset, Add(u64), Begin, End }
        let mut calls = vec![(reset, Call::Reset)];
        for &(a, d, whole) in &raw {
            if whole {
                calls.push((a, Call::Add(a + d)));
            } else {
                calls.push((a, Call::Begin));
                calls.push((a + d, Call::End));
            }
        }
        calls.sort_by_key(|(t, _)| *t);
        let intervals: Vec<_> = raw.iter().map(|(a, d, _)| (*a, a + d)).collect();
        let mut busy = Busy::new(Time::ZERO);
        let mut from = 0;
        for (t, call) in calls.into_iter().take_while(|(t, _)| *t <= until) {
            match call {
                Call::Reset => { busy.reset(ps(t)); from = t; }
                Call::Add(to) => busy.add(ps(t), ps(to)),
                Call::Begin => busy.begin(ps(t)),
                Call::End => busy.end(ps(t)),
            }
        }
        let expected = naive_busy(&intervals, from, until);
        prop_assert_eq!(busy.total(ps(until)), ps(expected));
        let share = if until == from { 0.0 } else { expected as f64 / (until - from) as f64 };
        prop_assert_eq!(busy.share(ps(until)), share);
        prop_assert_eq!(busy.is_busy(ps(until)), intervals.iter().any(|(a, b)| *a <= until && until < *b));
    }

    /// Random arrivals and departures: the identity holds at any instant, in any window, and names a wrong
    /// stamp.
    #[test]
    fn little_holds_on_every_sample_path(
        customers in prop::collection::vec((0u64..1000, 0u64..200), 1..60),
        reset in 0u64..1000,
        until in 1u64..1300,
        liar in any::<prop::sample::Index>(),
    ) {
        let reset = reset.min(until);
        let mut calls: Vec<(u64, u8, usize)> = vec![(reset, 1, 0)];
        for (i, (a, d)) in customers.iter().enumerate() {
            calls.push((*a, 0, i));
            calls.push((a + d, 2, i));
        }
        calls.sort_unstable();
        let lie = liar.index(customers.len());
        let (mut honest, mut lying) = (Little::new(Time::ZERO), Little::new(Time::ZERO));
        let mut inside = Vec::new();
        let mut lied = false;
        for &(t, kind, i) in calls.iter().take_while(|c| c.0 <= until) {
            let arrived = customers[i].0;
            match kind {
                0 => { honest.arrive(ps(t)); lying.arrive(ps(t)); inside.push(i); }
                1 => { honest.reset(ps(t)); lying.reset(ps(t)); lied = false; }
                _ => {
                    honest.depart(ps(t), ps(arrived));
                    // One picosecond late, detected only if the stamp is within the window and the stay.
                    let stamp = if i == lie { arrived + 1 } else { arrived };
                    lied |= i == lie && stamp > reset && stamp <= t && t > reset;
                    lying.depart(ps(t), ps(stamp));
                    inside.retain(|j| *j != i);
                }
            }
        }
        let stamps = |i: &Vec<usize>| i.iter().map(|i| ps(customers[*i].0)).collect::<Vec<_>>();
        prop_assert_eq!(honest.check(ps(until), stamps(&inside)), Ok(()));
        prop_assert_eq!(lying.check(ps(until), stamps(&inside)).is_err(), lied);
        prop_assert_eq!(honest.inside(), inside.len() as u64);
        if let Some(extra) = inside.first().copied() {
            inside.push(extra);
            prop_assert!(honest.check(ps(until), stamps(&inside)).is_err(), "a duplicate is found");
            inside.clear();
            prop_assert!(honest.check(ps(until), stamps(&inside)).is_err(), "a loss is found");
        }
    }
}

#[test]
fn drained_queue_has_l_equal_lambda_w() {
    let mut l = Little::new(Time::ZERO);
    for (a, d) in [(0, 30), (40, 55), (60, 75)] {
        l.arrive(ps(a));
        l.depart(ps(d), ps(a));
    }
    let end = ps(100);
    assert_eq!(l.check(end, []), Ok(()));
    assert_eq!((l.arrivals(), l.departures(), l.inside_max()), (3, 3, 1));
    assert_eq!(l.mean_sojourn_ps(), Some(20.0));
    assert_eq!(l.mean_inside(end), 0.6);
    let lambda_w = l.departure_rate(end) * l.mean_sojourn_ps().unwrap() / 1e12;
    assert!((lambda_w - 0.6).abs() < 1e-12);
}

#[test]
#[should_panic(expected = "end without begin")]
fn busy_pairs_match() {
    Busy::new(Time::ZERO).end(ps(1));
}
