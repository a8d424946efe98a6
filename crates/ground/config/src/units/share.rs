//! A part of a whole.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use super::{LEAST_KEY, MOST_KEY, QUANTITY_KEY, UNITS_KEY};
use crate::diag::Diagnostic;

/// A part of a whole, from 0 to 1: `"7%"` or `0.07`.
///
/// A per cent string and a plain real number mean the same. The integer 1 is an error, because it may mean the whole
/// or one per cent: write `1.0` or `"1%"`. Shares are written as real numbers.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Share(f64);

const EXPECTED: &str = "expected a share from 0 to 1, such as `0.07` or `7%`";

impl Share {
    /// Nothing.
    pub const ZERO: Share = Share(0.0);
    /// All.
    pub const ONE: Share = Share(1.0);

    /// From a real number; an error unless it lies in [0, 1].
    pub fn new(share: f64) -> Result<Share, Diagnostic> {
        if (0.0..=1.0).contains(&share) {
            // Adding zero turns -0.0 into 0.0.
            Ok(Share(share + 0.0))
        } else {
            Err(Diagnostic::new(format!("{share} is out of range; {EXPECTED}")))
        }
    }
    /// From whole per cent; panics above 100, at compile time in a constant.
    pub const fn percent(percent: u8) -> Share {
        assert!(percent <= 100, "a share is at most 100 %");
        Share(percent as f64 / 100.0)
    }
    /// The real number in [0, 1].
    pub const fn get(self) -> f64 {
        self.0
    }
    /// This share of `whole`, rounded to the nearest integer.
    pub fn of(self, whole: u64) -> u64 {
        (self.0 * whole as f64).round() as u64
    }
}

impl FromStr for Share {
    type Err = Diagnostic;
    fn from_str(text: &str) -> Result<Share, Diagnostic> {
        let text = text.trim();
        let (number, exponent) = match text.strip_suffix('%') {
            // The decimal point moves in the text, so that "0.1%" is the same real number as 0.001.
            Some(number) => (number.trim_end(), "e-2"),
            None => (text, ""),
        };
        // Rust reads "inf", "nan", "+1" and "1e3" as real numbers too; a share is none of them.
        let plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            && number.starts_with(|c: char| c.is_ascii_digit())
            && number.ends_with(|c: char| c.is_ascii_digit());
        if plain && exponent.is_empty() && !number.contains('.') && number.bytes().any(|b| b != b'0') {
            return Err(Diagnostic::new(ambiguous(number)));
        }
        match format!("{number}{exponent}").parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) && plain => Ok(Share(share)),
            _ => Err(Diagnostic::new(format!("`{text}` is not a share; {EXPECTED}"))),
        }
    }
}

fn ambiguous(number: impl fmt::Display) -> String {
    format!("the integer {number} may mean per cent or a part of one; write `\"{number}%\"` or a real number")
}

impl fmt::Display for Share {
    /// The shortest decimal text without an exponent, always with a point: an integer would not read back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        f.pad(&if text.contains('.') { text } else { text + ".0" })
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        deserializer.deserialize_any(ShareVisitor)
    }
}

struct ShareVisitor;

impl Visitor<'_> for ShareVisitor {
    type Value = Share;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a share from 0 to 1, such as 0.07 or \"7%\"")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Share, E> {
        text.parse().map_err(|fault: Diagnostic| E::custom(fault.one_line()))
    }
    fn visit_f64<E: de::Error>(self, share: f64) -> Result<Share, E> {
        Share::new(share).map_err(|fault| E::custom(fault.one_line()))
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Share, E> {
        if number == 0 { Ok(Share::ZERO) } else { Err(E::custom(ambiguous(number))) }
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Share, E> {
        if number == 0 { Ok(Share::ZERO) } else { Err(E::custom(ambiguous(number))) }
    }
}

impl schemars::JsonSchema for Share {
    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "a part of a whole: a real number from 0 to 1, or a string in per cent",
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? *%$" },
            ],
            "examples": [0.07, "7%"],
            LEAST_KEY: "0",
            MOST_KEY: "1",
            QUANTITY_KEY: "share",
            UNITS_KEY: ["%", "a part of 1"],
        })
    }
}
