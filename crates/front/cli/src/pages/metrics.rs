//! `docs/metrics.md`: every field of the result document.

use super::{GENERATED, head, row};
use machine::result::metrics::{MILESTONES, Metric, STAGES, all, figures};
use machine::result::{Kinds, SCHEMA};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Tables of the document in the order of the page; any other follows.
const ORDER: [&str; 7] = ["", "run", "io", "gpu", "cpu", "flash", "breakdown_ns"];

/// The page.
pub(crate) fn page() -> String {
    let mut text = String::from(GENERATED);
    let _ = write!(
        text,
        "\n# Metrics\n\nThe fields of the result document, `{SCHEMA}`: what `nandscape run --json` prints.\n\n\
         Units: `ns`, `s`, `B` (bytes), `B/s` and `1/s` (per second of simulated time; `requests_per_cpu_s` per second \
         of CPU time), `share` (zero to one). Rates divide by the measured window: from the end of the warm-up to the \
         last completion. Counts are those of the measured window. `*` stands for an index, or for a name of the \
         document.\n"
    );
    let mut sections: BTreeMap<String, Vec<Metric>> = BTreeMap::new();
    for metric in all() {
        let table = metric.pattern.split_once('.').map_or("", |(table, _)| table).to_owned();
        // `warnings.*` is a field of the document, not a table.
        let table = if metric.pattern == format!("{table}.*") { String::new() } else { table };
        let section = sections.entry(table).or_default();
        if !section.iter().any(|m| m.pattern == metric.pattern) {
            section.push(metric);
        }
    }
    let rank = |table: &String| ORDER.iter().position(|o| o == table).unwrap_or(ORDER.len());
    let mut order: Vec<&String> = sections.keys().collect();
    order.sort_by_key(|table| rank(table));
    for table in order {
        let title = if table.is_empty() { "The document".to_owned() } else { format!("`{table}`") };
        let _ =
            write!(text, "\n## {title}\n\n{}{}", introduction(table), head(["key", "unit", "definition"]));
        for metric in &sections[table] {
            // A figure's own words stand in the table of figures.
            let doc = metric.of.as_deref().unwrap_or(&metric.doc);
            text.push_str(&row([&format!("`{}`", metric.pattern), metric.unit, doc]));
        }
    }
    text.push_str(&figures_table());
    text.push_str(&milestones_table());
    text
}

fn introduction(table: &str) -> String {
    match table {
        "io" => format!(
            "`KIND` is one of {}; a kind of which no request completed is left out. `FIGURE` is one of the \
             [figures](#figures).\n\n",
            Kinds::NAMES.map(|name| format!("`{name}`")).join(", ")
        ),
        "breakdown_ns" => {
            "The first `*` is `read` or `write`, the second one of the [milestones](#milestones); of a GPU, `load` or \
             `store` and one of the [stages](#stages). Those that took no time are left out.\n\n"
                .to_owned()
        }
        "run" => "The only table that differs from run to run.\n\n".to_owned(),
        _ => String::new(),
    }
}

fn figures_table() -> String {
    let mut text = format!(
        "\n## Figures\n\nOf a distribution of latencies. A figure that the samples do not support is null: all of them \
         where there are no samples, a percentile `p` where `N (1 - p) < 10`.\n\n{}",
        head(["figure", "definition"])
    );
    for (name, doc) in figures() {
        text.push_str(&row([&format!("`{name}`"), &doc]));
    }
    text
}

fn milestones_table() -> String {
    let mut text = format!(
        "\n## Milestones\n\nWhat a request waits for. They tile its whole life, so their means sum to the mean \
         latency.\n\n{}",
        head(["milestone", "it waits for"])
    );
    for (name, doc) in MILESTONES {
        text.push_str(&row([&format!("`{name}`"), doc]));
    }
    text.push_str("\n## Stages\n\nWhat a line of a load or store waits for, on its way from a multiprocessor of a GPU or a core of a server. They tile its life in the same way.\n\n");
    text.push_str(&head(["stage", "it waits for"]));
    for (name, doc) in STAGES {
        text.push_str(&row([&format!("`{name}`"), doc]));
    }
    text
}
