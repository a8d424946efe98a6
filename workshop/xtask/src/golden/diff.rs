//! Two documents, leaf by leaf.

use serde_json::Value;

/// One line for each leaf that differs: `path: old -> new`, numbers with their relative change.
pub(super) fn leaves(old: &Value, new: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    walk("", Some(old), Some(new), &mut lines);
    lines
}

fn walk(path: &str, old: Option<&Value>, new: Option<&Value>, lines: &mut Vec<String>) {
    match (old, new) {
        (Some(old), Some(new)) if old == new => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                walk(&inner, old.get(key), new.get(key), lines);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                walk(&format!("{path}[{index}]"), old.get(index), new.get(index), lines);
            }
        }
        _ => lines.push(format!("{path}: {} -> {}{}", show(old), show(new), change(old, new))),
    }
}

fn show(value: Option<&Value>) -> String {
    value.map_or("(absent)".into(), Value::to_string)
}

fn change(old: Option<&Value>, new: Option<&Value>) -> String {
    match (old.and_then(Value::as_f64), new.and_then(Value::as_f64)) {
        (Some(old), Some(new)) if old != 0.0 => format!(" ({:+.3} %)", (new / old - 1.0) * 100.0),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_difference_is_one_line() {
        let old = json!({ "io": { "mean": 200, "max": 9 }, "flash": [{ "name": "a" }, 1], "gone": true, "zero": 0 });
        let new =
            json!({ "io": { "mean": 201, "max": 9 }, "flash": [{ "name": "b" }], "new": null, "zero": 1 });
        assert_eq!(
            leaves(&old, &new),
            [
                "flash[0].name: \"a\" -> \"b\"",
                "flash[1]: 1 -> (absent)",
                "gone: true -> (absent)",
                "io.mean: 200 -> 201 (+0.500 %)",
                "zero: 0 -> 1",
                "new: (absent) -> null",
            ]
        );
        assert_eq!(leaves(&old, &old), [""; 0]);
    }
}
