//! Small things of JSON.

use serde_json::{Map, Value};

/// The number of a key; none if it is something else.
pub(super) fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64().filter(|number| number.is_finite())
}

/// The whole number of a key; zero if it is none.
pub(super) fn whole(value: &Value, key: &str) -> u64 {
    let of =
        |value: &Value| value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64));
    value.get(key).and_then(of).unwrap_or_default()
}

/// The text of a key; empty if it is none.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A table of these entries, in this order or sorted, as the library has it.
pub(super) fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// A number to the sixth digit, as fio prints it.
pub(super) fn rounded(number: f64) -> Value {
    (libm::round(number * 1e6) / 1e6).into()
}
