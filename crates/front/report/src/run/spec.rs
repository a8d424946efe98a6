//! Searchable table of the resolved spec, and the command that repeats a run.

use super::Shipped;
use crate::figure::{Cell, Table};
use crate::number::{Unit, leaf};
use crate::page::{Text, lacking, paragraph};
use crate::read::{at, items, leaves, text};
use serde_json::Value;
use std::collections::BTreeMap;

/// Leaf of a spec that a run has changed: its key, the shipped value, and the value of the run.
pub(super) struct Changed<'v> {
    pub(super) key: String,
    pub(super) from: Option<&'v Value>,
    pub(super) to: &'v Value,
}

/// Differences from the shipped system; a value that the run lacks is null.
pub(super) fn changed<'v>(base: &'v Value, spec: &'v Value) -> Vec<Changed<'v>> {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    leaves("", base, &mut old);
    leaves("", spec, &mut new);
    let old: BTreeMap<String, &Value> = old.into_iter().collect();
    let is_gone = |(key, _): &(&String, &&Value)| new.iter().all(|(other, _)| other != *key);
    let gone: Vec<Changed<'v>> = old
        .iter()
        .filter(is_gone)
        .map(|(key, from)| Changed { key: key.clone(), from: Some(*from), to: &Value::Null })
        .collect();
    let differs = |(key, to): &(String, &'v Value)| old.get(key).is_none_or(|from| from != to);
    let changed = new.iter().filter(|one| differs(one));
    changed
        .map(|(key, to)| Changed { from: old.get(key).copied(), key: key.clone(), to })
        .chain(gone)
        .collect()
}

/// Renders the section.
pub(super) fn html(document: &Value, shipped: Option<&Shipped>) -> String {
    let Some(spec) = document.get("spec").filter(|spec| spec.is_object()) else {
        return lacking("The spec", "the document has no `spec`");
    };
    let mut all = Vec::new();
    leaves("", spec, &mut all);
    let system = text(document, "system");
    let changes = shipped.map(|shipped| changed(&shipped.spec, spec));
    let mut out = String::new();
    let origin = match &changes {
        None => "sources of values are unknown: the system is not one shipped with this program".to_owned(),
        Some(none) if none.is_empty() => format!("`{system}` as shipped"),
        Some(some) => format!("`{system}`, with {} of {} values changed for this run", some.len(), all.len()),
    };
    out += &paragraph(&format!("All {} values of the run: {origin}.", all.len()));
    out += "<p class=\"search\"><label>Find <input type=\"search\" data-filter=\"spec\" autocomplete=\"off\"></label> <output></output></p>";
    let mut table = Table::new("Resolved spec", ["key", "value", "source"]).class("spec");
    for (key, value) in all {
        let change = changes.iter().flatten().find(|change| change.key == key);
        let from = match (change, &changes) {
            (Some(Changed { from: Some(from), .. }), _) => {
                format!("set for this run; {} as shipped", leaf(from, Unit::Plain))
            }
            (Some(_), _) => "set for this run; not in the system as shipped".to_owned(),
            (None, Some(_)) => {
                let source = shipped.and_then(|shipped| shipped.sources.get(&key));
                source.cloned().unwrap_or_else(|| "not set: default".to_owned())
            }
            (None, None) => "–".to_owned(),
        };
        table.push([Cell::Text(key), Cell::Text(plain(value)), Cell::Text(from)]);
    }
    out += "<details class=\"long\"><summary>Table: resolved spec</summary>";
    out += &table.html();
    out + "</details>"
}

/// Formats a value as in a spec.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

/// Number of changes above which the command uses a file instead of options.
const MOST: usize = 24;

/// Renders the command.
pub(super) fn command(document: &Value, shipped: Option<&Shipped>) -> String {
    let system = text(document, "system");
    let changes = shipped.map(|shipped| changed(&shipped.spec, &document["spec"]));
    let seed = document.get("seed").map(Value::to_string).unwrap_or_default();
    let (of, note) =
        match shipped.zip(changes).and_then(|(shipped, changes)| options(&shipped.spec, &changes)) {
            Some(options) => (std::iter::once(word(system)).chain(options).collect::<Vec<_>>().join(" "), ""),
            None => (
                "spec.toml".to_owned(),
                " `spec.toml` is the resolved spec that `run --out` writes beside the result.",
            ),
        };
    let mut command = format!("nandscape run {of}");
    for workload in items(document, "workload").iter().filter_map(Value::as_str) {
        command += &format!(" --workload {}", word(workload));
    }
    command += &format!(" --seed {seed}");
    let version = text(document, "version");
    format!("<pre class=\"command\">{}</pre>", Text(&command))
        + &paragraph(&format!(
            "nandscape {version} gives the same results, bit for bit.{note} A document does not record `--warmup`, `--queue-depth` and trace \
             options: if they were given, give them again."
        ))
}

/// Changes as options; `None` if options cannot express them, or are too many.
fn options(base: &Value, changes: &[Changed<'_>]) -> Option<Vec<String>> {
    // A key that is gone because a value replaced its table is expressed by that value.
    let said = |gone: &str| {
        let is_over = |key: &str| gone.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        changes.iter().any(|change| !change.to.is_null() && is_over(&change.key))
    };
    let told = changes.iter().filter(|change| !(change.to.is_null() && said(&change.key)));
    let options = told.map(|change| sets(base, change)).collect::<Option<Vec<String>>>()?;
    (options.len() <= MOST).then_some(options)
}

/// Change as an option; `None` if an option cannot express it.
fn sets(base: &Value, change: &Changed<'_>) -> Option<String> {
    // A key that the system lacks entirely needs a file.
    at(base, &change.key)?;
    let value = match change.to {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => change.to.to_string(),
        Value::Array(all) if all.iter().all(|one| one.is_string() || one.is_number()) => {
            change.to.to_string()
        }
        _ => return None,
    };
    Some(format!("--set {}", word(&format!("{}={value}", change.key))))
}

/// Quotes a word for a shell.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+%@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
