//! JSON Schema of a specification, and each of its keys with unit, default and meaning.

mod limits;
mod walk;

use std::collections::BTreeSet;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::diag::Diagnostic;
use crate::layer::INHERITS;

pub use limits::{beyond, product};
pub use walk::missing;
pub(crate) use walk::walk;

/// Key of a specification, or parameter of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Key path; `*` is an index or a free name.
    pub key: String,
    /// Kind of value, in words: `duration`, `integer`, `one of greedy, d_choices`.
    pub kind: String,
    /// Units that can be written, or the unit of a count; empty for a plain number or text.
    pub units: Vec<String>,
    /// Allowed values of that kind, in words: `1 to 64`, `up to 1h`; empty if all are.
    pub allowed: String,
    /// Default as written in a file, `none` for an optional key; a key without a default must be set.
    pub default: Option<String>,
    /// Meaning of the key.
    pub doc: String,
    /// Name of the policy family that the key chooses from, if any.
    pub family: Option<String>,
}

impl Param {
    /// Formats `duration (ps, ns, us), up to 1h, default "65us"`.
    pub fn kind_and_default(&self) -> String {
        let units =
            if self.units.is_empty() { String::new() } else { format!(" ({})", self.units.join(", ")) };
        let allowed = if self.allowed.is_empty() { String::new() } else { format!(", {}", self.allowed) };
        match &self.default {
            Some(default) => format!("{}{units}{allowed}, default {default}", self.kind),
            None => format!("{}{units}{allowed}, must be set", self.kind),
        }
    }
}

/// Returns the JSON Schema (2020-12) of a resolved specification.
pub fn of<T: JsonSchema>() -> Value {
    SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

/// Returns the JSON Schema of a file, for an editor, from that of the resolved specification. A file may inherit, which
/// leaves keys to a lower layer, so no key is required.
pub fn of_file(mut schema: Value) -> Value {
    relax(&mut schema, false);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let description =
            "Name of a preset, or path of a file relative to this one, that this file overrides.";
        properties.insert(INHERITS.to_owned(), json!({ "type": "string", "description": description }));
    }
    schema
}

/// Drops `required`, except in the forms of a choice, where the one key is the chosen name.
fn relax(schema: &mut Value, form: bool) {
    match schema {
        Value::Object(object) => {
            // `properties` may hold a key named `required`, which is a schema and not a list.
            if !form && object.get("required").is_some_and(Value::is_array) {
                object.remove("required");
            }
            for (name, inner) in object.iter_mut() {
                match inner {
                    Value::Array(forms) if name == "oneOf" || name == "anyOf" => {
                        forms.iter_mut().for_each(|form| relax(form, true));
                    }
                    inner => relax(inner, false),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| relax(item, false)),
        _ => {}
    }
}

/// Returns every key of a schema below `prefix` (empty for all), sorted.
///
/// # Errors
/// No key begins with the prefix.
pub fn params(schema: &Value, prefix: &str) -> Result<Vec<Param>, Diagnostic> {
    let all = walk(schema);
    let below =
        |key: &str| key.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if prefix.is_empty() {
        return Ok(all);
    }
    let chosen: Vec<_> = all.iter().filter(|p| below(&p.key)).cloned().collect();
    if chosen.is_empty() {
        return Err(unknown_prefix(&all, prefix));
    }
    Ok(chosen)
}

/// Names the nearest prefix, and the keys below the part that is right.
fn unknown_prefix(all: &[Param], prefix: &str) -> Diagnostic {
    let mut prefixes = BTreeSet::new();
    for param in all {
        prefixes.extend(param.key.match_indices('.').map(|(dot, _)| &param.key[..dot]));
        prefixes.insert(&param.key);
    }
    let mut parent = prefix;
    while let Some((front, _)) = parent.rsplit_once('.') {
        parent = front;
        if prefixes.contains(parent) {
            break;
        }
    }
    let parent = if prefixes.contains(parent) { parent } else { "" };
    let siblings = prefixes.iter().filter(|p| p.rsplit_once('.').map_or("", |(front, _)| front) == parent);
    let siblings: Vec<_> = siblings.map(|p| (*p).to_owned()).collect();
    let mut fault = Diagnostic::new(format!("no key begins with `{prefix}`")).allowed(prefix, siblings);
    if fault.nearest.is_none() {
        fault.nearest = crate::diag::nearest(prefix, prefixes).map(str::to_owned);
    }
    fault.pointed(prefix)
}

// Schema with its references resolved, without copies.

/// Keys of a schema and of the schemas that it refers to. The first schema that has a key determines its value.
#[derive(Clone, Debug, Default)]
struct Node<'s> {
    entries: Vec<(&'s str, &'s Value)>,
    /// Values from no document; they take precedence.
    own: Vec<(&'static str, Value)>,
}

impl<'s> Node<'s> {
    fn of(schema: &'s Value) -> Node<'s> {
        let mut node = Node::default();
        if let Some(map) = schema.as_object() {
            node.add(map);
        }
        node
    }

    /// Adds the keys of a schema that are not present yet.
    fn add(&mut self, map: &'s Map<String, Value>) {
        for (name, value) in map {
            if self.document(name).is_none() {
                self.entries.push((name, value));
            }
        }
    }

    /// Sets a key, whatever the schemas contain.
    fn set(&mut self, name: &'static str, value: Value) {
        self.own.retain(|(other, _)| *other != name);
        self.own.push((name, value));
    }

    /// Removes and returns a key.
    fn take(&mut self, name: &str) -> Option<&'s Value> {
        let at = self.entries.iter().position(|(other, _)| *other == name)?;
        Some(self.entries.remove(at).1)
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let own = self.own.iter().find(|(other, _)| *other == name).map(|(_, value)| value);
        own.or_else(|| self.document(name))
    }

    /// Returns the value of a key in the document, which outlives the node.
    fn document(&self, name: &str) -> Option<&'s Value> {
        self.entries.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the keys of a table.
    fn properties(&self) -> Option<&'s Map<String, Value>> {
        self.document("properties").and_then(Value::as_object)
    }
}

/// Error of a value that parses but cannot be built. The key is relative to the component's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Key inside the component's table, dotted.
    pub key: String,
    /// Error text, with the arithmetic.
    pub what: String,
    /// Remedy.
    pub help: Option<String>,
}

impl SpecError {
    /// Creates an error: `what` is wrong with the value of `key`.
    pub fn new(key: &str, what: impl Into<String>) -> SpecError {
        SpecError { key: key.into(), what: what.into(), help: None }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> SpecError {
        self.help = Some(help.into());
        self
    }

    /// Prefixes the key with `table`, the name of the table in its owner.
    #[must_use]
    pub fn within(mut self, table: &str) -> SpecError {
        self.key = format!("{table}.{}", self.key);
        self
    }

    /// Checks that `value` is at least one.
    ///
    /// # Errors
    /// The value is zero.
    pub fn positive(key: &str, value: u64) -> Result<(), SpecError> {
        if value == 0 {
            return Err(SpecError::new(key, format!("`{key}` is 0, but must be at least 1")));
        }
        Ok(())
    }
}
