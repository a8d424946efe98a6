//! Quantities with a unit in the text: `"65us"`, `"16KiB"`, `"3.2GB/s"`, `"800MT/s"`, `"1.2GHz"`, `"1.2nJ"`, `"0.8W"`,
//! `"7%"`.
//!
//! Each type can be read (`FromStr`, serde), written (`Display`, serde) and described (JSON Schema). Written text reads
//! back as the same amount. Arithmetic is exact: an amount that is not a whole number of base units is an error. A
//! number without a unit is an error, zero included.

mod quantity;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use engine::Time;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::diag::Diagnostic;
pub(crate) use quantity::Quantity;
use quantity::{BANDWIDTH, BYTES, DURATION, ENERGY, FREQUENCY, POWER, TRANSFER_RATE};

/// Key in a JSON Schema that names the kind of quantity a string holds.
pub const QUANTITY_KEY: &str = "x-quantity";
/// Key in a JSON Schema that lists the units of a quantity.
pub const UNITS_KEY: &str = "x-units";

/// Key in a JSON Schema of the minimum of a quantity, as text.
pub const LEAST_KEY: &str = "x-minimum";
/// Key in a JSON Schema of the maximum of a quantity, as text.
pub const MOST_KEY: &str = "x-maximum";

/// Implements reading, writing and describing for a `u64` newtype, as all quantities share them.
macro_rules! quantity {
    ($(#[$meta:meta])* $name:ident = $quantity:ident, $schema_name:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(u64);

        impl FromStr for $name {
            type Err = Diagnostic;
            fn from_str(text: &str) -> Result<$name, Diagnostic> {
                $quantity.read(text).map($name)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&$quantity.write(self.0))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                deserializer.deserialize_str(Text(&$quantity)).map($name)
            }
        }
        impl schemars::JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                $schema_name.into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $quantity.schema()
            }
        }
    };
}

quantity! {
    /// Span of simulated time, in whole picoseconds: `"65us"`, `"1.5ns"`, `"100ps"`, `"2s"`, `"30d"`.
    Duration = DURATION, "Duration"
}
quantity! {
    /// Amount of data: `"4KiB"` is 4096 bytes, `"4kB"` is 4000.
    Bytes = BYTES, "Bytes"
}
quantity! {
    /// Data per time, in whole bytes per second: `"3.2GB/s"`, `"4GiB/s"`, `"1Gbit/s"`.
    Bandwidth = BANDWIDTH, "Bandwidth"
}
quantity! {
    /// Transfers on a bus per second, whatever its width: `"800MT/s"`.
    TransferRate = TRANSFER_RATE, "TransferRate"
}
quantity! {
    /// Clock cycles per second: `"1.2GHz"`.
    Frequency = FREQUENCY, "Frequency"
}
quantity! {
    /// Energy of an operation, in whole attojoules: `"1.2nJ"`, `"50uJ"`, `"0.8pJ"`.
    Energy = ENERGY, "Energy"
}
quantity! {
    /// Power of a state, in whole microwatts: `"0.8W"`, `"22mW"`.
    Power = POWER, "Power"
}

impl Duration {
    /// Creates a duration from a span of simulated time.
    pub const fn new(time: Time) -> Duration {
        Duration(time.ps())
    }
    /// Returns the span in the engine's time type.
    pub const fn time(self) -> Time {
        Time::from_ps(self.0)
    }
}

impl From<Time> for Duration {
    fn from(time: Time) -> Duration {
        Duration::new(time)
    }
}

impl From<Duration> for Time {
    fn from(duration: Duration) -> Time {
        duration.time()
    }
}

impl Bytes {
    /// Creates an amount from a number of bytes.
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }
    /// Creates an amount from a number of kibibytes.
    pub const fn from_kib(kib: u64) -> Bytes {
        Bytes(kib << 10)
    }
    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Bandwidth {
    /// Creates a bandwidth from bytes per second.
    pub const fn new(bytes_per_s: u64) -> Bandwidth {
        Bandwidth(bytes_per_s)
    }
    /// Returns bytes per second.
    pub const fn bytes_per_s(self) -> u64 {
        self.0
    }
}

impl TransferRate {
    /// Creates a transfer rate from transfers per second.
    pub const fn new(transfers_per_s: u64) -> TransferRate {
        TransferRate(transfers_per_s)
    }
    /// Returns transfers per second.
    pub const fn per_s(self) -> u64 {
        self.0
    }
}

