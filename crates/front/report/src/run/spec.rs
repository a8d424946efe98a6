//! The resolved spec, to be searched.

use super::Shipped;
use crate::html::{lacking, paragraph};
use crate::number::Unit;
use crate::number::leaf;
use crate::read::{leaves, text};
use crate::table::{Cell, Table};
use serde_json::Value;
use std::collections::BTreeMap;

/// A leaf of a spec that a run has changed: its key, the value of the system as it is shipped, and that of the run.
pub(super) struct Changed<'v> {
    pub(super) key: String,
    pub(super) from: Option<&'v Value>,
    pub(super) to: &'v Value,
}

/// What differs from the system as it is shipped; what the run has not is null.
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

/// The section.
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
        None => {
            "where a value comes from is not known: the system is no shipped one of this program".to_owned()
        }
        Some(none) if none.is_empty() => format!("`{system}` as it is shipped"),
        Some(some) => format!("`{system}`, with {} of {} values changed for this run", some.len(), all.len()),
    };
    out += &paragraph(&format!("All {} values that decided the run: {origin}.", all.len()));
    out += "<p class=\"search\"><label>Find <input type=\"search\" data-filter=\"spec\" autocomplete=\"off\"></label> <output></output></p>";
    let mut table = Table::new("Resolved spec", ["key", "value", "from"]).class("spec");
    for (key, value) in all {
        let change = changes.iter().flatten().find(|change| change.key == key);
        let from = match (change, &changes) {
            (Some(Changed { from: Some(from), .. }), _) => {
                format!("set for this run; {} as shipped", leaf(from, Unit::Plain))
            }
            (Some(_), _) => "set for this run; not in the system as shipped".to_owned(),
            (None, Some(_)) => {
                let source = shipped.and_then(|shipped| shipped.sources.get(&key));
                source.cloned().unwrap_or_else(|| "left out: the default".to_owned())
            }
            (None, None) => "–".to_owned(),
        };
        table.push([Cell::Text(key), Cell::Text(plain(value)), Cell::Text(from)]);
    }
    out += "<details class=\"long\"><summary>Table: resolved spec</summary>";
    out += &table.html();
    out + "</details>"
}

/// A value as a spec has it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}
