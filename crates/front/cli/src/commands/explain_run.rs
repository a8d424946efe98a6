//! `nandscape explain-run`: explains what limited a run from its document, and reruns its machine with one key changed.

use crate::output::{Fault, print, wrapped};
use crate::results::read_run;
use config::Diagnostic;
use machine::result::told::{Figure, Key, TOLD, Told, told, worth};
use machine::run::{Plan, run_alone};
use report::Run;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Arguments of `explain-run`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Result document, or a folder with a result.json
    result: PathBuf,
    /// Rerun the document's machine, once unchanged and once for each suggested key, and propose only keys that improve
    /// it
    #[arg(long = "try")]
    tries: bool,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// Findings, with the outcome of the trials.
#[derive(serde::Serialize)]
struct Page {
    #[serde(flatten)]
    told: Told,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<Trial>,
}

/// Reports what limits a run.
///
/// # Errors
/// The file is not a result document, or its machine cannot be run again.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let Run { name, document } = read_run(&args.result)?;
    let mut page = Page { told: told(&document), trial: None };
    if args.tries {
        let trial = Trial::of(&document)?;
        page.told.keys = trial.proposed();
        page.trial = Some(trial);
    }
    print(&if args.json {
        // Text and numbers: serialising cannot fail.
        serde_json::to_string_pretty(&page).unwrap_or_default()
    } else {
        wrapped(&human(&name, &page))
    })?;
    Ok(true)
}

