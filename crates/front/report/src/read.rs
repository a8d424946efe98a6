//! Result documents from files; those of an earlier layout are converted to the current one.

use config::Diagnostic;
use serde_json::{Map, Value};

/// Schema of the documents that are read; earlier ones are converted to it.
pub const SCHEMA: &str = "nandscape.result/2";

/// Result with a name, for instance that of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Name of the result.
    pub name: String,
    /// Result document, of the schema [`SCHEMA`].
    pub document: Value,
}

impl Run {
    /// Reads a document of any known schema.
    ///
    /// # Errors
    /// The bytes are not JSON, not a result, or a result of a newer schema.
    pub fn read(name: impl Into<String>, bytes: &[u8]) -> Result<Run, Diagnostic> {
        let name = name.into();
        let help = "`nandscape run --json` prints a result document, `--out DIR` writes one";
        let document: Value = serde_json::from_slice(bytes)
            .map_err(|fault| Diagnostic::new(format!("{name} is not JSON: {fault}")).help(help))?;
        let document = lifted(document);
        match document.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => Ok(Run { name, document }),
            Some(other) if version(other) > version(SCHEMA) => Err(Diagnostic::new(format!(
                "{name} is a `{other}`, which is newer than what this program reads, `{SCHEMA}`"
            ))
            .help("read it with the nandscape version that wrote it, or a later one")),
            Some(other) => {
                Err(Diagnostic::new(format!("{name} is a `{other}`, not a `{SCHEMA}`")).help(help))
            }
            None => Err(Diagnostic::new(format!("{name} is not a result document")).help(help)),
        }
    }
}

/// Version number of a result's schema.
fn version(schema: &str) -> Option<u64> {
    schema.strip_prefix("nandscape.result/")?.parse().ok()
}

/// Value at a path of names and indices, separated by dots.
pub(crate) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |at, part| match at {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

/// Number at a path.
pub(crate) fn number(value: &Value, path: &str) -> Option<f64> {
    at(value, path)?.as_f64()
}

/// Text at a path, or empty text.
pub(crate) fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// List at a path, or an empty list.
pub(crate) fn items<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Numbers of the list at a path, if it holds only numbers.
pub(crate) fn numbers(value: &Value, path: &str) -> Option<Vec<f64>> {
    at(value, path)?.as_array()?.iter().map(Value::as_f64).collect()
}

/// Leaves below a value with their paths, in order.
pub(crate) fn leaves<'v>(prefix: &str, value: &'v Value, found: &mut Vec<(String, &'v Value)>) {
    let join = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
    match value {
        Value::Object(table) if !table.is_empty() => {
            table.iter().for_each(|(name, inner)| leaves(&join(name), inner, found));
        }
        Value::Array(list) if list.iter().any(|item| item.is_object() || item.is_array()) => {
            list.iter().enumerate().for_each(|(at, inner)| leaves(&join(&at.to_string()), inner, found));
        }
        leaf => found.push((prefix.to_owned(), leaf)),
    }
}

/// First schema, with a single GPU, server and drive.
const FIRST: &str = "nandscape.result/1";

/// Converts a document to `nandscape.result/2`, if its layout is known.
pub fn lifted(mut document: Value) -> Value {
    if document.get("schema").is_none_or(|schema| schema != FIRST) {
        return document;
    }
    let Some(all) = document.as_object_mut() else { return document };
    all.insert("schema".to_owned(), SCHEMA.into());
    for name in ["gpu", "cpu"] {
        if let Some(Value::Object(mut one)) = all.remove(name) {
            one.insert("name".to_owned(), name.into());
            if let Some(memory) = one.get_mut("memory").and_then(Value::as_object_mut) {
                memory.insert("name".to_owned(), "memory".into());
            }
            all.insert(name.to_owned(), Value::Array(vec![Value::Object(one)]));
        }
    }
    let precondition = all.remove("precondition");
    if let Some(drive) = all.get_mut("flash").and_then(|flash| flash.get_mut(0)?.as_object_mut()) {
        drive.insert("name".to_owned(), "flash".into());
        drive.insert("precondition".to_owned(), precondition.unwrap_or_default());
    }
    if let Some(spec) = all.get_mut("spec").and_then(Value::as_object_mut) {
        moved(spec);
    }
    document
}

/// Moves the keys of a spec that have changed place.
fn moved(spec: &mut Map<String, Value>) {
    let precondition = spec.remove("precondition");
    if let (Some(flash), Some(state)) = (spec.get_mut("flash").and_then(Value::as_object_mut), precondition) {
        flash.insert("precondition".to_owned(), state);
    }
    if let Some(cpu) = spec.get_mut("cpu").and_then(Value::as_object_mut)
        && let Some(Value::Object(first)) = cpu.remove("0")
    {
        cpu.extend(first);
    }
}

#[cfg(test)]
mod tests {
    use super::{SCHEMA, lifted, *};
    use serde_json::json;

    #[test]
    fn what_is_no_result_is_told_and_a_newer_one_by_itself() {
        let told = |text: &str| Run::read("a.json", text.as_bytes()).unwrap_err().to_string();
        assert!(told("{").contains("a.json is not JSON"));
        assert!(told("[]").contains("a.json is not a result document"));
        assert!(told(r#"{"schema":"nandscape.diff/1"}"#).contains("not a `nandscape.result/2`"));
        assert!(told(r#"{"schema":"nandscape.result/3"}"#).contains("newer"));
        for schema in ["nandscape.result/1", "nandscape.result/2"] {
            let run = Run::read("a", format!(r#"{{"schema":"{schema}"}}"#).as_bytes()).unwrap();
            assert_eq!(run.document["schema"], SCHEMA);
        }
    }

    #[test]
    fn a_document_of_the_first_layout_is_read() {
        let first = json!({
            "schema": "nandscape.result/1",
            "precondition": { "kind": "none" },
            "gpu": { "ipc": 2.0, "memory": { "kind": "dram" } },
            "flash": [{ "name": "flash0", "erases": 3 }],
            "spec": { "precondition": "none", "flash": { "geometry": {} }, "cpu": { "fill_jobs": 1, "0": { "cores": 4 } } },
        });
        let second = json!({
            "schema": SCHEMA,
            "gpu": [{ "name": "gpu", "ipc": 2.0, "memory": { "name": "memory", "kind": "dram" } }],
            "flash": [{ "name": "flash", "erases": 3, "precondition": { "kind": "none" } }],
            "spec": { "flash": { "geometry": {}, "precondition": "none" }, "cpu": { "fill_jobs": 1, "cores": 4 } },
        });
        assert_eq!(lifted(first), second);
        assert_eq!(lifted(second.clone()), second);
    }
}
