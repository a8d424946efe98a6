//! What varies in a sweep.

use toml::{Table, Value};

/// Keys of a spec that step together, and the values of each step.
#[derive(Debug, PartialEq)]
pub(crate) struct Axis {
    /// The table of the file that it stands in.
    pub(super) table: String,
    /// Key paths.
    pub(crate) keys: Vec<String>,
    /// Values by step, one for each key.
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Axis {
    /// One key that steps alone.
    pub(super) fn of(table: &str, key: String, values: Vec<Value>) -> Axis {
        let rows = values.into_iter().map(|value| vec![value]).collect();
        Axis { table: table.to_owned(), keys: vec![key], rows }
    }

    /// What a step sets, as `key.path=value`.
    pub(super) fn assignments(&self, step: usize) -> impl Iterator<Item = String> {
        self.keys.iter().zip(&self.rows[step]).map(|(key, value)| format!("{key}={value}"))
    }
}

/// Key paths with their values: an array lists values, tables are ways to keys below them, anything else is the one
/// value.
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

/// Keys that step together.
///
/// # Errors
/// They have different numbers of values.
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
    let rows = (0..steps).map(row).collect();
    Ok(Axis { table: table.to_owned(), rows, keys: listed.into_iter().map(|(key, _)| key).collect() })
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
        assert_eq!(axis.keys, ["a", "b"]);
        let numbers: Vec<Vec<i64>> =
            axis.rows.iter().map(|row| row.iter().filter_map(Value::as_integer).collect()).collect();
        assert_eq!(numbers, [[1, 3], [2, 4]]);
        let fault = zipped("zip.0", flatten(&table("a = [1, 2]\nb = [3]"))).unwrap_err();
        assert!(fault.contains("`a` has 2") && fault.contains("`b` has 1"), "{fault}");
    }
}
