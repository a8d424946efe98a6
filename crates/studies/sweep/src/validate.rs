//! Checks before anything runs, and checks for metrics that no run can have or has had.

use super::axes::{Key, assignment};
use super::file::Sweep;
use super::point::Outcome;
use super::point::{Cell, advance, plan, settings};
use super::store::Store;
use config::{Diagnostic, Place, Resolved};
use machine::result::metrics;
use machine::run::{Plan, check};
use serde_json::Value;
use spec::Kind;

/// Number of combinations up to which all are checked. Above it, each value is checked once, beside the first values of
/// the other axes: seconds, not minutes, for a sweep of any size.
const ALL_LOOKED_AT: usize = 2_000;

/// Checks every combination of the axes' values and every workload, so that a sweep is refused before its first run.
///
/// # Errors
/// The first invalid value, with its place in the file.
pub fn refuse_unusable(sweep: &Sweep) -> Result<(), Diagnostic> {
    let mut most = vec![0; Kind::ALL.len()];
    let all = combinations(sweep);
    for cell in &all {
        let (loaded, _) =
            check(&plan(sweep, cell, false)).map_err(|fault| at_its_axis(sweep, cell, fault))?;
        for (most, kind) in most.iter_mut().zip(Kind::ALL) {
            *most = loaded.spec.count(*kind).max(*most);
        }
    }
    refuse_absent_parts(sweep, |kind| most[kind as usize])?;
    // Files are read once, with the first combination; jobs are checked with each of their options' values.
    let has_options = |cell: &Cell| settings(sweep, cell).iter().any(|(key, _)| key.option().is_some());
    for workload in 0..sweep.workloads.len() {
        for (_, cell) in all.iter().enumerate().filter(|(n, cell)| *n == 0 || has_options(cell)) {
            let cell = Cell { workload, ..cell.clone() };
            let plan = plan(sweep, &cell, true);
            check(&plan).map_err(|fault| at_its_workload(sweep, &cell, &plan, fault))?;
        }
    }
    Ok(())
}

/// Combinations to check.
fn combinations(sweep: &Sweep) -> Vec<Cell> {
    let sought = sweep.search.as_ref().map_or_else(Vec::new, |search| search.first_and_last());
    let first = Cell {
        system: 0,
        workload: 0,
        steps: vec![0; sweep.axes.len()],
        sought: sought.first().copied(),
        seed: 0,
    };
    let sizes = || sweep.axes.iter().map(|axis| axis.rows.len());
    let mut found = vec![first.clone()];
    let all = sizes().try_fold(sweep.systems.len(), usize::checked_mul);
    if all.is_some_and(|all| all <= ALL_LOOKED_AT) {
        for system in 0..sweep.systems.len() {
            let mut steps = first.steps.clone();
            if system > 0 {
                found.push(Cell { system, steps: steps.clone(), ..first.clone() });
            }
            while advance(sweep, &mut steps) {
                found.push(Cell { system, steps: steps.clone(), ..first.clone() });
            }
        }
    } else {
        found.extend((1..sweep.systems.len()).map(|system| Cell { system, ..first.clone() }));
        for (at, size) in sizes().enumerate() {
            found.extend((1..size).map(|step| {
                let mut cell = first.clone();
                cell.steps[at] = step;
                cell
            }));
        }
    }
    found.extend(sought.into_iter().skip(1).map(|value| Cell { sought: Some(value), ..first.clone() }));
    found
}

/// Places in the file of a combination's values, with the keys that they set.
fn places(sweep: &Sweep, cell: &Cell) -> Vec<(Key, toml::Value, Place)> {
    let axes = sweep.axes.iter().zip(&cell.steps).flat_map(|(axis, step)| {
        let settings = axis.settings(*step).enumerate();
        settings.map(|(at, (key, value))| (key.clone(), value.clone(), sweep.place(&axis.place(at, *step))))
    });
    let search = sweep.search.iter().zip(cell.sought).map(|(search, sought)| {
        let place = format!("search.{}.{}", search.name(), search.key_of_key());
        (search.key.clone(), search.values.at(sought), sweep.place(&place))
    });
    axes.chain(search).collect()
}

/// Moves a fault of a combination to its value in the sweep file, if an axis set it.
fn at_its_axis(sweep: &Sweep, cell: &Cell, mut fault: Diagnostic) -> Diagnostic {
    let values = places(sweep, cell);
    let text = fault.place.as_ref().map(|place| place.text.clone());
    let is_its = |(key, value, _): &&(Key, toml::Value, Place)| assignment((key, value)) == text;
    if let Some((_, value, place)) = values.iter().find(is_its).filter(|_| text.is_some()) {
        fault = fault.at(place.clone());
        // An axis of an array-valued key was written as a single array.
        if !value.is_array() && fault.what.ends_with("is not an array") {
            fault = fault.help("the key's value is an array: its axis is an array of arrays, [[...], [...]]");
        }
    } else if sweep.has_systems && fault.place.is_none() {
        fault = fault.at(sweep.place(&format!("system.{}", cell.system)));
    }
    if sweep.axes.iter().any(|axis| axis.rows.len() > 1) || sweep.search.is_some() {
        let set = values.iter().map(|(key, value, _)| format!("{}={value}", key.text()));
        fault.what = format!("{} (with {})", fault.what, set.collect::<Vec<_>>().join(", "));
    }
    fault
}

/// Moves a fault of a workload into the sweep file, unless it is inside a file of its own: to the option at fault, or
/// else to the workload.
fn at_its_workload(sweep: &Sweep, cell: &Cell, plan: &Plan, fault: Diagnostic) -> Diagnostic {
    let inside = fault.place.as_ref().is_some_and(|place| place.line > 0);
    if inside {
        return fault;
    }
    let text = plan.workloads.join(" + ");
    let what =
        if fault.what.contains(&text) { fault.what.clone() } else { format!("{}: {text}", fault.what) };
    let values = places(sweep, cell);
    let key = fault.place.as_ref().map(|place| place.key.clone());
    let named = values.iter().find(|(at, ..)| at.option().is_some() && at.option() == key.as_deref());
    let place = match named {
        Some((.., place)) => place.clone(),
        None => sweep.place_of_workload(cell.workload),
    };
    Diagnostic { what, ..fault }.at(place)
}

/// Refuses metrics that no result document can have.
///
/// # Errors
/// The first such metric.
pub(super) fn refuse_unknown(names: &[String], resolved: &Resolved) -> Result<(), Diagnostic> {
    names
        .iter()
        .enumerate()
        .try_for_each(|(at, name)| refuse_unknown_at(name, &format!("metrics.{at}"), resolved))
}

/// Refuses an unknown metric at a place in the file; see [`refuse_unknown`].
///
/// # Errors
/// The metric is not in any result.
pub(super) fn refuse_unknown_at(name: &str, place: &str, resolved: &Resolved) -> Result<(), Diagnostic> {
    metrics::refuse_unknown(name).map_err(|fault| fault.at(resolved.place(place)))
}

/// Unit of a metric.
pub(super) fn unit_of(name: &str) -> Option<&'static str> {
    metrics::all().into_iter().find(|metric| metrics::is_instance(metric, name)).map(|metric| metric.unit)
}

/// Refuses metrics of components that no run has; `most` gives the maximum number of each kind.
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
        let mut fault = sweep.diagnose_metric(at, what).help("docs/metrics.md lists all metrics");
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
    Err(fault.help("see the documents of the runs for what exists; docs/metrics.md explains each metric"))
}

/// Collects the keys of a document's numbers and texts.
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
