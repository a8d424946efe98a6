//! From merged layers to a typed value, or to everything that is wrong.

use std::cell::RefCell;

use serde::de::DeserializeOwned;

use super::fault::{Fault, Kind};
use super::reader::{Reader, Step};
use super::tree::{Node, Resolved};
use crate::diag::{Diagnostic, nearest};
use crate::schema::Param;

/// Maximum number of errors that one parse reports, besides missing keys.
const MAX_FAULTS: usize = 20;

/// Errors found by a parse.
#[derive(Default)]
struct Faults {
    told: Vec<Diagnostic>,
    /// Keys that misspelt ones probably mean.
    meant: Vec<String>,
}

impl Resolved {
    /// Parses the configuration into a typed value.
    ///
    /// Drops the alternatives of a choice that a higher layer has replaced, so that afterwards
    /// [`Resolved::to_toml_string`] shows exactly what was used.
    ///
    /// # Errors
    /// The first error, with as many further ones (`also`) as can be told apart from its consequences. Each has the
    /// file, line, column and key.
    pub fn parse<T: DeserializeOwned>(&mut self) -> Result<T, Diagnostic> {
        self.read(&[], &[])
            .map_err(|first| one(in_order(self.all_faults::<T>(first, &Reading::default()).told)))
    }

    /// Formats keys as a diagnostic lists them: name, kind, meaning.
    pub fn list(params: &[Param]) -> Vec<String> {
        let width = params.iter().map(|param| param.key.len()).max().unwrap_or(0);
        let line = |param: &Param| {
            let kind = match param.units.first() {
                Some(unit) => format!("{} ({unit}, ...)", param.kind),
                None => param.kind.clone(),
            };
            let doc = param.doc.lines().next().unwrap_or_default();
            let cut = if param.doc.lines().count() > 1 { " ..." } else { "" };
            let allowed =
                if param.allowed.is_empty() { String::new() } else { format!(", {}", param.allowed) };
            format!("{:width$}  {kind}{allowed}: {doc}{cut}", param.key)
        };
        params.iter().map(line).collect()
    }

    fn told_missing(&self, missing: &[Param]) -> Option<Diagnostic> {
        let first = missing.first()?;
        let what = match missing {
            [one] => format!("missing key `{}`", one.key),
            many => format!("{} keys are missing", many.len()),
        };
        let mut place = self.place(&first.key);
        let parent = |key: &str| key.rsplit_once('.').map_or(String::new(), |(table, _)| table.to_owned());
        place.key = missing.iter().skip(1).fold(parent(&first.key), |table, param| {
            let same = table.split('.').zip(param.key.split('.')).take_while(|(a, b)| a == b).map(|(a, _)| a);
            same.collect::<Vec<_>>().join(".")
        });
        let help = if missing.len() > 1 { "set them" } else { "set it" };
        let mut told = Diagnostic::new(what).at(place).help(format!("{help}, or inherit a preset that does"));
        told.listed = Resolved::list(missing);
        Some(told)
    }

    fn read<T: DeserializeOwned>(&mut self, path: &[&str], apart: &[&str]) -> Result<T, Fault> {
        let replaced = RefCell::new(Vec::new());
        let value = read(&self.root, path, apart, &replaced)?;
        for path in replaced.take() {
            self.root.remove(&path);
        }
        Ok(value)
    }

    /// Collects all errors. Serde stops at the first one, so the entry at fault is removed and the rest is read again.
    fn all_faults<T: DeserializeOwned>(&self, first: Fault, by: &Reading<'_>) -> Faults {
        let mut tree = self.root.clone();
        let mut removed: Vec<Removed> = Vec::new();
        let mut found = Faults::default();
        let mut fault = first;
        loop {
            let is_told = !by.lists_missing || !matches!(fault.kind, Kind::MissingKey(_));
            let explained = removed.iter().any(|r| r.explains(&fault));
            let mut entry = Removed::of(&fault);
            found.meant.extend(entry.key());
            if !explained && is_told {
                let is_here = fault.path.as_ref().is_some_and(|path| path.len() == by.path.len() + 1);
                found.told.push(fault.into_diagnostic(by.keys, if is_here { by.apart } else { &[] }));
            }
            // An array element cannot be removed alone: the following elements would be renumbered.
            while entry.path.len() > by.path.len() && !tree.remove(&entry.path) {
                entry.path.pop();
            }
            if entry.path.len() <= by.path.len() || found.told.len() == MAX_FAULTS {
                break;
            }
            removed.push(entry);
            match read::<T>(&tree, by.path, by.apart, &RefCell::default()) {
                Ok(_) => break,
                Err(next) => fault = next,
            }
        }
        found
    }
}

/// Context of reading a value.
#[derive(Default)]
struct Reading<'a> {
    /// Path of the value.
    path: &'a [&'a str],
    /// Entries at that path that belong to something else.
    apart: &'a [&'a str],
    /// All keys of the configuration.
    keys: &'a [String],
    /// True if missing keys are reported elsewhere.
    lists_missing: bool,
}

