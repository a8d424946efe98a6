//! Percentiles and depths by `calculate_percentile`, `add_latency_sample`, `kyber_timer_fn`.

use super::domain::Latencies;
use super::histogram::{Histogram, resized};
use engine::Time;

const TARGET: Time = Time::from_ms(2);

fn us(us: u64) -> Time {
    Time::from_us(us)
}

/// A bucket is a quarter of the target and has its upper end: 500 us are in the first, 501 in the second, all from 3.5 ms in the last.
#[test]
fn latencies_fall_into_quarters_of_the_target() {
    for (latency, bucket) in
        [(0, 0), (500, 0), (501, 1), (2000, 3), (2001, 4), (3500, 6), (3501, 7), (90_000, 7)]
    {
        let mut histogram = Histogram::default();
        histogram.add(TARGET, us(latency));
        let now = Time::from_s(1);
        // One sample is enough as soon as the wait for more is over.
        assert_eq!(histogram.take_percentile(99, &mut Some(now), now), Some(bucket), "{latency} us");
    }
}

/// 600 samples: 540 up to 500 us, 54 up to 1 ms, 6 of 10 ms. The 540th is the 90th percentile, in bucket 0; the 594th the 99th, in bucket 1.
/// With one fewer in the first bucket and one more in the last, they are in buckets 1 and 7.
#[test]
fn a_percentile_is_the_bucket_of_its_sample() {
    for (slow, p90, p99) in [(6, 0, 1), (7, 1, 7)] {
        let fill = || {
            let mut histogram = Histogram::default();
            (0..546 - slow).for_each(|_| histogram.add(TARGET, us(400)));
            (0..54).for_each(|_| histogram.add(TARGET, us(900)));
            (0..slow).for_each(|_| histogram.add(TARGET, us(10_000)));
            histogram
        };
        let now = Time::from_s(9);
        assert_eq!(fill().take_percentile(90, &mut None, now), Some(p90));
        let mut histogram = fill();
        assert_eq!(histogram.take_percentile(99, &mut None, now), Some(p99));
        assert_eq!(histogram, Histogram::default());
    }
}

/// Fewer than 500 samples are kept until a second after they were first looked at.
#[test]
fn few_samples_wait_for_a_second() {
    let mut histogram = Histogram::default();
    (0..499).for_each(|_| histogram.add(TARGET, us(900)));
    let (mut until, seen) = (None, Time::from_s(5));
    assert_eq!(histogram.take_percentile(90, &mut until, seen), None);
    assert_eq!(until, Some(Time::from_s(6)));
    assert_eq!(histogram.take_percentile(90, &mut until, Time::from_ms(5_999)), None);
    assert_eq!(histogram.take_percentile(90, &mut until, Time::from_s(6)), Some(1));
    assert_eq!((histogram.take_percentile(90, &mut until, Time::from_s(7)), until), (None, None));
    (0..500).for_each(|_| histogram.add(TARGET, us(900)));
    assert_eq!(histogram.take_percentile(90, &mut until, Time::from_s(7)), Some(1));
}

/// A percentile of three quarters of the target makes three quarters of the depth, one of twice the target twice as many, within bounds.
#[test]
fn depths_follow_the_percentile() {
    assert_eq!((resized(256, 2, 256), resized(100, 7, 256), resized(200, 7, 256)), (192, 200, 256));
    assert_eq!((resized(128, 0, 128), resized(3, 0, 128), resized(1, 4, 128)), (32, 1, 1));
}

/// The last percentile is remembered until there is congestion, and acted upon once (`domain_p99`).
#[test]
fn a_domain_remembers_its_percentile_until_congestion() {
    let mut domain = Latencies::default();
    (0..500).for_each(|_| domain.add(TARGET, us(1_500), us(1_500)));
    let mut now = Time::from_s(1);
    assert_eq!((domain.slow_device(now), domain.judge(false, now)), (Some(2), Some(2)));
    now += Time::from_s(1);
    assert_eq!((domain.slow_device(now), domain.judge(false, now)), (None, None));
    assert_eq!((domain.judge(true, now), domain.judge(true, now)), (Some(2), None));
}

/// A few samples that have waited for their second are used up by the drive's percentile, whose look ends the wait that both share: the whole
/// latency waits for another second.
#[test]
fn the_wait_for_samples_is_shared() {
    let mut domain = Latencies::default();
    (0..10).for_each(|_| domain.add(TARGET, us(1_500), us(1_500)));
    let seen = Time::from_s(1);
    assert_eq!((domain.slow_device(seen), domain.judge(false, seen)), (None, None));
    let end = Time::from_s(2);
    assert_eq!((domain.slow_device(end), domain.judge(false, end)), (Some(2), None));
    let later = Time::from_s(3);
    assert_eq!((domain.slow_device(later), domain.judge(false, later)), (None, Some(2)));
}
