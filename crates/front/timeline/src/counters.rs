//! The series of a result as curves of its timeline.

use super::event::Counter;
use super::{REQUESTS, Tracks, process};
use engine::Time;
use machine::result::{Document, metrics};
use serde_json::Value;
use std::collections::BTreeMap;

/// Every figure of every series: those of requests beside them, those of a drive beside its channels. Of a span of time what lies in it.
pub(super) fn of(document: &Document, drives: u32, span: Option<(Time, Time)>) -> Vec<Counter> {
    let metrics = metrics::all();
    let unit = |key: &str, name: &str| {
        let key = format!("{key}.*.{name}");
        metrics.iter().find(|metric| metric.key == key).map_or("", |metric| metric.unit)
    };
    let mut counters = of_series(&serde_json::json!(document.io.series), REQUESTS, span);
    for counter in &mut counters {
        counter.unit = unit("io.series", &counter.name);
    }
    for (number, flash) in (0..drives).zip(&document.flash) {
        let series = serde_json::json!(flash.series);
        for mut counter in of_series(&series, process(number, Tracks::Channels), span) {
            counter.unit = unit("flash.*.series", &counter.name);
            counters.push(counter);
        }
    }
    counters
}

fn of_series(series: &Value, process: u32, span: Option<(Time, Time)>) -> Vec<Counter> {
    let mut curves = BTreeMap::<&str, Vec<(f64, f64)>>::new();
    let is_shown = |at_ns: f64, width_ns: f64| {
        span.is_none_or(|(from, to)| at_ns < to.as_ns_f64() && at_ns + width_ns > from.as_ns_f64())
    };
    for window in series.as_array().into_iter().flatten().filter_map(Value::as_object) {
        let ns = |name: &str| window.get(name).and_then(Value::as_f64).unwrap_or_default();
        let at_ns = ns("start_ns");
        if !is_shown(at_ns, ns("width_ns")) {
            continue;
        }
        for (name, value) in window.iter().filter(|(name, _)| !["start_ns", "width_ns"].contains(&&***name)) {
            if let Some(value) = value.as_f64() {
                curves.entry(name).or_default().push((at_ns, value));
            }
        }
    }
    let counter = |(name, points): (&str, _)| Counter { process, name: name.to_owned(), unit: "", points };
    curves.into_iter().map(counter).collect()
}
