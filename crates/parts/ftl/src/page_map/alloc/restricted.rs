//! Restricted dynamic allocation.

use super::scan::{self, Scan};
use super::{Allocator, Backend, Ftl, Stream};
use config::units::Duration;
use nand::dies::Wanted;
use nand::geometry::{Digit, Geometry};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Parameters of `restricted`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Digits chosen at the write: one to three of the letters C (channel), W (way), D (die), P (plane).
    pub free: FreeDigits,
    /// Time that a free die waits for writes that complete its next multi-plane command; 0: only for writes of the same
    /// instant.
    pub gather: Duration,
    /// Number of busy dies examined for the least loaded one: the cost of a decision when no plane is idle.
    #[schemars(range(min = 1))]
    pub look: u32,
}

impl Default for Params {
    fn default() -> Params {
        let scan::Params { gather, look } = scan::Params::default();
        Params { free: FreeDigits(vec![Digit::Way, Digit::Die, Digit::Plane]), gather, look }
    }
}

/// Digits of a plane's address that a write may choose: `"DP"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeDigits(Vec<Digit>);

impl FreeDigits {
    /// Reads one to three different letters of `C`, `W`, `D`, `P`.
    pub fn parse(text: &str) -> Option<FreeDigits> {
        let digits: Option<Vec<Digit>> = text.chars().map(Digit::of_letter).collect();
        let digits = digits?;
        let all_differ = (0..digits.len()).all(|i| !digits[..i].contains(&digits[i]));
        (all_differ && (1..=3).contains(&digits.len())).then_some(FreeDigits(digits))
    }
}

impl Serialize for FreeDigits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.iter().map(|d| d.letter()).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for FreeDigits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FreeDigits, D::Error> {
        let text = String::deserialize(deserializer)?;
        FreeDigits::parse(&text).ok_or_else(|| {
            D::Error::custom(format!("`{text}` is not one to three different letters of C (channel), W (way), D (die), P (plane), such as \"DP\"; all four free is the policy `full`, none is `striped`"))
        })
    }
}

impl JsonSchema for FreeDigits {
    fn schema_name() -> Cow<'static, str> {
        "FreeDigits".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^[CWDP]{1,3}$",
            "description": "One to three of channel, way, die and plane: \"DP\"."
        })
    }
}

/// Restricted dynamic allocation: the address decides some digits of the plane, the write chooses the others.
#[derive(Clone, Debug)]
pub struct Restricted {
    scan: Scan,
}

impl Restricted {
    /// Builds the policy.
    pub fn new(params: &Params, geo: &Geometry) -> Restricted {
        let Params { free, gather, look } = params;
        Restricted { scan: Scan::new(&scan::Params { gather: *gather, look: *look }, &free.0, geo) }
    }
}

impl Allocator for Restricted {
    fn place(&mut self, stripe: u64, stream: Stream, ftl: &Ftl, backend: &Backend) -> u32 {
        let range = self.scan.range(stripe, &ftl.geo);
        self.scan.place(range, stream, ftl, backend)
    }
    fn wanted(&self) -> Option<Wanted> {
        Some(self.scan.wanted())
    }
    fn lines(&self, _: &Geometry) -> usize {
        self.scan.ranges()
    }
    fn line(&self, stripe: u64, geo: &Geometry) -> usize {
        self.scan.range(stripe, geo)
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.scan.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.scan.load(input)
    }
}

#[cfg(test)]
mod tests {
    use super::FreeDigits;

    #[test]
    fn sets_of_one_to_three_digits() {
        // Ordered: 4 of one letter, 4 * 3 of two, 4 * 3 * 2 of three.
        let letters = ["", "C", "W", "D", "P"];
        let words =
            (0..625usize).map(|n| [n % 5, n / 5 % 5, n / 25 % 5, n / 125].map(|d| letters[d]).concat());
        let good: std::collections::BTreeSet<_> = words.filter(|w| FreeDigits::parse(w).is_some()).collect();
        assert_eq!(good.len(), 4 + 12 + 24);
        assert!(["", "CWDP", "PP", "X", "p"].iter().all(|w| FreeDigits::parse(w).is_none()));
    }
}
