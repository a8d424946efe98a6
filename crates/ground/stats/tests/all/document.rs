//! The shapes that the result document promises.

use engine::Time;
use stats::{Breakdown, Histogram, Milestones, Series, Summary};

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
            // It ends with the last completion, which was under way for all of it.
            r#"{"start_ns":10.0,"width_ns":2.0,"requests":1,"bytes":4096,"latency_ns_mean":2.0,"p50_ns":2.0,"p99_ns":null,"queue_depth":1.0}]"#
        )
    );
}