/// Reads the value at the end of a path from the root, without some of its entries.
fn read<T: DeserializeOwned>(
    root: &Node,
    path: &[&str],
    apart: &[&str],
    replaced: &RefCell<Vec<Vec<String>>>,
) -> Result<T, Fault> {
    fn below<T: DeserializeOwned>(
        node: &Node,
        rest: &[&str],
        step: Option<&Step<'_>>,
        replaced: &RefCell<Vec<Vec<String>>>,
    ) -> Result<T, Fault> {
        let Some((name, rest)) = rest.split_first() else {
            return T::deserialize(Reader::at(node, step, replaced));
        };
        match node.child(name) {
            Some(child) => {
                let step = Step { parent: step, name: (*name).to_owned() };
                below(child, rest, Some(&step), replaced)
            }
            None => Err(Reader::at(node, step, replaced).locate(Fault::missing(name))),
        }
    }
    if apart.is_empty() {
        return below(root, path, None, replaced);
    }
    let mut root = root.clone();
    for name in apart {
        let entry: Vec<String> = path.iter().chain([name]).map(|name| (*name).to_owned()).collect();
        root.remove(&entry);
    }
    below(&root, path, None, replaced)
}

/// Configuration that is read piece by piece, each as its own type; errors are reported together.
pub struct Pieces<'r> {
    resolved: &'r mut Resolved,
    /// All known keys, to recognise one in a wrong table.
    keys: &'r [String],
    missing: Vec<Param>,
    found: Faults,
}

impl Resolved {
    /// Begins to read piece by piece. `keys` are all known keys. Those in `missing` are reported in one list; if it is
    /// empty, missing keys are reported one by one.
    pub fn pieces<'r>(&'r mut self, keys: &'r [String], missing: Vec<Param>) -> Pieces<'r> {
        Pieces { resolved: self, keys, missing, found: Faults::default() }
    }
}

impl Pieces<'_> {
    /// Reads the value at a path as a typed value, without the entries in `apart`; `None` if something is wrong.
    ///
    /// Drops replaced alternatives, as [`Resolved::parse`] does.
    pub fn read<T: DeserializeOwned>(&mut self, path: &[&str], apart: &[&str]) -> Option<T> {
        let by = Reading { path, apart, keys: self.keys, lists_missing: !self.missing.is_empty() };
        let first = match self.resolved.read(path, apart) {
            Ok(value) => return Some(value),
            Err(first) => first,
        };
        let found = self.resolved.all_faults::<T>(first, &by);
        self.found.told.extend(found.told);
        self.found.meant.extend(found.meant);
        None
    }

    /// Adds an error.
    pub fn tell(&mut self, fault: Diagnostic) {
        self.found.told.push(fault);
    }

    /// Returns the configuration.
    pub fn resolved(&self) -> &Resolved {
        self.resolved
    }

    /// Ends the reading. `whole` is the complete value, if nothing was wrong.
    ///
    /// # Errors
    /// The first error in text order, with the others; all missing keys as one error.
    pub fn end<T>(mut self, whole: Option<T>) -> Result<T, Diagnostic> {
        if let Some(whole) = whole.filter(|_| self.found.told.is_empty()) {
            return Ok(whole);
        }
        let meant = &self.found.meant;
        let is_meant = |param: &Param, meant: &String| {
            param.key.strip_prefix(meant.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('.'))
        };
        self.missing.retain(|param| !meant.iter().any(|meant| is_meant(param, meant)));
        let mut told = in_order(self.found.told);
        told.extend(self.resolved.told_missing(&self.missing));
        Err(one(told))
    }
}

/// Sorts errors in text order; serde's order is alphabetical.
fn in_order(mut told: Vec<Diagnostic>) -> Vec<Diagnostic> {
    told.sort_by_key(|d| d.place.as_ref().map(|p| (p.source.clone(), p.line, p.column)));
    told
}

/// Returns the first error with the others attached.
fn one(found: Vec<Diagnostic>) -> Diagnostic {
    let mut found = found.into_iter();
    let first = found.next().unwrap_or_else(|| Diagnostic::new("the configuration cannot be read"));
    first.also(found)
}

/// Entry removed from the tree because it was at fault.
struct Removed {
    path: Vec<String>,
    /// Key that the entry was probably meant to be.
    meant: Option<String>,
}

impl Removed {
    fn of(fault: &Fault) -> Removed {
        let meant = match &fault.kind {
            Kind::UnknownKey { given, allowed } => nearest(given, allowed.iter().copied()),
            Kind::UnknownName { .. } | Kind::MissingKey(_) | Kind::Other(_) => None,
        };
        // If a key is missing, this is the table that lacks it.
        let path = fault.path.clone().unwrap_or_default();
        Removed { path, meant: meant.map(str::to_owned) }
    }

    /// Returns the key that the entry was probably meant to be.
    fn key(&self) -> Option<String> {
        let (_, table) = self.path.split_last()?;
        let meant = self.meant.as_deref()?;
        Some(table.iter().map(String::as_str).chain([meant]).collect::<Vec<_>>().join("."))
    }

    /// Returns whether the error is only a consequence of removing this entry.
    fn explains(&self, fault: &Fault) -> bool {
        let at = fault.path.as_deref().unwrap_or_default();
        let Some((last, table)) = self.path.split_last() else { return false };
        match &fault.kind {
            Kind::MissingKey(key) => at == table && (last == key || self.meant.as_ref() == Some(key)),
            Kind::UnknownKey { .. } | Kind::UnknownName { .. } => false,
            // A table whose entries no longer fit together.
            Kind::Other(_) => table.starts_with(at),
        }
    }
}
