//! Axes of a sweep: the tables `[workload]`, `[set]` and `[[zip]]` of its file.

use config::{Diagnostic, Resolved};
use toml::{Table, Value};

/// Reads the axes, in the order of their columns: options of workloads first.
///
/// # Errors
/// A key is unknown, varies twice, has no values, or does not step together with its table.
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
            let help = format!("put `{option}` in a table [workload]");
            return Err(resolved
                .diagnose(&place, format!("`{key}` is an option of the workload, not a spec key"))
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

/// Keys of a table with their values; options of workloads have plain values only.
fn listed(name: &str, table: &Table, resolved: &Resolved) -> Result<Vec<(String, Vec<Value>)>, Diagnostic> {
    let listed = flatten(table);
    for (key, values) in &listed {
        let is_option = name == WORKLOAD || matches!(Key::read(key), Key::Option(_));
        let Some(at) = values.iter().position(|value| is_option && option_text(value).is_none()) else {
            continue;
        };
        let what = format!("`{}` is not a value of a workload option", values[at]);
        return Err(resolved
            .diagnose(&format!("{name}.{key}.{at}"), what)
            .help("give a number, true or false, or a string without commas"));
    }
    Ok(listed)
}

/// Adds the axis of a key, unless it has one already.
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
        return Err(fault(format!("`{key}` has no values: it needs at least one")));
    }
    taken.push(key.to_owned());
    Ok(())
}

/// Refuses a key that already varies, or that contains or is contained in one that does.
pub(super) fn refuse_taken(key: &str, taken: &[String]) -> Result<(), Diagnostic> {
    let Some(other) = taken.iter().find(|other| overlap(key, other)) else { return Ok(()) };
    let part = if key == other { String::new() } else { format!(", with `{other}`") };
    Err(Diagnostic::new(format!("`{key}` already varies{part}"))
        .help("give a key one axis; put keys that step together in one [[zip]] table"))
}

/// Returns whether two keys are equal, or one contains the other.
fn overlap(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Text of an option's value in a workload; `None` if it cannot be one.
pub(super) fn option_text(value: &Value) -> Option<String> {
    match value {
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(truth) => Some(u8::from(*truth).to_string()),
        Value::String(text) if !text.contains([',', '\n']) => Some(text.clone()),
        _ => None,
    }
}

/// Refuses a misspelt spec key once, not in each of its runs. Workloads check their options themselves.
pub(super) fn refuse_unknown_key(key: &str) -> Result<(), Diagnostic> {
    if matches!(Key::read(key), Key::Option(_)) {
        return Ok(());
    }
    let known: Vec<String> = machine::catalogue::params().into_iter().map(|p| p.key).collect();
    let is_part_of = |known: &str, key: &str| {
        known == key || known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
    };
    // After a user-chosen table name, the rest must be a key of some kind; the system determines which.
    let below = |key: &str| key.split_once('.').map(|(_, rest)| rest.to_owned());
    let rest =
        below(key).filter(|_| !known.iter().any(|known| known.split('.').next() == key.split('.').next()));
    let of_some_kind = |known: &String| {
        rest.as_ref().zip(below(known)).is_some_and(|(rest, known)| is_part_of(&known, rest))
    };
    if known.iter().any(|known| is_part_of(known, key) || of_some_kind(known)) {
        return Ok(());
    }
    let mut fault = Diagnostic::new(format!("unknown spec key `{key}`")).allowed(key, known);
    fault.allowed.clear();
    Err(fault.help("`nandscape params` lists every key").pointed(key))
}

/// Table of workload options, and the prefix of such keys elsewhere.
pub(super) const WORKLOAD: &str = "workload";

/// Key to step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// Key path of the spec.
    Spec(String),
    /// Option of the workloads.
    Option(String),
}

impl Key {
    /// Parses a key from the file: `flash.geometry.channels`, `workload.bs`.
    pub(super) fn read(text: &str) -> Key {
        let option = text.strip_prefix(WORKLOAD).and_then(|rest| rest.strip_prefix('.'));
        option.map_or_else(|| Key::Spec(text.to_owned()), |option| Key::Option(option.to_owned()))
    }

    /// Text of the key in the file.
    pub(super) fn text(&self) -> String {
        match self {
            Key::Spec(key) => key.clone(),
            Key::Option(option) => format!("{WORKLOAD}.{option}"),
        }
    }

    /// Option name, if the key is an option.
    pub(super) fn option(&self) -> Option<&str> {
        match self {
            Key::Option(option) => Some(option),
            Key::Spec(_) => None,
        }
    }

