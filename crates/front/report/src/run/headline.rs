//! Key metrics of a run, and its checks.

use crate::figure::{Cell, Table};
use crate::number::{Unit, leaf, shown};
use crate::page::{Text, list, paragraph};
use crate::read::{at, items, number, text};
use serde_json::Value;
use std::fmt::Write as _;

/// Key metric.
pub(crate) struct Headline {
    /// Name.
    pub(crate) name: String,
    /// Unit.
    pub(crate) unit: Unit,
    /// Value.
    pub(crate) value: f64,
}

/// Key metrics of requests: name, path, unit.
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

/// Key metrics of components: list, name, key in each, unit.
const OF_PARTS: [(&str, &str, &str, Unit); 14] = [
    ("flash", "write amplification", "write_amplification", Unit::Plain),
    ("gpu", "instructions per cycle", "ipc", Unit::Plain),
    ("gpu", "read latency, mean", "read_latency_ns.mean", Unit::Ns),
    ("cpu", "jobs", "throughput_per_s", Unit::PerS),
    ("cpu", "service time, mean", "service_ns.mean", Unit::Ns),
    ("cpu", "service time, p99", "service_ns.p99", Unit::Ns),
    ("cpu", "instructions per cycle", "ipc", Unit::Plain),
    ("accelerator", "makespan", "makespan_ns", Unit::Ns),
    ("accelerator", "input", "input_bytes_per_s", Unit::BytesPerS),
    ("accelerator", "utilisation", "utilisation", Unit::Share),
    ("coprocessor", "makespan", "makespan_ns", Unit::Ns),
    ("coprocessor", "input", "input_bytes_per_s", Unit::BytesPerS),
    ("coprocessor", "utilisation", "utilisation", Unit::Share),
    ("host", "page cache hits", "page_cache.hit_share", Unit::Share),
];

const OF_ENERGY: [(&str, &str, Unit); 2] = [
    ("energy", "energy.total.energy_j", Unit::Joules),
    ("power, mean", "energy.total.power_w_mean", Unit::Watts),
];

/// Key metrics that a document has.
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

/// Renders the metrics as cards.
pub(super) fn html(document: &Value) -> String {
    let mut out = String::from("<dl class=\"cards\">");
    for Headline { name, unit, value } in headlines(document) {
        let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", Text(&name), Text(&shown(value, unit)));
    }
    out.push_str("</dl>");
    out
}

/// Renders failed checks and warnings; empty without any.
pub(super) fn trouble(document: &Value) -> String {
    let mut out = String::new();
    let failed: Vec<&Value> =
        items(document, "checks").iter().filter(|check| check["ok"] != Value::Bool(true)).collect();
    if !failed.is_empty() {
        out.push_str("<div class=\"bad\" role=\"alert\">");
        out.push_str(&paragraph("Checks failed: do not rely on the metrics below."));
        let mut table = Table::new("Failed checks", ["check", "finding"]);
        for check in failed {
            table.push([Cell::from(text(check, "name")), Cell::from(text(check, "detail"))]);
        }
        out.push_str(&table.html());
        out.push_str("</div>");
    } else if document["ok"] == Value::Bool(false) {
        out.push_str("<div class=\"bad\" role=\"alert\"><p>The run reports a failure.</p></div>");
    }
    if document["partial"] == Value::Bool(true) {
        out.push_str(
            "<div class=\"warn\"><p>The run was ended early: the metrics cover the completed part.</p></div>",
        );
    }
    let warnings = items(document, "warnings");
    if !warnings.is_empty() {
        let _ = write!(
            out,
            "<div class=\"warn\"><p>Warnings:</p>{}</div>",
            list(warnings.iter().filter_map(Value::as_str))
        );
    }
    out
}

/// Renders all checks, and the cost of the run.
pub(super) fn all_checks(document: &Value) -> String {
    let checks = items(document, "checks");
    let passed = checks.iter().filter(|check| check["ok"] == Value::Bool(true)).count();
    let mut table = Table::new("Checks", ["check", "passed", "finding"]);
    for check in checks {
        let holds = leaf(&check["ok"], Unit::Plain);
        table.push([text(check, "name").into(), Cell::Text(holds), text(check, "detail").into()]);
    }
    let mut out = match checks.len() {
        0 => paragraph("The document has no checks."),
        many => format!(
            "<p>{passed} of {many} checks passed: each compares independent counts of two components.</p><details><summary>Table: checks</summary>{}</details>",
            table.html()
        ),
    };
    let mut cost = Table::new("Cost of the run on the computer that made it", ["metric", "value"]);
    let Some(run) = at(document, "run").and_then(Value::as_object) else { return out };
    for (name, value) in run {
        cost.push([Cell::from(name.as_str()), Cell::Number(leaf(value, Unit::of_key(name)))]);
    }
    if !cost.is_empty() {
        let _ = write!(
            out,
            "<details><summary>{}</summary>{}</details>",
            Text("Table: cost of the run"),
            cost.html()
        );
    }
    out
}
