//! Result documents of an earlier layout, as they would be today.

use crate::read::SCHEMA;
use serde_json::{Map, Value};

/// The layout in which there was one GPU, one server and one drive.
const FIRST: &str = "nandscape.result/1";

/// A document as `nandscape.result/2` has it, if its layout is known.
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

/// Keys of a spec that have moved.
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
    use super::{SCHEMA, lifted};
    use serde_json::json;

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
