//! fio's value syntax: byte counts, percentages, times, comma lists.
//!
//! Parsing is stricter than in fio, which reads `4kx` as 4096 and `10 m` as 10: leftover text is an error here.

use config::Diagnostic;
use engine::Time;

use crate::synth::Each;

/// Value of an option as written in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a> {
    /// Text after `=`; none without `=`.
    pub(crate) text: Option<&'a str>,
    /// Meaning of `k`: 1024 or 1000.
    pub(crate) kb_base: u64,
}

/// A byte count or a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Bytes.
    Bytes(u64),
    /// Percent, 1 to 100.
    Percent(u8),
}

type Parsed<T> = Result<T, Diagnostic>;

impl<'a> Value<'a> {
    /// Returns the text, or an error if it is missing.
    pub(crate) fn text(self) -> Parsed<&'a str> {
        let text = self.text.ok_or_else(|| Diagnostic::new("the option needs a value"))?.trim();
        if text.contains('$') {
            let help = "fio takes $pagesize, $mb_memory and $ncpus from its machine, but a simulation depends on no machine: write the value, or \
                        ${NAME} for an environment variable";
            return Err(Diagnostic::new(format!("`{text}` contains a variable")).help(help));
        }
        if text.starts_with('(') {
            let help = "arithmetic in parentheses is not evaluated: write the number";
            return Err(Diagnostic::new(format!("`{text}` is an expression")).help(help));
        }
        Ok(text)
    }

    /// Returns a value with a different text.
    pub(crate) fn with(self, text: &'a str) -> Value<'a> {
        Value { text: Some(text), ..self }
    }

    /// Reads a byte count.
    pub(crate) fn bytes(self) -> Parsed<u64> {
        parse_bytes(self.text()?, self.kb_base)
    }

    /// Reads a byte count of one or more.
    pub(crate) fn some_bytes(self) -> Parsed<u64> {
        match self.bytes()? {
            0 => Err(Diagnostic::new("must be at least 1")),
            bytes => Ok(bytes),
        }
    }

    /// Reads a byte count or a percentage.
    pub(crate) fn quantity(self) -> Parsed<Quantity> {
        self.share_from(1)
    }

    /// Reads a byte count or a percentage, which may be 0 %.
    pub(crate) fn quantity_or_none(self) -> Parsed<Quantity> {
        self.share_from(0)
    }

    fn share_from(self, least: u8) -> Parsed<Quantity> {
        let text = self.text()?;
        let Some(number) = text.strip_suffix('%') else { return Ok(Quantity::Bytes(self.bytes()?)) };
        match number.parse::<u8>() {
            Ok(0) if least == 0 => Ok(Quantity::Bytes(0)),
            Ok(percent @ 1..=100) => Ok(Quantity::Percent(percent)),
            _ => {
                let nearest = whole_percent(number);
                Err(Diagnostic {
                    nearest,
                    ..Diagnostic::new(format!("`{text}` is not a percentage from {least}% to 100%"))
                })
            }
        }
    }

    /// Reads a whole number from `low` to `high`; fio's size suffixes are allowed.
    pub(crate) fn number(self, low: u64, high: u64) -> Parsed<u64> {
        let text = self.text()?;
        let expected = || format!("expected a whole number from {low} to {high}");
        match self.bytes() {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            Ok(number) => Err(Diagnostic::new(format!("{number} is out of range: {}", expected()))),
            Err(_) => Err(Diagnostic::new(format!("invalid value `{text}`: {}", expected()))),
        }
    }

    /// Reads 0 or 1.
    pub(crate) fn boolean(self) -> Parsed<bool> {
        match self.text()? {
            "0" => Ok(false),
            "1" => Ok(true),
            other => Err(Diagnostic::new(format!("`{other}` is not a boolean")).allowed(other, ["0", "1"])),
        }
    }

    /// Reads a flag: without a value it is set.
    pub(crate) fn flag(self) -> Parsed<bool> {
        if self.text.is_none() { Ok(true) } else { self.boolean() }
    }

    /// Reads a time; a number without a unit is in `unit`.
    pub(crate) fn time(self, unit: Time) -> Parsed<Time> {
        parse_time(self.text()?, unit)
    }

    /// Reads a time or a range of times.
    pub(crate) fn times(self, unit: Time) -> Parsed<(Time, Time)> {
        let text = self.text()?;
        let Some((low, high)) = text.split_once(['-', ':', ',']) else {
            let time = parse_time(text, unit)?;
            return Ok((time, time));
        };
        let (low, high) = (parse_time(low.trim(), unit)?, parse_time(high.trim(), unit)?);
        Ok((low.min(high), low.max(high)))
    }

    /// Reads a finite real number.
    pub(crate) fn real(self) -> Parsed<f64> {
        let text = self.text()?;
        let real = text.parse::<f64>().ok().filter(|x| x.is_finite());
        real.ok_or_else(|| Diagnostic::new(format!("`{text}` is not a number")))
    }

    /// Reads one of several words.
    pub(crate) fn word<T: Copy>(self, words: &[(&'static str, T)]) -> Parsed<T> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        found.ok_or_else(|| {
            Diagnostic::new(format!("unknown value `{text}`"))
                .allowed(text, words.iter().map(|(word, _)| *word))
        })
    }

    /// Reads up to three comma-separated parts for read, write, trim: an empty part keeps the old value, and the last
    /// part applies to the rest too unless a comma ends it.
    pub(crate) fn each<T: Clone>(
        self,
        into: &mut Each<T>,
        parse: impl Fn(Value<'a>) -> Parsed<T>,
    ) -> Parsed<()> {
        let text = self.text()?;
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        if parts.len() > 3 && !(parts.len() == 4 && parts[3].is_empty()) {
            return Err(Diagnostic::new(format!("`{text}` has more than three parts (read, write, trim)")));
        }
        if parts.iter().all(|part| part.is_empty()) {
            return Err(Diagnostic::new("the option needs a value"));
        }
        let last = parts.len() - 1;
        for (i, part) in parts.iter().enumerate().take(3).filter(|(_, part)| !part.is_empty()) {
            let parsed = parse(self.with(part))?;
            let end = if i == last { 3 } else { i + 1 };
            into[i..end].fill(parsed);
        }
        Ok(())
    }
}

/// Reads a byte count of fio: decimal or `0x` hexadecimal, and a suffix. The default `kb_base=1024` reverses the
/// standard: `k`, `kb` and `ki` are 1024, and `kib` is 1000.
fn parse_bytes(text: &str, kb_base: u64) -> Parsed<u64> {
    let wrong = || {
        let help = "write a number, with a suffix k, m, g, t or p if needed (kb, mb ... mean the same)";
        let nearest = nearest_size(text);
        Diagnostic { nearest, ..Diagnostic::new(format!("`{text}` is not a number of bytes")) }.help(help)
    };
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((text, 10), |digits| (digits, 16));
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(end);
    let number = u64::from_str_radix(digits, radix).map_err(|_| wrong())?;
    let scale = scale(&suffix.to_ascii_lowercase(), kb_base).ok_or_else(wrong)?;
    number.checked_mul(scale).ok_or_else(|| Diagnostic::new(format!("`{text}` is more than 2^64 bytes")))
}

/// Reads a percentage with blanks or a fraction of zeros, as fio accepts it.
fn whole_percent(number: &str) -> Option<String> {
    let whole = number.trim().split_once('.').map_or(number.trim(), |(whole, _)| whole);
    whole
        .parse::<u8>()
        .ok()
        .filter(|percent| (1..=100).contains(percent))
        .map(|percent| format!("{percent}%"))
}

/// Returns a size in fio's spelling: without blanks and underscores, with the letter of its unit, without a fraction.
fn nearest_size(text: &str) -> Option<String> {
    const UNITS: [&str; 6] = ["", "k", "m", "g", "t", "p"];
    let plain: String =
        text.to_ascii_lowercase().chars().filter(|c| !matches!(c, ' ' | '_' | '\'')).collect();
    let end = plain.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(plain.len());
    let (number, suffix) = plain.split_at(end);
    let letter = suffix.get(..1).unwrap_or("");
    let mut power = UNITS.iter().position(|unit| *unit == letter || letter == "b" && unit.is_empty())?;
    if !suffix.chars().all(|c| c.is_ascii_alphabetic()) {
        return None;
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let tens = 10u128.checked_pow(fraction.len() as u32)?;
    let mut value = digits;
    while !value.is_multiple_of(tens) && power > 0 {
        value = value.checked_mul(1024)?;
        power -= 1;
    }
    // Fractions of a byte are cut off.
    Some(format!("{}{}", value / tens, UNITS[power])).filter(|nearest| nearest != text)
}

fn scale(suffix: &str, kb_base: u64) -> Option<u64> {
    if suffix.is_empty() || suffix == "b" {
        return Some(1);
    }
    let power = ["k", "m", "g", "t", "p"].iter().position(|unit| suffix.starts_with(unit))? as u32 + 1;
    match &suffix[1..] {
        "" | "b" | "i" => Some(kb_base.pow(power)),
        // fio calls these "opposite units".
        "ib" => Some(if kb_base == 1024 { 1000u64.pow(power) } else { 1024u64.pow(power) }),
        _ => None,
    }
}

/// Returns true if a byte count uses a suffix that fio reads in the opposite way.
pub(crate) fn has_opposite_suffix(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let after_digit = |i: usize| lower[..i].chars().next_back().is_some_and(|before| before.is_ascii_digit());
    ["kib", "mib", "gib", "tib", "pib"]
        .iter()
        .any(|unit| lower.match_indices(unit).any(|(i, _)| after_digit(i)))
}

/// Reads a time of fio: a whole number and `us`, `ms`, `s`, `m`, `h` or `d`.
fn parse_time(text: &str, unit: Time) -> Parsed<Time> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let scale = match suffix.to_ascii_lowercase().as_str() {
        "" => Some(unit.ps()),
        "us" | "usec" => Some(Time::from_us(1).ps()),
        "ms" | "msec" => Some(Time::from_ms(1).ps()),
        "s" | "sec" => Some(Time::from_s(1).ps()),
        "m" => Some(Time::from_s(60).ps()),
        "h" => Some(Time::from_s(3600).ps()),
        "d" => Some(Time::from_s(86_400).ps()),
        _ => None,
    };
    let (Ok(number), Some(scale)) = (digits.parse::<u64>(), scale) else {
        let help = "write a whole number with a suffix us, ms, s, m, h or d";
        return Err(Diagnostic::new(format!("`{text}` is not a time")).help(help));
    };
    let time = number.checked_mul(scale).map(Time::from_ps);
    time.ok_or_else(|| Diagnostic::new(format!("`{text}` is beyond the limit of 213 days")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value<'_> {
        Value { text: Some(text), kb_base: 1024 }
    }

    #[test]
    fn byte_counts_are_read_as_fio_reads_them() {
        // From fio's HOWTO, "Parameter types"; `ki` and `kib` as `parse.c` reads them.
        let cases =
            [("4096", 4096), ("4k", 4096), ("4kb", 4096), ("4KB", 4096), ("0x1000", 4096), ("1m", 1 << 20)];
        for (text, bytes) in cases {
            assert_eq!(value(text).bytes().unwrap(), bytes, "{text}");
        }
        assert_eq!(value("4kib").bytes().unwrap(), 4000);
        assert_eq!(value("4ki").bytes().unwrap(), 4096);
        let si = |text| Value { text: Some(text), kb_base: 1000 }.bytes().unwrap();
        assert_eq!((si("4k"), si("4kb"), si("4KiB"), si("1m")), (4000, 4000, 4096, 1_000_000));
        for wrong in ["", "k", "4kx", "4 k", "-1", "1.5m", "0x", "99999999p", "$size", "(4*4)"] {
            assert!(value(wrong).bytes().is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_have_their_units() {
        let s = Time::from_s(1);
        for (text, time) in [("30", 30_000), ("100ms", 100), ("2m", 120_000), ("1h", 3_600_000), ("5s", 5000)]
        {
            assert_eq!(value(text).time(s).unwrap(), Time::from_ms(time), "{text}");
        }
        assert_eq!(value("50").time(Time::from_us(1)).unwrap(), Time::from_us(50));
        assert!(
            value("300d").time(s).is_err() && value("1.5").time(s).is_err() && value("5x").time(s).is_err()
        );
        assert_eq!(value("10-5").times(s).unwrap(), (Time::from_s(5), Time::from_s(10)));
    }

    #[test]
    fn comma_parts_fall_to_the_right() {
        // fio's HOWTO, `blocksize`.
        let each = |text: &'static str| {
            let mut into = [1, 1, 1];
            value(text).each(&mut into, Value::bytes).map(|()| into)
        };
        assert_eq!(each("256k").unwrap(), [256 << 10; 3]);
        assert_eq!(each("8k,32k").unwrap(), [8192, 32_768, 32_768]);
        assert_eq!(each("8k,32k,").unwrap(), [8192, 32_768, 1]);
        assert_eq!(each(",8k").unwrap(), [1, 8192, 8192]);
        assert_eq!(each(",8k,").unwrap(), [1, 8192, 1]);
        assert!(each("1,2,3,4").is_err() && each(",").is_err());
    }

    #[test]
    fn opposite_suffixes_are_seen() {
        assert!(has_opposite_suffix("4KiB") && has_opposite_suffix("1k-4kib"));
        assert!(!has_opposite_suffix("4k") && !has_opposite_suffix("4ki") && !has_opposite_suffix("skib"));
    }
}
