//! TOML as a tree in which every table and value remembers where it was set, and that tree after its layers are merged.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::INHERITS;
use crate::diag::{Diagnostic, Place};

/// Maximum nesting depth of tables and arrays; it bounds the recursion over a tree.
pub(super) const MAX_DEPTH: usize = 64;

/// Text that configuration was read from.
#[derive(Debug)]
pub(super) struct Source {
    /// File name, or `--set`.
    pub(super) name: String,
    pub(super) text: String,
    /// True if the text has line numbers; an option has none.
    pub(super) has_lines: bool,
    /// True if the user wrote the text, false for a preset.
    pub(super) own: bool,
}

/// Place where a node was last set.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) source: Arc<Source>,
    /// Rank of the layer; higher layers override lower ones.
    pub(super) layer: u32,
    /// Byte range of the key in the source; empty at a root and in arrays.
    pub(super) key: Range<usize>,
    /// Byte range of the value in the source.
    pub(super) value: Range<usize>,
    /// Place of the node's first occurrence: the layer, and the first byte of the key.
    pub(super) first: (u32, usize),
}

/// Table, array or scalar, with its origin.
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
    /// Returns the place of a byte.
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
    /// Moves the origin to `over`, where the node is set again.
    fn moves_to(&mut self, over: Origin) {
        let first = self.first.min(over.first);
        *self = Origin { first, ..over };
    }
    /// Returns the place of the key, or of the value if it has no key of its own.
    pub(super) fn key_place(&self, key: &str) -> Place {
        let span = if self.key.is_empty() { &self.value } else { &self.key };
        self.source.place(span.start, key)
    }
    /// Returns the place of the value.
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
    // The root is the whole text and has no place of its own.
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

