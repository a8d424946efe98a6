//! The figures that a reader looks for first.

use crate::html::Text;
use crate::number::{Unit, shown};
use crate::read::{items, number, text};
use serde_json::Value;
use std::fmt::Write as _;

/// A figure that says much.
pub(crate) struct Headline {
    /// What it is.
    pub(crate) name: String,
    /// What it counts.
    pub(crate) unit: Unit,
    /// Its value.
    pub(crate) value: f64,
}

/// Where figures stand that say much, by what they are called.
const OF_IO: [(&str, &str, Unit); 8] = [
    ("IOPS", "io.all.iops", Unit::PerS),
    ("bandwidth", "io.all.bandwidth_bytes_per_s", Unit::BytesPerS),
    ("read latency, mean", "io.read.latency_ns.mean", Unit::Ns),
    ("read latency, p99", "io.read.latency_ns.p99", Unit::Ns),
    ("read latency, p99.9", "io.read.latency_ns.p99_9", Unit::Ns),
    ("write latency, mean", "io.write.latency_ns.mean", Unit::Ns),
    ("write latency, p99", "io.write.latency_ns.p99", Unit::Ns),
    ("write latency, p99.9", "io.write.latency_ns.p99_9", Unit::Ns),
];

/// The same of lists of parts: the list, and the key in each.
const OF_PARTS: [(&str, &str, &str, Unit); 14] = [
    ("flash", "write amplification", "write_amplification", Unit::Plain),
    ("gpu", "instructions a cycle", "ipc", Unit::Plain),
    ("gpu", "read latency, mean", "read_latency_ns.mean", Unit::Ns),
    ("cpu", "jobs", "throughput_per_s", Unit::PerS),
    ("cpu", "service time, mean", "service_ns.mean", Unit::Ns),
    ("cpu", "service time, p99", "service_ns.p99", Unit::Ns),
    ("cpu", "instructions a cycle", "ipc", Unit::Plain),
    ("accelerator", "makespan", "makespan_ns", Unit::Ns),
    ("accelerator", "input", "input_bytes_per_s", Unit::BytesPerS),
    ("accelerator", "utilisation", "utilisation", Unit::Share),
    ("coprocessor", "makespan", "makespan_ns", Unit::Ns),
    ("coprocessor", "input", "input_bytes_per_s", Unit::BytesPerS),
    ("coprocessor", "utilisation", "utilisation", Unit::Share),
    ("host", "page cache, hits", "page_cache.hit_share", Unit::Share),
];

const OF_ENERGY: [(&str, &str, Unit); 2] = [
    ("energy", "energy.total.energy_j", Unit::Joules),
    ("power, mean", "energy.total.power_w_mean", Unit::Watts),
];

/// What a document has of them.
pub(crate) fn headlines(document: &Value) -> Vec<Headline> {
    let mut found = Vec::new();
    let mut add = |name: String, unit, value: Option<f64>| {
        if let Some(value) = value {
            found.push(Headline { name, unit, value });
        }
    };
    if number(document, "io.all.requests").is_some_and(|requests| requests > 0.0) {
        for (name, path, unit) in OF_IO {
            add(name.to_owned(), unit, number(document, path));
        }
    }
    for (list, name, key, unit) in OF_PARTS {
        let parts = items(document, list);
        for part in parts {
            let of = if parts.len() > 1 || list != "flash" {
                format!("{}: ", text(part, "name"))
            } else {
                String::new()
            };
            add(format!("{of}{name}"), unit, number(part, key));
        }
    }
    for (name, path, unit) in OF_ENERGY {
        add(name.to_owned(), unit, number(document, path));
    }
    found
}

/// As cards.
pub(super) fn html(document: &Value) -> String {
    let mut out = String::from("<dl class=\"cards\">");
    for Headline { name, unit, value } in headlines(document) {
        let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", Text(&name), Text(&shown(value, unit)));
    }
    out.push_str("</dl>");
    out
}
