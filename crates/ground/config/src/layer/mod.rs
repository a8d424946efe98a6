//! Layered configuration: a TOML file may inherit a preset or a file, options override both, and every value remembers
//! where it was set.
//!
//! `inherits = "name"` names a preset; `inherits = "dir/file.toml"` names a file, relative to the inheriting file;
//! `inherits = ["a", "b"]` inherits both, with `a` ranking higher. Inside a table, `inherits = "name"` takes only the
//! table at the same path, and `inherits = "name.path"` (for a file, `"dir/file.toml:path"`) the table at that path.
//! Such a table ranks below the inheriting text, and above what that text inherits as a whole. Tables merge key by key;
//! everything else replaces. A choice (a policy with its parameters) is the one exception: where layers choose
//! different names, the highest layer wins.

mod fault;
mod parse;
mod reader;
mod tree;

use std::sync::Arc;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::diag::{Diagnostic, Place, read_text};
use tree::{Node, Origin, Source, Value};

pub use parse::Pieces;
pub use tree::Resolved;

/// Key that names the layer below.
pub const INHERITS: &str = "inherits";

/// Rank of the file that was asked for; inherited layers rank below it, options above.
const TOP: u32 = 1 << 16;

/// Maximum number of layers in a chain of inheritance.
const MAX_LAYERS: usize = 64;

/// Configuration texts that ship with the program, by name.
pub trait Presets {
    /// Returns the preset's source name, shown in diagnostics, and its TOML text.
    fn find(&self, name: &str) -> Option<(String, String)>;
    /// Returns every name that `find` knows.
    fn names(&self) -> Vec<String>;
}

/// Chain of configuration texts while it is being read, from the requested one down.
pub struct Layers<'p> {
    presets: &'p dyn Presets,
    /// Texts read so far, the highest first.
    read: Vec<Node>,
    /// Number of texts read so far: each ranks below those before it.
    ranks: u32,
}

/// Layer on the path from the requested one to the current one.
struct Above {
    /// Preset name, or canonical path.
    identity: String,
    /// Name shown in diagnostics.
    name: String,
}

/// Text named by a layer or the caller.
struct Opened {
    /// Preset name, or canonical path.
    identity: String,
    /// Name shown in diagnostics.
    source: String,
    text: String,
    /// Folder that relative paths in the text start from; `None` for presets.
    folder: Option<PathBuf>,
    /// True if the user wrote the text.
    own: bool,
}

impl<'p> Layers<'p> {
    /// Reads a preset, or the file at a path (with a `/`, or ending in `.toml`), with everything that it inherits.
    ///
    /// # Errors
    /// The name or file does not exist, the TOML is not valid, or the inheritance is circular.
    pub fn load(name_or_path: &str, presets: &'p dyn Presets) -> Result<Resolved, Diagnostic> {
        let layers = Layers { presets, read: Vec::new(), ranks: 0 };
        let first = layers.open(name_or_path, Some(Path::new("")))?;
        layers.descend(first)
    }

    /// Reads a text in memory; `source` is its name in diagnostics. It may inherit presets only.
    ///
    /// # Errors
    /// Errors of [`Layers::load`].
    pub fn from_text(source: &str, text: &str, presets: &'p dyn Presets) -> Result<Resolved, Diagnostic> {
        let first = Opened {
            identity: String::new(),
            source: source.to_owned(),
            text: text.to_owned(),
            folder: None,
            own: true,
        };
        Layers { presets, read: Vec::new(), ranks: 0 }.descend(first)
    }

    /// Reads layer after layer until all inherited layers are read, then merges them from the lowest up.
    fn descend(self, first: Opened) -> Result<Resolved, Diagnostic> {
        self.merge(first, &mut Vec::new()).map(|(resolved, _)| resolved)
    }

    /// Merges as [`Layers::descend`] does, below the layers `above`; also returns the number of texts read so far.
    fn merge(mut self, first: Opened, above: &mut Vec<Above>) -> Result<(Resolved, u32), Diagnostic> {
        self.visit(first, above)?;
        self.read.reverse();
        let ranks = self.ranks;
        let resolved = Resolved::new(self.read, TOP).ok_or_else(|| Diagnostic::new("no configuration"))?;
        Ok((resolved, ranks))
    }

    /// Reads a layer and, below it, what it inherits. `above` are the layers that lead to it.
    fn visit(&mut self, opened: Opened, above: &mut Vec<Above>) -> Result<(), Diagnostic> {
        let source = Arc::new(Source {
            name: opened.source.clone(),
            text: opened.text,
            has_lines: true,
            own: opened.own,
        });
        let mut root = tree::read(&source, TOP - self.ranks)?;
        self.ranks += 1;
        let inherited = take_inherits(&mut root)?;
        let parts = take(&mut root)?;
        self.read.push(root);
        above.push(Above { identity: opened.identity, name: opened.source });
        for wanted in parts {
            self.take_part(wanted, opened.folder.as_deref(), above)?;
        }
        for (name, place) in inherited {
            let next = self.open(&name, opened.folder.as_deref()).map_err(|fault| fault.at(place.clone()))?;
            self.refuse(above, &next, &place)?;
            self.visit(next, above)?;
        }
        above.pop();
        Ok(())
    }

