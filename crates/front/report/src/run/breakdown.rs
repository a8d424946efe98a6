//! Where the latency of requests went, on the mean and in the tail.

use super::latency::KINDS;
use crate::figure::{Figure, Part, Picture, bars, bars_height};
use crate::html::lacking;
use crate::number::{Unit, shown};
use crate::read::{at, items, number};
use crate::table::{Cell, Table};
use serde_json::Value;

/// Milestones and stages, in the order in which a request comes to them.
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

/// The names in some tables of parts, in order.
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

/// A bar of shares for each table of mean times, and the times behind it.
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
        std::iter::once("part").chain(categories.iter().map(String::as_str)),
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

/// The section.
pub(super) fn html(document: &Value) -> String {
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
    let about = "Each bar is the latency of some requests, by what they waited for: means, as shares of the whole; with each name the mean.";
    let requests = share_bars("What requests wait for", about, &rows);
    let lines = share_bars("What loads and stores wait for", about, &lines);
    match (&requests, &lines) {
        (None, None) => out
            .push_str(&lacking("What requests wait for", "the document has no `breakdown_ns` of a request")),
        _ => [requests, lines].into_iter().flatten().for_each(|figure| out.push_str(&figure.html())),
    }
    if !without.is_empty() {
        let what = format!("the document has no {}: the bars are of all requests", without.join(" and no "));
        out.push_str(&lacking("The tail", &what));
    }
    out
}

/// The requests of a part of the tail, in words.
pub(super) fn slice_name(kind: &str, slice: &Value) -> String {
    match number(slice, "slowest") {
        Some(share) if share < 1.0 => format!("{kind}, slowest {}", shown(share, Unit::Share)),
        _ => format!("{kind}, all"),
    }
}
