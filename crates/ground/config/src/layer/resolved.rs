//! Configuration after its layers are merged.

use std::ops::Range;
use std::sync::Arc;

use super::INHERITS;
use super::tree::{self, MAX_DEPTH, Node, Origin, Source, Value};
use crate::diag::{Diagnostic, Place};

/// Merged configuration in which every value remembers where it was set.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub(super) root: Node,
    /// The texts that were merged, the bottom first.
    pub(super) layers: Vec<Node>,
    /// The overrides on top of them.
    pub(super) overrides: Vec<String>,
    /// Rank of the highest layer so far.
    top: u32,
}

impl Resolved {
    /// Merges layers, the bottom first; nothing without any. `top` is the rank of the highest.
    pub(super) fn new(layers: Vec<Node>, top: u32) -> Option<Resolved> {
        let mut upward = layers.iter().cloned();
        let mut root = upward.next()?;
        upward.for_each(|layer| root.overlay(layer));
        Some(Resolved { root, layers, overrides: Vec::new(), top })
    }

    /// The names of the texts that were merged, the bottom first.
    pub fn layers(&self) -> impl Iterator<Item = &str> {
        self.layers.iter().map(|layer| layer.origin.source.name.as_str())
    }

    /// Applies one override, `key.path=value`, as the option `--set` has it.
    ///
    /// The value is read as TOML if it is TOML, else as a string, so that quotes are needed only where the two differ.
    /// A number in the path is an index where the configuration has an array (`flash.0.name=…`). Whether the key
    /// exists is seen when the configuration is parsed.
    ///
    /// # Errors
    /// There is no `=`, the key path is not one or is `inherits`, or an index is beyond its array.
    pub fn set(&mut self, assignment: &str) -> Result<(), Diagnostic> {
        let source = option(assignment.to_owned());
        let origin = |key, value| Origin::new(Arc::clone(&source), self.top + 1, key, value);
        let Some((path, value)) = assignment.split_once('=') else {
            return Err(Diagnostic::new("an override has the form `key.path=value`")
                .at(origin(0..0, 0..0).value_place(""))
                .help("such as flash.geometry.channels=4; `nandscape params` lists the keys"));
        };
        let segments = split_path(path).map_err(|(what, byte)| {
            Diagnostic::new(what).at(origin(0..0, byte..byte).value_place(path.trim()))
        })?;
        if segments.first().is_some_and(|(name, _)| *name == INHERITS) {
            return Err(Diagnostic::new("an override cannot change what is inherited").at(origin(
                0..0,
                0..0,
            )
            .value_place(INHERITS)));
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

    /// A path may pass through an array only by the index of one of its elements.
    fn refuse_index(&self, segments: &[Segment<'_>], source: &Arc<Source>) -> Result<(), Diagnostic> {
        let path: Vec<_> = segments.iter().map(|(name, _)| *name).collect();
        let (node, used) = self.root.deepest(&path);
        let Value::Array(items) = &node.value else { return Ok(()) };
        let Some((name, span)) = segments.get(used) else { return Ok(()) };
        let origin = Origin::new(Arc::clone(source), 0, span.clone(), span.clone());
        Err(Diagnostic::new(format!(
            "`{}` is an array of {}; `{name}` is no index in it",
            path[..used].join("."),
            items.len()
        ))
        .at(origin.key_place(&path.join("."))))
    }

    /// A diagnostic about the value of a key, at the place where it was set; if it was not set, at the nearest table
    /// above it that was.
    pub fn diagnose(&self, key_path: &str, what: impl Into<String>) -> Diagnostic {
        Diagnostic::new(what).at(self.place(key_path))
    }

    /// Where a key was set; if it was not set, the nearest table above it that was.
    pub fn place(&self, key_path: &str) -> Place {
        let path: Vec<_> = key_path.split('.').collect();
        let (node, used) = self.root.deepest(&path);
        if used == 0 {
            // Nothing on the path was set, so there is no line to show: the topmost text as a whole.
            let source = node.origin.source.name.clone();
            return Place { source, key: key_path.to_owned(), ..Place::default() };
        }
        match &node.value {
            Value::Scalar(_) | Value::Array(_) if used == path.len() => node.origin.value_place(key_path),
            _ => node.origin.key_place(key_path),
        }
    }

    /// Entries of a table that stand in place of each other: those that a higher layer has replaced by another are dropped, as
    /// alternatives of a choice are. Those of one layer all stay.
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

    /// The names of the entries at the root, in the order in which they stood first: those of lower layers, then those of higher
    /// ones.
    pub fn names(&self) -> Vec<String> {
        self.root.entries().into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// The merged configuration.
    pub fn table(&self) -> toml::Table {
        match self.root.to_toml() {
            toml::Value::Table(table) => table,
            _ => toml::Table::new(),
        }
    }

    /// The merged configuration as TOML text with sorted keys.
    pub fn to_toml_string(&self) -> String {
        self.table().to_string()
    }
}

/// A part of a key path, with its bytes.
type Segment<'p> = (&'p str, Range<usize>);

/// The segments of a key path, or what is wrong and at which byte.
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

/// The text of an override.
fn option(text: String) -> Arc<Source> {
    Arc::new(Source { name: "--set".to_owned(), text, has_lines: false, own: true })
}

/// Reads the text as a TOML value; as a string if it is none.
fn set_value(text: &str, origin: &Origin) -> Node {
    let line = option(format!("value = {text}"));
    if let Ok(Node { value: Value::Table(mut entries), .. }) = tree::read(&line, origin.layer)
        && entries.len() == 1
        && let Some(mut node) = entries.remove("value")
    {
        node.replant(origin);
        return node;
    }
    Node { value: Value::Scalar(toml::Value::String(text.to_owned())), origin: origin.clone() }
}
