//! Configuration errors before they become diagnostics, and the search for the value to blame.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::{
    INHERITS,
    tree::{Node, Resolved, Value},
};
use crate::diag::{Diagnostic, Place};
use crate::synonym::ends_in;

/// Deserialisation error that keeps what serde knew: names and location.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    /// Key path of the node at fault; `None` until the reader of that node sets it.
    pub(super) path: Option<Vec<String>>,
    place: Option<Box<Place>>,
}

#[derive(Debug)]
pub(super) enum Kind {
    UnknownKey { given: String, allowed: &'static [&'static str] },
    UnknownName { given: String, allowed: &'static [&'static str] },
    MissingKey(String),
    Other(String),
}

impl Fault {
    fn new(kind: Kind) -> Fault {
        Fault { kind, path: None, place: None }
    }

    /// Creates the error of a required key that is missing.
    pub(super) fn missing(key: &str) -> Fault {
        Fault::new(Kind::MissingKey(key.to_owned()))
    }

    /// Sets the location, unless a deeper reader already has.
    pub(super) fn at(mut self, locate: impl FnOnce() -> (Vec<String>, Place)) -> Fault {
        if self.path.is_none() {
            let (path, place) = locate();
            self.path = Some(path);
            self.place = Some(Box::new(place));
        }
        self
    }

