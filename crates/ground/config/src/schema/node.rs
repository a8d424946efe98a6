//! A schema with what its references say, without copies.

use serde_json::{Map, Value};

/// The keys of a schema and of those that it refers to. The value of a key is that of the first schema that has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Node<'s> {
    entries: Vec<(&'s str, &'s Value)>,
    /// Values that stand in no document: they go before the others.
    own: Vec<(&'static str, Value)>,
}

impl<'s> Node<'s> {
    pub(super) fn of(schema: &'s Value) -> Node<'s> {
        let mut node = Node::default();
        if let Some(map) = schema.as_object() {
            node.add(map);
        }
        node
    }

    /// Adds the keys of a schema that are not there yet.
    pub(super) fn add(&mut self, map: &'s Map<String, Value>) {
        for (name, value) in map {
            if self.document(name).is_none() {
                self.entries.push((name, value));
            }
        }
    }

    /// Sets a key, whatever the schemas say.
    pub(super) fn set(&mut self, name: &'static str, value: Value) {
        self.own.retain(|(other, _)| *other != name);
        self.own.push((name, value));
    }

    /// Takes a key out.
    pub(super) fn take(&mut self, name: &str) -> Option<&'s Value> {
        let at = self.entries.iter().position(|(other, _)| *other == name)?;
        Some(self.entries.remove(at).1)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        let own = self.own.iter().find(|(other, _)| *other == name).map(|(_, value)| value);
        own.or_else(|| self.document(name))
    }

    /// The value of a key in the document, which outlives the node.
    pub(super) fn document(&self, name: &str) -> Option<&'s Value> {
        self.entries.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    pub(super) fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The keys of a table.
    pub(super) fn properties(&self) -> Option<&'s Map<String, Value>> {
        self.document("properties").and_then(Value::as_object)
    }
}
