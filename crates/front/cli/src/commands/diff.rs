//! `nandscape diff`.

use crate::output::{Fault, columns, print};
use crate::results::read_run;
use report::{Comparison, Difference, Moved, compare};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Arguments of `diff`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Result document, or a folder with a result.json
    a: PathBuf,
    /// Result to compare with it
    b: PathBuf,
    /// List every metric that differs, by section
    #[arg(long)]
    all: bool,
    /// Print the differences as JSON
    #[arg(long)]
    json: bool,
}

/// Keys of the spec listed without `--all`.
const LISTED: usize = 10;
/// Widest column of values, in characters.
const WIDEST: usize = 18;

/// The document of `--json`.
#[derive(Serialize)]
struct Page {
    schema: &'static str,
    a: String,
    b: String,
    #[serde(flatten)]
    compared: Comparison,
}

/// Prints the differences; they are not a fault.
///
/// # Errors
/// A file without a result document.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let (a, b) = (read_run(&args.a)?, read_run(&args.b)?);
    let compared = compare(&a, &b);
    let page = Page { schema: "nandscape.diff/1", a: a.name, b: b.name, compared };
    print(&if args.json {
        // Text and numbers: serialising cannot fail.
        serde_json::to_string_pretty(&page).unwrap_or_default()
    } else {
        human(&page, args.all, columns())
    })?;
    Ok(true)
}

fn human(page: &Page, all: bool, columns: usize) -> String {
    let Page { a, b, compared, .. } = page;
    let mut text = format!("A: {a}\nB: {b}\n");
    spec(compared, all, columns, &mut text);
    if compared.moved.is_empty() {
        text.push_str("\nno headline metric moved\n");
    } else {
        let rows: Vec<Row> = compared.moved.iter().map(Row::of_moved).collect();
        table("moved most", &rows, columns, &mut text);
    }
    let told = without_echoes(&compared.metrics);
    if all {
        sections(&told, columns, &mut text);
        let echoes = compared.metrics.len() - told.len();
        if echoes > 0 {
            let _ = writeln!(text, "\n{echoes} metrics that repeat another are left out; --json has all");
        }
    } else if told.len() > compared.moved.len() {
        let _ = writeln!(text, "\n{} metrics differ; --all lists them", told.len());
    }
    text.truncate(text.trim_end().len());
    text
}

/// The keys of the spec that differ.
fn spec(compared: &Comparison, all: bool, columns: usize, text: &mut String) {
    let keys = &compared.spec;
    if compared.measured {
        text.push_str("\none of them was measured: only metrics of requests in both are compared\n");
    } else if keys.is_empty() {
        text.push_str("\nsystem, workload, seed and spec are the same\n");
    } else {
        let listed = if all { keys.len() } else { LISTED.min(keys.len()) };
        let rows: Vec<Row> = keys.iter().take(listed).map(|key| Row::of(key, &key.key, false)).collect();
        table("spec", &rows, columns, text);
        if listed < keys.len() {
            let _ = writeln!(text, "  {} more keys differ; --all lists them", keys.len() - listed);
        }
    }
}

/// Every metric that differs, a table for each part of the document.
fn sections(told: &[&Difference], columns: usize, text: &mut String) {
    for group in told.chunk_by(|one, other| section(&one.key) == section(&other.key)) {
        let name = section(&group[0].key);
        let label = |key: &str| key.strip_prefix(name).unwrap_or(key).trim_start_matches('.').to_owned();
        let rows: Vec<Row> = group
            .iter()
            .map(|difference| match label(&difference.key) {
                label if label.is_empty() => Row::of(difference, name, true),
                label => Row::of(difference, &label, true),
            })
            .collect();
        table(name, &rows, columns, text);
    }
}

/// The part of a document that a key belongs to: its first name, with the component of a list.
fn section(key: &str) -> &str {
    const WHOLE: [&str; 3] = ["io.", "breakdown_ns.", "energy."];
    let first = key.find('.').unwrap_or(key.len());
    if WHOLE.iter().any(|whole| key.starts_with(whole)) {
        return &key[..first];
    }
    key[first..]
        .char_indices()
        .skip(1)
        .find(|(_, c)| *c == '.')
        .map_or(&key[..first], |(at, _)| &key[..first + at])
}

/// A line of a table.
struct Row {
    label: String,
    a: String,
    b: String,
    change: String,
}

impl Row {
    fn of(difference: &Difference, label: &str, has_change: bool) -> Row {
        let [a, b] = difference.shown().map(|text| shortened(&text));
        let change = if has_change { change(difference.relative) } else { String::new() };
        Row { label: label.to_owned(), a, b, change }
    }

    fn of_moved(moved: &Moved) -> Row {
        let Moved { name, a, b, relative } = moved;
        Row { label: name.clone(), a: a.clone(), b: b.clone(), change: change(*relative) }
    }
}

/// Relative change with its sign; a factor from ten on.
fn change(relative: Option<f64>) -> String {
    match relative {
        None => String::new(),
        Some(relative) if relative >= 9.0 => format!("x{:.1}", 1.0 + relative),
        Some(relative) => format!("{:+.2} %", 100.0 * relative),
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= WIDEST {
        return text.to_owned();
    }
    text.chars().take(WIDEST - 3).chain("...".chars()).collect()
}

/// Writes a table; a label that leaves no room for the values stands on a line of its own.
fn table(title: &str, rows: &[Row], columns: usize, text: &mut String) {
    let width = |of: fn(&Row) -> &str| rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0);
    let (a, b) = (width(|row| &row.a).max(1), width(|row| &row.b).max(1));
    let change = width(|row| &row.change);
    let room = columns.saturating_sub(2 + 2 + a + 2 + b + if change > 0 { 2 + change } else { 0 });
    let label = width(|row| &row.label).max(title.chars().count().saturating_sub(2)).min(room).max(8);
    let head = label + 2;
    let _ = write!(text, "\n{title:head$}  {:>a$}  {:>b$}\n", "A", "B");
    for row in rows {
        let values = format!("  {:>a$}  {:>b$}  {:>change$}", row.a, row.b, row.change);
        let apart = row.label.chars().count() > label;
        let own = if apart {
            format!("  {}\n  {:label$}", row.label, "")
        } else {
            format!("  {:label$}", row.label)
        };
        let _ = writeln!(text, "{own}{}", values.trim_end());
    }
}

/// The differences without those of `io` that repeat another. With one flow of reads, each metric stands there four times;
/// with a host without costs, each latency three times.
fn without_echoes(all: &[Difference]) -> Vec<&Difference> {
    let metric = |d: &Difference| d.key.rsplit('.').next().map(str::to_owned);
    let is_echo = |later: &Difference, other: &Difference| {
        later.key.starts_with("io.")
            && other.key.starts_with("io.")
            && (&later.a, &later.b) == (&other.a, &other.b)
            && metric(later) == metric(other)
            && rank(other) < rank(later)
    };
    all.iter().filter(|d| !all.iter().any(|other| is_echo(d, other))).collect()
}

/// Rank of equal metrics, the one to keep first: the whole before a kind, a kind before a flow, the latency before its parts.
fn rank(difference: &Difference) -> (bool, bool, bool, &str) {
    let key = difference.key.as_str();
    (key.starts_with("io.flows."), !key.starts_with("io.all."), !key.contains(".latency_ns."), key)
}
