//! `nandscape diff`.

use crate::output::{Fault, print};
use crate::results::read_run;
use report::Run;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Arguments of `diff`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Result document, or a folder with a result.json
    a: PathBuf,
    /// Second result document or folder
    b: PathBuf,
    /// Print the differences as JSON
    #[arg(long)]
    json: bool,
}

/// Tables compared separately (the spec) or not about the system (the cost of the run).
const APART: [&str; 3] = ["spec", "spec_sha256", "run"];
/// Tables with many values, wherever they occur: per window of time, per bucket, per request.
const MANY_FIGURES: [&str; 4] = ["series", "histogram_ns", "histogram", "slowest"];

/// Length above which a list of numbers is compared by its mean.
const MANY: usize = 4;
/// Characters shown of a value.
const SHOWN: usize = 40;

/// Differences between two results.
#[derive(Serialize)]
struct Differences {
    schema: &'static str,
    a: String,
    b: String,
    /// Leaves of the resolved spec that differ.
    spec: Vec<Difference>,
    /// All other leaves that differ.
    metrics: Vec<Difference>,
    /// Whether one of the results was measured and has no spec.
    #[serde(skip)]
    measured: bool,
}

/// Leaf that differs; null where a document lacks it.
#[derive(Serialize)]
struct Difference {
    key: String,
    a: Value,
    b: Value,
    /// Relative change (b - a) / |a|, for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    relative: Option<f64>,
}

/// Prints the differences. Finding some is not a failure.
///
/// # Errors
/// A file is not a result document.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let Run { name: name_a, document: a } = read_run(&args.a)?;
    let Run { name: name_b, document: b } = read_run(&args.b)?;
    let (mut spec_a, mut metrics_a) = leaves(&a);
    let (mut spec_b, mut metrics_b) = leaves(&b);
    let measured = is_measured(&a) || is_measured(&b);
    if measured {
        // A measured drive is known only through what its host saw.
        (spec_a, spec_b) = (Leaves::new(), Leaves::new());
        keep_common(&mut metrics_a, &metrics_b);
        keep_common(&mut metrics_b, &metrics_a);
    }
    let differences = Differences {
        schema: "nandscape.diff/1",
        a: name_a,
        b: name_b,
        spec: compare(&spec_a, &spec_b),
        metrics: compare(&metrics_a, &metrics_b),
        measured,
    };
    print(&if args.json {
        // Text and numbers: serialising cannot fail.
        serde_json::to_string_pretty(&differences).unwrap_or_default()
    } else {
        human(&differences)
    })?;
    Ok(true)
}

/// Returns whether a document was measured, not simulated (`nandscape import fio-json`).
fn is_measured(document: &Value) -> bool {
    document.get("measured").is_some()
}

/// Keeps the metrics of requests that the other document has as well.
fn keep_common(metrics: &mut Leaves, others: &Leaves) {
    let is_known = |value: Option<&Value>| value.is_some_and(Value::is_number);
    metrics.retain(|key, value| key.starts_with("io.") && value.is_number() && is_known(others.get(key)));
}

type Leaves = BTreeMap<String, Value>;

/// Splits a document into leaves of the spec and all other leaves.
fn leaves(document: &Value) -> (Leaves, Leaves) {
    let (mut spec, mut metrics) = (Leaves::new(), Leaves::new());
    if let Some(table) = document.get("spec") {
        collect("", table, &mut spec);
    }
    collect("", document, &mut metrics);
    let is_apart = |key: &str| {
        APART
            .iter()
            .any(|apart| key.strip_prefix(apart).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    let is_of_many = |key: &str| key.split('.').any(|name| MANY_FIGURES.contains(&name));
    metrics.retain(|key, _| !is_apart(key) && !is_of_many(key));
    (spec, metrics)
}

fn collect(key: &str, value: &Value, found: &mut Leaves) {
    let join = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match value {
        Value::Object(table) => table.iter().for_each(|(name, inner)| collect(&join(name), inner, found)),
        // A value for each die would bury the others.
        Value::Array(items) if items.len() > MANY && items.iter().all(Value::is_number) => {
            let sum: f64 = items.iter().filter_map(Value::as_f64).sum();
            found.insert(join("mean"), (sum / items.len() as f64).into());
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, inner)| collect(&join(&at.to_string()), inner, found));
        }
        leaf => {
            found.insert(key.to_owned(), leaf.clone());
        }
    }
}

