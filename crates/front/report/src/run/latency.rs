//! Latency distributions, and latency breakdowns on average and in the tail.

use crate::figure::{Axis, Cell, Curve, Figure, Part, Picture, Table, bars, bars_height, lines};
use crate::number::{Unit, shown};
use crate::page::{lacking, paragraph};
use crate::read::{at, items, number, numbers, text};
use serde_json::Value;

/// Kinds of requests.
pub(crate) const KINDS: [&str; 5] = ["all", "read", "write", "trim", "flush"];

/// Percentiles of a document: key, name, and share of slower requests.
const PERCENTILES: [(&str, &str, f64); 7] = [
    ("p50", "50 %", 0.5),
    ("p90", "90 %", 0.1),
    ("p95", "95 %", 0.05),
    ("p99", "99 %", 0.01),
    ("p99_9", "99.9 %", 1e-3),
    ("p99_99", "99.99 %", 1e-4),
    ("p99_999", "99.999 %", 1e-5),
];

/// Kinds of requests that a run completed, "all" first; without "all" if there is only one kind.
pub(crate) fn kinds_of(io: &Value) -> Vec<&'static str> {
    let has = |kind: &&&str| number(io, &format!("{kind}.requests")).is_some_and(|n| n > 0.0);
    let found: Vec<&str> = KINDS.iter().filter(has).copied().collect();
    if found.len() == 2 { found[1..].to_vec() } else { found }
}

/// Renders the section.
pub(super) fn html(document: &Value) -> String {
    let Some(io) = at(document, "io") else { return lacking("Latency", "the document has no `io`") };
    let kinds = kinds_of(io);
    if kinds.is_empty() {
        return String::new();
    }
    distribution(io, &kinds) + &percentiles(io, &kinds).html() + &flows(io)
}

