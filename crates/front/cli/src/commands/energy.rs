//! `nandscape explain energy SYSTEM`.

use crate::calibration::Sources;
use config::schema::Param;
use config::{Diagnostic, Place};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Name of the topic, and of the table in which a component states its energy constants.
const ENERGY: &str = "energy";

/// Describes the topic without a system.
pub(super) fn about(name: &str) -> Option<String> {
    (name == ENERGY).then(|| {
        "energy: what the components of a system spend (docs/energy.md)\n\n  nandscape explain energy SYSTEM: each constant of a system, its meaning and source, \
         and the components that have none"
            .to_owned()
    })
}

/// Lists every constant of a system's `energy` tables, and the components without one.
///
/// # Errors
/// The topic is not `energy`, or the system is unknown.
pub(super) fn explain(topic: &str, system: &str) -> Result<String, Diagnostic> {
    if topic != ENERGY {
        let what = format!("`explain {topic} {system}`: the only topic of a system is `energy`");
        return Err(Diagnostic::new(what).allowed(topic, [ENERGY.to_owned()]).help("give one name"));
    }
    let loaded = machine::load(system, &[])?;
    let values = loaded.resolved().values();
    let as_kind = |key: &str| loaded.as_kind(key);
    let sources = Sources::of(&values, &as_kind);
    let params: BTreeMap<String, Param> =
        machine::catalogue::params().into_iter().map(|param| (param.key.clone(), param)).collect();
    let mut text = format!("{system}: energy constants of its components\n");
    let mut latest = String::new();
    for (key, value, place) in &values {
        let Some((table, constant)) = split(key).filter(|_| !value.is_table()) else { continue };
        if table != latest {
            let _ = writeln!(text, "\n{table}");
            table.clone_into(&mut latest);
        }
        let _ = writeln!(text, "  {constant} = {}", shown(value));
        let kind = as_kind(key);
        let param = params.get(&kind);
        param.iter().flat_map(|param| param.doc.lines()).for_each(|line| {
            let _ = writeln!(text, "      {line}");
        });
        let source = sources.of_key(&[key, &kind], place).unwrap_or_else(|| set_in(place));
        let _ = writeln!(text, "      Source: {source}");
    }
    if latest.is_empty() {
        text.push_str("\nNo component has energy constants: results of this system report no energy.\n");
    }
    let missing = missing(&values, &params, &as_kind);
    if !missing.is_empty() {
        let _ = writeln!(text, "\nComponents without constants; a run that uses one reports no total:");
        missing.iter().for_each(|table| {
            let _ = writeln!(text, "  {table}");
        });
    }
    Ok(text.trim_end().to_owned())
}

/// Splits a key into its `energy` table and the rest.
fn split(key: &str) -> Option<(&str, &str)> {
    let (at, found) = key
        .match_indices(ENERGY)
        .find(|(at, found)| key[..*at].ends_with('.') && key[at + found.len()..].starts_with('.'))?;
    Some((&key[..at + found.len()], &key[at + found.len() + 1..]))
}

/// Formats a value without quotes.
fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(list) => list.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Source line of a value that no calibration page covers.
fn set_in(place: &Place) -> String {
    format!("none is known; set in {}", place.source)
}

/// Keys of the `energy` tables that components of the system may have and do not.
fn missing(
    values: &[(String, toml::Value, Place)],
    params: &BTreeMap<String, Param>,
    as_kind: &dyn Fn(&str) -> String,
) -> Vec<String> {
    let is_set = |table: &str| {
        values.iter().any(|(key, ..)| {
            key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let mut possible: Vec<&str> = params.keys().filter_map(|key| Some(split(key)?.0)).collect();
    possible.dedup();
    let mut tables: Vec<&str> = values.iter().map(|(key, ..)| key.split('.').next().unwrap_or(key)).collect();
    tables.sort_unstable();
    tables.dedup();
    let mut found = Vec::new();
    for table in tables {
        let kind = as_kind(table);
        for energy in &possible {
            let Some(rest) = energy.strip_prefix(&kind).filter(|rest| rest.starts_with('.')) else {
                continue;
            };
            // For a choice between forms, such as memories, only the chosen form counts.
            let ends = rest.match_indices('.').map(|(at, _)| at);
            let is_made = ends.into_iter().all(|at| {
                let choice = params.get(&format!("{kind}{}", &rest[..at]));
                let form = rest[at + 1..].split('.').next().unwrap_or_default();
                choice.is_none_or(|param| !param.kind.starts_with("one of "))
                    || is_set(&format!("{table}{}.{form}", &rest[..at]))
            });
            let own = format!("{table}{rest}");
            if is_made && !is_set(&own) {
                found.push(own);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_whole_part_of_a_key() {
        assert_eq!(split("flash.energy.die.idle"), Some(("flash.energy", "die.idle")));
        assert_eq!(
            split("memory.dram_cache.dram.energy.read"),
            Some(("memory.dram_cache.dram.energy", "read"))
        );
        assert_eq!(split("flash.energy"), None);
        assert_eq!(split("flash.energies.read"), None);
        assert_eq!(split("energy.read"), None);
    }
}
