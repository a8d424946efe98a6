//! Walk over a JSON Schema that finds every key, and the keys that a configuration lacks.

use serde_json::{Map, Value};

use super::{Node, Param, limits};
use crate::policy::FAMILY_KEY;
use crate::units::{QUANTITY_KEY, UNITS_KEY};

/// Returns every key of a schema document, in the order of the schema's properties.
pub(crate) fn walk(document: &Value) -> Vec<Param> {
    let mut walker = Walker::new(document);
    walker.visit("", document, None, true);
    walker.found
}

pub(super) struct Walker<'s> {
    document: &'s Value,
    /// References on the path from the root: a type may contain itself.
    pub(super) open: Vec<String>,
    pub(super) found: Vec<Param>,
}

impl<'s> Walker<'s> {
    pub(super) fn new(document: &'s Value) -> Walker<'s> {
        Walker { document, open: Vec::new(), found: Vec::new() }
    }
}

impl<'s> Walker<'s> {
    /// Visits a key. `given` is its value in the default of the enclosing table.
    fn visit(&mut self, key: &str, schema: &'s Value, given: Option<&Value>, required: bool) {
        let depth = self.open.len();
        let (mut schema, optional) = self.resolve(schema);
        if let Some(given) = given {
            schema.set("default", given.clone());
        }
        let default = schema.get("default").cloned();
        let alternatives = alternatives(&schema);
        let properties = schema.properties();
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
            // Keys beside the choice, or those of a plain table.
            if let Some(properties) = properties {
                self.table(key, properties, &schema, default.as_ref());
            }
        } else if let Some(element) = self.table_element(&schema) {
            self.visit(&join(key, "*"), element, None, true);
        } else {
            self.leaf(key, &schema, optional || !required);
        }
        self.open.truncate(depth);
    }

    fn table(
        &mut self,
        key: &str,
        properties: &'s Map<String, Value>,
        schema: &Node<'s>,
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

    pub(super) fn leaf(&mut self, key: &str, schema: &Node<'s>, optional: bool) {
        let strings = |value: &Value| {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let default = match schema.get("default") {
            Some(value) => Some(as_toml(value)),
            None => optional.then(|| "none".to_owned()),
        };
        let counted = schema.get(limits::UNIT).and_then(Value::as_str).map(str::to_owned);
        // For an array, the allowed values are those of its elements.
        let depth = self.open.len();
        let items = schema.document("items").map(|items| self.resolve(items).0);
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

    /// Resolves references and options, keeping the words and default of the referring schema. Also returns whether the
    /// value may be left out.
    pub(super) fn resolve(&mut self, schema: &'s Value) -> (Node<'s>, bool) {
        let mut node = Node::of(schema);
        let mut optional = false;
        loop {
            let inner = if let Some(Value::String(reference)) = node.take("$ref") {
                if self.open.contains(reference) {
                    return (node, optional);
                }
                self.open.push(reference.clone());
                reference.strip_prefix('#').and_then(|path| self.document.pointer(path))
            } else if let Some(inner) = only_element(&node, "allOf") {
                node.take("allOf");
                Some(inner)
            } else if let Some(inner) = without_null(&node) {
                optional = true;
                node.take("anyOf");
                Some(inner)
            } else {
                None
            };
            let Some(Value::Object(inner)) = inner else { break };
            node.add(inner);
        }
        if let Some(Value::Array(types)) = node.document("type") {
            let mut kept = types.clone();
            kept.retain(|t| t != "null");
            optional |= kept.len() < types.len();
            node.set("type", if let [only] = &kept[..] { only.clone() } else { Value::Array(kept) });
        }
        (node, optional)
    }

    /// Returns the schema of the elements of an array of tables, or of tables under free names.
    pub(super) fn table_element(&mut self, schema: &Node<'s>) -> Option<&'s Value> {
        let element = [schema.document("items"), schema.document("additionalProperties")]
            .into_iter()
            .flatten()
            .find(|e| e.is_object())?;
        let depth = self.open.len();
        let (resolved, _) = self.resolve(element);
        self.open.truncate(depth);
        (resolved.contains_key("properties") || schema.contains_key("additionalProperties"))
            .then_some(element)
    }

    /// Returns the kind of value, in words.
    fn kind(&mut self, schema: &Node<'s>) -> String {
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
            "array" => match schema.document("items") {
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
            // A text or a list of texts.
            _ if is_list_or_text(schema) => "text or array of text".to_owned(),
            _ => "value".to_owned(),
        }
    }
}

pub(super) fn join(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") }
}

fn text<'n>(schema: &'n Node<'_>, name: &str) -> &'n str {
    schema.get(name).and_then(Value::as_str).unwrap_or("")
}

fn is_list_or_text(schema: &Node<'_>) -> bool {
    schema.get("type").is_some_and(|kinds| *kinds == serde_json::json!(["string", "array"]))
}

fn only_element<'s>(schema: &Node<'s>, name: &str) -> Option<&'s Value> {
    match schema.document(name)?.as_array()?.as_slice() {
        [only] => Some(only),
        _ => None,
    }
}

/// Returns the other alternative of an `anyOf` with null: an `Option` in Rust.
fn without_null<'s>(schema: &Node<'s>) -> Option<&'s Value> {
    let is_null = |form: &Value| form.get("type").is_some_and(|t| t == "null");
    match schema.document("anyOf")?.as_array()?.as_slice() {
        [inner, null] | [null, inner] if is_null(null) && !is_null(inner) => Some(inner),
        _ => None,
    }
}

