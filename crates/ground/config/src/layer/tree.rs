//! TOML as a tree in which every table and value remembers where it was set.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diag::{Diagnostic, Place};

/// Tables and arrays may stand this deep in each other; it bounds the recursion over a tree.
pub(super) const MAX_DEPTH: usize = 64;

/// A text that configuration was read from.
#[derive(Debug)]
pub(super) struct Source {
    /// File name, or `--set`.
    pub(super) name: String,
    pub(super) text: String,
    /// Whether lines can be counted in it: an option has none.
    pub(super) has_lines: bool,
    /// Whether the user wrote it: a preset is somebody else's.
    pub(super) own: bool,
}

/// Where a node was set last.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) source: Arc<Source>,
    /// Higher layers override lower ones.
    pub(super) layer: u32,
    /// Bytes of the key in the source; empty at a root and in arrays.
    pub(super) key: Range<usize>,
    /// Bytes of the value in the source.
    pub(super) value: Range<usize>,
    /// Where it stood first: the layer, and the first byte of the key.
    pub(super) first: (u32, usize),
}

/// A table, an array or a scalar, with its origin.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Table(BTreeMap<String, Node>),
    Array(Vec<Node>),
    /// Never a `toml` table or array.
    Scalar(toml::Value),
}

impl Source {
    /// The place of a byte.
    fn place(&self, byte: usize, key: &str) -> Place {
        let byte =
            (0..=byte.min(self.text.len())).rev().find(|b| self.text.is_char_boundary(*b)).unwrap_or(0);
        let before = &self.text[..byte];
        let start = if self.has_lines { before.rfind('\n').map_or(0, |n| n + 1) } else { 0 };
        let rest = &self.text[start..];
        let line = if self.has_lines { rest.lines().next().unwrap_or("") } else { rest };
        Place {
            source: self.name.clone(),
            line: if self.has_lines { before.bytes().filter(|b| *b == b'\n').count() as u64 + 1 } else { 0 },
            column: self.text[start..byte].chars().count() as u64 + 1,
            text: line.to_owned(),
            key: key.to_owned(),
        }
    }
}

impl Origin {
    pub(super) fn new(source: Arc<Source>, layer: u32, key: Range<usize>, value: Range<usize>) -> Origin {
        let first = (layer, key.start);
        Origin { source, layer, key, value, first }
    }
    /// What stood here before is set again there.
    fn moves_to(&mut self, over: Origin) {
        let first = self.first.min(over.first);
        *self = Origin { first, ..over };
    }
    /// The place of the key; of the value, if it has no key of its own.
    pub(super) fn key_place(&self, key: &str) -> Place {
        let span = if self.key.is_empty() { &self.value } else { &self.key };
        self.source.place(span.start, key)
    }
    /// The place of the value.
    pub(super) fn value_place(&self, key: &str) -> Place {
        self.source.place(self.value.start, key)
    }
}

/// Reads TOML text; the error is the first fault in it.
pub(super) fn read(source: &Arc<Source>, layer: u32) -> Result<Node, Diagnostic> {
    let table = DeTable::parse(&source.text).map_err(|fault| {
        let byte = fault.span().map_or(0, |span| span.start);
        Diagnostic::new(format!("not valid TOML: {}", fault.message().trim())).at(source.place(byte, ""))
    })?;
    // The root has no place of its own: it is the whole text.
    let origin = Origin::new(Arc::clone(source), layer, 0..0, 0..0);
    table_node(table.into_inner(), origin, 0)
}

fn table_node(table: DeTable<'_>, origin: Origin, depth: usize) -> Result<Node, Diagnostic> {
    let mut entries = BTreeMap::new();
    for (key, value) in table {
        let first = (origin.layer, key.span().start);
        let here = Origin { key: key.span(), first, ..origin.clone() };
        entries.insert(key.into_inner().into_owned(), value_node(value, here, depth + 1)?);
    }
    Ok(Node { value: Value::Table(entries), origin })
}

/// `here` has the right source, layer and key; its value span is set from `value`.
fn value_node(value: Spanned<DeValue<'_>>, here: Origin, depth: usize) -> Result<Node, Diagnostic> {
    let origin = Origin { value: value.span(), ..here };
    let fault = |what: String| Diagnostic::new(what).at(origin.value_place(""));
    if depth > MAX_DEPTH {
        return Err(fault(format!("tables and arrays are nested deeper than {MAX_DEPTH}")));
    }
    let scalar = match value.into_inner() {
        DeValue::Table(table) => return table_node(table, origin, depth),
        DeValue::Array(items) => {
            let mut nodes = Vec::with_capacity(items.len());
            for item in items {
                nodes.push(value_node(item, Origin { key: 0..0, ..origin.clone() }, depth + 1)?);
            }
            return Ok(Node { value: Value::Array(nodes), origin });
        }
        DeValue::String(text) => toml::Value::String(text.into_owned()),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => toml::Value::Integer(number),
            Err(_) => return Err(fault(format!("the integer {digits} does not fit in 64 bits"))),
        },
        DeValue::Float(digits) => match digits.as_str().parse() {
            Ok(number) => toml::Value::Float(number),
            Err(_) => return Err(fault(format!("`{digits}` is not a real number"))),
        },
        DeValue::Boolean(truth) => toml::Value::Boolean(truth),
        DeValue::Datetime(date) => toml::Value::Datetime(date),
    };
    Ok(Node { value: Value::Scalar(scalar), origin })
}

