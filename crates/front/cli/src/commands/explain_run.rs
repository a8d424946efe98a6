//! `nandscape explain-run`: what a document says of its run, and runs of its machine with one key changed.

use crate::output::{Fault, print};
use crate::results::read_run;
use config::Diagnostic;
use machine::result::told::{Figure, Key, TOLD, Told, told, worth};
use machine::run::{Plan, run_alone};
use report::Run;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;

/// What to explain.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A result document, or a folder with a result.json
    result: PathBuf,
    /// Runs the machine of the document again, once as it is and once with each key that may be worth a try, and proposes those alone that make it better
    #[arg(long = "try")]
    tries: bool,
    /// Prints it as JSON
    #[arg(long)]
    json: bool,
}

/// What is told, with what was tried.
#[derive(serde::Serialize)]
struct Page {
    #[serde(flatten)]
    told: Told,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<Trial>,
}

/// Says what limits a run.
///
/// # Errors
/// A file that is not a result document; a machine that cannot be run again.
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
        human(&name, &page)
    })?;
    Ok(true)
}

fn human(name: &str, page: &Page) -> String {
    let mut text = format!("{name}\n");
    for finding in &page.told.findings {
        let _ = writeln!(text, "  * {finding}");
    }
    if page.told.findings.is_empty() {
        let _ = writeln!(
            text,
            "  nothing in it says where time went: it has no parts, as of a result that was measured"
        );
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

/// Keys that are tried at most, each by a run.
const TRIED: usize = 12;

/// A key moves a figure if it makes it better by this share: *chosen*.
const MOVES: f64 = 0.005;

/// What was tried.
#[derive(serde::Serialize)]
struct Trial {
    /// The figure that keys are to move, in a run of the document's machine as it is.
    figure: Figure,
    /// How the figure stands in the document, where that is another value.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<f64>,
    /// The keys with what came out: those that move the figure first, the one that moves it most in front.
    tried: Vec<Tried>,
}

/// A key that was tried.
#[derive(serde::Serialize)]
struct Tried {
    #[serde(flatten)]
    key: Key,
    /// The figure with it; none if no such machine can be run.
    value: Option<f64>,
    /// The share by which that is better; negative if it is worse.
    gain: Option<f64>,
    /// Why no such machine can be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

impl Tried {
    fn moves(&self) -> bool {
        self.gain.is_some_and(|gain| gain >= MOVES)
    }
}

impl Trial {
    /// Tries the keys that are worth one.
    ///
    /// # Errors
    /// A document that says no figure, or a machine that cannot be run again.
    fn of(document: &Value) -> Result<Trial, Diagnostic> {
        let figure = Figure::of(document).ok_or_else(|| {
            Diagnostic::new("the document says no figure that a key could move")
                .help("`--try` takes the result of a run that has done something")
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

    /// The keys that move the figure, the one that moves it most first.
    fn proposed(&self) -> Vec<Key> {
        self.tried.iter().filter(|tried| tried.moves()).take(TOLD).map(|tried| tried.key.clone()).collect()
    }

    /// Writes it for a reader.
    fn write(&self, text: &mut String) {
        let Figure { name, value, .. } = &self.figure;
        if let Some(document) = self.document {
            let _ = writeln!(
                text,
                "\n  {name} is {document} in the document and {value} in a run of its machine: another version, or `--warmup`, `--queue-depth` and options of traces, \
                 which a document does not keep"
            );
        }
        let (moving, others): (Vec<&Tried>, Vec<&Tried>) = self.tried.iter().partition(|tried| tried.moves());
        if moving.is_empty() {
            let _ =
                writeln!(text, "\n  of {} keys that were tried none makes {name} better", self.tried.len());
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

/// A number with four digits that count.
fn short(value: f64) -> String {
    let digits = 3 - value.abs().log10().floor().clamp(-12.0, 3.0) as i32;
    format!("{value:.*}", digits.max(0) as usize)
}

/// The figure of a run.
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

/// What is run to get such a document.
fn plan(document: &Value) -> Result<Plan, Diagnostic> {
    let lacks = |what: &str| {
        Diagnostic::new(format!("the document has no {what}, so that its machine cannot be run again"))
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

/// A value as TOML has it; none for what it has not, which is left out of tables.
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
