//! Series over time.

use crate::figure::{Axis, Cell, Curve, Figure, Picture, Table, lines};
use crate::number::Unit;
use crate::page::lacking;
use crate::read::{items, number, text};
use serde_json::Value;

/// Maximum number of points of a curve: more windows are averaged.
const MOST: usize = 600;

/// Columns that are drawn together: title, unit, columns.
type Group = (&'static str, Unit, &'static [(&'static str, &'static str)]);

const OF_IO: [Group; 2] = [
    ("Latency of requests", Unit::Ns, &[("mean", "latency_ns_mean"), ("p50", "p50_ns"), ("p99", "p99_ns")]),
    ("Requests in flight", Unit::Plain, &[("queue depth", "queue_depth")]),
];
const OF_FLASH: [Group; 4] = [
    ("Buffer", Unit::Bytes, &[("in the buffer", "buffer_bytes")]),
    ("Free blocks", Unit::Plain, &[("free blocks", "free_blocks")]),
    ("Write amplification", Unit::Plain, &[("write amplification", "write_amplification")]),
    ("Utilisation", Unit::Share, &[("channels", "channel_utilisation"), ("dies", "die_utilisation")]),
];

/// Renders the section.
pub(super) fn html(document: &Value) -> String {
    let mut out = String::new();
    let io = items(document, "io.series");
    if io.len() > 1 {
        out.push_str(&rate("IOPS", "Requests completed", Unit::PerS, "requests", io).html());
        out.push_str(&rate("Bandwidth", "Bytes completed", Unit::BytesPerS, "bytes", io).html());
        for group in &OF_IO {
            out.push_str(&drawn("", "io.series", io, group));
        }
    } else if number(document, "io.all.requests").is_some_and(|requests| requests > 0.0) {
        out.push_str(&lacking(
            "Requests over time",
            "the document has fewer than two windows in `io.series`",
        ));
    }
    let drives = items(document, "flash");
    for drive in drives {
        let windows = without_drain(items(drive, "series"));
        let name = if drives.len() > 1 { format!("{}: ", text(drive, "name")) } else { String::new() };
        if windows.len() > 1 {
            OF_FLASH.iter().for_each(|group| out.push_str(&drawn(&name, "flash.series", windows, group)));
        } else {
            let what = format!(
                "{name}the document has no `flash.*.series`: no buffer, free blocks, write amplification or utilisation over time"
            );
            out.push_str(&lacking("Flash over time", &what));
        }
    }
    out
}

/// Windows without a last one much wider than the one before: it covers the drain after the last request, where ratios to the
/// host's work say nothing.
fn without_drain(windows: &[Value]) -> &[Value] {
    const WIDER: f64 = 2.0;
    let width = |window: &Value| number(window, "width_ns").unwrap_or(0.0);
    match windows {
        [rest @ .., before, last] if width(last) > WIDER * width(before) => &windows[..rest.len() + 1],
        all => all,
    }
}

/// Figure of a rate, from counts.
fn rate(title: &str, name: &str, unit: Unit, column: &str, windows: &[Value]) -> Figure {
    let of = |window: &Value| {
        let width = number(window, "width_ns").filter(|width| *width > 0.0)?;
        Some(number(window, column)? / width * 1e9)
    };
    let curve = curve(name, windows, &of);
    figure(title.to_owned(), unit, vec![curve], windows.len())
}

/// Figure of a group of columns, or a note that no window has them.
fn drawn(of: &str, list: &str, windows: &[Value], (title, unit, columns): &Group) -> String {
    let has = |column: &str| windows.iter().any(|window| number(window, column).is_some());
    let curves: Vec<Curve> = columns
        .iter()
        .filter(|(_, column)| has(column))
        .map(|(name, column)| curve(name, windows, &|window| number(window, column)))
        .collect();
    let title = format!("{of}{title}");
    if !curves.is_empty() && curves.iter().all(|curve| curve.y.iter().flatten().all(|value| *value == 0.0)) {
        return lacking(&title, "zero in every window");
    }
    if curves.is_empty() {
        let columns: Vec<String> = columns.iter().map(|(_, column)| format!("`{column}`")).collect();
        return lacking(&title, &format!("windows of `{list}` have no {}", columns.join(", ")));
    }
    figure(title, *unit, curves, windows.len()).html()
}

/// Curve of windows: the start of each, and the end of the last.
pub(super) fn curve(name: &str, windows: &[Value], of: &dyn Fn(&Value) -> Option<f64>) -> Curve {
    let each = windows.len().div_ceil(MOST).max(1);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for group in windows.chunks(each) {
        let start = group.first().and_then(|window| number(window, "start_ns")).unwrap_or_default();
        let values: Vec<f64> = group.iter().filter_map(of).collect();
        x.push(start);
        y.push((!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64));
    }
    if let (Some(last), Some(value)) = (windows.last(), y.last().copied()) {
        let start = number(last, "start_ns").unwrap_or_default();
        x.push(start + number(last, "width_ns").unwrap_or_default());
        y.push(value);
    }
    Curve { name: name.to_owned(), x, y, steps: true, points: false }
}

/// Figure of curves over time.
pub(super) fn figure(title: String, unit: Unit, curves: Vec<Curve>, windows: usize) -> Figure {
    let x = Axis { name: "simulated time", unit: Unit::Ns, log: false };
    let chart = lines(&x, &Axis { name: "", unit, log: false }, &curves);
    let names = curves.iter().map(|curve| curve.name.as_str());
    let mut table = Table::new(title.clone(), std::iter::once("from").chain(names));
    let rows = curves.first().map_or(0, |curve| curve.x.len().saturating_sub(1));
    for row in 0..rows {
        let cells = curves.iter().map(|curve| Cell::maybe(curve.y[row], unit));
        table.push(std::iter::once(Cell::of(curves[0].x[row], Unit::Ns)).chain(cells));
    }
    let each = windows.div_ceil(MOST).max(1);
    let of = if each > 1 { format!(" Each step is the mean of {each} windows.") } else { String::new() };
    Figure {
        title,
        about: format!("Over simulated time.{of}"),
        picture: Picture::Chart { chart, height: 240 },
        table,
    }
}
