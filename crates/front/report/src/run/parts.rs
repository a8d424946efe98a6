//! Sections on processors, hosts and accelerators: counters, distributions, lists and drawings; and on the energy of
//! all components.

use super::latency::{percentile_curve, share_bars, tail_chart};
use super::series::{curve, figure};
use crate::figure::{Axis, Cell, Curve, Figure, Part, Picture, Table, bars, bars_height, lines};
use crate::number::{Unit, leaf, shown};
use crate::page::{Text, list};
use crate::read::{at, items, leaves, number, text};
use serde_json::{Map, Value, json};

/// Lists of components, and the noun for each.
const LISTS: [(&str, &str); 7] = [
    ("gpu", "GPU"),
    ("cpu", "server"),
    ("host", "host"),
    ("accelerator", "accelerator"),
    ("coprocessor", "coprocessor"),
    ("group_flash", "flash of an accelerator"),
    ("stripe", "stripe"),
];

/// Maximum number of rows of a list on a page.
const MOST_ROWS: usize = 512;

/// Renders the section.
pub(super) fn html(document: &Value) -> String {
    let mut out = String::new();
    for (list, what) in LISTS {
        for part in items(document, list) {
            let name = text(part, "name");
            out += &format!("<h3>{} ({what})</h3>", Text(name));
            out += &drawn(part, name);
            out += &counters(&format!("Counters of {name}"), part);
        }
    }
    out
}

/// Drawings of a component: its time by activity, the times of its work, its series.
fn drawn(part: &Value, name: &str) -> String {
    let mut out = distributions(part, name) + &rates(part, name) + &kernels_over_time(part, name);
    if let Some(shares) = part.get("time_share") {
        out += &shares_figure(&format!("Time of {name} by activity"), shares);
    }
    let mut lists = Vec::new();
    lists_of("", part, &mut lists);
    for (path, list) in lists {
        let title = format!("{name}: {path}");
        if list.iter().all(|one| one.get("start_ns").is_some()) && list.len() > 1 {
            out += &over_time(&title, list);
        } else if let Some(spans) = spans(&title, list) {
            out += &spans.html();
        }
    }
    let phases: Vec<(String, Value)> = items(part, "kernels").iter().enumerate().filter_map(phases).collect();
    let rows: Vec<(String, &Value)> = phases.iter().map(|(name, table)| (name.clone(), table)).collect();
    let about = "Time in the phases of each kernel, as shares of the total.";
    out += &share_bars(&format!("{name}: phases of kernels"), about, &rows)
        .map(|figure| figure.html())
        .unwrap_or_default();
    out
}

/// Times of a processor's work whose distributions are drawn, with their names.
const TIMES: [(&str, &str); 4] = [
    ("service_ns", "service time"),
    ("latency_ns", "latency"),
    ("read_latency_ns", "loads"),
    ("write_latency_ns", "stores"),
];

/// Distributions of the times of a processor's work, through their percentiles.
fn distributions(part: &Value, name: &str) -> String {
    let mut curves: Vec<Curve> = Vec::new();
    let title = format!("Latency distribution of {name}");
    let mut table = Table::new(title.clone(), ["time", "latency", "share that took longer"]);
    for (key, words) in TIMES {
        let Some(times) = part.get(key).filter(|times| times.get("p50").is_some_and(Value::is_number)) else {
            continue;
        };
        // A closed loop has no wait before service: both times are one.
        if key == "latency_ns" && part.get("service_ns") == Some(times) {
            continue;
        }
        let mut times = times.clone();
        // How many lie beyond the maximum is not in the document.
        times.as_object_mut().map(|times| times.remove("max"));
        let curve = percentile_curve(&json!({ "of": { "latency_ns": times } }), "of", words);
        for (x, y) in curve.x.iter().zip(&curve.y) {
            table.push([Cell::from(words), Cell::of(*x, Unit::Ns), Cell::maybe(*y, Unit::Share)]);
        }
        curves.push(curve);
    }
    if curves.is_empty() {
        return String::new();
    }
    let about = "Share that was faster than the latency below, through the percentiles.".into();
    Figure { title, about, picture: Picture::Chart { chart: tail_chart(&curves), height: 260 }, table }.html()
}

