//! `nandscape diff`.

use crate::output::{Fault, print};
use crate::results::read_run;
use report::Run;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// What to compare.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A result document, or a folder with a result.json
    a: PathBuf,
    /// Another
    b: PathBuf,
    /// Prints the differences as JSON
    #[arg(long)]
    json: bool,
}

/// Tables that are compared apart, or that say nothing of the system: the spec, the cost of the run.
const APART: [&str; 3] = ["spec", "spec_sha256", "run"];
/// Tables of many figures, wherever they are: every window of time, every bucket, single requests.
const MANY_FIGURES: [&str; 4] = ["series", "histogram_ns", "histogram", "slowest"];

/// Lists of more numbers than this are compared by their mean.
const MANY: usize = 4;
/// Characters of a value that are shown.
const SHOWN: usize = 40;

/// The differences of two results.
#[derive(Serialize)]
struct Differences {
    schema: &'static str,
    a: String,
    b: String,
    /// Leaves of the resolved spec that differ.
    spec: Vec<Difference>,
    /// Everything else that differs.
    metrics: Vec<Difference>,
    /// Whether one of them was measured, and has no spec.
    #[serde(skip)]
    measured: bool,
}

/// A leaf that differs; null where a document does not have it.
#[derive(Serialize)]
struct Difference {
    key: String,
    a: Value,
    b: Value,
    /// (b - a) / |a|, for numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    relative: Option<f64>,
}

/// Prints the differences. That there are some is no fault.
///
/// # Errors
/// A file that is no result document.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let Run { name: name_a, document: a } = read_run(&args.a)?;
    let Run { name: name_b, document: b } = read_run(&args.b)?;
    let (mut spec_a, mut metrics_a) = leaves(&a);
    let (mut spec_b, mut metrics_b) = leaves(&b);
    let measured = is_measured(&a) || is_measured(&b);
    if measured {
        // Of a drive that was measured nothing is known but what its host saw.
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

/// Whether a document was measured, not simulated (`nandscape import fio-json`).
fn is_measured(document: &Value) -> bool {
    document.get("measured").is_some()
}

/// Keeps the figures of requests that the other has as well.
fn keep_common(metrics: &mut Leaves, others: &Leaves) {
    let is_known = |value: Option<&Value>| value.is_some_and(Value::is_number);
    metrics.retain(|key, value| key.starts_with("io.") && value.is_number() && is_known(others.get(key)));
}

type Leaves = BTreeMap<String, Value>;

/// The leaves of the spec, and all others.
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
        // One figure for each die would bury the others.
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
                "one of them was measured; what both know of requests is compared"
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
            "\n{echoes} figures of parts that say the same as the whole are left out; --json has all\n"
        );
    }
    text.truncate(text.trim_end().len());
    text
}

/// The differences without those of `io` that repeat another: where all requests are reads of one flow, every figure
/// stands there four times, and where the host's software costs nothing, every latency three times.
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

/// Who is kept of two that say the same: the whole before a kind, a kind before a flow, the latency before its parts.
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