/// Returns the names of a choice, each with the schema of its parameters, if any; in order, without repetition.
pub(super) fn alternatives<'s>(schema: &Node<'s>) -> Vec<(String, Option<&'s Value>)> {
    fn names<'a>(listed: Option<&'a Value>, one: Option<&'a Value>) -> impl Iterator<Item = &'a str> {
        listed.and_then(Value::as_array).into_iter().flatten().chain(one).filter_map(Value::as_str)
    }
    let mut found: Vec<(String, Option<&'s Value>)> = Vec::new();
    let mut add = |name: &str, parameters| match found.iter_mut().find(|(n, _)| n == name) {
        Some((_, known)) => *known = known.or(parameters),
        None => found.push((name.to_owned(), parameters)),
    };
    let forms = ["oneOf", "anyOf"].into_iter().filter_map(|n| schema.document(n)?.as_array()).flatten();
    for form in forms.filter_map(Value::as_object) {
        names(form.get("enum"), form.get("const")).for_each(|name| add(name, None));
        for (name, parameters) in form.get("properties").and_then(Value::as_object).into_iter().flatten() {
            add(name, Some(parameters));
        }
    }
    // The properties of the whole schema are those of a plain table.
    names(schema.get("enum"), schema.get("const")).for_each(|name| add(name, None));
    found
}

/// Formats a default as written in a file.
fn as_toml(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Number(number) => number.to_string(),
        other => toml::Value::try_from(other).map_or_else(|_| other.to_string(), |v| v.to_string()),
    }
}

// Keys that a configuration lacks: all of them, whereas a parser stops at the first.

/// Returns every key of a schema document that must be set and is not, in the order of the schema's properties. An
/// optional table that is left out lacks nothing, unless its root key is in `needed`.
pub fn missing(document: &Value, table: &toml::Table, needed: &[&str]) -> Vec<Param> {
    let mut search = Search { walker: Walker::new(document), needed };
    let whole = toml::Value::Table(table.clone());
    search.visit("", document, Some(&whole), true);
    search.walker.found
}

struct Search<'s> {
    walker: Walker<'s>,
    needed: &'s [&'s str],
}

impl<'s> Search<'s> {
    fn visit(&mut self, key: &str, schema: &'s Value, value: Option<&toml::Value>, required: bool) {
        let depth = self.walker.open.len();
        let (schema, optional) = self.walker.resolve(schema);
        let is_needed = self.needed.contains(&key) || required && !optional;
        match value {
            Some(value) => self.inside(key, &schema, value),
            None if is_needed && !schema.contains_key("default") => self.absent(key, &schema),
            None => {}
        }
        self.walker.open.truncate(depth);
    }

    /// Handles a missing value: the key itself is missing, or every key below it.
    fn absent(&mut self, key: &str, schema: &Node<'s>) {
        match schema.properties() {
            Some(_) if alternatives(schema).is_empty() => self.entries(key, schema, None),
            _ => self.walker.leaf(key, schema, false),
        }
    }

    /// Handles a present value, which may lack keys.
    fn inside(&mut self, key: &str, schema: &Node<'s>, value: &toml::Value) {
        if schema.properties().is_some() {
            // A value that should be a table and is not is refused elsewhere.
            if value.is_table() {
                self.entries(key, schema, Some(value));
            }
        }
        for (name, parameters) in alternatives(schema) {
            if let (Some(parameters), Some(chosen)) = (parameters, value.get(name.as_str())) {
                self.visit(&join(key, &name), parameters, Some(chosen), true);
            }
        }
        if schema.properties().is_some() {
            return;
        }
        let Some(element) = self.walker.table_element(schema) else { return };
        let elements: Vec<(String, &toml::Value)> = match value {
            toml::Value::Array(items) => {
                items.iter().enumerate().map(|(n, item)| (n.to_string(), item)).collect()
            }
            toml::Value::Table(items) => items.iter().map(|(name, item)| (name.clone(), item)).collect(),
            _ => Vec::new(),
        };
        for (name, item) in elements {
            self.visit(&join(key, &name), element, Some(item), true);
        }
    }

    fn entries(&mut self, key: &str, schema: &Node<'s>, table: Option<&toml::Value>) {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for (name, property) in schema.properties().into_iter().flatten() {
            let value = table.and_then(|table| table.get(name));
            self.visit(&join(key, name), property, value, required.contains(&name.as_str()));
        }
    }
}