/// Hit rates of caches and TLBs, as bars.
fn rates(part: &Value, name: &str) -> String {
    let mut found = Vec::new();
    leaves("", part, &mut found);
    let is_rate = |path: &str| path.ends_with("hit_share") || path.ends_with("accuracy_share");
    let rates: Vec<(String, f64)> = found
        .into_iter()
        .filter(|(path, _)| is_rate(path) && !path.starts_with("applications"))
        .filter_map(|(path, value)| Some((path.trim_end_matches("_share").to_owned(), value.as_f64()?)))
        .collect();
    if rates.is_empty() {
        return String::new();
    }
    let title = format!("Hit rates of {name}");
    let mut table = Table::new(title.clone(), ["cache", "share"]);
    rates
        .iter()
        .for_each(|(path, rate)| table.push([Cell::from(path.as_str()), Cell::of(*rate, Unit::Share)]));
    let names: Vec<String> = rates.iter().map(|(path, _)| path.clone()).collect();
    let parts =
        [Part { name: "share".into(), values: rates.iter().map(|(_, rate)| *rate).collect(), hidden: false }];
    let height = bars_height(names.len(), 1);
    let about = "Share of accesses served there; predictions by their accuracy.".into();
    Figure {
        title,
        about,
        picture: Picture::Chart { chart: bars(Unit::Share, &names, &parts), height },
        table,
    }
    .html()
}

/// Instructions per cycle of each application, kernel by kernel.
fn kernels_over_time(part: &Value, name: &str) -> String {
    let mut curves = Vec::new();
    let title = format!("IPC of {name} over time");
    let mut table = Table::new(title.clone(), ["kernel", "begin", "end", "IPC"]);
    for application in items(part, "applications") {
        let mut curve = Curve {
            name: text(application, "name").to_owned(),
            x: Vec::new(),
            y: Vec::new(),
            steps: true,
            points: false,
        };
        for kernel in items(application, "kernels").iter().take(MOST_ROWS) {
            let (begun, ended, ipc) =
                (number(kernel, "begun_ns"), number(kernel, "ended_ns"), number(kernel, "ipc"));
            let (Some(begun), Some(ended)) = (begun, ended) else { continue };
            curve.x.extend([begun, ended]);
            curve.y.extend([ipc, None]);
            table.push([
                Cell::from(text(kernel, "name")),
                Cell::of(begun, Unit::Ns),
                Cell::of(ended, Unit::Ns),
                Cell::maybe(ipc, Unit::Plain),
            ]);
        }
        curves.extend((!curve.x.is_empty()).then_some(curve));
    }
    if curves.is_empty() {
        return String::new();
    }
    let axis = |name, unit| Axis { name, unit, log: false };
    let chart =
        lines(&axis("simulated time", Unit::Ns), &axis("instructions per cycle", Unit::Plain), &curves);
    let about = "A step per kernel, from its begin to its end.".into();
    Figure { title, about, picture: Picture::Chart { chart, height: 240 }, table }.html()
}

/// Time of each phase of a kernel.
fn phases((at, kernel): (usize, &Value)) -> Option<(String, Value)> {
    let phases = kernel.get("phases")?.as_object()?;
    let times: Map<String, Value> = phases
        .iter()
        .filter_map(|(name, phase)| Some((name.clone(), phase.get("time_ns")?.clone())))
        .collect();
    Some((format!("{at} {}", text(kernel, "program")), Value::Object(times)))
}

fn shares_figure(title: &str, shares: &Value) -> String {
    let Some(shares) = shares.as_object() else { return String::new() };
    let mut table = Table::new(title, ["activity", "share"]);
    let mut parts = Vec::new();
    for (name, share) in shares.iter().filter_map(|(name, share)| Some((name, share.as_f64()?))) {
        table.push([Cell::from(name.as_str()), Cell::of(share, Unit::Share)]);
        if share > 0.0 {
            parts.push(Part { name: name.clone(), values: vec![share], hidden: false });
        }
    }
    let height = bars_height(1, parts.len());
    Figure {
        title: title.to_owned(),
        about: "Shares of the total.".into(),
        picture: Picture::Chart { chart: bars(Unit::Share, &["time".to_owned()], &parts), height },
        table,
    }
    .html()
}