fn compare(a: &Leaves, b: &Leaves) -> Vec<Difference> {
    let mut keys: Vec<&String> = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).collect();
    keys.sort_unstable();
    let differs = |key: &&&String| a.get(**key) != b.get(**key);
    keys.iter()
        .filter(differs)
        .map(|key| {
            let of = |leaves: &Leaves| leaves.get(*key).cloned().unwrap_or(Value::Null);
            let (a, b) = (of(a), of(b));
            let relative = match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) if a != 0.0 => Some((b - a) / a.abs()),
                _ => None,
            };
            Difference { key: (*key).clone(), a, b, relative }
        })
        .collect()
}

fn human(differences: &Differences) -> String {
    let Differences { a, b, spec, metrics, .. } = differences;
    let mut text = format!("A: {a}\nB: {b}\n");
    let told = without_echoes(metrics);
    for (title, all) in [("spec", &spec.iter().collect()), ("metrics", &told)] {
        if all.is_empty() {
            let why = if differences.measured && title == "spec" {
                "one result was measured; the comparison covers the request metrics that both have"
            } else {
                "no difference"
            };
            let _ = write!(text, "\n{title}: {why}\n");
            continue;
        }
        let rows: Vec<[String; 4]> = all.iter().map(|difference| cells(difference)).collect();
        let width = |n: usize| rows.iter().map(|row| row[n].chars().count()).max().unwrap_or(0);
        let (key, left, right) = (width(0).max(title.len()), width(1), width(2));
        let _ = write!(text, "\n{title:key$}  {:>left$}  {:>right$}\n", "A", "B");
        for [name, a, b, change] in &rows {
            let _ =
                writeln!(text, "{}", format!("{name:key$}  {a:>left$}  {b:>right$}  {change:>9}").trim_end());
        }
    }
    let echoes = metrics.len() - told.len();
    if echoes > 0 {
        let _ = write!(
            text,
            "\n{echoes} metrics that repeat another one are omitted; --json has all\n"
        );
    }
    text.truncate(text.trim_end().len());
    text
}

/// Removes differences of `io` that repeat another. Where all requests are reads of one flow, every value appears four
/// times; where the host's software costs nothing, every latency appears three times.
fn without_echoes(all: &[Difference]) -> Vec<&Difference> {
    let figure = |d: &Difference| d.key.rsplit('.').next().map(str::to_owned);
    let is_echo = |later: &Difference, other: &Difference| {
        later.key.starts_with("io.")
            && other.key.starts_with("io.")
            && (&later.a, &later.b) == (&other.a, &other.b)
            && figure(later) == figure(other)
            && rank(other) < rank(later)
    };
    all.iter().filter(|d| !all.iter().any(|other| is_echo(d, other))).collect()
}

/// Rank that decides which of two equal differences stays: total before kind, kind before flow, latency before its
/// parts.
fn rank(difference: &Difference) -> (bool, bool, bool, &str) {
    let key = difference.key.as_str();
    (key.starts_with("io.flows."), !key.starts_with("io.all."), !key.contains(".latency_ns."), key)
}

fn cells(difference: &Difference) -> [String; 4] {
    let shown = |value: &Value| match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.chars().count() > SHOWN => {
            text.chars().take(SHOWN - 1).chain(['…']).collect()
        }
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => format!("{:.6}", number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    };
    let change = difference.relative.map(|r| format!("{:+.2} %", 100.0 * r)).unwrap_or_default();
    [difference.key.clone(), shown(&difference.a), shown(&difference.b), change]
}
