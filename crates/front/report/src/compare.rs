//! Two results compared: keys of the spec that differ, headline metrics that moved most, and every other metric that differs.

use crate::number::{Unit, shown};
use crate::read::{Run, text};
use crate::run::headlines;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Tables without metrics of the machine: the spec, the cost of the run, its name and checks.
const APART: [&str; 10] =
    ["spec", "spec_sha256", "run", "schema", "checks", "workload", "warnings", "version", "seed", "system"];
/// Lists that are drawn, not compared: windows of time, histogram buckets, single requests, the dies of a tail.
const DRAWN: [&str; 7] =
    ["series", "power_series", "histogram_ns", "histogram", "kernels", "slowest", "dies"];
/// Longest list of numbers compared one by one; longer lists are compared by their mean.
const MANY: usize = 4;
/// Headline metrics of a comparison.
const MOVED: usize = 5;
/// Least relative change of a headline metric worth a line: *chosen*.
const LEAST: f64 = 0.0005;

/// The differences of two results.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Headline metrics that moved most, largest factor first; at most five.
    pub moved: Vec<Moved>,
    /// Inputs that differ: system, workload, seed and version, then leaves of the resolved spec, by key.
    pub spec: Vec<Difference>,
    /// Metrics that differ, by key.
    pub metrics: Vec<Difference>,
    /// True if either result was measured on a real drive and so has no spec.
    #[serde(skip)]
    pub measured: bool,
}

/// A leaf that differs; null where a document lacks it.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// Key of the spec or of the document.
    pub key: String,
    /// Value in the first document.
    pub a: Value,
    /// Value in the second document.
    pub b: Value,
    /// (b - a) / |a|, for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
}

/// A headline metric in both results.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// Name in words, such as `read latency, p99`.
    pub name: String,
    /// Value in the first document, with unit.
    pub a: String,
    /// Value in the second document, with unit.
    pub b: String,
    /// (b - a) / |a|; none from zero.
    pub relative: Option<f64>,
}

