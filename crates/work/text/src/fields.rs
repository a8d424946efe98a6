//! Fields of a line, separated by blanks.

use std::str::FromStr;

use crate::fault::Bad;

/// Fields of a line, from left to right.
pub struct Fields<'a> {
    line: &'a [u8],
    at: usize,
}

/// Notation of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// Decimal digits.
    Decimal,
    /// Hexadecimal digits, with or without `0x`.
    Hex,
}

impl<'a> Fields<'a> {
    /// Splits a line into fields.
    pub fn new(line: &'a [u8]) -> Fields<'a> {
        Fields { line, at: 0 }
    }

    /// Returns the rest of the line, from the next field on.
    pub fn rest(&mut self) -> &'a [u8] {
        while self.line.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        &self.line[self.at..]
    }

    /// Skips `bytes` bytes.
    pub fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Returns the byte of the line where the next field begins.
    pub fn at(&mut self) -> usize {
        self.rest();
        self.at
    }

    /// Returns the next field, if there is one.
    pub fn optional(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.at += end;
        (end > 0).then(|| &rest[..end])
    }

    /// Returns the next field.
    pub fn next(&mut self, what: &str) -> Result<&'a [u8], Bad> {
        let at = self.at();
        self.optional().ok_or_else(|| Bad::new(format!("the line ends before the {what}")).at(at))
    }

    /// Reads the next field as a number.
    pub fn number(&mut self, what: &str, base: Base) -> Result<u64, Bad> {
        let at = self.at();
        let text = self.next(what)?;
        unsigned(text, base)
            .ok_or_else(|| Bad::new(format!("the {what} is not a number: `{}`", text.escape_ascii())).at(at))
    }

    /// Reads the next field as a decimal number that may be negative.
    pub fn signed<T: FromStr>(&mut self, what: &str) -> Result<T, Bad> {
        let at = self.at();
        let text = self.next(what)?;
        std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Bad::new(format!("the {what} is not a number: `{}`", text.escape_ascii())).at(at))
    }

    /// Reads the next field as a small decimal number.
    pub fn count(&mut self, what: &str, most: u64) -> Result<usize, Bad> {
        let at = self.at();
        let count = self.number(what, Base::Decimal)?;
        if count > most {
            return Err(Bad::new(format!("the {what} is {count}; the maximum is {most}")).at(at));
        }
        Ok(count as usize)
    }

    /// Checks that no fields are left.
    pub fn end(&mut self) -> Result<(), Bad> {
        let at = self.at();
        match self.optional() {
            None => Ok(()),
            Some(text) => {
                Err(Bad::new(format!("text after the last field: `{}`", text.escape_ascii())).at(at))
            }
        }
    }
}

/// Reads a number, if the text is one of 64 bits.
pub fn unsigned(text: &[u8], base: Base) -> Option<u64> {
    let (digits, radix) = match base {
        Base::Decimal => (text, 10),
        Base::Hex => (text.strip_prefix(b"0x").unwrap_or(text), 16),
    };
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, &digit| {
        let digit = char::from(digit).to_digit(radix)?;
        value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))
    })
}
