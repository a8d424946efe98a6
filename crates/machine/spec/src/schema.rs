//! JSON Schema of a spec: of each kind of part under its name, and of a file whose parts have their own names.

use super::Sim;
use super::kinds::Kind;
use super::read::{COUNT, KIND};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// JSON Schema of a spec with one part of each kind, under the kind's name: every key, for lists and limits.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(|| build(false));
    &DOCUMENT
}

/// Returns every key of a spec.
pub(super) fn keys() -> &'static [String] {
    static KEYS: LazyLock<Vec<String>> = LazyLock::new(|| {
        // An empty prefix matches every key.
        let all = config::schema::params(document(), "").unwrap_or_default();
        all.into_iter().map(|param| param.key).collect()
    });
    &KEYS
}

/// JSON Schema of a file, for editors: it may inherit, and parts may have their own names.
pub fn of_file() -> Value {
    config::schema::of_file(build(true))
}

fn build(named: bool) -> Value {
    let mut generator = SchemaGenerator::default();
    let mut properties = Map::new();
    let description = json!({ "type": "string", "description": "Description of the machine, in one line." });
    properties.insert("description".to_owned(), description);
    let mut parts = Vec::new();
    for kind in Kind::ALL {
        let mut schema = of_kind(*kind, &mut generator);
        if named {
            let own = [
                (
                    KIND,
                    json!({ "const": kind.name(), "description": "Kind of the part; can be left out if its name is the kind." }),
                ),
                (
                    COUNT,
                    json!({ "type": "integer", "minimum": 1, "description": "Number of such parts: NAME.0, NAME.1, ..." }),
                ),
            ];
            add(&mut schema, own.map(|(key, schema)| (key.to_owned(), schema)));
            let reference = format!("part-{}", kind.name());
            parts.push(json!({ "$ref": format!("#/$defs/{reference}") }));
            generator.definitions_mut().insert(reference.clone(), schema);
            schema = json!({ "$ref": format!("#/$defs/{reference}") });
        }
        properties.insert(kind.name().to_owned(), schema);
    }
    let mut sim = generator.subschema_for::<Sim>().to_value();
    if let Some(sim) = sim.as_object_mut() {
        sim.insert("description".to_owned(), json!("Settings of the simulation."));
    }
    properties.insert("sim".to_owned(), sim);
    let definitions = generator.take_definitions(true);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Spec",
        "description": "A machine.",
        "type": "object",
        "properties": properties,
        "required": ["description", "sim"],
        "additionalProperties": if named { json!({ "anyOf": parts }) } else { json!(false) },
        "$defs": definitions,
    })
}

/// Schema of a kind's tables, with its links.
fn of_kind(kind: Kind, generator: &mut SchemaGenerator) -> Value {
    let mut schema = kind.schema(generator);
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), json!(kind.doc()));
        schema.remove("title");
    }
    let links = kind.links().iter().map(|link| {
        let to: Vec<String> = link.to.iter().map(|kind| format!("`{}`", kind.name())).collect();
        let (name, absent) = match link.many {
            true => ("The name of a part, or a list of names", ""),
            false => ("The name of a part", "; if left out, the only such part"),
        };
        let description = format!("{} {name}, of the kind {}{absent}.", link.doc, to.join(" or "));
        let mut schema = json!({ "type": "string", "default": null, "description": description });
        if link.many {
            schema["type"] = json!(["string", "array"]);
        }
        (link.key.to_owned(), schema)
    });
    add(&mut schema, links);
    schema
}

/// Marks keys as required that a second schema of the table requires.
pub(super) fn require(schema: &mut Value, others: &Value) {
    for list in ["properties", "required"] {
        let more = others.get(list).cloned().unwrap_or_default();
        match (schema.get_mut(list), more) {
            (Some(Value::Object(all)), Value::Object(more)) => all.extend(more),
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            _ => {}
        }
    }
}

/// Adds properties to the schema of a table, or beside a choice.
fn add(schema: &mut Value, properties: impl IntoIterator<Item = (String, Value)>) {
    let Some(schema) = schema.as_object_mut() else { return };
    let mut properties = properties.into_iter().peekable();
    if properties.peek().is_none() {
        return;
    }
    let all = schema.entry("properties").or_insert_with(|| json!({}));
    all.as_object_mut().into_iter().for_each(|all| all.extend(properties.by_ref()));
    // The forms of a choice forbid other keys, which only the whole schema can decide.
    for name in ["oneOf", "anyOf"] {
        let forms = schema.get_mut(name).and_then(Value::as_array_mut);
        for form in forms.into_iter().flatten().filter_map(Value::as_object_mut) {
            form.remove("additionalProperties");
        }
    }
}