    /// Reads the whole layer that a table inherits, and keeps only the wanted table.
    fn take_part(
        &mut self,
        wanted: Wanted,
        folder: Option<&Path>,
        above: &mut Vec<Above>,
    ) -> Result<(), Diagnostic> {
        let opened = self.open(&wanted.layer, folder).map_err(|fault| fault.at(wanted.place.clone()))?;
        self.refuse(above, &opened, &wanted.place)?;
        let below = Layers { presets: self.presets, read: Vec::new(), ranks: self.ranks };
        let (resolved, ranks) = below.merge(opened, above)?;
        self.ranks = ranks;
        self.read.push(wanted.of(resolved.root)?);
        Ok(())
    }

    /// Refuses circular inheritance and more than [`MAX_LAYERS`] layers.
    fn refuse(&self, above: &[Above], next: &Opened, place: &Place) -> Result<(), Diagnostic> {
        refuse_cycle(above, next, place)?;
        if self.ranks as usize >= MAX_LAYERS {
            let what = format!("the chain of `inherits` has more than {MAX_LAYERS} layers");
            return Err(Diagnostic::new(what).at(place.clone()));
        }
        Ok(())
    }

    /// Opens a preset, or a file relative to `folder`.
    fn open(&self, name: &str, folder: Option<&Path>) -> Result<Opened, Diagnostic> {
        if is_path(name) {
            let Some(folder) = folder else {
                let what = format!("`{name}` is a file, but only a file may inherit a file");
                return Err(Diagnostic::new(what).allowed(name, self.presets.names()));
            };
            return open_file(&folder.join(name));
        }
        match self.presets.find(name) {
            Some((source, text)) => {
                Ok(Opened { identity: name.to_owned(), source, text, folder: None, own: false })
            }
            None => Err(Diagnostic::new(format!("unknown system `{name}`"))
                .allowed(name, self.presets.names())
                .help(format!("to name a file, use a path with a `/` or ending in `.toml`: `./{name}`"))),
        }
    }
}

/// Returns whether the text names a file rather than a preset.
fn is_path(name: &str) -> bool {
    name.ends_with(".toml") || name.contains(['/', '\\'])
}

fn open_file(path: &Path) -> Result<Opened, Diagnostic> {
    let shown = path.display().to_string();
    let unreadable = |fault: std::io::Error| Diagnostic::new(format!("cannot read `{shown}`: {fault}"));
    let text = read_text(path)?;
    // The canonical path is the same however the path is written; the search for cycles needs that.
    let identity = path.canonicalize().map_err(unreadable)?.display().to_string();
    let folder = Some(path.parent().unwrap_or(Path::new("")).to_owned());
    Ok(Opened { identity, source: shown, text, folder, own: true })
}

/// Refuses a layer that inherits from itself, directly or through others.
fn refuse_cycle(above: &[Above], next: &Opened, place: &Place) -> Result<(), Diagnostic> {
    let Some(at) = above.iter().position(|layer| layer.identity == next.identity) else { return Ok(()) };
    let mut chain: Vec<_> = above[at..].iter().map(|layer| layer.name.as_str()).collect();
    chain.push(chain[0]);
    let what = format!("circular inheritance: {}", chain.join(" -> "));
    Err(Diagnostic::new(what).at(place.clone()))
}

/// Takes `inherits` out of a root table: one name, or several, the first of which ranks highest.
fn take_inherits(root: &mut Node) -> Result<Vec<(String, Place)>, Diagnostic> {
    let Value::Table(entries) = &mut root.value else { return Ok(Vec::new()) };
    let Some(node) = entries.remove(INHERITS) else { return Ok(Vec::new()) };
    let place = node.origin.value_place(INHERITS);
    let name = |node: Node| match node.value {
        Value::Scalar(toml::Value::String(name)) => Ok((name, place.clone())),
        _ => {
            Err(Diagnostic::new("`inherits` must be the quoted name of a preset or file, or a list of names")
                .at(place.clone()))
        }
    };
    match node.value {
        Value::Array(items) => items.into_iter().map(name).collect(),
        value => name(Node { value, origin: node.origin }).map(|one| vec![one]),
    }
}

// Tables that inherit a table of another configuration.

/// Table that inherits a table from a preset or file.
struct Wanted {
    /// Path of the inheriting table.
    to: Vec<String>,
    /// Preset or file.
    layer: String,
    /// Path of the table in it.
    from: Vec<String>,
    /// Place of the `inherits` key.
    place: Place,
    /// Position of the enclosing part's first key in the text: inherited entries do not precede it.
    first: (u32, usize),
}

/// Takes `inherits` out of every table below the root, in order of their paths.
fn take(root: &mut Node) -> Result<Vec<Wanted>, Diagnostic> {
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
        let what = "`inherits` of a table must be the quoted name of a preset or file, or of one table in it";
        return Err(Diagnostic::new(what).at(place));
    };
    let apart = if is_path_to(text) { text.rsplit_once(':') } else { text.split_once('.') };
    let (layer, from) = match apart {
        Some((layer, from)) => (layer, from.split('.').map(str::to_owned).collect()),
        None => (text.as_str(), to.to_vec()),
    };
    Ok(Wanted { to: to.to_vec(), layer: layer.to_owned(), from, place, first })
}

/// Returns whether the text names a file, or a table in one.
fn is_path_to(text: &str) -> bool {
    is_path(text) || text.rsplit_once(':').is_some_and(|(file, _)| is_path(file))
}

impl Wanted {
    /// Returns the wanted table alone, at the path of the inheriting table.
    fn of(self, root: Node) -> Result<Node, Diagnostic> {
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