impl Node {
    /// Lays `over` on top: tables merge key by key, anything else replaces.
    pub(super) fn overlay(&mut self, over: Node) {
        match (&mut self.value, over.value) {
            (Value::Table(below), Value::Table(above)) => {
                for (key, node) in above {
                    match below.get_mut(&key) {
                        Some(base) => base.overlay(node),
                        None => drop(below.insert(key, node)),
                    }
                }
            }
            (value, above) => *value = above,
        }
        self.origin.moves_to(over.origin);
    }

    /// Lays `value` on top of what stands at the end of `path`, making tables on the way where there are none.
    ///
    /// Each step has the origin of its key. An index beyond an array changes nothing: the caller has checked it.
    pub(super) fn set(&mut self, path: &[(&str, Origin)], value: Node) {
        let Some(((name, origin), rest)) = path.split_first() else { return self.overlay(value) };
        if let Value::Scalar(_) = self.value {
            self.value = Value::Table(BTreeMap::new());
        }
        match &mut self.value {
            Value::Array(items) => {
                if let Some(item) = name.parse::<usize>().ok().and_then(|i| items.get_mut(i)) {
                    item.set(rest, value);
                }
            }
            Value::Table(entries) => {
                let empty = || Node { value: Value::Table(BTreeMap::new()), origin: origin.clone() };
                let entry = entries.entry((*name).to_owned()).or_insert_with(empty);
                entry.origin.moves_to(origin.clone());
                entry.set(rest, value);
            }
            Value::Scalar(_) => {}
        }
    }

    /// Gives the whole tree another origin: it was read from a copy of the text.
    pub(super) fn replant(&mut self, origin: &Origin) {
        self.origin = origin.clone();
        match &mut self.value {
            Value::Table(entries) => entries.values_mut().for_each(|node| node.replant(origin)),
            Value::Array(items) => items.iter_mut().for_each(|node| node.replant(origin)),
            Value::Scalar(_) => {}
        }
    }

    /// The entry of a table or the element of an array.
    pub(super) fn child(&self, name: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.get(name),
            Value::Array(items) => items.get(name.parse::<usize>().ok()?),
            Value::Scalar(_) => None,
        }
    }

    fn child_mut(&mut self, name: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Table(entries) => entries.get_mut(name),
            Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
            Value::Scalar(_) => None,
        }
    }

    /// The node at `path`, or its nearest ancestor that exists; with the number of path segments used.
    pub(super) fn deepest(&self, path: &[&str]) -> (&Node, usize) {
        let mut node = self;
        for (used, name) in path.iter().enumerate() {
            match node.child(name) {
                Some(child) => node = child,
                None => return (node, used),
            }
        }
        (node, path.len())
    }

    /// Takes an entry out of the table that holds it; false if `path` does not end in a table entry.
    pub(super) fn remove(&mut self, path: &[String]) -> bool {
        let Some((last, parents)) = path.split_last() else { return false };
        let mut node = self;
        for name in parents {
            match node.child_mut(name) {
                Some(child) => node = child,
                None => return false,
            }
        }
        match &mut node.value {
            Value::Table(entries) => entries.remove(last).is_some(),
            Value::Array(_) | Value::Scalar(_) => false,
        }
    }

    /// The entries of a table, in the order in which they stood first: those of lower layers, then those of higher ones.
    pub(super) fn entries(&self) -> Vec<(&String, &Node)> {
        let Value::Table(entries) = &self.value else { return Vec::new() };
        let mut found: Vec<_> = entries.iter().collect();
        found.sort_by_key(|(_, node)| node.origin.first);
        found
    }

    /// The tree without its places.
    pub(super) fn to_toml(&self) -> toml::Value {
        match &self.value {
            Value::Table(entries) => {
                toml::Value::Table(entries.iter().map(|(key, node)| (key.clone(), node.to_toml())).collect())
            }
            Value::Array(items) => toml::Value::Array(items.iter().map(Node::to_toml).collect()),
            Value::Scalar(scalar) => scalar.clone(),
        }
    }
}