/// Lists of objects below a value, by their paths, except those within lists.
fn lists_of<'v>(prefix: &str, value: &'v Value, found: &mut Vec<(String, &'v [Value])>) {
    let Some(table) = value.as_object() else { return };
    for (name, inner) in table {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match inner {
            Value::Array(list) if list.first().is_some_and(Value::is_object) => found.push((path, list)),
            Value::Object(_) => lists_of(&path, inner, found),
            _ => {}
        }
    }
}

/// Figure for every column of a series.
fn over_time(title: &str, windows: &[Value]) -> String {
    let Some(first) = windows[0].as_object() else { return String::new() };
    let mut out = String::new();
    for column in first.keys().filter(|key| !["start_ns", "width_ns", "max"].contains(&key.as_str())) {
        let unit = Unit::of_key(column);
        let curves = vec![curve(column, windows, &|window| number(window, column))];
        if curves[0].y.iter().any(Option::is_some) {
            out += &figure(format!("{title}, {column}"), unit, curves, windows.len()).html();
        }
    }
    out
}

/// Figure of when the members of a list began and ended.
fn spans(title: &str, list: &[Value]) -> Option<Figure> {
    let list = &list[..list.len().min(MOST_ROWS)];
    let begun = |one: &Value| number(one, "begun_ns");
    let over = |one: &Value| ["over_ns", "ended_ns", "computed_ns"].iter().find_map(|key| number(one, key));
    let all: Option<Vec<(f64, f64)>> = list.iter().map(|one| begun(one).zip(over(one))).collect();
    let all = all.filter(|all| !all.is_empty())?;
    let name = |(at, one): (usize, &Value)| match (text(one, "name"), text(one, "program")) {
        ("", "") => at.to_string(),
        ("", program) => format!("{at} {program}"),
        (name, _) => name.to_owned(),
    };
    let categories: Vec<String> = list.iter().enumerate().map(name).collect();
    let mut table = Table::new(title, ["name", "begin", "end", "duration"]);
    for (name, (begun, over)) in categories.iter().zip(&all) {
        let cells = [*begun, *over, over - begun].map(|ns| Cell::of(ns, Unit::Ns));
        table.push(std::iter::once(Cell::from(name.as_str())).chain(cells));
    }
    let parts = [
        Part { name: "before".into(), values: all.iter().map(|(begun, _)| *begun).collect(), hidden: true },
        Part {
            name: "active".into(),
            values: all.iter().map(|(begun, over)| over - begun).collect(),
            hidden: false,
        },
    ];
    let height = bars_height(categories.len(), 1).min(900);
    Some(Figure {
        title: title.to_owned(),
        about: "Begin to end, in simulated time.".into(),
        picture: Picture::Chart { chart: bars(Unit::Ns, &categories, &parts), height },
        table,
    })
}

/// Tables of counters and distributions of a component.
pub(super) fn counters(caption: &str, part: &Value) -> String {
    let mut table = Table::new(caption, ["counter", "value"]);
    let mut spread = Table::new(
        format!("{caption}: distributions"),
        ["metric", "mean", "min", "p50", "p90", "p99", "p99.9", "max"],
    );
    let mut lists = String::new();
    fill("", part, &mut table, &mut spread, &mut lists);
    let mut out = format!("<details><summary>Table: {}</summary>{}", Text(caption), table.html());
    if !spread.is_empty() {
        out += &spread.html();
    }
    out + &lists + "</details>"
}

fn fill(prefix: &str, value: &Value, table: &mut Table, spread: &mut Table, lists: &mut String) {
    let Some(members) = value.as_object() else { return };
    for (name, inner) in members {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match inner {
            Value::Object(figures) if figures.contains_key("p99") && figures.contains_key("mean") => {
                let keys = ["mean", "min", "p50", "p90", "p99", "p99_9", "max"];
                let cells = keys.map(|key| Cell::maybe(number(inner, key), Unit::of_key(&path)));
                spread.push(std::iter::once(Cell::from(path)).chain(cells));
            }
            Value::Object(_) => fill(&path, inner, table, spread, lists),
            // Series are drawn, and so are long lists of numbers.
            Value::Array(list) if list.first().is_some_and(Value::is_object) => {
                if list[0].get("start_ns").is_none() {
                    *lists += &members_table(&path, list);
                }
            }
            Value::Array(list) if list.len() > 8 => {}
            leaf_of => {
                let shown = leaf(leaf_of, Unit::of_key(&path));
                table.push([Cell::from(path), Cell::Number(shown)]);
            }
        }
    }
}

