//! Page of two runs: the differences.

use crate::compare::{Comparison, Difference, Moved, compare};
use crate::figure::{Axis, Cell, Curve, Figure, Picture, Table, lines};
use crate::number::{Unit, leaf, shown};
use crate::page::{Page, Text, lacking, list, paragraph};
use crate::read::{Run, at, items, number, text};
use crate::run::{curves, headlines, kinds_of, percentile_curve, share_bars, tail_chart};
use serde_json::Value;

/// Renders the page of two runs.
pub fn pair(a: &Run, b: &Run) -> String {
    let compared = compare(a, b);
    let mut page = Page::new(title(a, b, &compared), lead(a, b));
    page.section("Attention", trouble(&[a, b]));
    page.section("What differs in the spec", spec(&compared.spec));
    page.section("Moved most", moved(&compared));
    page.section("Summary", short(a, b));
    page.section("Latency", latency(a, b));
    page.section("Where time goes", breakdowns(a, b));
    page.section("Over time", over_time(a, b));
    page.section("Metrics that differ", metrics(&compared.metrics));
    page.html()
}

/// Keys of the spec that a title names.
const NAMED: usize = 2;

/// Title of the page: the systems, or one system and the keys that differ.
fn title(a: &Run, b: &Run, compared: &Comparison) -> String {
    let [of_a, of_b] = [a, b].map(|run| text(&run.document, "system"));
    if of_a != of_b {
        return format!("{of_a} and {of_b} – nandscape");
    }
    let mut keys: Vec<String> = compared.spec.iter().take(NAMED).map(Difference::in_words).collect();
    if compared.spec.len() > NAMED {
        keys.push(format!("{} more keys", compared.spec.len() - NAMED));
    }
    if keys.is_empty() {
        format!("{of_a} – nandscape")
    } else {
        format!("{of_a}: {} – nandscape", keys.join(", "))
    }
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
                let what =
                    format!("{letter} has no `io.{kind}.histogram_ns`: its curve passes through percentiles");
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
            about: "Right: latency; up: share of faster requests, on a logarithmic scale towards 100 %."
                .into(),
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
    figure.map_or_else(
        || lacking("Where time goes", "neither run has a `breakdown_ns`"),
        |figure| figure.html(),
    )
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

/// The headline metrics that moved most.
fn moved(compared: &Comparison) -> String {
    let mut table = Table::new("Moved most", ["metric", "A", "B", "change"]);
    for Moved { name, a, b, relative } in &compared.moved {
        let change = relative.map_or("–".to_owned(), |relative| format!("{:+.1} %", 100.0 * relative));
        table.push([
            Cell::from(name.as_str()),
            Cell::Number(a.clone()),
            Cell::Number(b.clone()),
            Cell::Number(change),
        ]);
    }
    if table.is_empty() { paragraph("No headline metric moved.") } else { table.html() }
}

/// Every metric that differs, the greatest ratio first.
fn metrics(all: &[Difference]) -> String {
    if all.is_empty() {
        return paragraph("No metric differs.");
    }
    let ratio = |of: &Difference| {
        let (a, b) = (of.a.as_f64()?, of.b.as_f64()?);
        (a != 0.0 && b / a > 0.0).then(|| b / a)
    };
    // Without a ratio: at the end.
    let apart = |of: &Difference| ratio(of).map_or(-1.0, |ratio| libm::log(ratio).abs());
    let mut sorted: Vec<&Difference> = all.iter().collect();
    sorted.sort_by(|one, other| apart(other).total_cmp(&apart(one)).then_with(|| one.key.cmp(&other.key)));
    let mut table = Table::new("Metrics that differ, largest factor first", ["metric", "A", "B", "B / A"])
        .class("figures");
    for difference in sorted {
        let [a, b] = difference.shown();
        let ratio = ratio_cell(ratio(difference));
        table.push([Cell::from(difference.key.as_str()), Cell::Number(a), Cell::Number(b), ratio]);
    }
    let search = "<p class=\"search\"><label>Find <input type=\"search\" data-filter=\"figures\" autocomplete=\"off\"></label> <output></output></p>";
    paragraph(&format!("{} metrics differ; long lists of numbers are compared by their mean.", all.len()))
        + search
        + &table.html()
}

fn spec(all: &[Difference]) -> String {
    let mut table = Table::new("Keys of the spec that differ", ["key", "A", "B"]);
    for Difference { key, a, b, .. } in all {
        table.push([
            Cell::from(key.as_str()),
            Cell::Text(leaf(a, Unit::Plain)),
            Cell::Text(leaf(b, Unit::Plain)),
        ]);
    }
    if table.is_empty() { paragraph("The specs are equal.") } else { table.html() }
}
