//! Page of two runs: the differences.

use crate::figure::{Axis, Cell, Curve, Figure, Picture, Table, lines};
use crate::number::{Unit, leaf, shown};
use crate::page::{Page, Text, lacking, list, paragraph};
use crate::read::{Run, at, items, leaves, number, text};
use crate::run::{curves, headlines, kinds_of, percentile_curve, share_bars, tail_chart};
use serde_json::Value;
use std::collections::BTreeMap;

/// Tables compared separately, or not about the system.
const APART: [&str; 8] =
    ["spec", "spec_sha256", "run", "schema", "checks", "workload", "warnings", "io.slowest"];
/// Names of lists that are drawn, not compared number by number.
const DRAWN: [&str; 5] = ["series", "power_series", "histogram_ns", "histogram", "kernels"];
/// Length above which a list of numbers is compared by its mean.
const MANY: usize = 4;

/// Renders the page of two runs.
pub fn pair(a: &Run, b: &Run) -> String {
    let title = format!("{} and {} – nandscape", text(&a.document, "system"), text(&b.document, "system"));
    let mut page = Page::new(title, lead(a, b));
    page.section("Attention", trouble(&[a, b]));
    page.section("Summary", short(a, b));
    page.section("Latency", latency(a, b));
    page.section("Where time goes", breakdowns(a, b));
    page.section("Over time", over_time(a, b));
    page.section("Metrics that differ", figures(a, b));
    page.section("The spec", spec(a, b));
    page.html()
}

/// Introduction of each run.
pub(crate) fn one(letter: &str, run: &Run) -> String {
    let workloads: Vec<&str> = items(&run.document, "workload").iter().filter_map(Value::as_str).collect();
    let seed = run.document.get("seed").map_or("–".to_owned(), Value::to_string);
    format!(
        "<li><b>{letter}</b>: {} · {} · seed {} · nandscape {} · {}</li>",
        Text(text(&run.document, "system")),
        Text(&workloads.join(" + ")),
        Text(&seed),
        Text(text(&run.document, "version")),
        Text(&run.name)
    )
}

fn lead(a: &Run, b: &Run) -> String {
    format!("<ul>{}{}</ul>", one("A", a), one("B", b))
}

/// Failed checks, early ends and warnings of some runs.
pub(crate) fn trouble(runs: &[&Run]) -> String {
    let mut said = Vec::new();
    for run in runs {
        let document = &run.document;
        let name = &run.name;
        if document["ok"] == Value::Bool(false) {
            let failed = items(document, "checks").iter().filter(|check| check["ok"] != Value::Bool(true));
            let failed: Vec<&str> = failed.map(|check| text(check, "name")).collect();
            said.push(format!("{name}: failed checks: {}", failed.join("; ")));
        }
        if document["partial"] == Value::Bool(true) {
            said.push(format!("{name}: ended early"));
        }
        said.extend(
            items(document, "warnings")
                .iter()
                .filter_map(Value::as_str)
                .map(|text| format!("{name}: {text}")),
        );
    }
    if said.is_empty() {
        return String::new();
    }
    format!("<div class=\"warn\">{}</div>", list(said.iter().map(String::as_str)))
}

fn short(a: &Run, b: &Run) -> String {
    let (of_a, of_b) = (headlines(&a.document), headlines(&b.document));
    let mut table = Table::new("Summary", ["metric", "A", "B", "B / A"]);
    for figure in &of_a {
        let Some(other) = of_b.iter().find(|other| other.name == figure.name) else { continue };
        let ratio = if figure.value != 0.0 { Some(other.value / figure.value) } else { None };
        table.push([
            figure.name.as_str().into(),
            Cell::of(figure.value, figure.unit),
            Cell::of(other.value, figure.unit),
            ratio_cell(ratio),
        ]);
    }
    if table.is_empty() { paragraph("The runs have no metric in common.") } else { table.html() }
}

fn ratio_cell(ratio: Option<f64>) -> Cell {
    ratio.map_or_else(Cell::none, |ratio| Cell::Number(format!("× {}", shown(ratio, Unit::Plain))))
}

