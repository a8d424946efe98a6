//! Which keys a configuration lacks: all of them, where a parser stops at the first.

use serde_json::Value;

use super::walk::{Walker, alternatives, join};
use super::{Node, Param};

/// Every key of a schema document that must be set and is not, in the order of the schema's properties. Tables that may be
/// left out lack nothing if they are; those `needed`, by their key at the root, may not.
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

    /// Nothing stands there: it is missing, or every key of it is.
    fn absent(&mut self, key: &str, schema: &Node<'s>) {
        match schema.properties() {
            Some(_) if alternatives(schema).is_empty() => self.entries(key, schema, None),
            _ => self.walker.leaf(key, schema, false),
        }
    }

    /// Something stands there, and may lack keys.
    fn inside(&mut self, key: &str, schema: &Node<'s>, value: &toml::Value) {
        if schema.properties().is_some() {
            // What is no table is refused for that.
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