    /// Column in the table: the key path, or the name of the option.
    pub(super) fn column(&self) -> String {
        match self {
            // Names of fixed columns are reserved.
            Key::Option(option) if !COLUMNS.contains(&option.as_str()) => option.clone(),
            _ => self.text(),
        }
    }
}

/// Columns of every table.
pub(super) const COLUMNS: [&str; 8] =
    ["run", "system", "workload", "seed", "state", "result", "message", "config"];

/// Keys that step together, and the values of each step.
#[derive(Debug, PartialEq)]
pub(crate) struct Axis {
    /// Keys of the axis.
    pub(crate) keys: Vec<Key>,
    /// Place of each key in the file.
    places: Vec<String>,
    /// Values by step, one for each key.
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Axis {
    /// Creates an axis of a single key with its place.
    pub(super) fn of(key: Key, place: String, values: Vec<Value>) -> Axis {
        let rows = values.into_iter().map(|value| vec![value]).collect();
        Axis { keys: vec![key], places: vec![place], rows }
    }

    /// Place in the file of a value of its `at`th key.
    pub(super) fn place(&self, at: usize, step: usize) -> String {
        format!("{}.{step}", self.places[at])
    }

    /// Keys and values of a step.
    pub(super) fn settings(&self, step: usize) -> impl Iterator<Item = (&Key, &Value)> {
        self.keys.iter().zip(&self.rows[step])
    }
}

/// Assignment of a spec key, as `key.path=value`; `None` for an option.
pub(super) fn assignment((key, value): (&Key, &Value)) -> Option<String> {
    match key {
        Key::Spec(key) => Some(format!("{key}={value}")),
        Key::Option(_) => None,
    }
}

/// Key paths with their values: an array lists values, a table leads to keys below it, anything else is a single value.
pub(super) fn flatten(table: &Table) -> Vec<(String, Vec<Value>)> {
    let mut found = Vec::new();
    descend("", table, &mut found);
    found
}

fn descend(path: &str, table: &Table, found: &mut Vec<(String, Vec<Value>)>) {
    for (name, value) in table {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match value {
            Value::Table(inner) => descend(&key, inner, found),
            Value::Array(values) => found.push((key, values.clone())),
            single => found.push((key, vec![single.clone()])),
        }
    }
}

/// Builds the axis of a `[[zip]]` table, whose keys step together.
///
/// # Errors
/// The keys have different numbers of values.
pub(super) fn zipped(table: &str, listed: Vec<(String, Vec<Value>)>) -> Result<Axis, String> {
    let Some((first, values)) = listed.first() else { return Err("a [[zip]] table without keys".into()) };
    let steps = values.len();
    if let Some((key, values)) = listed.iter().find(|(_, values)| values.len() != steps) {
        return Err(format!(
            "keys of one [[zip]] table step together: `{first}` has {steps} values, `{key}` has {}",
            values.len()
        ));
    }
    let row = |step: usize| listed.iter().map(|(_, values)| values[step].clone()).collect();
    Ok(Axis {
        rows: (0..steps).map(row).collect(),
        places: listed.iter().map(|(key, _)| format!("{table}.{key}")).collect(),
        keys: listed.iter().map(|(key, _)| Key::read(key)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn arrays_are_values_and_tables_are_ways() {
        let found = flatten(&table("a.b = [1, 2]\n\"c.d\" = [[3], { e = 4 }]\nf = 5\n[g.h]\ni = [\"x\"]"));
        let one = |n| Value::Integer(n);
        let inner = Value::Table(table("e = 4"));
        assert_eq!(
            found,
            [
                ("a.b".to_owned(), vec![one(1), one(2)]),
                ("c.d".to_owned(), vec![Value::Array(vec![one(3)]), inner]),
                ("f".to_owned(), vec![one(5)]),
                ("g.h.i".to_owned(), vec![Value::String("x".into())]),
            ]
        );
    }

    #[test]
    fn zipped_keys_step_together_or_are_refused() {
        let axis = zipped("zip.0", flatten(&table("a = [1, 2]\nb = [3, 4]"))).unwrap();
        assert_eq!(axis.keys, [Key::Spec("a".into()), Key::Spec("b".into())]);
        assert_eq!(axis.place(1, 1), "zip.0.b.1");
        let numbers: Vec<Vec<i64>> =
            axis.rows.iter().map(|row| row.iter().filter_map(Value::as_integer).collect()).collect();
        assert_eq!(numbers, [[1, 3], [2, 4]]);
        let fault = zipped("zip.0", flatten(&table("a = [1, 2]\nb = [3]"))).unwrap_err();
        assert!(fault.contains("`a` has 2") && fault.contains("`b` has 1"), "{fault}");
    }
}