fn latency(a: &Run, b: &Run) -> String {
    let empty = Value::Null;
    let (io_a, io_b) = (at(&a.document, "io").unwrap_or(&empty), at(&b.document, "io").unwrap_or(&empty));
    let kinds = kinds_of(io_a);
    let both: Vec<&'static str> =
        kinds.into_iter().filter(|kind| number(io_b, &format!("{kind}.requests")).is_some()).collect();
    let mut out = String::new();
    for kind in both {
        let mut found = Vec::new();
        for (letter, io) in [("A", io_a), ("B", io_b)] {
            let of = curves(io, &[kind]).pop();
            if of.is_none() {
                let what = format!(
                    "{letter} has no `io.{kind}.histogram_ns`: its curve passes through percentiles"
                );
                out += &lacking("Histogram", &what);
            }
            let curve = of.unwrap_or_else(|| percentile_curve(io, kind, kind));
            found.push(Curve { name: letter.to_owned(), ..curve });
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
            about: "Right: latency; up: share of faster requests, on a logarithmic scale towards 100 %.".into(),
            picture: Picture::Chart { chart: tail_chart(&found), height: 320 },
            table,
        }
        .html();
    }
    if out.is_empty() { paragraph("The runs completed no kind of request in common.") } else { out }
}

fn breakdowns(a: &Run, b: &Run) -> String {
    let mut rows: Vec<(String, &Value)> = Vec::new();
    let kinds =
        |run: &Run| run.document["breakdown_ns"].as_object().map(|of| of.keys().cloned().collect::<Vec<_>>());
    let mut all: Vec<String> = kinds(a).into_iter().chain(kinds(b)).flatten().collect();
    all.sort();
    all.dedup();
    for kind in all {
        for (letter, run) in [("A", a), ("B", b)] {
            rows.extend(
                at(&run.document, &format!("breakdown_ns.{kind}")).map(|of| (format!("{letter} {kind}"), of)),
            );
            let tail = items(&run.document, &format!("io.{kind}.tail"));
            let slices = tail.iter().filter(|slice| number(slice, "slowest") == Some(0.001));
            rows.extend(slices.filter_map(|slice| {
                Some((format!("{letter} {kind}, slowest 0.1 %"), slice.get("breakdown_ns")?))
            }));
        }
    }
    let about = "Each bar is the mean latency of some requests, by what they waited for, as shares of the total; the mean is beside each name.";
    let figure = share_bars("What requests wait for", about, &rows);
    figure.map_or_else(|| lacking("Where time goes", "neither run has a `breakdown_ns`"), |figure| figure.html())
}

fn over_time(a: &Run, b: &Run) -> String {
    let mut curves = Vec::new();
    for (letter, run) in [("A", a), ("B", b)] {
        let windows = items(&run.document, "io.series");
        let rate = |window: &Value| {
            Some(number(window, "requests")? / number(window, "width_ns").filter(|ns| *ns > 0.0)? * 1e9)
        };
        if windows.len() > 1 {
            let x = windows.iter().filter_map(|window| number(window, "start_ns")).collect();
            curves.push(Curve {
                name: letter.into(),
                x,
                y: windows.iter().map(rate).collect(),
                steps: true,
                points: false,
            });
        }
    }
    if curves.is_empty() {
        return String::new();
    }
    let mut table = Table::new("IOPS over time", ["run", "from", "IOPS"]);
    for curve in &curves {
        for (x, y) in curve.x.iter().zip(&curve.y) {
            table.push([curve.name.as_str().into(), Cell::of(*x, Unit::Ns), Cell::maybe(*y, Unit::PerS)]);
        }
    }
    let axis = |name, unit| Axis { name, unit, log: false };
    Figure {
        title: "IOPS".into(),
        about: "Over simulated time, from the beginning of each run.".into(),
        picture: Picture::Chart {
            chart: lines(&axis("simulated time", Unit::Ns), &axis("", Unit::PerS), &curves),
            height: 240,
        },
        table,
    }
    .html()
}

type Leaves = BTreeMap<String, Value>;

