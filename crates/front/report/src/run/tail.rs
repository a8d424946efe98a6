//! Causes of the waits of the slowest requests.

use super::latency::{KINDS, slice_name};
use crate::figure::{Cell, Figure, Part, Picture, Table, bars, bars_height};
use crate::number::{Unit, shown};
use crate::page::{list, paragraph};
use crate::read::{at, items, number, text};
use serde_json::Value;

/// Places where requests wait for each other.
const PLACES: [(&str, &str, &str); 2] =
    [("die", "die_wait", "dies"), ("channel", "channel_wait", "channels")];

/// Renders the part of the section on the tail; empty if the document has none.
pub(super) fn html(document: &Value) -> String {
    let has_tail = |kind: &&&str| !items(document, &format!("io.{kind}.tail")).is_empty();
    let kinds: Vec<&str> = KINDS.iter().filter(has_tail).copied().collect();
    // All requests together add nothing to reads and writes.
    let first = usize::from(kinds.len() > 1);
    let slices: Vec<(&str, &Value)> = kinds[first..]
        .iter()
        .flat_map(|kind| items(document, &format!("io.{kind}.tail")).iter().map(move |slice| (*kind, slice)))
        .filter(|(_, slice)| number(slice, "slowest").is_some_and(|share| share < 1.0))
        .collect();
    let sentences: Vec<String> = slices.iter().filter_map(|(kind, slice)| sentence(kind, slice)).collect();
    let mut out = String::new();
    if !sentences.is_empty() {
        out.push_str(&list(sentences.iter().map(String::as_str)));
    }
    out.push_str(&in_the_way(&slices).map(|figure| figure.html()).unwrap_or_default());
    out.push_str(&dies(&slices));
    out.push_str(&slowest(document));
    out
}

