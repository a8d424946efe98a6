//! Fields of a line, split by hand, and exact numbers read from them.

use crate::trace::record::{Fault, FaultKind};

/// Separator of fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Separator {
    Comma,
    Blank,
}

/// Fields of one line, taken from left to right.
pub(crate) struct Fields<'a> {
    line: &'a [u8],
    at: usize,
    separator: Separator,
    ended: bool,
}

/// One field, without the blanks around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) name: &'static str,
    pub(crate) at: usize,
}

impl<'a> Fields<'a> {
    /// Splits fields at commas; a field may be empty.
    pub(crate) fn commas(line: &'a [u8]) -> Fields<'a> {
        Fields { line, at: 0, separator: Separator::Comma, ended: false }
    }
    /// Splits fields at spaces and tabs.
    pub(crate) fn blanks(line: &'a [u8]) -> Fields<'a> {
        Fields { line, at: 0, separator: Separator::Blank, ended: false }
    }

    /// Returns the fields after byte `at` of the line.
    pub(crate) fn from(self, at: usize) -> Fields<'a> {
        Fields { at, ..self }
    }

    /// Returns the next field, or `None` at the end of the line.
    pub(crate) fn optional(&mut self, name: &'static str) -> Option<Field<'a>> {
        let (from, to) = match self.separator {
            Separator::Comma => self.until_comma()?,
            Separator::Blank => self.until_blank()?,
        };
        let (from, to) = trim(self.line, from, to);
        Some(Field { text: &self.line[from..to], name, at: from })
    }
    /// Returns the next field.
    pub(crate) fn next(&mut self, name: &'static str) -> Result<Field<'a>, Fault> {
        self.optional(name).ok_or(Fault {
            kind: FaultKind::MissingField,
            field: name,
            at: self.line.len(),
            len: 0,
            allowed: "",
        })
    }
    /// Refuses a field after the last one.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        match self.optional("end of the line") {
            None => Ok(()),
            Some(field) => Err(field.fault(FaultKind::ExtraField, "")),
        }
    }

    fn until_comma(&mut self) -> Option<(usize, usize)> {
        if self.ended {
            return None;
        }
        let from = self.at;
        let mut to = from;
        while to < self.line.len() && self.line[to] != b',' {
            to += 1;
        }
        self.ended = to == self.line.len();
        self.at = to + 1;
        Some((from, to))
    }
    fn until_blank(&mut self) -> Option<(usize, usize)> {
        let mut from = self.at;
        while from < self.line.len() && is_blank(self.line[from]) {
            from += 1;
        }
        let mut to = from;
        while to < self.line.len() && !is_blank(self.line[to]) {
            to += 1;
        }
        self.at = to;
        if from == to { None } else { Some((from, to)) }
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn trim(line: &[u8], mut from: usize, mut to: usize) -> (usize, usize) {
    while from < to && is_blank(line[from]) {
        from += 1;
    }
    while from < to && is_blank(line[to - 1]) {
        to -= 1;
    }
    (from, to)
}

impl<'a> Field<'a> {
    /// Returns a fault about this field.
    pub(crate) fn fault(&self, kind: FaultKind, allowed: &'static str) -> Fault {
        Fault { kind, field: self.name, at: self.at, len: self.text.len(), allowed }
    }
    /// Reads an unsigned decimal integer.
    pub(crate) fn integer(&self) -> Result<u64, Fault> {
        const ALLOWED: &str = "a whole number";
        if self.text.is_empty() {
            return Err(self.fault(FaultKind::NotANumber, ALLOWED));
        }
        let mut value: u64 = 0;
        for &byte in self.text {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return Err(self.fault(FaultKind::NotANumber, ALLOWED));
            }
            value = value
                .checked_mul(10)
                .and_then(|v| v.checked_add(u64::from(digit)))
                .ok_or(self.fault(FaultKind::TooLarge, "below 2^64"))?;
        }
        Ok(value)
    }
    /// Reads an unsigned hexadecimal integer, with or without `0x`.
    pub(crate) fn hexadecimal(&self) -> Result<u64, Fault> {
        let digits = self.text.strip_prefix(b"0x").unwrap_or(self.text);
        if digits.is_empty() {
            return Err(self.fault(FaultKind::NotANumber, "a hexadecimal number"));
        }
        let mut value: u64 = 0;
        for &byte in digits {
            let digit = (byte as char)
                .to_digit(16)
                .ok_or(self.fault(FaultKind::NotANumber, "a hexadecimal number"))?;
            if value >> 60 != 0 {
                return Err(self.fault(FaultKind::TooLarge, "below 2^64"));
            }
            value = value << 4 | u64::from(digit);
        }
        Ok(value)
    }
    /// Reads a whole number of units of 10^`exponent` ps, in picoseconds.
    pub(crate) fn whole_time(&self, exponent: u32) -> Result<u128, Fault> {
        Ok(u128::from(self.integer()?) * POWERS[exponent as usize])
    }
    /// Reads a moment on the trace's clock in picoseconds: a whole number of units of 10^`exponent` ps, which may be
    /// negative.
    pub(crate) fn whole_moment(&self, exponent: u32) -> Result<i128, Fault> {
        self.signed(|field| field.whole_time(exponent))
    }
    /// Reads a decimal number like [`Field::whole_moment`].
    pub(crate) fn moment(&self, exponent: u32) -> Result<i128, Fault> {
        self.signed(|field| field.decimal_time(exponent)).map_err(|fault| match fault.kind {
            FaultKind::NotANumber => Fault { allowed: "a number", ..fault },
            _ => fault,
        })
    }

    fn signed(&self, read: impl Fn(&Field<'a>) -> Result<u128, Fault>) -> Result<i128, Fault> {
        let (digits, sign) = match self.text {
            [b'-', digits @ ..] => (digits, -1),
            all => (all, 1),
        };
        let field = Field { text: digits, ..*self };
        // At most 2^104 ps.
        read(&field).map(|ps| sign * ps as i128).map_err(|fault| Fault { len: self.text.len(), ..fault })
    }
    /// Reads a decimal number (`13.19`, `1.2e5`) of units of 10^`exponent` ps, in picoseconds.
    ///
    /// Exact down to a picosecond; smaller fractions are cut off. No binary floating point is used: it could not hold
    /// a FILETIME.
    pub(crate) fn decimal_time(&self, exponent: u32) -> Result<u128, Fault> {
        if let Some((digits, fraction)) = plain_decimal(self.text)
            && fraction <= exponent
        {
            return Ok(u128::from(digits) * POWERS[(exponent - fraction) as usize]);
        }
        self.any_decimal_time(exponent)
    }

    fn any_decimal_time(&self, exponent: u32) -> Result<u128, Fault> {
        const ALLOWED: &str = "a number that is not negative";
        let bad = || self.fault(FaultKind::NotANumber, ALLOWED);
        let too_large = || self.fault(FaultKind::TooLarge, "below 2^64 seconds");
        let (mantissa, power) = match memchr::memchr2(b'e', b'E', self.text) {
            Some(n) => (&self.text[..n], small_integer(&self.text[n + 1..]).ok_or_else(bad)?),
            None => (self.text, 0),
        };
        let mut digits: u128 = 0;
        // The value is `digits` x 10^scale.
        let mut scale = i64::from(exponent) + power;
        let mut seen_digit = false;
        let mut seen_point = false;
        for &byte in mantissa {
            if byte == b'.' && !seen_point {
                seen_point = true;
                continue;
            }
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return Err(bad());
            }
            seen_digit = true;
            if digits < 10_u128.pow(36) {
                digits = digits * 10 + u128::from(digit);
                scale -= i64::from(seen_point);
            } else {
                scale += i64::from(!seen_point);
            }
        }
        if !seen_digit {
            return Err(bad());
        }
        if digits == 0 {
            return Ok(0);
        }
        let Some(factor) = u32::try_from(scale.unsigned_abs()).ok().and_then(|n| 10_u128.checked_pow(n))
        else {
            return if scale < 0 { Ok(0) } else { Err(too_large()) };
        };
        let ps =
            if scale < 0 { digits / factor } else { digits.checked_mul(factor).ok_or_else(too_large)? };
        if ps > MAX_TIME { Err(too_large()) } else { Ok(ps) }
    }
}

/// Largest raw time in picoseconds: 2^64 units of a second.
pub(crate) const MAX_TIME: u128 = (1 << 64) * 1_000_000_000_000;

/// Powers 10^0 to 10^12.
const POWERS: [u128; 13] = {
    let mut powers = [1; 13];
    let mut n = 1;
    while n < 13 {
        powers[n] = powers[n - 1] * 10;
        n += 1;
    }
    powers
};

/// Splits `1456095145.133076000` into its digits and the number of decimals, if they fit 64 bits.
fn plain_decimal(text: &[u8]) -> Option<(u64, u32)> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    let mut digits: u64 = 0;
    let mut point = None;
    for (n, &byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            digits = digits * 10 + u64::from(digit);
        } else if byte == b'.' && point.is_none() && text.len() > 1 {
            point = Some(n);
        } else {
            return None;
        }
    }
    Some((digits, point.map_or(0, |n| (text.len() - 1 - n) as u32)))
}