impl Difference {
    /// Returns both values as people read them: with a scaled unit for metrics.
    pub fn shown(&self) -> [String; 2] {
        let unit = Unit::of_key(&self.key);
        [&self.a, &self.b].map(|value| match value {
            Value::Null => "-".to_owned(),
            Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |n| shown(n, unit)),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// The difference as a phrase: `flash.ftl.gc.victim greedy -> fifo`.
    pub fn in_words(&self) -> String {
        let [a, b] = self.shown();
        format!("{} {a} -> {b}", self.key)
    }
}

/// Compares two results.
pub fn compare(a: &Run, b: &Run) -> Comparison {
    let (a, b) = (&a.document, &b.document);
    let is_measured = |document: &Value| document.get("measured").is_some();
    let measured = is_measured(a) || is_measured(b);
    let (mut left, mut right) = (metrics(a, b), metrics(b, a));
    let spec = if measured {
        // A measured drive reports requests only.
        keep_common(&mut left, &right);
        keep_common(&mut right, &left);
        Vec::new()
    } else {
        let mut all = differences(&asked(a), &asked(b));
        all.extend(differences(&leaves_of(a, "spec"), &leaves_of(b, "spec")));
        all
    };
    Comparison { moved: moved(a, b), spec, metrics: differences(&left, &right), measured }
}

type Leaves = BTreeMap<String, Value>;

/// Inputs of a run besides its spec.
const ASKED: [&str; 4] = ["system", "workload", "seed", "version"];

/// The inputs of a run besides its spec, by key.
fn asked(document: &Value) -> Leaves {
    let mut found = Leaves::new();
    for name in ASKED {
        if let Some(value) = document.get(name) {
            collect(name, value, None, &mut found);
        }
    }
    found
}

fn leaves_of(document: &Value, table: &str) -> Leaves {
    let mut found = Leaves::new();
    if let Some(table) = document.get(table) {
        collect("", table, None, &mut found);
    }
    found
}

/// The leaves of a document that are metrics.
fn metrics(document: &Value, other: &Value) -> Leaves {
    let mut found = Leaves::new();
    for (name, value) in document.as_object().into_iter().flatten() {
        if !APART.contains(&name.as_str()) {
            collect(name, value, other.get(name), &mut found);
        }
    }
    found
}

/// Leaves below `value`. A component in a list is called by its index, or by its name where `other` has a different one there.
fn collect(key: &str, value: &Value, other: Option<&Value>, found: &mut Leaves) {
    let join = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match value {
        Value::Object(table) => {
            for (name, inner) in table.iter().filter(|(name, _)| !DRAWN.contains(&name.as_str())) {
                collect(&join(name), inner, other.and_then(|other| other.get(name)), found);
            }
        }
        // One number for each die would bury the others.
        Value::Array(all) if all.len() > MANY && all.iter().all(Value::is_number) => {
            let sum: f64 = all.iter().filter_map(Value::as_f64).sum();
            found.insert(join("mean"), (sum / all.len() as f64).into());
        }
        Value::Array(all) => {
            for (at, inner) in all.iter().enumerate() {
                let opposite = other.and_then(|other| other.get(at));
                let name = text(inner, "name");
                let differs = opposite.is_some_and(|opposite| text(opposite, "name") != name);
                let called = if differs && !name.is_empty() { name.to_owned() } else { at.to_string() };
                collect(&join(&called), inner, opposite, found);
            }
        }
        leaf => {
            found.insert(key.to_owned(), leaf.clone());
        }
    }
}

/// Keeps the numbers of requests that the other document has as well.
fn keep_common(metrics: &mut Leaves, others: &Leaves) {
    let is_known = |value: Option<&Value>| value.is_some_and(Value::is_number);
    metrics.retain(|key, value| key.starts_with("io.") && value.is_number() && is_known(others.get(key)));
}

fn differences(a: &Leaves, b: &Leaves) -> Vec<Difference> {
    let mut keys: Vec<&String> = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).collect();
    keys.sort_unstable();
    let differs = |key: &&&String| a.get(**key) != b.get(**key);
    keys.iter()
        .filter(differs)
        .map(|key| {
            let of = |leaves: &Leaves| leaves.get(*key).cloned().unwrap_or(Value::Null);
            let (a, b) = (of(a), of(b));
            let relative =
                a.as_f64().zip(b.as_f64()).filter(|(a, _)| *a != 0.0).map(|(a, b)| (b - a) / a.abs());
            Difference { key: (*key).clone(), a, b, relative }
        })
        .collect()
}

/// The headline metrics of both that moved most.
fn moved(a: &Value, b: &Value) -> Vec<Moved> {
    let of_b = headlines(b);
    let mut found: Vec<(f64, Moved)> = Vec::new();
    for one in headlines(a) {
        let Some(other) = of_b.iter().find(|other| other.name == one.name) else { continue };
        let relative = (one.value != 0.0).then(|| (other.value - one.value) / one.value.abs());
        let factor = match (one.value, other.value) {
            (a, b) if a > 0.0 && b > 0.0 => libm::log(b / a).abs(),
            (a, b) if a == b => 0.0,
            _ => f64::INFINITY,
        };
        if factor < LEAST {
            continue;
        }
        let [a, b] = [one.value, other.value].map(|value| shown(value, one.unit));
        found.push((factor, Moved { name: one.name, a, b, relative }));
    }
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    found.into_iter().take(MOVED).map(|(_, moved)| moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(document: Value) -> Run {
        Run { name: "a".to_owned(), document }
    }

    fn compared(a: Value, b: Value) -> Comparison {
        compare(&run(a), &run(b))
    }

    #[test]
    fn a_different_workload_or_seed_is_named() {
        let of =
            |job: &str, seed: u32| json!({ "system": "d16", "workload": [job], "seed": seed, "spec": {} });
        let keys: Vec<String> =
            compared(of("a", 1), of("b", 2)).spec.into_iter().map(|one| one.key).collect();
        assert_eq!(keys, ["seed", "workload.0"]);
    }

    #[test]
    fn dies_are_labels_and_never_quantities() {
        let of =
            |die: u32| json!({ "io": { "read": { "tail": [{ "dies": [{ "die": die, "share": 0.5 }] }] } } });
        assert!(compared(of(1), of(19)).metrics.is_empty());
    }

    #[test]
    fn the_headline_has_what_moved_most_first() {
        let of = |mean: f64, p99: f64, iops: f64| {
            let latency = json!({ "mean": mean, "p99": p99 });
            json!({ "io": { "all": { "requests": 9, "iops": iops }, "read": { "latency_ns": latency } } })
        };
        let moved = compared(of(1e3, 4e3, 100.0), of(1.5e3, 1e3, 100.0)).moved;
        let rows: Vec<(&str, &str, &str)> =
            moved.iter().map(|m| (m.name.as_str(), m.a.as_str(), m.b.as_str())).collect();
        let expected = [("read latency, p99", "4 µs", "1 µs"), ("read latency, mean", "1 µs", "1.5 µs")];
        assert_eq!(rows, expected);
        assert_eq!(moved[0].relative, Some(-0.75));
    }

    #[test]
    fn parts_go_by_their_names_where_the_lists_differ() {
        let of = |name: &str, erases: u32| json!({ "flash": [{ "name": name, "erases": erases }] });
        let same = compared(of("flash", 1), of("flash", 2)).metrics;
        assert_eq!(same[0].key, "flash.0.erases");
        let keys: Vec<String> =
            compared(of("x", 1), of("y", 1)).metrics.into_iter().map(|metric| metric.key).collect();
        assert_eq!(keys, ["flash.x.erases", "flash.x.name", "flash.y.erases", "flash.y.name"]);
    }
}
