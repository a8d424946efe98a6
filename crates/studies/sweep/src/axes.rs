//! The axes of a sweep's file: its tables `[workload]`, `[set]` and `[[zip]]`.

use super::axis::{Axis, Key, WORKLOAD, flatten, zipped};
use config::{Diagnostic, Resolved};
use toml::{Table, Value};

/// Reads the axes, in the order in which their columns stand: options of workloads first.
///
/// # Errors
/// Keys that no spec has, that vary twice, that have no values, or that do not step together.
pub(super) fn axes(
    workload: &Table,
    set: &Table,
    zip: &[Table],
    resolved: &Resolved,
) -> Result<Vec<Axis>, Diagnostic> {
    let mut axes = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    for (key, values) in listed(WORKLOAD, workload, resolved)? {
        let key = format!("{WORKLOAD}.{key}");
        take(&key, &key, &values, &mut taken, resolved)?;
        axes.push(Axis::of(Key::read(&key), key, values));
    }
    for (key, values) in listed("set", set, resolved)? {
        let place = format!("set.{key}");
        if let Key::Option(option) = Key::read(&key) {
            let help = format!("`{option}` stands in a table [workload]");
            return Err(resolved
                .diagnose(&place, format!("`{key}` is an option of the workload, not a key of a spec"))
                .help(help));
        }
        take(&key, &place, &values, &mut taken, resolved)?;
        axes.push(Axis::of(Key::read(&key), place, values));
    }
    for (n, table) in zip.iter().enumerate() {
        let name = format!("zip.{n}");
        let listed = listed(&name, table, resolved)?;
        for (key, values) in &listed {
            take(key, &format!("{name}.{key}"), values, &mut taken, resolved)?;
        }
        axes.push(zipped(&name, listed).map_err(|what| resolved.diagnose(&name, what))?);
    }
    Ok(axes)
}

/// The keys of a table with their values; options of workloads have plain values only.
fn listed(name: &str, table: &Table, resolved: &Resolved) -> Result<Vec<(String, Vec<Value>)>, Diagnostic> {
    let listed = flatten(table);
    for (key, values) in &listed {
        let is_option = name == WORKLOAD || matches!(Key::read(key), Key::Option(_));
        let Some(at) = values.iter().position(|value| is_option && option_text(value).is_none()) else {
            continue;
        };
        let what = format!("`{}` is no value of an option of a workload", values[at]);
        return Err(resolved
            .diagnose(&format!("{name}.{key}.{at}"), what)
            .help("a number, a truth, or a text without commas"));
    }
    Ok(listed)
}

/// A key has its axis, unless it has one already.
fn take(
    key: &str,
    place: &str,
    values: &[Value],
    taken: &mut Vec<String>,
    resolved: &Resolved,
) -> Result<(), Diagnostic> {
    let fault = |what: String| resolved.diagnose(place, what);
    refuse_unknown_key(key).map_err(|d| d.at(resolved.place(place)))?;
    refuse_taken(key, taken).map_err(|d| d.at(resolved.place(place)))?;
    if values.is_empty() {
        return Err(fault(format!("`{key}` has no values: there is nothing to run")));
    }
    taken.push(key.to_owned());
    Ok(())
}

/// Refuses a key that varies already, or a part of which does, or of which it is a part.
pub(super) fn refuse_taken(key: &str, taken: &[String]) -> Result<(), Diagnostic> {
    let Some(other) = taken.iter().find(|other| overlap(key, other)) else { return Ok(()) };
    let part = if key == other { String::new() } else { format!(", with `{other}`") };
    Err(Diagnostic::new(format!("`{key}` varies already{part}"))
        .help("a key has one axis; keys that go together stand in one [[zip]] table"))
}

/// Whether two keys are one, or one is a part of the other.
fn overlap(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The value of an option as a workload has it; `None` of what cannot be one.
pub(super) fn option_text(value: &Value) -> Option<String> {
    match value {
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(truth) => Some(u8::from(*truth).to_string()),
        Value::String(text) if !text.contains([',', '\n']) => Some(text.clone()),
        _ => None,
    }
}

/// A misspelt key is an error of the sweep, not of each of its runs. Which options a workload has, it says itself.
pub(super) fn refuse_unknown_key(key: &str) -> Result<(), Diagnostic> {
    if matches!(Key::read(key), Key::Option(_)) {
        return Ok(());
    }
    let known: Vec<String> = machine::catalogue::params().into_iter().map(|p| p.key).collect();
    let is_part_of = |known: &str, key: &str| {
        known == key || known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
    };
    // Of a part with a name of its own, the rest must be a key of some kind: which, its system says.
    let below = |key: &str| key.split_once('.').map(|(_, rest)| rest.to_owned());
    let rest =
        below(key).filter(|_| !known.iter().any(|known| known.split('.').next() == key.split('.').next()));
    let of_some_kind = |known: &String| {
        rest.as_ref().zip(below(known)).is_some_and(|(rest, known)| is_part_of(&known, rest))
    };
    if known.iter().any(|known| is_part_of(known, key) || of_some_kind(known)) {
        return Ok(());
    }
    let mut fault = Diagnostic::new(format!("a spec has no key `{key}`")).allowed(key, known);
    fault.allowed.clear();
    Err(fault.help("`nandscape params` lists every key").pointed(key))
}