/// Reads the exponent of a decimal number: `+5`, `-06`.
fn small_integer(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    if digits.is_empty() || digits.len() > 4 {
        return None;
    }
    let mut value = 0;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    Some(sign * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> Field<'_> {
        Field { text: text.as_bytes(), name: "number", at: 0 }
    }

    #[test]
    fn decimal_times_are_exact_to_a_picosecond() {
        for (text, exponent, ps) in [
            ("13.191135", 9, 13_191_135_000_u128),
            ("1456095145.133076000", 12, 1_456_095_145_133_076_000_000),
            ("128166385295514663", 5, 12_816_638_529_551_466_300_000),
            ("0", 12, 0),
            (".5", 12, 500_000_000_000),
            ("7.", 3, 7_000),
            ("1.2e5", 3, 120_000_000),
            ("12E-2", 3, 120),
            ("0.0000000000019", 12, 1),
            ("1e-400", 12, 0),
            ("0e400", 12, 0),
            ("18446744073709551616", 12, 18_446_744_073_709_551_616_000_000_000_000),
            ("0000000000000000000000000000000000000000000000000001.5", 0, 1),
        ] {
            assert_eq!(field(text).decimal_time(exponent), Ok(ps), "{text}");
        }
    }

    #[test]
    fn a_moment_may_be_negative_and_a_duration_may_not() {
        assert_eq!(field("-50").moment(6), Ok(-50_000_000));
        assert_eq!(field("-0.5").moment(12), Ok(-500_000_000_000));
        assert_eq!(field("-50").whole_moment(3), Ok(-50_000));
        assert_eq!(field("50").whole_moment(3), Ok(50_000));
        for text in ["-", "--1", "-x"] {
            assert_eq!(field(text).moment(6).unwrap_err().len, text.len(), "{text}");
        }
        assert_eq!(field("-50").decimal_time(6).unwrap_err().kind, FaultKind::NotANumber);
    }

    #[test]
    fn what_is_not_a_time_says_so() {
        for text in ["", ".", "-1", "1.2.3", "1e", "e5", "nan", "inf", "0x10", "1e99999"] {
            assert_eq!(field(text).decimal_time(12).unwrap_err().kind, FaultKind::NotANumber, "{text}");
        }
        for text in ["1e40", "18446744073709551617", "99999999999999999999999999999999999999999999"] {
            assert_eq!(field(text).decimal_time(12).unwrap_err().kind, FaultKind::TooLarge, "{text}");
        }
    }

    #[test]
    fn integers_stop_at_64_bits() {
        assert_eq!(field("18446744073709551615").integer(), Ok(u64::MAX));
        assert_eq!(field("18446744073709551616").integer().unwrap_err().kind, FaultKind::TooLarge);
        assert_eq!(field("ffffffffffffffff").hexadecimal(), Ok(u64::MAX));
        assert_eq!(field("10000000000000000").hexadecimal().unwrap_err().kind, FaultKind::TooLarge);
        assert_eq!(field("+1").integer().unwrap_err().kind, FaultKind::NotANumber);
    }

    #[test]
    fn commas_keep_empty_fields_and_blanks_do_not() {
        let mut commas = Fields::commas(b"1, ,3");
        assert_eq!(commas.next("a").unwrap().text, b"1");
        assert_eq!(commas.next("b").unwrap().text, b"");
        assert_eq!(commas.next("c").unwrap().at, 4);
        assert!(commas.end().is_ok());
        let mut blanks = Fields::blanks(b"  1 \t 2  ");
        assert_eq!(blanks.next("a").unwrap().text, b"1");
        assert_eq!(blanks.next("b").unwrap().at, 6);
        assert_eq!(blanks.next("c").unwrap_err().kind, FaultKind::MissingField);
    }
}