impl Frequency {
    /// Creates a frequency from cycles per second.
    pub const fn new(hz: u64) -> Frequency {
        Frequency(hz)
    }
    /// Returns cycles per second.
    pub const fn hz(self) -> u64 {
        self.0
    }
}

impl Energy {
    /// Creates an energy from attojoules.
    pub const fn new(attojoules: u64) -> Energy {
        Energy(attojoules)
    }
    /// Returns attojoules.
    pub const fn attojoules(self) -> u64 {
        self.0
    }
}

impl Power {
    /// Creates a power from microwatts.
    pub const fn new(microwatts: u64) -> Power {
        Power(microwatts)
    }
    /// Returns microwatts.
    pub const fn microwatts(self) -> u64 {
        self.0
    }
}

impl Quantity {
    fn schema(&self) -> schemars::Schema {
        let units: Vec<_> = self.units.iter().map(|u| u.name).collect();
        let mut schema = schemars::json_schema!({
            "type": "string",
            "description": format!(
                "{} with its unit ({})", self.with_article, self.unit_names().join(", ")
            ),
            "pattern": format!("^[0-9]+(\\.[0-9]+)? *({})$", units.join("|")),
            "examples": [self.example],
            QUANTITY_KEY: self.noun,
            UNITS_KEY: self.unit_names(),
        });
        for (key, limit) in [(LEAST_KEY, self.least), (MOST_KEY, self.most)] {
            if let Some(limit) = limit {
                schema.insert(key.to_owned(), limit.into());
            }
        }
        schema
    }
}

/// Reader of a quantity; a bare number is an error that shows how to write it.
struct Text<'q>(&'q Quantity);

impl Text<'_> {
    fn bare<E: de::Error>(&self, number: impl fmt::Display) -> E {
        E::custom(format!(
            "the number {number} has no unit; expected {} such as \"{}\"",
            self.0.with_article, self.0.example
        ))
    }
}

impl Visitor<'_> for Text<'_> {
    type Value = u64;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} such as \"{}\"", self.0.with_article, self.0.example)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        self.0.read(text).map_err(|fault| E::custom(fault.one_line()))
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        Err(self.bare(number))
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        Err(self.bare(number))
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<u64, E> {
        Err(self.bare(number))
    }
}

/// Fraction of a whole, from 0 to 1: `"7%"` or `0.07`.
///
/// A per cent string and a plain real number mean the same. The integer 1 is an error, because it may mean the whole or
/// one per cent: write `1.0` or `"1%"`. Shares are written as real numbers.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Share(f64);

const EXPECTED: &str = "expected a share from 0 to 1, such as `0.07` or `7%`";

impl Share {
    /// Share of 0.
    pub const ZERO: Share = Share(0.0);
    /// Share of 1.
    pub const ONE: Share = Share(1.0);

    /// Creates a share from a real number; an error unless it is in [0, 1].
    pub fn new(share: f64) -> Result<Share, Diagnostic> {
        if (0.0..=1.0).contains(&share) {
            // Adding zero turns -0.0 into 0.0.
            Ok(Share(share + 0.0))
        } else {
            Err(Diagnostic::new(format!("{share} is out of range; {EXPECTED}")))
        }
    }
    /// Creates a share from whole per cent; panics above 100, at compile time in a constant.
    pub const fn percent(percent: u8) -> Share {
        assert!(percent <= 100, "a share is at most 100 %");
        Share(percent as f64 / 100.0)
    }
    /// Returns the real number in [0, 1].
    pub const fn get(self) -> f64 {
        self.0
    }
    /// Returns this share of `whole`, rounded to the nearest integer.
    pub fn of(self, whole: u64) -> u64 {
        (self.0 * whole as f64).round() as u64
    }
}

impl FromStr for Share {
    type Err = Diagnostic;
    fn from_str(text: &str) -> Result<Share, Diagnostic> {
        let text = text.trim();
        let (number, exponent) = match text.strip_suffix('%') {
            // The decimal point is moved in the text, so that "0.1%" is the same real number as 0.001.
            Some(number) => (number.trim_end(), "e-2"),
            None => (text, ""),
        };
        // Rust reads "inf", "nan", "+1" and "1e3" as real numbers too; none of them is a share.
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
    format!("the integer {number} may mean per cent or a fraction; write `\"{number}%\"` or a real number")
}

impl fmt::Display for Share {
    /// Formats the shortest decimal text without an exponent, always with a point: an integer would not read back.
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
            "description": "a fraction of a whole: a real number from 0 to 1, or a string in per cent",
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