/// Table with a row for each member of a list.
fn members_table(path: &str, list: &[Value]) -> String {
    let mut keys: Vec<String> = Vec::new();
    for key in list.iter().filter_map(Value::as_object).flat_map(|one| one.iter()) {
        if !key.1.is_object() && !key.1.is_array() && !keys.contains(key.0) {
            keys.push(key.0.clone());
        }
    }
    // The name of a member labels its row.
    keys.sort_by_key(|key| !["name", "program", "drive"].contains(&key.as_str()));
    let left_out = list.len().saturating_sub(MOST_ROWS);
    let caption =
        if left_out > 0 { format!("{path}; {left_out} more are in the document") } else { path.to_owned() };
    let mut table = Table::new(caption, keys.iter().map(String::as_str));
    for one in list.iter().take(MOST_ROWS) {
        table.push(keys.iter().map(|key| match one.get(key) {
            None => Cell::none(),
            Some(Value::String(text)) => Cell::Text(text.clone()),
            Some(value) => Cell::Number(leaf(value, Unit::of_key(key))),
        }));
    }
    table.html()
}

/// Renders the section; empty if the document has no energy.
pub(super) fn energy(document: &Value) -> String {
    let Some(energy) = at(document, "energy") else { return String::new() };
    let parts = items(energy, "parts");
    let mut names: Vec<&str> = Vec::new();
    for activity in parts.iter().flat_map(|part| items(part, "activities")) {
        let name = text(activity, "activity");
        if number(activity, "energy_j").is_some_and(|joules| joules > 0.0) && !names.contains(&name) {
            names.push(name);
        }
    }
    let spent = |part: &Value, name: &str| {
        let of = |activity: &&Value| text(activity, "activity") == name;
        items(part, "activities")
            .iter()
            .filter(of)
            .filter_map(|activity| number(activity, "energy_j"))
            .sum::<f64>()
    };
    let of_activity = |name: &&str| Part {
        name: (*name).to_owned(),
        values: parts.iter().map(|part| spent(part, name)).collect(),
        hidden: false,
    };
    let stacked: Vec<Part> = names.iter().map(of_activity).collect();
    let category = |part: &Value| {
        let joules = number(part, "energy_j").map_or("–".to_owned(), |joules| shown(joules, Unit::Joules));
        format!("{}, {joules}", text(part, "name"))
    };
    let categories: Vec<String> = parts.iter().map(category).collect();
    let mut table =
        Table::new("Energy by component and activity", ["component", "activity", "kind", "energy"]);
    for part in parts {
        for activity in items(part, "activities") {
            let energy = Cell::maybe(number(activity, "energy_j"), Unit::Joules);
            table.push([
                text(part, "name").into(),
                text(activity, "activity").into(),
                text(activity, "kind").into(),
                energy,
            ]);
        }
    }
    let height = bars_height(categories.len(), stacked.len());
    let mut out = Figure {
        title: "Energy by component".into(),
        about: "Energy of the measured window, by activity.".into(),
        picture: Picture::Chart { chart: bars(Unit::Joules, &categories, &stacked), height },
        table,
    }
    .html();
    let series = items(energy, "total.power_series");
    if series.len() > 1 {
        let curves = vec![curve("all components", series, &|window| number(window, "power_w"))];
        out += &figure("Power".into(), Unit::Watts, curves, series.len()).html();
    }
    if let Some(total) = at(energy, "total").and_then(Value::as_object) {
        let mut table = Table::new("Total energy", ["metric", "value"]);
        for (name, value) in total.iter().filter(|(_, value)| value.is_number()) {
            table.push([Cell::from(name.as_str()), Cell::Number(leaf(value, Unit::of_key(name)))]);
        }
        out += &table.html();
    }
    let missing: Vec<String> = items(energy, "missing").iter().map(|one| leaf(one, Unit::Plain)).collect();
    if !missing.is_empty() {
        out += "<p class=\"lacking\">Components without energy constants are not included:</p>";
        out += &list(missing.iter().map(String::as_str));
    }
    out
}