fn human(name: &str, page: &Page) -> String {
    let mut text = format!("{name}\n");
    for finding in &page.told.findings {
        let _ = writeln!(text, "  * {finding}");
    }
    if page.told.findings.is_empty() {
        let _ =
            writeln!(text, "  no findings: this result has no time breakdown (measured results have none)");
    }
    if let Some(trial) = &page.trial {
        trial.write(&mut text);
    } else if !page.told.keys.is_empty() {
        let _ = writeln!(text, "\n  worth a try (`--try` runs them):");
        for key in &page.told.keys {
            let _ = writeln!(text, "    {} (now {}, try {}): {}", key.key, key.says(), key.tries(), key.why);
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Maximum number of keys tried, each by one run.
const TRIED: usize = 12;

/// Relative improvement of a metric from which a key counts as effective: *chosen*.
const MOVES: f64 = 0.005;

/// Outcome of the trials.
#[derive(serde::Serialize)]
struct Trial {
    /// Metric that keys should improve, in a run of the document's machine unchanged.
    figure: Figure,
    /// Value in the document, where it differs from that of the rerun.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<f64>,
    /// Keys with their outcomes: effective keys first, the most effective in front.
    tried: Vec<Tried>,
}

/// Key that was tried.
#[derive(serde::Serialize)]
struct Tried {
    #[serde(flatten)]
    key: Key,
    /// Metric with the key changed; none if such a machine cannot be run.
    value: Option<f64>,
    /// Relative improvement; negative if worse.
    gain: Option<f64>,
    /// Reason why such a machine cannot be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl Tried {
    fn moves(&self) -> bool {
        self.gain.is_some_and(|gain| gain >= MOVES)
    }
}

impl Trial {
    /// Tries the suggested keys.
    ///
    /// # Errors
    /// The document has no metric to improve, or its machine cannot be run again.
    fn of(document: &Value) -> Result<Trial, Diagnostic> {
        let figure = Figure::of(document).ok_or_else(|| {
            Diagnostic::new("the document has no metric that a key could improve")
                .help("`--try` needs the result of a run that completed work")
        })?;
        let plan = plan(document)?;
        let again = |value: f64| Figure { value, ..figure.clone() };
        let base = again(outcome(&plan, &figure)?);
        let differs = (base.value / figure.value - 1.0).abs() > 1e-9;
        let mut tried = Vec::new();
        for key in worth(document).into_iter().take(TRIED) {
            let changed = key.set.iter().fold(plan.clone(), |plan, set| plan.set(set));
            let (value, refused) = match outcome(&changed, &figure) {
                Ok(value) => (Some(value), None),
                Err(fault) => (None, Some(fault.one_line())),
            };
            tried.push(Tried { key, value, gain: value.map(|value| base.gain(value)), refused });
        }
        tried.sort_by(|a, b| {
            let of = |tried: &Tried| tried.gain.unwrap_or(f64::NEG_INFINITY);
            of(b).total_cmp(&of(a))
        });
        Ok(Trial { document: differs.then_some(figure.value), figure: base, tried })
    }

    /// Keys that improve the metric, the most effective first.
    fn proposed(&self) -> Vec<Key> {
        self.tried.iter().filter(|tried| tried.moves()).take(TOLD).map(|tried| tried.key.clone()).collect()
    }

    /// Writes the trials as text.
    fn write(&self, text: &mut String) {
        let Figure { name, value, .. } = &self.figure;
        if let Some(document) = self.document {
            let _ = writeln!(
                text,
                "\n  {name} is {document} in the document and {value} in a rerun: the version differs, or the run used `--warmup`, `--queue-depth` or trace options, \
                 which a document does not record"
            );
        }
        let (moving, others): (Vec<&Tried>, Vec<&Tried>) = self.tried.iter().partition(|tried| tried.moves());
        if moving.is_empty() {
            let _ = writeln!(text, "\n  none of the {} keys tried improves {name}", self.tried.len());
        } else {
            let _ = writeln!(text, "\n  tried, {name} now {}:", short(*value));
        }
        for tried in moving.iter().take(TOLD) {
            let Key { key, why, .. } = &tried.key;
            let (now, to) = (tried.key.says(), tried.key.tries());
            let (Some(value), Some(gain)) = (tried.value, tried.gain) else { continue };
            let _ = writeln!(
                text,
                "    {key} (now {now}, tried {to}): {}, {:.1} % better; {why}",
                short(value),
                100.0 * gain
            );
        }
        let without: Vec<&str> = others.iter().map(|tried| tried.key.key.as_str()).collect();
        if !without.is_empty() {
            let _ = writeln!(text, "  tried without effect: {}", without.join(", "));
        }
    }
}

/// Formats a number with four significant digits.
fn short(value: f64) -> String {
    let digits = 3 - value.abs().log10().floor().clamp(-12.0, 3.0) as i32;
    format!("{value:.*}", digits.max(0) as usize)
}

/// Runs the plan and returns the metric.
fn outcome(plan: &Plan, figure: &Figure) -> Result<f64, Diagnostic> {
    let document = run_alone(plan)?;
    if let Some(check) = document.checks.iter().find(|check| !check.ok) {
        return Err(Diagnostic::new(format!("a check of the run failed: {}", check.name)));
    }
    // Text and numbers: serialising cannot fail.
    let document = serde_json::to_value(&document).unwrap_or_default();
    let value = figure.again(&document);
    value.ok_or_else(|| Diagnostic::new(format!("the run has no `{}`", figure.name)))
}

/// Builds the plan whose run gives this document.
fn plan(document: &Value) -> Result<Plan, Diagnostic> {
    let lacks = |what: &str| {
        Diagnostic::new(format!("the document has no {what}: its machine cannot be run again"))
            .help("`--try` takes a result document of `nandscape run`")
    };
    let spec = toml_of(document.get("spec").ok_or_else(|| lacks("`spec`"))?);
    let spec = spec.and_then(|spec| toml::to_string(&spec).ok()).ok_or_else(|| lacks("`spec`"))?;
    let workloads = document.get("workload").and_then(Value::as_array).ok_or_else(|| lacks("`workload`"))?;
    let workloads: Vec<String> = workloads.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let first = workloads.first().ok_or_else(|| lacks("`workload`"))?.clone();
    let system = document.get("system").and_then(Value::as_str).unwrap_or("document");
    let seed = document.get("seed").and_then(Value::as_u64).ok_or_else(|| lacks("`seed`"))?;
    Ok(Plan { text: Some(spec), workloads, seed, ..Plan::new(system, &first) })
}

/// Converts a value to TOML; values that TOML lacks give `None` and are omitted from tables.
fn toml_of(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(on) => toml::Value::Boolean(*on),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => toml::Value::Integer(whole),
            None => toml::Value::Float(number.as_f64()?),
        },
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Array(all) => toml::Value::Array(all.iter().filter_map(toml_of).collect()),
        Value::Object(table) => {
            let of = |(name, value): (&String, &Value)| Some((name.clone(), toml_of(value)?));
            toml::Value::Table(table.iter().filter_map(of).collect())
        }
    })
}
