//! What can go wrong when configuration becomes a typed value; kept apart until it is a diagnostic.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::INHERITS;
use crate::diag::{Diagnostic, Place};
use crate::synonym::ends_in;

/// A deserialisation error that keeps what serde knew: names, and where.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    /// Key path of the node at fault; unset until the reader that stands there has set it.
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

    /// A key that must be there and is not.
    pub(super) fn missing(key: &str) -> Fault {
        Fault::new(Kind::MissingKey(key.to_owned()))
    }

    /// Says where, unless a deeper reader already has.
    pub(super) fn at(mut self, locate: impl FnOnce() -> (Vec<String>, Place)) -> Fault {
        if self.path.is_none() {
            let (path, place) = locate();
            self.path = Some(path);
            self.place = Some(Box::new(place));
        }
        self
    }

    /// `keys` are all that there are, for a key that stands in the wrong table; `besides` may stand where this one does, though
    /// its type does not know them.
    pub(super) fn into_diagnostic(self, keys: &[String], besides: &[&str]) -> Diagnostic {
        let path = self.path.unwrap_or_default();
        let mut diagnostic = match self.kind {
            Kind::UnknownKey { given, allowed: [] } => {
                Diagnostic::new(format!("unknown key `{given}`; no key is allowed here"))
            }
            Kind::UnknownKey { given, allowed } => {
                // The type does not know this key: the layers have taken it out. It stands at the root only.
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
            // Longer than an integer of TOML, which an override then has as text.
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

/// A value as its writer knows it.
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

/// Serde names Rust types where a reader of a spec expects plain words.
fn plain(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    let integer = |low: i128, high: i128| format!("an integer from {low} to {high}");
    match text.as_str() {
        "u8" => integer(0, u8::MAX.into()),
        "u16" => integer(0, u16::MAX.into()),
        "u32" => integer(0, u32::MAX.into()),
        // A TOML integer has 63 bits and a sign.
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