/// Converts a value. `here` has the right source, layer and key; its value span is set from `value`.
fn value_node(value: Spanned<DeValue<'_>>, here: Origin, depth: usize) -> Result<Node, Diagnostic> {
    let origin = Origin { value: value.span(), ..here };
    let fault = |what: String| Diagnostic::new(what).at(origin.value_place(""));
    if depth > MAX_DEPTH {
        return Err(fault(format!("tables and arrays are nested deeper than {MAX_DEPTH} levels")));
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
    /// Merges `over` on top: tables merge key by key, anything else replaces.
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

    /// Merges `value` on top of the node at `path`, creating missing tables on the way.
    ///
    /// Each step has the origin of its key. An index beyond an array changes nothing; the caller has checked it.
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

    /// Gives the whole tree a different origin; used if it was read from a copy of the text.
    pub(super) fn replant(&mut self, origin: &Origin) {
        self.origin = origin.clone();
        match &mut self.value {
            Value::Table(entries) => entries.values_mut().for_each(|node| node.replant(origin)),
            Value::Array(items) => items.iter_mut().for_each(|node| node.replant(origin)),
            Value::Scalar(_) => {}
        }
    }

    /// Returns an entry of a table or an element of an array.
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

    /// Returns the node at `path`, or its nearest existing ancestor, with the number of path segments used.
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

    /// Removes an entry from the table that holds it; false if `path` does not end in a table entry.
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

    /// Returns the entries of a table in the order of their first occurrence: those of lower layers first.
    pub(super) fn entries(&self) -> Vec<(&String, &Node)> {
        let Value::Table(entries) = &self.value else { return Vec::new() };
        let mut found: Vec<_> = entries.iter().collect();
        found.sort_by_key(|(_, node)| node.origin.first);
        found
    }

    /// Converts the tree to TOML, without its places.
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

// Configuration after its layers are merged.

/// Merged configuration in which every value remembers where it was set.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub(super) root: Node,
    /// Merged texts, the lowest first.
    pub(super) layers: Vec<Node>,
    /// Overrides on top of them.
    pub(super) overrides: Vec<String>,
    /// Rank of the highest layer so far.
    top: u32,
}

impl Resolved {
    /// Merges layers, the lowest first; `None` without layers. `top` is the rank of the highest.
    pub(super) fn new(layers: Vec<Node>, top: u32) -> Option<Resolved> {
        let mut upward = layers.iter().cloned();
        let mut root = upward.next()?;
        upward.for_each(|layer| root.overlay(layer));
        Some(Resolved { root, layers, overrides: Vec::new(), top })
    }

    /// Iterates over the names of the merged texts, the lowest first.
    pub fn layers(&self) -> impl Iterator<Item = &str> {
        self.layers.iter().map(|layer| layer.origin.source.name.as_str())
    }

    /// Applies one override, `key.path=value`, as the option `--set` takes it.
    ///
    /// The value is read as TOML if it is valid TOML, otherwise as a string, so that quotes are needed only where the
    /// two differ. A number in the path is an index where the configuration has an array (`flash.0.name=…`). Parsing
    /// the configuration later checks that the key exists.
    ///
    /// # Errors
    /// The `=` is missing, the key path is invalid or is `inherits`, or an index is beyond its array.
    pub fn set(&mut self, assignment: &str) -> Result<(), Diagnostic> {
        let source = option(assignment.to_owned());
        let origin = |key, value| Origin::new(Arc::clone(&source), self.top + 1, key, value);
        let Some((path, value)) = assignment.split_once('=') else {
            return Err(Diagnostic::new("an override has the form `key.path=value`")
                .at(origin(0..0, 0..0).value_place(""))
                .help("for example flash.geometry.channels=4; `nandscape params` lists the keys"));
        };
        let segments = split_path(path).map_err(|(what, byte)| {
            Diagnostic::new(what).at(origin(0..0, byte..byte).value_place(path.trim()))
        })?;
        if segments.first().is_some_and(|(name, _)| *name == INHERITS) {
            return Err(Diagnostic::new("an override cannot set `inherits`")
                .at(origin(0..0, 0..0).value_place(INHERITS)));
        }
        self.refuse_index(&segments, &source)?;
        let start = path.len() + 1 + (value.len() - value.trim_start().len());
        let steps: Vec<_> = segments
            .iter()
            .map(|(name, key)| (*name, origin(key.clone(), start..assignment.len())))
            .collect();
        if let Some((_, last)) = steps.last() {
            let node = set_value(value.trim(), last);
            self.root.set(&steps, node);
        }
        self.overrides.push(assignment.to_owned());
        self.top += 1;
        Ok(())
    }

    /// Refuses a path that passes through an array other than by the index of an existing element.
    fn refuse_index(&self, segments: &[Segment<'_>], source: &Arc<Source>) -> Result<(), Diagnostic> {
        let path: Vec<_> = segments.iter().map(|(name, _)| *name).collect();
        let (node, used) = self.root.deepest(&path);
        let Value::Array(items) = &node.value else { return Ok(()) };
        let Some((name, span)) = segments.get(used) else { return Ok(()) };
        let origin = Origin::new(Arc::clone(source), 0, span.clone(), span.clone());
        Err(Diagnostic::new(format!(
            "`{}` is an array of length {}; `{name}` is not an index of it",
            path[..used].join("."),
            items.len()
        ))
        .at(origin.key_place(&path.join("."))))
    }

    /// Creates a diagnostic about the value of a key, at the place where it was set; if it was not set, at the nearest
    /// enclosing table that was.
    pub fn diagnose(&self, key_path: &str, what: impl Into<String>) -> Diagnostic {
        Diagnostic::new(what).at(self.place(key_path))
    }

    /// Returns the place where a key was set; if it was not set, that of the nearest enclosing table that was.
    pub fn place(&self, key_path: &str) -> Place {
        let path: Vec<_> = key_path.split('.').collect();
        let (node, used) = self.root.deepest(&path);
        if used == 0 {
            // Nothing on the path was set, so no line can be shown: the place is the topmost text as a whole.
            let source = node.origin.source.name.clone();
            return Place { source, key: key_path.to_owned(), ..Place::default() };
        }
        match &node.value {
            Value::Scalar(_) | Value::Array(_) if used == path.len() => node.origin.value_place(key_path),
            _ => node.origin.key_place(key_path),
        }
    }

    /// Drops entries of a table that a higher layer has replaced by a different one of `alternatives`, as with the
    /// alternatives of a choice. Entries of the same layer all stay.
    pub fn replace(&mut self, table: &[&str], alternatives: &[&str]) {
        let (at, used) = self.root.deepest(table);
        if used < table.len() {
            return;
        }
        let layer = |name: &str| at.child(name).map(|node| node.origin.layer);
        let top = alternatives.iter().filter_map(|name| layer(name)).max();
        let lower: Vec<&str> = alternatives
            .iter()
            .copied()
            .filter(|name| layer(name).is_some_and(|own| Some(own) < top))
            .collect();
        for name in lower {
            let path: Vec<String> = table.iter().chain([&name]).map(|part| (*part).to_owned()).collect();
            self.root.remove(&path);
        }
    }

    /// Returns the names of the root entries in the order of their first occurrence: those of lower layers first.
    pub fn names(&self) -> Vec<String> {
        self.root.entries().into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the merged configuration.
    pub fn table(&self) -> toml::Table {
        match self.root.to_toml() {
            toml::Value::Table(table) => table,
            _ => toml::Table::new(),
        }
    }

    /// Returns the merged configuration as TOML text with sorted keys.
    pub fn to_toml_string(&self) -> String {
        self.table().to_string()
    }
}

/// Segment of a key path, with its byte range.
type Segment<'p> = (&'p str, Range<usize>);

/// Splits a key path into segments; the error is the message and the byte where the path is wrong.
fn split_path(path: &str) -> Result<Vec<Segment<'_>>, (String, usize)> {
    let mut segments = Vec::new();
    let mut start = 0;
    for part in path.split('.') {
        let name = part.trim();
        let first = start + (part.len() - part.trim_start().len());
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            return Err((
                format!("`{}` is not a key path such as `flash.geometry.channels`", path.trim()),
                first,
            ));
        }
        segments.push((name, first..first + name.len()));
        start += part.len() + 1;
    }
    if segments.len() > MAX_DEPTH {
        return Err((format!("a key path has at most {MAX_DEPTH} parts"), 0));
    }
    Ok(segments)
}

/// Source of an override.
fn option(text: String) -> Arc<Source> {
    Arc::new(Source { name: "--set".to_owned(), text, has_lines: false, own: true })
}

/// Reads the text as a TOML value, or as a string if it is not one.
fn set_value(text: &str, origin: &Origin) -> Node {
    let line = option(format!("value = {text}"));
    if let Ok(Node { value: Value::Table(mut entries), .. }) = read(&line, origin.layer)
        && entries.len() == 1
        && let Some(mut node) = entries.remove("value")
    {
        node.replant(origin);
        return node;
    }
    Node { value: Value::Scalar(toml::Value::String(text.to_owned())), origin: origin.clone() }
}