/// Numbers and texts of a document that can be compared.
fn figures_of(document: &Value) -> Leaves {
    let mut found = Leaves::new();
    collect("", document, &mut found);
    let is_apart = |key: &str| {
        APART
            .iter()
            .any(|apart| key.strip_prefix(apart).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    found.retain(|key, _| !is_apart(key));
    found
}

fn collect(key: &str, value: &Value, found: &mut Leaves) {
    let join = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match value {
        Value::Object(table) => {
            let compared = table.iter().filter(|(name, _)| !DRAWN.contains(&name.as_str()));
            compared.for_each(|(name, inner)| collect(&join(name), inner, found));
        }
        Value::Array(all) if all.len() > MANY && all.iter().all(Value::is_number) => {
            let sum: f64 = all.iter().filter_map(Value::as_f64).sum();
            found.insert(join("mean"), (sum / all.len() as f64).into());
        }
        Value::Array(all) => {
            // A component has the same name in both, wherever it is listed.
            let name = |at: usize, one: &Value| match text(one, "name") {
                "" => at.to_string(),
                name => name.to_owned(),
            };
            all.iter().enumerate().for_each(|(at, inner)| collect(&join(&name(at, inner)), inner, found));
        }
        leaf => {
            found.insert(key.to_owned(), leaf.clone());
        }
    }
}

/// Table of every metric that differs, the greatest ratio first.
fn figures(a: &Run, b: &Run) -> String {
    let (of_a, of_b) = (figures_of(&a.document), figures_of(&b.document));
    let mut keys: Vec<&String> =
        of_a.keys().chain(of_b.keys().filter(|key| !of_a.contains_key(*key))).collect();
    keys.retain(|key| of_a.get(*key) != of_b.get(*key));
    let ratio = |key: &String| {
        let (a, b) = (of_a.get(key)?.as_f64()?, of_b.get(key)?.as_f64()?);
        (a != 0.0 && b / a > 0.0).then(|| b / a)
    };
    // Entries without a ratio come last.
    let apart = |key: &String| ratio(key).map_or(-1.0, |ratio| libm::log(ratio).abs());
    keys.sort_by(|one, other| apart(other).total_cmp(&apart(one)).then_with(|| one.cmp(other)));
    if keys.is_empty() {
        return paragraph("No metrics differ.");
    }
    let mut table =
        Table::new("Metrics that differ, by ratio", ["metric", "A", "B", "B / A"])
            .class("figures");
    for key in &keys {
        let cell = |of: &Leaves| {
            Cell::Number(of.get(*key).map_or("–".to_owned(), |value| leaf(value, Unit::of_key(key))))
        };
        table.push([Cell::from(key.as_str()), cell(&of_a), cell(&of_b), ratio_cell(ratio(key))]);
    }
    let search = "<p class=\"search\"><label>Find <input type=\"search\" data-filter=\"figures\" autocomplete=\"off\"></label> <output></output></p>";
    paragraph(&format!("{} metrics differ; lists of numbers are compared by their mean.", keys.len()))
        + search
        + &table.html()
}

fn spec(a: &Run, b: &Run) -> String {
    let of = |run: &Run| -> BTreeMap<String, Value> {
        let mut found = Vec::new();
        if let Some(spec) = run.document.get("spec") {
            leaves("", spec, &mut found);
        }
        found.into_iter().map(|(key, value)| (key, value.clone())).collect()
    };
    let (of_a, of_b) = (of(a), of(b));
    let mut table = Table::new("Spec keys that differ", ["key", "A", "B"]);
    for key in of_a.keys().chain(of_b.keys().filter(|key| !of_a.contains_key(*key))) {
        if of_a.get(key) != of_b.get(key) {
            let cell = |of: &Leaves| {
                Cell::Text(of.get(key).map_or("–".to_owned(), |value| leaf(value, Unit::Plain)))
            };
            table.push([Cell::from(key.as_str()), cell(&of_a), cell(&of_b)]);
        }
    }
    if table.is_empty() { paragraph("The specs are equal.") } else { table.html() }
}
