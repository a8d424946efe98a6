//! Tables that inherit a table of another configuration.

use std::collections::BTreeMap;

use super::tree::{Node, Origin, Value};
use super::{INHERITS, is_path};
use crate::diag::{Diagnostic, Place};

/// A table that inherits one of another configuration.
pub(super) struct Wanted {
    /// Where it stands.
    to: Vec<String>,
    /// The preset or file.
    pub(super) layer: String,
    /// The table in there.
    from: Vec<String>,
    /// Where it says so.
    pub(super) place: Place,
    /// Where the part that it belongs to stands first in that text: what it inherits does not stand before it.
    first: (u32, usize),
}

/// Takes `inherits` out of every table below the root, in order of their paths.
pub(super) fn take(root: &mut Node) -> Result<Vec<Wanted>, Diagnostic> {
    let mut found = Vec::new();
    below(root, &mut Vec::new(), (0, 0), &mut found)?;
    Ok(found)
}

fn below(
    node: &mut Node,
    path: &mut Vec<String>,
    first: (u32, usize),
    found: &mut Vec<Wanted>,
) -> Result<(), Diagnostic> {
    let Value::Table(entries) = &mut node.value else { return Ok(()) };
    for (key, entry) in entries {
        let first = if path.is_empty() { entry.origin.first } else { first };
        path.push(key.clone());
        if let Value::Table(inner) = &mut entry.value
            && let Some(named) = inner.remove(INHERITS)
        {
            found.push(wanted(path, first, &named)?);
        }
        below(entry, path, first, found)?;
        path.pop();
    }
    Ok(())
}

fn wanted(to: &[String], first: (u32, usize), named: &Node) -> Result<Wanted, Diagnostic> {
    let place = named.origin.value_place(&format!("{}.{INHERITS}", to.join(".")));
    let Value::Scalar(toml::Value::String(text)) = &named.value else {
        let what = "`inherits` of a table names one table of a preset or file, in quotes";
        return Err(Diagnostic::new(what).at(place));
    };
    let apart = if is_path_to(text) { text.rsplit_once(':') } else { text.split_once('.') };
    let (layer, from) = match apart {
        Some((layer, from)) => (layer, from.split('.').map(str::to_owned).collect()),
        None => (text.as_str(), to.to_vec()),
    };
    Ok(Wanted { to: to.to_vec(), layer: layer.to_owned(), from, place, first })
}

/// Whether the text names a file, or a table in one.
fn is_path_to(text: &str) -> bool {
    is_path(text) || text.rsplit_once(':').is_some_and(|(file, _)| is_path(file))
}

impl Wanted {
    /// The table alone, at the place where it is wanted.
    pub(super) fn of(self, root: Node) -> Result<Node, Diagnostic> {
        let path: Vec<&str> = self.from.iter().map(String::as_str).collect();
        let (node, used) = root.deepest(&path);
        let Value::Table(entries) = &node.value else { return Err(self.missing(&[])) };
        if used < path.len() {
            let tables = |(key, entry): (&String, &Node)| {
                let path = self.from[..used].iter().chain([key]).map(String::as_str).collect::<Vec<_>>();
                matches!(entry.value, Value::Table(_)).then(|| path.join("."))
            };
            return Err(self.missing(&entries.iter().filter_map(tables).collect::<Vec<_>>()));
        }
        let whole = Origin { first: self.first, ..root.origin.clone() };
        let wrap = |inner: Node, key: &String| {
            let value = Value::Table(BTreeMap::from([(key.clone(), inner)]));
            Node { value, origin: whole.clone() }
        };
        let mut part = node.clone();
        part.origin.first = self.first;
        Ok(self.to.iter().rev().fold(part, wrap))
    }

    fn missing(&self, tables: &[String]) -> Diagnostic {
        let path = self.from.join(".");
        let what = format!("`{}` has no table `{path}`", self.layer);
        Diagnostic::new(what).at(self.place.clone()).allowed(&path, tables.to_vec())
    }
}