/// Sentence on what the slowest requests wait for.
fn sentence(kind: &str, slice: &Value) -> Option<String> {
    let latency = number(slice, "latency_ns_mean").filter(|latency| *latency > 0.0)?;
    let requests = number(slice, "requests")?;
    let waits: f64 =
        PLACES.iter().filter_map(|(_, part, _)| number(slice, &format!("breakdown_ns.{part}"))).sum();
    let mut text = format!(
        "The slowest {} ({} {kind} requests from {}, {} on average) wait {} of their time at dies and channels",
        shown(number(slice, "slowest")?, Unit::Share),
        shown(requests, Unit::Plain),
        number(slice, "from_ns").map_or("–".to_owned(), |from| shown(from, Unit::Ns)),
        shown(latency, Unit::Ns),
        shown(waits / latency, Unit::Share),
    );
    let holders =
        PLACES.iter().filter_map(|(place, _, _)| at(slice, &format!("blocked_ns.{place}"))?.as_object());
    let most = holders
        .flatten()
        .filter_map(|(who, ns)| Some((who, ns.as_f64()?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((who, ns)) = most.filter(|(_, ns)| *ns > 0.0) {
        text += &format!(", {} behind `{who}`", shown(ns / latency, Unit::Share));
    }
    if let Some(covered) = number(slice, "covered").filter(|covered| *covered < 1.0) {
        text += &format!("; {} of them are accounted for", shown(covered, Unit::Share));
    }
    Some(text + ".")
}

fn in_the_way(slices: &[(&str, &Value)]) -> Option<Figure> {
    let mut names: Vec<(String, String)> = Vec::new();
    for (place, _, _) in PLACES {
        let tables =
            slices.iter().filter_map(|(_, slice)| at(slice, &format!("blocked_ns.{place}"))?.as_object());
        for who in tables.flat_map(|table| table.keys()) {
            let path = format!("blocked_ns.{place}.{who}");
            if !names.iter().any(|(known, _)| *known == path) {
                names.push((path, format!("{place}: {who}")));
            }
        }
    }
    let has_any = |(path, _): &(String, String)| {
        slices.iter().any(|(_, slice)| number(slice, path).is_some_and(|ns| ns > 0.0))
    };
    names.retain(has_any);
    if names.is_empty() {
        return None;
    }
    let categories: Vec<String> = slices.iter().map(|(kind, slice)| slice_name(kind, slice)).collect();
    let values = |path: &str| slices.iter().map(|(_, slice)| number(slice, path).unwrap_or(0.0)).collect();
    let parts: Vec<Part> = names
        .iter()
        .map(|(path, name)| Part { name: name.clone(), values: values(path), hidden: false })
        .collect();
    let mut table = Table::new(
        "Mean waits by blocker",
        std::iter::once("blocker").chain(categories.iter().map(String::as_str)),
    );
    for (path, name) in &names {
        let cells = slices.iter().map(|(_, slice)| Cell::maybe(number(slice, path), Unit::Ns));
        table.push(std::iter::once(Cell::from(name.as_str())).chain(cells));
    }
    Some(Figure {
        title: "Blockers of the slowest requests".into(),
        about: "Mean time that the slowest requests waited at a die or a channel, by its activity.".into(),
        picture: Picture::Chart {
            chart: bars(Unit::Ns, &categories, &parts),
            height: bars_height(categories.len(), parts.len()),
        },
        table,
    })
}

/// Table of the dies at which the slowest requests waited.
fn dies(slices: &[(&str, &Value)]) -> String {
    let mut table = Table::new(
        "Dies at which the slowest requests waited most",
        ["requests", "drive", "channel", "die", "share of the wait"],
    );
    for (kind, slice) in slices {
        for die in items(slice, "dies") {
            let drive = if text(die, "drive").is_empty() { "–" } else { text(die, "drive") };
            table.push([
                slice_name(kind, slice).into(),
                drive.into(),
                Cell::maybe(number(die, "channel"), Unit::Plain),
                Cell::maybe(number(die, "die"), Unit::Plain),
                Cell::maybe(number(die, "share"), Unit::Share),
            ]);
        }
    }
    if table.is_empty() {
        return String::new();
    }
    format!("<details><summary>Table: dies of the slowest requests</summary>{}</details>", table.html())
}

/// Table of the slowest requests.
fn slowest(document: &Value) -> String {
    let requests = items(document, "io.slowest");
    if requests.is_empty() {
        return String::new();
    }
    let head = [
        "request",
        "flow",
        "operation",
        "at",
        "latency",
        "offset",
        "bytes",
        "channel",
        "die",
        "longest wait",
        "blocker",
    ];
    let mut table = Table::new("The slowest requests", head);
    for request in requests {
        let value = |key: &str, unit| Cell::maybe(number(request, key), unit);
        table.push([
            value("id", Unit::Plain),
            Cell::Text(crate::number::leaf(&request["flow"], Unit::Plain)),
            text(request, "op").into(),
            value("at_ns", Unit::Ns),
            value("latency_ns", Unit::Ns),
            value("offset", Unit::Plain),
            value("bytes", Unit::Bytes),
            value("channel", Unit::Plain),
            value("die", Unit::Plain),
            most(at(request, "breakdown_ns")).into(),
            PLACES
                .iter()
                .filter_map(|(place, _, _)| at(request, &format!("blocked_ns.{place}")))
                .map(|table| most(Some(table)))
                .find(|text| text != "–")
                .unwrap_or_else(|| "–".into())
                .into(),
        ]);
    }
    paragraph("The slowest requests, slowest first:") + &table.html()
}

/// Largest entry of a table of times.
fn most(table: Option<&Value>) -> String {
    let largest = table.and_then(Value::as_object).and_then(|table| {
        table.iter().filter_map(|(name, ns)| Some((name, ns.as_f64()?))).max_by(|a, b| a.1.total_cmp(&b.1))
    });
    match largest {
        Some((name, ns)) if ns > 0.0 => format!("{name}, {}", shown(ns, Unit::Ns)),
        _ => "–".to_owned(),
    }
}
