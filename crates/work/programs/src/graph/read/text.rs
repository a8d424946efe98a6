//! Lines and words of a graph's file.

use std::io::{BufRead, BufReader, Read};

use config::{Diagnostic, Place};
use text::Bytes;

use super::Values;

/// The longest line: a vertex of METIS with eight million neighbours.
const LONGEST: usize = 64 << 20;
/// Bytes of a line that a diagnostic shows.
const SHOWN: usize = 200;

/// A file's lines, one at a time.
pub(super) struct Text {
    name: String,
    source: BufReader<Bytes>,
    line: Vec<u8>,
    number: u64,
    values: Values,
}

/// A word of a line and where it begins.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Text {
    pub(super) fn new(name: &str, source: Bytes, values: Values) -> Text {
        Text {
            name: name.to_owned(),
            source: BufReader::with_capacity(256 << 10, source),
            line: Vec::new(),
            number: 0,
            values,
        }
    }

    /// Whether values are needed, as weights.
    pub(super) fn wants_weights(&self) -> bool {
        self.values == Values::Weights
    }

    /// Whether the line has no edge: it is blank or a comment.
    pub(super) fn is_aside(&self) -> bool {
        self.word(0, None).is_none_or(|word| matches!(self.line[word.from], b'#' | b'%'))
    }

    /// Reads the next line; false at the end of the file.
    pub(super) fn next(&mut self) -> Result<bool, Diagnostic> {
        self.line.clear();
        let limited = (&mut self.source).take(LONGEST as u64 + 1).read_until(b'\n', &mut self.line);
        let length = limited.map_err(|fault| {
            let what = format!("cannot read `{}`: {fault}", self.name);
            Diagnostic::new(what).at(Place {
                source: self.name.clone(),
                line: self.number + 1,
                ..Place::default()
            })
        })?;
        self.number += u64::from(length > 0);
        if length > LONGEST {
            return Err(self.refuse_line(format!("a line of more than {} MiB", LONGEST >> 20)));
        }
        while matches!(self.line.last(), Some(b'\n' | b'\r')) {
            self.line.pop();
        }
        Ok(length > 0)
    }

    /// The line.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    /// The next word from byte `at` on; words stand between blanks, or between `separator`s.
    pub(super) fn word(&self, at: usize, separator: Option<u8>) -> Option<Word> {
        let Some(separator) = separator else {
            let from = at + self.line.get(at..)?.iter().position(|b| !b.is_ascii_whitespace())?;
            let rest = self.line[from..].iter().position(u8::is_ascii_whitespace);
            return Some(Word { from, to: rest.map_or(self.line.len(), |n| from + n) });
        };
        let rest = self.line.get(at..)?.iter().position(|b| *b == separator);
        let (mut from, mut to) = (at, rest.map_or(self.line.len(), |n| at + n));
        while from < to && self.line[from].is_ascii_whitespace() {
            from += 1;
        }
        while from < to && self.line[to - 1].is_ascii_whitespace() {
            to -= 1;
        }
        Some(Word { from, to })
    }

    /// The text of a word.
    pub(super) fn text(&self, word: Word) -> &[u8] {
        &self.line[word.from..word.to]
    }

    /// A word's value, if it is a whole number below 2^64.
    pub(super) fn number(&self, word: Word) -> Option<u64> {
        let digits = self.text(word);
        let digit = |value: u64, byte: u8| {
            let digit = byte.wrapping_sub(b'0');
            (digit <= 9).then(|| value.checked_mul(10)?.checked_add(u64::from(digit))).flatten()
        };
        (!digits.is_empty()).then(|| digits.iter().try_fold(0, |value, b| digit(value, *b))).flatten()
    }

    /// A whole number of `range`, called `what`.
    pub(super) fn integer(
        &self,
        word: Word,
        what: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, Diagnostic> {
        let value = self.number(word).filter(|value| range.contains(value));
        value.ok_or_else(|| {
            let allowed = match (*range.start(), *range.end()) {
                (0, u64::MAX) => "a whole number".to_owned(),
                (least, most) => format!("a whole number from {least} to {most}"),
            };
            self.refuse(word, what, allowed)
        })
    }

    /// The next word, which must be a whole number of `range`, and the byte behind it.
    pub(super) fn next_integer(
        &self,
        at: usize,
        what: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<(u64, usize), Diagnostic> {
        let word = self.next_word(at, what)?;
        Ok((self.integer(word, what, range)?, word.to))
    }

    /// An edge's value in a word: a whole number from `least` on if it is a weight; else any number, and zero comes back.
    pub(super) fn value(&self, word: Word, what: &str, least: u32) -> Result<u32, Diagnostic> {
        if !self.wants_weights() {
            return self.number_at_all(word, what).map(|()| 0);
        }
        let real = self.real(word);
        let (least, most) = (f64::from(least), f64::from(u32::MAX));
        let whole = real.filter(|real| real.fract() == 0.0 && (least..=most).contains(real));
        whole.map(|real| real as u32).ok_or_else(|| {
            let refused = self.refuse(word, what, format!("a whole number from {least} to {most}"));
            refused.help("weights are summed as whole numbers: scale the values; only programs of shortest paths read them")
        })
    }

    /// A number of any kind. Fortran writes exponents with a D.
    fn real(&self, word: Word) -> Option<f64> {
        let shown = String::from_utf8_lossy(self.text(word)).replace(['d', 'D'], "e");
        shown.parse().ok().filter(|real: &f64| real.is_finite())
    }

    /// Refuses a word that is not a number of any kind.
    pub(super) fn number_at_all(&self, word: Word, what: &str) -> Result<(), Diagnostic> {
        self.real(word).map(|_| ()).ok_or_else(|| self.refuse(word, what, "a number"))
    }

    /// The value in the next word, and the byte behind it.
    pub(super) fn next_value(&self, at: usize, what: &str, least: u32) -> Result<(u32, usize), Diagnostic> {
        let word = self.next_word(at, what)?;
        Ok((self.value(word, what, least)?, word.to))
    }

    fn next_word(&self, at: usize, what: &str) -> Result<Word, Diagnostic> {
        self.word(at, None).ok_or_else(|| {
            let end = Word { from: self.line.len(), to: self.line.len() };
            self.place(format!("the line ends before the {what}"), end)
        })
    }

    /// Refuses words from byte `at` on; `layout` is what a line is.
    pub(super) fn no_more(&self, at: usize, layout: &str) -> Result<(), Diagnostic> {
        let Some(word) = self.word(at, None) else { return Ok(()) };
        let shown = String::from_utf8_lossy(self.text(word)).into_owned();
        Err(self.place(format!("more fields than `{layout}`: `{shown}`"), word))
    }

    /// A diagnostic about a word that is not what it must be.
    pub(super) fn refuse(&self, word: Word, what: &str, allowed: impl Into<String>) -> Diagnostic {
        let end = word.to.min(word.from + SHOWN);
        let shown = String::from_utf8_lossy(&self.line[word.from..end]).into_owned();
        let mut refused = self.place(format!("`{shown}` is no {what}"), word);
        refused.allowed = vec![allowed.into()];
        refused
    }

    /// A diagnostic about the whole line.
    pub(super) fn refuse_line(&self, what: impl Into<String>) -> Diagnostic {
        self.place(what.into(), Word { from: 0, to: 0 })
    }

    fn place(&self, what: String, word: Word) -> Diagnostic {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // The line is shown from a little before the word, so that a long one is not copied whole.
        let first = word.from.saturating_sub(SHOWN / 2);
        let text = shown(&self.line[first..self.line.len().min(first + SHOWN)]);
        let column =
            if word.to > 0 { shown(&self.line[first..word.from]).chars().count() as u64 + 1 } else { 0 };
        let place = Place { source: self.name.clone(), line: self.number, column, text, key: String::new() };
        Diagnostic::new(what).at(place)
    }

    /// A diagnostic about the whole file.
    pub(super) fn refuse_file(&self, what: impl Into<String>) -> Diagnostic {
        let place = Place { source: self.name.clone(), ..Place::default() };
        Diagnostic::new(what).at(place)
    }
}
