//! From merged layers to a typed value, or everything that is wrong.

use std::cell::RefCell;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::fault::{Fault, Kind};
use super::reader::Reader;
use super::resolved::Resolved;
use crate::diag::{Diagnostic, nearest};
use crate::schema::{self, Param};

/// Faults that one parse reports at most, besides the keys that are missing.
const MAX_FAULTS: usize = 20;

/// What a parse has found.
#[derive(Default)]
struct Faults {
    told: Vec<Diagnostic>,
    /// Keys that misspelt ones were probably meant to be.
    meant: Vec<String>,
}

impl Resolved {
    /// The configuration as a typed value.
    ///
    /// Alternatives of a choice that a higher layer has replaced are dropped from the tree, so that afterwards
    /// [`Resolved::to_toml_string`] shows what was used and nothing else.
    ///
    /// # Errors
    /// The first fault, with as many further ones (`also`) as could be told apart from its consequences. Each has the
    /// file, line, column and key.
    pub fn parse<T: DeserializeOwned>(&mut self) -> Result<T, Diagnostic> {
        self.read().map_err(|first| one(self.all_faults::<T>(first, &[], true).told))
    }

    /// As [`Resolved::parse`], and all keys that are missing are told in one list. `needed` says which tables must be there, by
    /// their keys at the root, although the type can do without them.
    ///
    /// # Errors
    /// As [`Resolved::parse`].
    pub fn parse_whole<T: DeserializeOwned + JsonSchema>(
        &mut self,
        needed: impl Fn(&toml::Table) -> Vec<&'static str>,
    ) -> Result<T, Diagnostic> {
        self.read().map_err(|first| {
            let document = schema::of::<T>();
            let table = self.table();
            let keys: Vec<String> = schema::walk(&document).into_iter().map(|param| param.key).collect();
            let mut missing = schema::missing(&document, &table, &needed(&table));
            let mut faults = self.all_faults::<T>(first, &keys, missing.is_empty());
            let is_meant = |param: &Param, meant: &String| {
                param.key.strip_prefix(meant.as_str()).is_some_and(|r| r.is_empty() || r.starts_with('.'))
            };
            missing.retain(|param| !faults.meant.iter().any(|meant| is_meant(param, meant)));
            faults.told.extend(self.told_missing(&missing));
            one(faults.told)
        })
    }

    /// Keys as a list in a diagnostic shows them: name, kind, meaning.
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

    fn read<T: DeserializeOwned>(&mut self) -> Result<T, Fault> {
        let replaced = RefCell::new(Vec::new());
        let value = T::deserialize(Reader::new(&self.root, &replaced))?;
        for path in replaced.take() {
            self.root.remove(&path);
        }
        Ok(value)
    }

    /// Serde stops at the first fault. So the entry at fault is taken out and the rest is read again. Keys that are missing are
    /// told one by one if `tell_missing`.
    fn all_faults<T: DeserializeOwned>(&self, first: Fault, keys: &[String], tell_missing: bool) -> Faults {
        let mut tree = self.root.clone();
        let mut removed: Vec<Removed> = Vec::new();
        let mut found = Faults::default();
        let mut fault = first;
        loop {
            let is_told = tell_missing || !matches!(fault.kind, Kind::MissingKey(_));
            let explained = removed.iter().any(|r| r.explains(&fault));
            let mut entry = Removed::of(&fault);
            found.meant.extend(entry.key());
            if !explained && is_told {
                found.told.push(fault.into_diagnostic(keys));
            }
            // An element of an array cannot go alone: those behind it would get other names.
            while !entry.path.is_empty() && !tree.remove(&entry.path) {
                entry.path.pop();
            }
            if entry.path.is_empty() || found.told.len() == MAX_FAULTS {
                break;
            }
            removed.push(entry);
            match T::deserialize(Reader::new(&tree, &RefCell::default())) {
                Ok(_) => break,
                Err(next) => fault = next,
            }
        }
        // Serde's order is the alphabet's; a reader's is that of the file.
        found.told.sort_by_key(|d| d.place.as_ref().map(|p| (p.source.clone(), p.line, p.column)));
        found
    }
}

/// The first fault with those that follow.
fn one(found: Vec<Diagnostic>) -> Diagnostic {
    let mut found = found.into_iter();
    let first = found.next().unwrap_or_else(|| Diagnostic::new("the configuration cannot be read"));
    first.also(found)
}

/// An entry taken out of the tree because it was at fault.
struct Removed {
    path: Vec<String>,
    /// What the entry was probably meant to be.
    meant: Option<String>,
}

impl Removed {
    fn of(fault: &Fault) -> Removed {
        let meant = match &fault.kind {
            Kind::UnknownKey { given, allowed } => nearest(given, allowed.iter().copied()),
            Kind::UnknownName { .. } | Kind::MissingKey(_) | Kind::Other(_) => None,
        };
        // Where a key is missing, this is the table that misses it.
        let path = fault.path.clone().unwrap_or_default();
        Removed { path, meant: meant.map(str::to_owned) }
    }

    /// The key that it was probably meant to be.
    fn key(&self) -> Option<String> {
        let (_, table) = self.path.split_last()?;
        let meant = self.meant.as_deref()?;
        Some(table.iter().map(String::as_str).chain([meant]).collect::<Vec<_>>().join("."))
    }

    /// Whether the fault is there only because this entry was taken out.
    fn explains(&self, fault: &Fault) -> bool {
        let at = fault.path.as_deref().unwrap_or_default();
        let Some((last, table)) = self.path.split_last() else { return false };
        match &fault.kind {
            Kind::MissingKey(key) => at == table && (last == key || self.meant.as_deref() == Some(*key)),
            Kind::UnknownKey { .. } | Kind::UnknownName { .. } => false,
            // A table that no longer fits together.
            Kind::Other(_) => table.starts_with(at),
        }
    }
}
