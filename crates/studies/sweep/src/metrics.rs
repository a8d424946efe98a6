//! Metrics of a sweep's file that no run can have, and those that none has had.

use super::file::Sweep;
use super::outcome::Outcome;
use super::store::Store;
use config::{Diagnostic, Resolved};
use machine::result::metrics;
use machine::spec::Kind;
use serde_json::Value;

/// Refuses what the document of no run whatever has.
///
/// # Errors
/// The first such metric.
pub(super) fn refuse_unknown(names: &[String], resolved: &Resolved) -> Result<(), Diagnostic> {
    names
        .iter()
        .enumerate()
        .try_for_each(|(at, name)| refuse_unknown_at(name, &format!("metrics.{at}"), resolved))
}

/// As [`refuse_unknown`], of a metric that stands somewhere in the file.
///
/// # Errors
/// No result has it.
pub(super) fn refuse_unknown_at(name: &str, place: &str, resolved: &Resolved) -> Result<(), Diagnostic> {
    let known = metrics::all();
    if known.iter().any(|metric| metrics::is_instance(metric, name)) {
        return Ok(());
    }
    let mut fault = resolved.diagnose(place, format!("no metric `{name}`"));
    let help = "`nandscape explain NAME` finds metrics; docs/metrics.md has all";
    if let Some(meant) = known.iter().find_map(|metric| metrics::with_indices(metric, name)) {
        fault.what += ": a list's element is called by its number";
        fault.nearest = Some(meant);
        return Err(fault.help(help));
    }
    fault = fault.allowed(name, known.iter().map(|metric| metric.key.replace('*', "0")));
    fault.allowed.clear();
    Err(fault.help(help).pointed(name))
}

/// The unit of a metric.
pub(super) fn unit_of(name: &str) -> Option<&'static str> {
    metrics::all().into_iter().find(|metric| metrics::is_instance(metric, name)).map(|metric| metric.unit)
}

/// Refuses metrics of parts that no run has, of which there are at most so many of a kind.
///
/// # Errors
/// The first such metric.
pub(super) fn refuse_absent_parts(sweep: &Sweep, most: impl Fn(Kind) -> usize) -> Result<(), Diagnostic> {
    for (at, name) in sweep.named().iter().enumerate() {
        let mut parts = name.split('.');
        let (head, number) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let kind = Kind::ALL.iter().find(|kind| kind.name() == head);
        let (Some(kind), Ok(number)) = (kind, number.parse::<usize>()) else { continue };
        let count = most(*kind);
        if number < count {
            continue;
        }
        let has = match count {
            0 => format!("has no `{}`", kind.name()),
            1 => format!("has one `{}`, number 0", kind.name()),
            _ => format!("has {count} of `{}`, numbers 0 to {}", kind.name(), count - 1),
        };
        let what = format!("no run can have the metric `{name}`: the system {has}");
        let mut fault = sweep.diagnose_metric(at, what).help("docs/metrics.md has all metrics");
        fault.nearest =
            (count > 0).then(|| [head, "0"].into_iter().chain(parts).collect::<Vec<_>>().join("."));
        return Err(fault);
    }
    Ok(())
}

/// Refuses metrics that no run has had, once that is known: all have ended, or one has and all are alike.
///
/// # Errors
/// The first such metric.
pub fn refuse_absent(sweep: &Sweep, outcomes: &[Outcome], store: &Store) -> Result<(), Diagnostic> {
    let is_known = sweep.is_alike() || !outcomes.iter().any(|outcome| matches!(outcome, Outcome::NotRun));
    let run = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Done(run) => Some(run),
        _ => None,
    });
    let (Some(run), true) = (run, is_known) else { return Ok(()) };
    let lacking = (0..sweep.named().len()).find(|at| outcomes.iter().all(|outcome| !outcome.has(*at)));
    let Some(at) = lacking else { return Ok(()) };
    let name = &sweep.metrics[at];
    let mut keys = Vec::new();
    leaves("", &store.document(&run.key).unwrap_or_default(), &mut keys);
    let mut fault = sweep.diagnose_metric(at, format!("no run has the metric `{name}`")).allowed(name, keys);
    fault.allowed.clear();
    Err(fault.help("the documents of runs have all that there is; docs/metrics.md says what each is"))
}

/// The keys of a document that are figures or texts.
fn leaves(key: &str, value: &Value, found: &mut Vec<String>) {
    let below = |part: &str| if key.is_empty() { part.to_owned() } else { format!("{key}.{part}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| leaves(&below(name), value, found)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| leaves(&below(&at.to_string()), value, found));
        }
        _ => found.push(key.to_owned()),
    }
}
