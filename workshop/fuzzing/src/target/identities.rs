//! Identities between the metrics of any document.

use serde_json::Value;

/// Relative error of sums of rounded values.
const EPSILON: f64 = 1e-6;

/// Checks every identity of a document.
///
/// # Panics
/// An identity does not hold; the message has both sides.
pub(super) fn hold(document: &Value) {
    let io = &document["io"];
    kinds(io, "io");
    rows(&io["flows"]).iter().for_each(|flow| kinds(flow, "a flow"));
    let of_flows: f64 = rows(&io["flows"]).iter().map(|flow| number(&flow["all"]["requests"])).sum();
    equal("requests of all flows", of_flows, number(&io["all"]["requests"]));
    series(io);
    slowest(io);
    breakdown(document);
    rows(&document["flash"]).iter().for_each(|drive| follow("flash.series", &drive["series"]));
    rows(&document["host"]).iter().for_each(|host| {
        rows(&host["programs"]).iter().for_each(|program| follow("host.programs.series", &program["series"]));
    });
    follow("energy.total.power_series", &document["energy"]["total"]["power_series"]);
    summaries(document, "");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn total(rows: &[Value], name: &str) -> f64 {
    rows.iter().map(|row| number(&row[name])).sum()
}

fn parts(map: &Value) -> f64 {
    map.as_object().into_iter().flatten().map(|(_, part)| number(part)).sum()
}

fn equal(what: &str, left: f64, right: f64) {
    assert!((left - right).abs() <= EPSILON * left.abs().max(right.abs()), "{what}: {left} and {right}");
}

/// Checks that kinds sum to all, a histogram to its kind, and the parts of a tail to its mean.
fn kinds(of: &Value, name: &str) {
    let apart: Vec<&Value> = ["read", "write", "trim", "flush"].map(|kind| &of[kind]).into();
    for figure in ["requests", "bytes"] {
        let sum: f64 = apart.iter().map(|kind| number(&kind[figure])).sum();
        equal(&format!("{figure} of {name} by kind"), sum, number(&of["all"][figure]));
    }
    for kind in apart.into_iter().chain([&of["all"]]) {
        if let Some(histogram) = kind.get("histogram_ns") {
            let counted: f64 = rows(&histogram["requests"]).iter().map(number).sum();
            equal("requests of a histogram", counted, number(&kind["requests"]));
            let [from, to] =
                ["from", "to"].map(|end| rows(&histogram[end]).iter().map(number).collect::<Vec<_>>());
            assert!(from.iter().zip(&to).all(|(from, to)| from <= to), "a bucket ends before it begins");
            assert!(to.iter().zip(from.iter().skip(1)).all(|(to, next)| to < next), "buckets are not apart");
        }
        for tail in rows(&kind["tail"]) {
            equal("parts of a tail", parts(&tail["breakdown_ns"]), number(&tail["latency_ns_mean"]));
        }
    }
}

/// Checks that the series has every request, and ends with the last of them.
fn series(io: &Value) {
    let windows = rows(&io["series"]);
    for figure in ["requests", "bytes"] {
        equal(&format!("{figure} of io.series"), total(windows, figure), number(&io["all"][figure]));
    }
    follow("io.series", &io["series"]);
    let ends = rows(&io["flows"]).iter().filter(|flow| number(&flow["all"]["requests"]) > 0.0);
    let last = ends.map(|flow| number(&flow["active"]["until_ns"])).fold(0.0, f64::max);
    if let [first, .., window] = windows {
        equal("the end of io.series", number(&window["start_ns"]) + number(&window["width_ns"]), last);
        assert!(
            number(&window["width_ns"]) <= number(&first["width_ns"]),
            "io.series ends with a wide window"
        );
    }
}

/// Checks that spans follow one another, and have a positive length.
fn follow(name: &str, series: &Value) {
    for pair in rows(series).windows(2) {
        equal(
            name,
            number(&pair[0]["start_ns"]) + number(&pair[0]["width_ns"]),
            number(&pair[1]["start_ns"]),
        );
        assert!(number(&pair[1]["width_ns"]) > 0.0, "{name}: a span without time");
    }
}

/// Checks that the slowest requests are in order, begin with the slowest of all, and that the parts of each sum to its
/// latency.
fn slowest(io: &Value) {
    let slowest = rows(&io["slowest"]);
    let latencies: Vec<f64> = slowest.iter().map(|slow| number(&slow["latency_ns"])).collect();
    assert!(latencies.is_sorted_by(|a, b| a >= b), "the slowest requests are out of order: {latencies:?}");
    let is_of_host = |flow: &&Value| {
        let name = flow["name"].as_str().unwrap_or_default();
        name != "cpu" && !name.starts_with("gpu:")
    };
    let max = |flow: &Value| number(&flow["all"]["latency_ns"]["max"]);
    let most = rows(&io["flows"]).iter().filter(is_of_host).map(max).fold(0.0, f64::max);
    if let Some(first) = latencies.first() {
        equal("the slowest request", *first, most);
    }
    for slow in
        slowest.iter().filter(|slow| slow["breakdown_ns"].as_object().is_some_and(|parts| !parts.is_empty()))
    {
        equal("parts of a slow request", parts(&slow["breakdown_ns"]), number(&slow["latency_ns"]));
    }
}

/// Checks that the parts of reads and writes sum to their mean latency; for requests in fragments, to that of the
/// fragments.
fn breakdown(document: &Value) {
    let io = &document["io"];
    if io.get("fragments").is_some() {
        return;
    }
    for kind in ["read", "write"] {
        let (of, found) = (document["breakdown_ns"].get(kind), io.get(kind));
        if let (Some(of), Some(found)) = (of, found) {
            equal(&format!("breakdown_ns.{kind}"), parts(of), number(&found["latency_ns"]["mean"]));
        }
    }
}

/// Checks anywhere in a document that percentiles rise between minimum and maximum, and that the mean lies between
/// these.
fn summaries(value: &Value, path: &str) {
    match value {
        Value::Array(list) => list.iter().for_each(|inner| summaries(inner, path)),
        Value::Object(map) => {
            let order = ["min", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "p99_999", "max"];
            let is_summary = ["min", "mean", "p50", "max"].iter().all(|name| map.contains_key(*name));
            if is_summary {
                let found: Vec<f64> = order.iter().filter_map(|name| map.get(*name)?.as_f64()).collect();
                assert!(found.is_sorted(), "{path}: percentiles out of order: {found:?}");
                let mean = number(&map["mean"]);
                let ends = found.first().zip(found.last());
                let slack = EPSILON * mean.abs();
                let is_inside = ends.is_none_or(|(min, max)| min - slack <= mean && mean <= max + slack);
                assert!(is_inside, "{path}: a mean of {mean} outside {found:?}");
            }
            map.iter().for_each(|(name, inner)| summaries(inner, &format!("{path}/{name}")));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::hold;
    use serde_json::{Value, json};

    /// Two reads of 1 and 3 us that complete at 10 and 12 us.
    fn document() -> Value {
        let latency = json!({ "mean": 2000.0, "min": 1000.0, "max": 3000.0, "p50": 1000.0, "p90": null });
        let kind = json!({ "requests": 2, "bytes": 8192, "latency_ns": latency });
        let histogram = json!({ "from": [1000.0, 2990.0], "to": [1007.0, 3010.0], "requests": [1, 1] });
        let mut all = kind.clone();
        all["histogram_ns"] = histogram;
        let window = |start: u32, width: u32| json!({ "start_ns": f64::from(start), "width_ns": f64::from(width), "requests": 1, "bytes": 4096 });
        let slow = |latency: u32| json!({ "latency_ns": f64::from(latency), "breakdown_ns": { "host": f64::from(latency) } });
        json!({
            "io": {
                "all": all, "read": kind, "slowest": [slow(3000), slow(1000)], "series": [window(0, 11_000), window(11_000, 1000)],
                "flows": [{ "name": "j", "active": { "until_ns": 12_000.0 }, "all": kind, "read": kind }],
            },
            "breakdown_ns": { "read": { "array": 1500.0, "host": 500.0 } },
        })
    }

    #[test]
    fn a_document_that_agrees_passes_and_each_contradiction_is_found() {
        hold(&document());
        let changes = [
            ("/io/all/requests", json!(3)),
            ("/io/read/bytes", json!(4096)),
            ("/io/flows/0/all/requests", json!(1)),
            ("/io/series/1/requests", json!(0)),
            ("/io/series/1/width_ns", json!(11_000.0)),
            ("/io/series/1/start_ns", json!(12_000.0)),
            ("/io/slowest/0/latency_ns", json!(2000.0)),
            ("/io/slowest/1/breakdown_ns/host", json!(900.0)),
            ("/breakdown_ns/read/host", json!(400.0)),
            ("/io/all/histogram_ns/requests/0", json!(2)),
            ("/io/all/histogram_ns/to/0", json!(2999.0)),
            ("/io/read/latency_ns/p50", json!(4000.0)),
            ("/io/read/latency_ns/mean", json!(4000.0)),
        ];
        for (path, value) in changes {
            let mut changed = document();
            *changed.pointer_mut(path).expect(path) = value;
            assert!(std::panic::catch_unwind(|| hold(&changed)).is_err(), "{path}");
        }
    }
}
