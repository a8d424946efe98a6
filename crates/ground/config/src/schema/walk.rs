//! The walk over a JSON Schema that finds every key.

use serde_json::{Map, Value};

use super::{Param, limits};
use crate::policy::FAMILY_KEY;
use crate::units::{QUANTITY_KEY, UNITS_KEY};

/// Every key of a schema document, in the order of the schema's properties.
pub(crate) fn walk(document: &Value) -> Vec<Param> {
    let mut walker = Walker::new(document);
    walker.visit("", document, None, true);
    walker.found
}

pub(super) struct Walker<'s> {
    document: &'s Value,
    /// References on the way from the root: a type may contain itself.
    pub(super) open: Vec<String>,
    pub(super) found: Vec<Param>,
}

impl<'s> Walker<'s> {
    pub(super) fn new(document: &'s Value) -> Walker<'s> {
        Walker { document, open: Vec::new(), found: Vec::new() }
    }
}

impl Walker<'_> {
    /// `given` is the value that the default of the table above has for this key.
    fn visit(&mut self, key: &str, schema: &Value, given: Option<&Value>, required: bool) {
        let depth = self.open.len();
        let (mut schema, optional) = self.resolve(schema);
        if let Some(given) = given {
            schema.insert("default".to_owned(), given.clone());
        }
        let default = schema.get("default").cloned();
        let alternatives = alternatives(&schema);
        let properties = schema.get("properties").and_then(Value::as_object);
        if schema.contains_key(QUANTITY_KEY) {
            self.leaf(key, &schema, optional || !required);
        } else if properties.is_some() || !alternatives.is_empty() {
            if !alternatives.is_empty() {
                self.leaf(key, &schema, optional || !required);
            }
            for (name, parameters) in alternatives.iter().filter_map(|(n, p)| Some((n, (*p)?))) {
                let chosen = default.as_ref().and_then(|d| d.get(name));
                self.visit(&join(key, name), parameters, chosen, true);
            }
            // Keys that stand beside the choice, or those of a plain table.
            if let Some(properties) = properties {
                self.table(key, properties, &schema, default.as_ref());
            }
        } else if let Some(element) = self.table_element(&schema) {
            self.visit(&join(key, "*"), &element, None, true);
        } else {
            self.leaf(key, &schema, optional || !required);
        }
        self.open.truncate(depth);
    }

    fn table(
        &mut self,
        key: &str,
        properties: &Map<String, Value>,
        schema: &Map<String, Value>,
        given: Option<&Value>,
    ) {
        let required: Vec<_> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
        for (name, property) in properties {
            let given = given.and_then(|g| g.get(name));
            self.visit(&join(key, name), property, given, required.iter().any(|r| r.as_str() == Some(name)));
        }
        limits::tell_products(key, schema, &mut self.found);
    }

