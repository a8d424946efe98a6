//! Page of several runs side by side.

use crate::figure::{Cell, Curve, Figure, Part, Picture, Table, bars, bars_height};
use crate::number::Unit;
use crate::page::{Page, lacking, paragraph};
use crate::pair::{one, trouble};
use crate::read::{Run, at, number, text};
use crate::run::{KINDS, curves, headlines, percentile_curve, share_bars, tail_chart};
use serde_json::Value;

/// Maximum number of curves in one picture: more cannot be told apart.
const MOST_CURVES: usize = 12;

/// Renders the page of several runs.
pub fn many(runs: &[Run]) -> String {
    let lead = (1..).zip(runs).map(|(number, run)| one(&number.to_string(), run)).collect::<String>();
    let mut page = Page::new(format!("{} runs – nandscape", runs.len()), format!("<ul>{lead}</ul>"));
    page.section("Attention", trouble(&runs.iter().collect::<Vec<_>>()));
    page.section("Summary", short(runs));
    page.section("Latency", latency(runs));
    page.section("Where time goes", breakdowns(runs));
    page.html()
}

/// Label of a run among others.
fn label(at: usize, run: &Run) -> String {
    format!("{} {}", at + 1, text(&run.document, "system"))
}

fn short(runs: &[Run]) -> String {
    let all: Vec<_> = runs.iter().map(|run| headlines(&run.document)).collect();
    let mut names: Vec<(&str, Unit)> = Vec::new();
    for figure in all.iter().flatten() {
        if !names.iter().any(|(name, _)| *name == figure.name) {
            names.push((&figure.name, figure.unit));
        }
    }
    let labels: Vec<String> = runs.iter().enumerate().map(|(at, run)| label(at, run)).collect();
    let value = |run: usize, name: &str| {
        all[run].iter().find(|figure| figure.name == name).map(|figure| figure.value)
    };
    let mut table = Table::new("Summary", std::iter::once("run").chain(names.iter().map(|(name, _)| *name)));
    for (run, label) in labels.iter().enumerate() {
        let cells = names.iter().map(|(name, unit)| Cell::maybe(value(run, name), *unit));
        table.push(std::iter::once(Cell::from(label.as_str())).chain(cells));
    }
    let mut out = table.html();
    for (name, unit) in names.iter().take(4) {
        let values: Vec<f64> = (0..runs.len()).map(|run| value(run, name).unwrap_or(0.0)).collect();
        let mut table = Table::new((*name).to_owned(), ["run", *name]);
        for (run, label) in labels.iter().enumerate() {
            table.push([Cell::from(label.as_str()), Cell::maybe(value(run, name), *unit)]);
        }
        let parts = [Part { name: (*name).to_owned(), values, hidden: false }];
        let chart = bars(*unit, &labels, &parts);
        let picture = Picture::Chart { chart, height: bars_height(labels.len(), 1) };
        out +=
            &Figure { title: (*name).to_owned(), about: "Value of each run.".into(), picture, table }.html();
    }
    out
}

fn latency(runs: &[Run]) -> String {
    let mut out = String::new();
    let empty = Value::Null;
    for kind in KINDS.iter().skip(1) {
        let mut found = Vec::new();
        for (place, run) in runs.iter().enumerate() {
            let io = at(&run.document, "io").unwrap_or(&empty);
            if number(io, &format!("{kind}.requests")).is_none_or(|requests| requests == 0.0) {
                continue;
            }
            let curve = curves(io, &[kind]).pop().unwrap_or_else(|| percentile_curve(io, kind, kind));
            found.push(Curve { name: label(place, run), ..curve });
        }
        if found.is_empty() {
            continue;
        }
        if found.len() > MOST_CURVES {
            let what =
                format!("{} runs have {kind} requests: the first {MOST_CURVES} are drawn", found.len());
            out += &lacking("Latency", &what);
            found.truncate(MOST_CURVES);
        }
        let mut table = Table::new(
            format!("{kind}: share that took longer"),
            ["run", "latency", "share that took longer"],
        );
        for curve in &found {
            for (x, y) in curve.x.iter().zip(&curve.y) {
                table.push([
                    curve.name.as_str().into(),
                    Cell::of(*x, Unit::Ns),
                    Cell::maybe(*y, Unit::Share),
                ]);
            }
        }
        out += &Figure {
            title: format!("Latency distribution: {kind}"),
            about: "Right: latency; up: share of faster requests. Curves with points pass through percentiles only.".into(),
            picture: Picture::Chart { chart: tail_chart(&found), height: 360 },
            table,
        }
        .html();
    }
    if out.is_empty() { paragraph("None of the runs completed a request.") } else { out }
}

fn breakdowns(runs: &[Run]) -> String {
    let mut out = String::new();
    let mut kinds: Vec<&String> = runs
        .iter()
        .filter_map(|run| run.document["breakdown_ns"].as_object())
        .flat_map(|of| of.keys())
        .collect();
    kinds.sort();
    kinds.dedup();
    for kind in kinds {
        let of = |(place, run): (usize, &'_ Run)| {
            let means = at(&run.document, &format!("breakdown_ns.{kind}"))?.clone();
            Some((label(place, run), means))
        };
        let means: Vec<(String, Value)> = runs.iter().enumerate().filter_map(of).collect();
        let rows: Vec<(String, &Value)> = means.iter().map(|(name, means)| (name.clone(), means)).collect();
        let about = "Mean latency of each run, by what requests waited for, as shares of the total; the mean is beside each name.";
        let figure = share_bars(&format!("What a {kind} waits for"), about, &rows);
        out += &figure.map(|figure| figure.html()).unwrap_or_default();
    }
    out
}