    /// Converts the error to a diagnostic. `keys` are all known keys, to recognise a key in the wrong table. `besides`
    /// are names allowed in the same table that the type does not know.
    pub(super) fn into_diagnostic(self, keys: &[String], besides: &[&str]) -> Diagnostic {
        let path = self.path.unwrap_or_default();
        let mut diagnostic = match self.kind {
            Kind::UnknownKey { given, allowed: [] } => {
                Diagnostic::new(format!("unknown key `{given}`; no key is allowed here"))
            }
            Kind::UnknownKey { given, allowed } => {
                // The layers have already removed `inherits`, so the type does not know it. It is allowed at the root
                // only.
                let inherits = (path.len() == 1).then_some(INHERITS);
                let all = allowed.iter().chain(besides).copied().chain(inherits);
                let mut unknown = Diagnostic::new(format!("unknown key `{given}`")).allowed(&given, all);
                if unknown.nearest.is_none() {
                    let elsewhere = ends_in(&path.join("."), keys.iter().map(String::as_str));
                    unknown.nearest = elsewhere.map(str::to_owned);
                }
                unknown.pointed(&given)
            }
            Kind::UnknownName { given, allowed } => {
                Diagnostic::new(format!("unknown name `{given}`")).allowed(&given, allowed.iter().copied())
            }
            Kind::MissingKey(key) => {
                let table = path.join(".");
                let dot = if table.is_empty() { "" } else { "." };
                Diagnostic::new(format!("missing key `{key}`"))
                    .help(format!("set `{table}{dot}{key}`, or inherit a preset that does"))
            }
            Kind::Other(what) => Diagnostic::new(what),
        };
        diagnostic.place = self.place;
        diagnostic
    }
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Fault {
        Fault::new(Kind::Other(message.to_string()))
    }
    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        let expected = plain(expected);
        match unexpected {
            Unexpected::Float(x) if x.fract() == 0.0 && expected.starts_with("an integer") => {
                let whole = format!("`{x:?}` is written as a real number; write `{x}`");
                let fits = if x.abs() < 1e15 { whole } else { format!("`{x:?}` is out of range") };
                Fault::custom(format_args!("{fits}; expected {expected}"))
            }
            // An integer longer than TOML allows, which an override passes as text.
            Unexpected::Str(digits) if expected.starts_with("an integer") && is_integer(digits) => {
                Fault::custom(format_args!("`{digits}` is out of range; expected {expected}"))
            }
            _ => Fault::custom(format_args!("{} is not {expected}", shown(unexpected))),
        }
    }
    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        Fault::custom(format_args!("{} is out of range; expected {}", shown(unexpected), plain(expected)))
    }
    fn invalid_length(length: usize, expected: &dyn Expected) -> Fault {
        Fault::custom(format_args!("wrong length: found {length} elements, expected {}", plain(expected)))
    }
    fn unknown_variant(variant: &str, allowed: &'static [&'static str]) -> Fault {
        Fault::new(Kind::UnknownName { given: variant.to_owned(), allowed })
    }
    fn unknown_field(field: &str, allowed: &'static [&'static str]) -> Fault {
        Fault::new(Kind::UnknownKey { given: field.to_owned(), allowed })
    }
    fn missing_field(field: &'static str) -> Fault {
        Fault::new(Kind::MissingKey(field.to_owned()))
    }
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Formats a value as the user writes it.
fn shown(value: Unexpected<'_>) -> String {
    match value {
        Unexpected::Bool(truth) => format!("`{truth}`"),
        Unexpected::Unsigned(number) => format!("`{number}`"),
        Unexpected::Signed(number) => format!("`{number}`"),
        Unexpected::Float(number) => format!("`{number:?}`"),
        Unexpected::Str(text) => format!("`{text}`"),
        Unexpected::Seq => "an array".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// Translates serde's Rust type names into plain words for spec authors.
fn plain(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    let integer = |low: i128, high: i128| format!("an integer from {low} to {high}");
    match text.as_str() {
        "u8" => integer(0, u8::MAX.into()),
        "u16" => integer(0, u16::MAX.into()),
        "u32" => integer(0, u32::MAX.into()),
        // A TOML integer has a sign and 63 bits.
        "u64" | "usize" => integer(0, i64::MAX.into()),
        "i8" => integer(i8::MIN.into(), i8::MAX.into()),
        "i16" => integer(i16::MIN.into(), i16::MAX.into()),
        "i32" => integer(i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => "an integer".to_owned(),
        "f32" | "f64" => "a real number".to_owned(),
        "a sequence" => "an array".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other if other.starts_with("enum ") => "the name of a choice".to_owned(),
        _ => text,
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::UnknownKey { given, .. } => write!(f, "unknown key `{given}`"),
            Kind::UnknownName { given, .. } => write!(f, "unknown name `{given}`"),
            Kind::MissingKey(key) => write!(f, "missing key `{key}`"),
            Kind::Other(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}

// Whose value is at fault: a user's value is blamed before one inherited from a preset.
//
// A limit that several keys share is detected at one of them, perhaps a preset's. To find the user's value that broke
// it, each is left out in turn; a limit need not list its keys. This is delta debugging (A. Zeller, "Yesterday,
// my program worked. Today, it does not. Why?", ESEC/FSE 1999).

/// Maximum number of user values left out in turn; each costs a whole check.
const MOST_TRIED: usize = 64;

/// Value written by the user.
struct Own {
    /// Key path.
    path: Vec<String>,
    place: Place,
    /// Rank of the layer.
    layer: u32,
    whence: Whence,
}

enum Whence {
    /// Override with this number.
    Override(usize),
    /// Layer with this number, the lowest first.
    Layer(usize),
}

impl Resolved {
    /// Returns the error moved to the user's value that causes it, with the place of detection as `beside`. The error
    /// is unchanged if it is already at a value that the user wrote last, or if no user value causes it.
    ///
    /// `check` is the check of the whole configuration that found the error; it returns `None` for a configuration that
    /// cannot be read.
    #[must_use]
    pub fn blame<T>(
        &self,
        fault: Diagnostic,
        check: impl Fn(Resolved) -> Option<Result<T, Diagnostic>>,
    ) -> Diagnostic {
        let key = fault.place.as_ref().map(|place| place.key.clone()).unwrap_or_default();
        let found: Vec<&str> = key.split('.').filter(|name| !name.is_empty()).collect();
        let (node, used) = self.root.deepest(&found);
        let is_value = used == found.len() && !matches!(node.value, Value::Table(_));
        let is_own = is_value && node.origin.source.own;
        let check = |without: Option<Resolved>| check(without?);
        let mut own = self.own();
        own.retain(|own| !is_own || own.layer > node.origin.layer);
        // Values of one table limit each other more often than others do; among equals, the later one is tried first.
        let shared = |own: &Own| own.path.iter().zip(&found).take_while(|(a, b)| *a == *b).count();
        own.sort_by_key(|own| std::cmp::Reverse(shared(own)));
        // If the files alone are wrong, no override broke them; but one override may mend what a different one breaks.
        let files_are_wrong = matches!(check(self.overridden(|_| false)), Some(Err(_)));
        let is_innocent = |own: &Own| files_are_wrong && matches!(own.whence, Whence::Override(_));
        let mut weaker = None;
        for value in own.iter().take(MOST_TRIED) {
            match check(self.without(value)) {
                Some(Ok(_)) => return beside(fault, &value.place),
                // Without the value the error is a different one, so the value contributes to it.
                Some(Err(other)) if other.what != fault.what && !is_innocent(value) => {
                    weaker.get_or_insert(value);
                }
                Some(Err(_)) | None => {}
            }
        }
        // Several values may each suffice: one that suffices alone is preferred to one that only changes the error
        // text.
        let is_enough = |own: &&Own| match own.whence {
            Whence::Override(n) => {
                !files_are_wrong && matches!(check(self.overridden(|other| other == n)), Some(Err(_)))
            }
            Whence::Layer(_) => false,
        };
        let enough = own.iter().take(MOST_TRIED).find(is_enough);
        let preset = || {
            let first = own.iter().find(|own| !is_innocent(own));
            first.filter(|_| matches!(check(self.preset()), Some(Ok(_))))
        };
        match enough.or(weaker).or_else(preset).filter(|_| !is_own) {
            Some(value) => beside(fault, &value.place),
            None => fault,
        }
    }

    /// Returns every value with its key and the place where it was set, in text order, the lowest layer first.
    pub fn values(&self) -> Vec<(String, toml::Value, Place)> {
        let mut found = Vec::new();
        leaves(&self.root, &mut Vec::new(), &mut |path, node| {
            let place = node.origin.value_place(&path.join("."));
            found.push((
                node.origin.layer,
                node.origin.value.start,
                (place.key.clone(), node.to_toml(), place),
            ));
        });
        found.sort_by_key(|(layer, byte, _)| (*layer, *byte));
        found.into_iter().map(|(_, _, value)| value).collect()
    }

    /// Returns whether the user wrote the text at a place, or the place is in no text.
    pub fn is_own(&self, place: &Place) -> bool {
        self.layers.iter().all(|layer| layer.origin.source.own || layer.origin.source.name != place.source)
    }

    /// Returns the user's values, the highest layer first.
    fn own(&self) -> Vec<Own> {
        let mut found = Vec::new();
        for (n, text) in self.overrides.iter().enumerate().rev() {
            let Some((key, _)) = text.split_once('=') else { continue };
            let path: Vec<String> = key.split('.').map(|name| name.trim().to_owned()).collect();
            let start =
                key.len() + 1 + (text.len() - key.len() - 1 - text[key.len() + 1..].trim_start().len());
            let place = Place {
                source: "--set".to_owned(),
                line: 0,
                column: text[..start].chars().count() as u64 + 1,
                text: text.clone(),
                key: path.join("."),
            };
            let layer = super::TOP + 1 + n as u32;
            found.push(Own { path, place, layer, whence: Whence::Override(n) });
        }
        for (n, layer) in self.layers.iter().enumerate().rev().filter(|(_, layer)| layer.origin.source.own) {
            leaves(layer, &mut Vec::new(), &mut |path, node| {
                let place = node.origin.value_place(&path.join("."));
                let layer = node.origin.layer;
                found.push(Own { path: path.to_vec(), place, layer, whence: Whence::Layer(n) });
            });
        }
        found
    }

    /// Returns the configuration without a value.
    fn without(&self, value: &Own) -> Option<Resolved> {
        let mut layers = self.layers.clone();
        let mut left_out = None;
        match value.whence {
            Whence::Override(n) => left_out = Some(n),
            Whence::Layer(n) => drop(layers.get_mut(n)?.remove(&value.path)),
        }
        let overrides = self.overrides.iter().enumerate().filter(|(n, _)| Some(*n) != left_out);
        self.again(layers, overrides.map(|(_, text)| text))
    }

    /// Returns the configuration with the overrides whose number satisfies `keeps`.
    fn overridden(&self, keeps: impl Fn(usize) -> bool) -> Option<Resolved> {
        let overrides = self.overrides.iter().enumerate().filter(|(n, _)| keeps(*n));
        self.again(self.layers.clone(), overrides.map(|(_, text)| text))
    }

    /// Returns the configuration without any user value.
    fn preset(&self) -> Option<Resolved> {
        let is_preset = |layer: &&Node| !layer.origin.source.own;
        self.again(self.layers.iter().filter(is_preset).cloned().collect(), std::iter::empty())
    }

    fn again<'t>(
        &self,
        layers: Vec<Node>,
        mut overrides: impl Iterator<Item = &'t String>,
    ) -> Option<Resolved> {
        let mut resolved = Resolved::new(layers, super::TOP)?;
        overrides.try_for_each(|text| resolved.set(text)).ok()?;
        Some(resolved)
    }
}

fn beside(mut fault: Diagnostic, place: &Place) -> Diagnostic {
    fault.beside = fault.place.take().filter(|found| !found.source.is_empty() && found.key != place.key);
    fault.at(place.clone())
}

/// Visits every value that is not a table, and every empty table (a choice).
fn leaves(node: &Node, path: &mut Vec<String>, visit: &mut dyn FnMut(&[String], &Node)) {
    match &node.value {
        Value::Table(entries) if !entries.is_empty() || path.is_empty() => {
            for (name, inner) in entries {
                path.push(name.clone());
                leaves(inner, path, visit);
                path.pop();
            }
        }
        Value::Table(_) | Value::Array(_) | Value::Scalar(_) => visit(path, node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layers, Presets};

    struct Base;
    impl Presets for Base {
        fn find(&self, name: &str) -> Option<(String, String)> {
            (name == "base").then(|| ("base.toml".to_owned(), "a = 1\nb = 1\nc = 1\nd = 1\n".to_owned()))
        }
        fn names(&self) -> Vec<String> {
            vec!["base".to_owned()]
        }
    }

    /// Returns the blamed value when `a` and `b` are limited to 5 each and the error text also shows `c`.
    fn blamed(text: &str, overrides: &[&str]) -> String {
        let mut resolved = Layers::from_text("own.toml", text, &Base).unwrap();
        overrides.iter().for_each(|set| resolved.set(set).unwrap());
        let check = |resolved: Resolved| {
            let of = |key: &str| {
                let values = resolved.values();
                values
                    .iter()
                    .find(|(own, ..)| own == key)
                    .and_then(|(_, value, _)| value.as_integer())
                    .unwrap_or(0)
            };
            let fine = of("a") <= 5 && of("b") <= 5;
            Some(if fine {
                Ok(())
            } else {
                Err(Diagnostic::new(format!("too much, beside c = {}", of("c"))))
            })
        };
        let Some(Err(fault)) = check(resolved.clone()) else { panic!("nothing is wrong") };
        let place = resolved.blame(fault, check).place.unwrap();
        format!("{} {}", place.source, place.key)
    }

    #[test]
    fn an_override_that_has_no_part_in_a_fault_is_not_blamed() {
        let base = "inherits = \"base\"\n";
        assert_eq!(blamed(&format!("{base}a = 9\n"), &["c=7"]), "own.toml a");
        assert_eq!(blamed(&format!("{base}a = 9\nb = 9\n"), &["c=7", "d=7"]), "own.toml a");
        assert_eq!(blamed(base, &["a=9", "c=7"]), "--set a");
        // Each suffices; the later one is blamed, not the one that only changes the text.
        assert_eq!(blamed(base, &["a=9", "b=9", "c=7"]), "--set b");
    }
}