    pub(super) fn leaf(&mut self, key: &str, schema: &Map<String, Value>, optional: bool) {
        let strings = |value: &Value| {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let default = match schema.get("default") {
            Some(value) => Some(as_toml(value)),
            None => optional.then(|| "none".to_owned()),
        };
        let counted = schema.get(limits::UNIT).and_then(Value::as_str).map(str::to_owned);
        // Of an array, what its elements may be.
        let depth = self.open.len();
        let items = schema.get("items").map(|items| self.resolve(items).0);
        self.open.truncate(depth);
        let element = items.as_ref().unwrap_or(schema);
        let param = Param {
            key: key.to_owned(),
            kind: self.kind(schema),
            units: schema.get(UNITS_KEY).map(strings).unwrap_or_else(|| counted.into_iter().collect()),
            allowed: limits::allowed(element),
            default,
            doc: text(schema, "description").to_owned(),
            family: schema.get(FAMILY_KEY).and_then(Value::as_str).map(str::to_owned),
        };
        self.found.push(param);
    }

    /// The schema behind references and options, with the words and default of the one who refers; and whether the
    /// value may be left out.
    pub(super) fn resolve(&mut self, schema: &Value) -> (Map<String, Value>, bool) {
        let mut merged = schema.as_object().cloned().unwrap_or_default();
        let mut optional = false;
        loop {
            let inner = if let Some(Value::String(reference)) = merged.remove("$ref") {
                if self.open.contains(&reference) {
                    return (merged, optional);
                }
                let target =
                    reference.strip_prefix('#').and_then(|path| self.document.pointer(path)).cloned();
                self.open.push(reference);
                target
            } else if let Some(inner) = only_element(&merged, "allOf") {
                merged.remove("allOf");
                Some(inner)
            } else if let Some(inner) = without_null(&merged) {
                optional = true;
                merged.remove("anyOf");
                Some(inner)
            } else {
                None
            };
            let Some(Value::Object(inner)) = inner else { break };
            for (name, value) in inner {
                merged.entry(name).or_insert(value);
            }
        }
        if let Some(Value::Array(types)) = merged.get_mut("type") {
            optional |= types.iter().any(|t| t == "null");
            types.retain(|t| t != "null");
            if let [only] = &types[..] {
                let only = only.clone();
                merged.insert("type".to_owned(), only);
            }
        }
        (merged, optional)
    }

    /// The schema of what stands in an array of tables, or under names of one's own.
    pub(super) fn table_element(&mut self, schema: &Map<String, Value>) -> Option<Value> {
        let element = [schema.get("items"), schema.get("additionalProperties")]
            .into_iter()
            .flatten()
            .find(|e| e.is_object())?;
        let depth = self.open.len();
        let (resolved, _) = self.resolve(element);
        self.open.truncate(depth);
        (resolved.contains_key("properties") || schema.contains_key("additionalProperties"))
            .then(|| element.clone())
    }

    /// The kind of value, in words.
    fn kind(&mut self, schema: &Map<String, Value>) -> String {
        if let Some(quantity) = schema.get(QUANTITY_KEY).and_then(Value::as_str) {
            return quantity.to_owned();
        }
        let alternatives = alternatives(schema);
        if !alternatives.is_empty() {
            let names: Vec<_> = alternatives.into_iter().map(|(name, _)| name).collect();
            return format!("one of {}", names.join(", "));
        }
        match text(schema, "type") {
            "integer" => "integer".to_owned(),
            "number" => "real number".to_owned(),
            "boolean" => "true or false".to_owned(),
            "string" => "text".to_owned(),
            "array" => match schema.get("items") {
                Some(items) => {
                    let depth = self.open.len();
                    let (items, _) = self.resolve(items);
                    let kind = self.kind(&items);
                    self.open.truncate(depth);
                    format!("array of {kind}")
                }
                None => "array".to_owned(),
            },
            "object" => "table".to_owned(),
            // A text, or a list of them.
            _ if is_list_or_text(schema) => "text or array of text".to_owned(),
            _ => "value".to_owned(),
        }
    }
}

pub(super) fn join(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") }
}

fn text<'s>(schema: &'s Map<String, Value>, name: &str) -> &'s str {
    schema.get(name).and_then(Value::as_str).unwrap_or("")
}

fn is_list_or_text(schema: &Map<String, Value>) -> bool {
    schema.get("type").is_some_and(|kinds| *kinds == serde_json::json!(["string", "array"]))
}

fn only_element(schema: &Map<String, Value>, name: &str) -> Option<Value> {
    match schema.get(name)?.as_array()?.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// What an `anyOf` with null leaves: an `Option` in Rust.
fn without_null(schema: &Map<String, Value>) -> Option<Value> {
    let is_null = |form: &Value| form.get("type").is_some_and(|t| t == "null");
    match schema.get("anyOf")?.as_array()?.as_slice() {
        [inner, null] | [null, inner] if is_null(null) && !is_null(inner) => Some(inner.clone()),
        _ => None,
    }
}

/// The names that a choice has, each with the schema of its parameters if it takes any; in order, without repetition.
pub(super) fn alternatives(schema: &Map<String, Value>) -> Vec<(String, Option<&Value>)> {
    let mut found: Vec<(String, Option<&Value>)> = Vec::new();
    let mut add = |name: &str, parameters| match found.iter_mut().find(|(n, _)| n == name) {
        Some((_, known)) => *known = known.or(parameters),
        None => found.push((name.to_owned(), parameters)),
    };
    let forms = ["oneOf", "anyOf"].into_iter().filter_map(|n| schema.get(n)?.as_array()).flatten();
    for form in forms.filter_map(Value::as_object).chain([schema]) {
        let listed = form.get("enum").and_then(Value::as_array).into_iter().flatten();
        for name in listed.chain(form.get("const")).filter_map(Value::as_str) {
            add(name, None);
        }
        // The whole schema is looked at for names only: its properties are those of a plain table.
        let properties = if std::ptr::eq(form, schema) { None } else { form.get("properties") };
        for (name, parameters) in properties.and_then(Value::as_object).into_iter().flatten() {
            add(name, Some(parameters));
        }
    }
    found
}

/// A default as a file would write it.
fn as_toml(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Number(number) => number.to_string(),
        other => toml::Value::try_from(other).map_or_else(|_| other.to_string(), |v| v.to_string()),
    }
}