fn distribution(io: &Value, kinds: &[&'static str]) -> String {
    let curves = curves(io, kinds);
    let mut note = String::new();
    let figure = if curves.is_empty() {
        note = lacking(
            "Histograms",
            "the document has no `io.*.histogram_ns`: the curve joins percentiles by straight lines",
        );
        let curves: Vec<Curve> = kinds.iter().map(|kind| percentile_curve(io, kind, kind)).collect();
        tail_figure(curves)
    } else {
        tail_figure(curves)
    };
    note + &figure.html()
}

fn tail_figure(curves: Vec<Curve>) -> Figure {
    let chart = tail_chart(&curves);
    let mut table =
        Table::new("Share of requests that took longer", ["kind", "latency", "share that took longer"]);
    for curve in &curves {
        for (x, y) in curve.x.iter().zip(&curve.y) {
            table.push([curve.name.as_str().into(), Cell::of(*x, Unit::Ns), Cell::maybe(*y, Unit::Share)]);
        }
    }
    Figure {
        title: "Latency distribution".into(),
        about: "Right: latency; up: share of faster requests, on a logarithmic scale towards 100 %: 90, 99, 99.9 %.".into(),
        picture: Picture::Chart { chart, height: 380 },
        table,
    }
}

/// Chart of the share of slower requests.
pub(crate) fn tail_chart(curves: &[Curve]) -> Value {
    let x = Axis { name: "latency", unit: Unit::Ns, log: true };
    let y = Axis { name: "requests that were faster", unit: Unit::Share, log: true };
    let mut chart = lines(&x, &y, curves);
    chart["y"]["tail"] = true.into();
    chart
}

/// Curves of the share of requests above each histogram bound, for the kinds with a histogram.
pub(crate) fn curves(io: &Value, kinds: &[&'static str]) -> Vec<Curve> {
    kinds.iter().filter_map(|kind| histogram_curve(&io[*kind], kind)).collect()
}

fn histogram_curve(of: &Value, name: &str) -> Option<Curve> {
    let from = numbers(of, "histogram_ns.from")?;
    let to = numbers(of, "histogram_ns.to")?;
    let requests = numbers(of, "histogram_ns.requests")?;
    let total: f64 = requests.iter().sum();
    let mut curve = Curve { name: name.into(), x: Vec::new(), y: Vec::new(), steps: false, points: false };
    let mut above = total;
    if let Some(first) = from.first() {
        curve.x.push(*first);
        curve.y.push(Some(1.0));
    }
    for ((from, to), n) in from.iter().zip(&to).zip(&requests) {
        // Empty buckets between occupied ones leave the curve level.
        if curve.x.last().is_some_and(|last| last < from) {
            curve.x.push(*from);
            curve.y.push(Some(above / total));
        }
        above -= n;
        curve.x.push(*to);
        // The last bound has a share of zero, which a logarithmic axis cannot show.
        curve.y.push((above > 0.0).then_some(above / total));
    }
    (total > 0.0).then_some(curve)
}

/// Curve through the percentiles that a document has.
pub(crate) fn percentile_curve(io: &Value, kind: &str, name: &str) -> Curve {
    let mut curve = Curve { name: name.into(), x: Vec::new(), y: Vec::new(), steps: false, points: true };
    let mut add = |x: Option<f64>, y: f64| {
        if let Some(x) = x.filter(|x| *x > 0.0) {
            curve.x.push(x);
            curve.y.push(Some(y));
        }
    };
    add(number(io, &format!("{kind}.latency_ns.min")), 1.0);
    for (key, _, slower) in PERCENTILES {
        add(number(io, &format!("{kind}.latency_ns.{key}")), slower);
    }
    let requests = number(io, &format!("{kind}.requests")).unwrap_or(1.0);
    add(number(io, &format!("{kind}.latency_ns.max")), 1.0 / requests.max(1.0));
    curve
}

/// Table of percentiles for each section of a request's path.
fn percentiles(io: &Value, kinds: &[&'static str]) -> Table {
    let head = ["requests", "from … to", "number", "mean", "min"];
    let head = head.into_iter().chain(PERCENTILES.map(|(_, name, _)| name)).chain(["max"]);
    let mut table = Table::new("Latencies; – means too few requests for the percentile", head);
    let spans = [
        ("latency_ns", "arrival … completion"),
        ("slat_ns", "arrival … submission"),
        ("clat_ns", "submission … completion"),
        ("device_latency_ns", "doorbell … interrupt"),
    ];
    for kind in kinds {
        let mut seen = Vec::new();
        for (key, name) in spans {
            let Some(figures) = at(io, &format!("{kind}.{key}")) else { continue };
            // Where the host's software costs nothing, all of them are equal.
            if seen.contains(&figures) || number(figures, "max").unwrap_or(0.0) == 0.0 {
                continue;
            }
            seen.push(figures);
            let value = |key: &str| Cell::maybe(number(figures, key), Unit::Ns);
            let requests = Cell::maybe(number(io, &format!("{kind}.requests")), Unit::Plain);
            let row = [Cell::from(*kind), name.into(), requests, value("mean"), value("min")];
            table
                .push(row.into_iter().chain(PERCENTILES.map(|(key, _, _)| value(key))).chain([value("max")]));
        }
    }
    table
}

/// Table of flows, if there are several.
fn flows(io: &Value) -> String {
    let flows = items(io, "flows");
    if flows.len() < 2 {
        return String::new();
    }
    let mut table = Table::new(
        "Flows",
        [
            "flow",
            "drive",
            "requests",
            "active from",
            "until",
            "IOPS while active",
            "bandwidth",
            "mean latency",
            "p99",
            "p99.9",
        ],
    );
    for flow in flows {
        let value = |path: &str, unit| Cell::maybe(number(flow, path), unit);
        let drive = if text(flow, "drive").is_empty() { "–" } else { text(flow, "drive") };
        table.push([
            text(flow, "name").into(),
            drive.into(),
            value("all.requests", Unit::Plain),
            value("active.from_ns", Unit::Ns),
            value("active.until_ns", Unit::Ns),
            value("active.iops", Unit::PerS),
            value("active.bandwidth_bytes_per_s", Unit::BytesPerS),
            value("all.latency_ns.mean", Unit::Ns),
            value("all.latency_ns.p99", Unit::Ns),
            value("all.latency_ns.p99_9", Unit::Ns),
        ]);
    }
    let lag = number(io, "lag_max_ns").filter(|lag| *lag > 0.0);
    let lag = lag.map(|lag| {
        paragraph(&format!("Requests fell behind their recorded times by up to {}.", shown(lag, Unit::Ns)))
    });
    table.html() + &lag.unwrap_or_default()
}

/// Milestones and stages, in the order in which a request passes them.
const ORDER: [&str; 31] = [
    "host",
    "submission",
    "controller",
    "host_transfer",
    "mapping",
    "buffer",
    "merge",
    "space",
    "die_wait",
    "array",
    "channel_wait",
    "channel",
    "durable",
    "stripe",
    "l1",
    "l1_merge",
    "tlb",
    "walk",
    "fault",
    "network",
    "l2",
    "l2_merge",
    "ftl",
    "memory",
    "register",
    "flash_network",
    "reclaim",
    "coherence",
    "tags",
    "refill",
    "migration",
];

/// Names in some breakdown tables, in order.
fn milestones<'v>(tables: impl IntoIterator<Item = &'v Value>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in tables.into_iter().filter_map(Value::as_object).flat_map(|table| table.keys()) {
        if !found.contains(name) {
            found.push(name.clone());
        }
    }
    let rank = |name: &String| ORDER.iter().position(|known| known == name).unwrap_or(ORDER.len());
    found.sort_by(|a, b| (rank(a), a).cmp(&(rank(b), b)));
    found
}

/// Figure with a bar of shares for each table of mean times, and the times behind it.
pub(crate) fn share_bars(title: &str, about: &str, bars_of: &[(String, &Value)]) -> Option<Figure> {
    let names = milestones(bars_of.iter().map(|(_, table)| *table));
    let sum = |table: &Value| names.iter().filter_map(|name| number(table, name)).sum::<f64>();
    let bars_of: Vec<&(String, &Value)> = bars_of.iter().filter(|(_, table)| sum(table) > 0.0).collect();
    if bars_of.is_empty() {
        return None;
    }
    let categories: Vec<String> =
        bars_of.iter().map(|(name, table)| format!("{name}, {}", shown(sum(table), Unit::Ns))).collect();
    let part = |name: &String| Part {
        name: name.clone(),
        values: bars_of.iter().map(|(_, table)| number(table, name).unwrap_or(0.0) / sum(table)).collect(),
        hidden: false,
    };
    let parts: Vec<Part> = names.iter().map(part).collect();
    let mut table = Table::new(
        format!("{title}: means"),
        std::iter::once("wait").chain(categories.iter().map(String::as_str)),
    );
    for name in &names {
        let cells = bars_of.iter().map(|(_, table)| Cell::maybe(number(table, name), Unit::Ns));
        table.push(std::iter::once(Cell::from(name.as_str())).chain(cells));
    }
    let height = bars_height(bars_of.len(), parts.len());
    Some(Figure {
        title: title.to_owned(),
        about: about.to_owned(),
        picture: Picture::Chart { chart: bars(Unit::Share, &categories, &parts), height },
        table,
    })
}

/// Renders the section.
pub(super) fn breakdown(document: &Value) -> String {
    let mut out = String::new();
    let empty = serde_json::Map::new();
    let kinds = document["breakdown_ns"].as_object().unwrap_or(&empty);
    let mut rows: Vec<(String, &Value)> = Vec::new();
    let (mut without, mut lines) = (Vec::new(), Vec::new());
    for (kind, means) in kinds {
        if at(document, "io").is_none_or(|_| !KINDS.contains(&kind.as_str())) {
            lines.push((kind.clone(), means));
            continue;
        }
        let tail = items(document, &format!("io.{kind}.tail"));
        if !tail.iter().any(|slice| number(slice, "slowest") == Some(1.0)) {
            let all = if tail.is_empty() { "mean" } else { "all" };
            rows.push((format!("{kind}, {all}"), means));
        }
        for slice in tail.iter().filter(|slice| at(slice, "breakdown_ns").is_some()) {
            rows.push((slice_name(kind, slice), &slice["breakdown_ns"]));
        }
        if tail.is_empty()
            && number(document, &format!("io.{kind}.requests")).is_some_and(|requests| requests > 0.0)
        {
            without.push(format!("`io.{kind}.tail`"));
        }
    }
    let about = "Each bar is the mean latency of some requests, by what they waited for, as shares of the total; the mean is beside each name.";
    let requests = share_bars("What requests wait for", about, &rows);
    let lines = share_bars("What loads and stores wait for", about, &lines);
    match (&requests, &lines) {
        (None, None) => {
            out.push_str(&lacking("What requests wait for", "the document has no `breakdown_ns` of requests"))
        }
        _ => [requests, lines].into_iter().flatten().for_each(|figure| out.push_str(&figure.html())),
    }
    if !without.is_empty() {
        let what = format!("the document has no {}: the bars cover all requests", without.join(" and no "));
        out.push_str(&lacking("Tail latency", &what));
    }
    out
}

/// Label of a slice of the tail.
pub(super) fn slice_name(kind: &str, slice: &Value) -> String {
    match number(slice, "slowest") {
        Some(share) if share < 1.0 => format!("{kind}, slowest {}", shown(share, Unit::Share)),
        _ => format!("{kind}, all"),
    }
}
