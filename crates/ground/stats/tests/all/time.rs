//! Time-weighted meters against naive references.

use engine::Time;
use proptest::prelude::*;
use stats::{Busy, Little};

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
                    // One picosecond late, and seen only if the stamp lies within the window and the stay.
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
