//! Interpretation of the first lines of a file as one format, and its plausibility.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::trace::format::{Format, Settings};
use crate::trace::human;
use crate::trace::record::{RawRequest, Sheet};

/// Highest request rate that storage serves, per second: *chosen*, five times the fastest drive of 2025.
const FASTEST_PER_S: f64 = 2e7;
/// Highest plausible address: *chosen*, above the largest volume that a block device may have on Linux (8 EiB) over
/// 1024.
const FARTHEST: u64 = 8 << 50;
/// Size that few requests exceed: *chosen*, the largest transfer of an NVMe drive with pages of 4 KiB (32 MiB).
const LARGE: u64 = 32 << 20;

/// Interpretation of the first lines as one format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// The format.
    pub format: &'static str,
    /// Number of lines that fit it.
    pub good_lines: u64,
    /// Number of lines that do not fit it.
    pub bad_lines: u64,
    /// Number of requests on the fitting lines.
    pub requests: u64,
    /// Time from the earliest to the latest request, in seconds.
    pub span_s: f64,
    /// Properties that no real trace has, in words: `more requests per second than any storage serves`.
    pub implausible: Vec<&'static str>,
    #[serde(skip)]
    span_ps: u128,
    #[serde(skip)]
    pub(super) translation: Option<Translation>,
}

/// Counts that plausibility is judged by.
#[derive(Default)]
struct Odd {
    unaligned: u64,
    large: u64,
    far: u64,
    beyond: u64,
    /// Number of requests that are longer than the space before them.
    longer: u64,
    offsets: BTreeSet<u64>,
    sizes: BTreeSet<u64>,
    times: Vec<u128>,
}

impl Odd {
    fn add(&mut self, request: &RawRequest, capacity: Option<u64>) {
        let end = request.offset.saturating_add(request.bytes);
        self.unaligned += u64::from(!(request.offset | request.bytes).is_multiple_of(512));
        self.large += u64::from(request.bytes > LARGE);
        self.far += u64::from(end > FARTHEST);
        self.beyond += u64::from(capacity.is_some_and(|capacity| end > capacity));
        self.longer += u64::from(request.bytes > request.offset);
        self.offsets.insert(request.offset);
        self.sizes.insert(request.bytes);
        self.times.push(request.at);
    }

    /// Returns the median of the nonzero times between requests, in picoseconds. A long gap does not hide a rate that
    /// no storage serves.
    fn gap(&mut self) -> Option<u128> {
        self.times.sort_unstable();
        let mut gaps: Vec<u128> =
            self.times.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0).collect();
        gaps.sort_unstable();
        gaps.get(gaps.len().saturating_sub(1) / 2).copied()
    }
}

impl Reading {
    pub(super) fn meaning(&self) -> String {
        let rate = match self.span_s {
            0.0 => "all at one instant".to_owned(),
            span => human::rate(self.requests as f64 / span),
        };
        let odd = if self.implausible.is_empty() {
            String::new()
        } else {
            format!(": {}", self.implausible.join(", "))
        };
        format!(
            "`{}` (first {} requests: {}, {rate}{odd})",
            self.format,
            human::count(self.requests),
            human::span(self.span_ps)
        )
    }

    /// Returns the number of doubts about the reading; fewer is better.
    pub(super) fn doubts(&self) -> usize {
        self.implausible.len()
    }

    /// Reads `lines` as `format`; `capacity` is that of the device, if known.
    pub(super) fn of<'a>(
        format: &'static Format,
        settings: &Settings<'_>,
        lines: impl Iterator<Item = &'a [u8]>,
        translation: Option<Translation>,
        capacity: Option<u64>,
    ) -> Reading {
        let mut parser = (format.parser)(settings);
        let mut sheet = Sheet::default();
        let mut reading = Reading {
            format: format.info.name,
            good_lines: 0,
            bad_lines: 0,
            requests: 0,
            span_s: 0.0,
            implausible: Vec::new(),
            span_ps: 0,
            translation,
        };
        let (mut first, mut last, mut odd) = (u128::MAX, 0, Odd::default());
        for line in lines {
            let mut good = parser.parse(line, &mut sheet).is_ok();
            while let Some(request) = sheet.take() {
                good &= (format.plausible)(&request);
                if good {
                    reading.requests += 1;
                    first = first.min(request.at);
                    last = last.max(request.at);
                    odd.add(&request, capacity);
                }
            }
            sheet.discard();
            reading.good_lines += u64::from(good);
            reading.bad_lines += u64::from(!good);
        }
        reading.span_ps = last.saturating_sub(first);
        reading.span_s = reading.span_ps as f64 / 1e12;
        // A trace of objects has sizes of any number of bytes.
        let objects = parser.names_objects() || format.info.one_device && format.info.sector.is_none();
        reading.judge(!objects, &mut odd);
        reading
    }

    fn judge(&mut self, in_sectors: bool, odd: &mut Odd) {
        let most = |count: u64| count * 2 > self.requests;
        let mean = self.span_s > 0.0 && self.requests as f64 / self.span_s > FASTEST_PER_S;
        let too_fast = mean || odd.gap().is_some_and(|gap| (gap as f64) * FASTEST_PER_S < 1e12);
        let swapped = most(odd.longer) && odd.offsets.len() > 1 && odd.offsets.len() < odd.sizes.len();
        let found = [
            (too_fast, "more requests per second than any storage serves"),
            (in_sectors && most(odd.unaligned), "addresses or sizes that are not whole sectors"),
            (most(odd.large), "most requests above 32 MiB"),
            (most(odd.far), "addresses beyond 8 PiB"),
            (swapped, "offsets that look like sizes"),
            (most(odd.beyond), "most requests beyond the device"),
        ];
        self.implausible = found.iter().filter(|(is, _)| *is).map(|(_, what)| *what).collect();
    }
}

/// A separator in a table that differs from the format's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Translation {
    from: u8,
    to: u8,
}

impl Translation {
    /// Returns the translations that a file of `format` may need, including its own separator with quoted fields.
    pub(crate) fn all(format: &Format) -> impl Iterator<Item = Translation> + use<> {
        let own = format.separator;
        let others = [b'\t', b';', b',', b'|', b' '].into_iter().filter(move |from| Some(*from) != own);
        let all = own.into_iter().chain(others);
        all.filter_map(move |from| own.map(|to| Translation { from, to }))
            // Blanks are one separator.
            .filter(|t| !(t.from == b'\t' && t.to == b' '))
    }

    /// Returns true if it changes a text: the format's own separator is a change where fields are quoted.
    pub(super) fn changes(self, lines: &[&[u8]]) -> bool {
        self.from != self.to || lines.iter().any(|line| line.contains(&b'"'))
    }

    /// Returns the remark about a file that needs it.
    pub(crate) fn remark(self) -> String {
        let name = match self.from {
            _ if self.from == self.to => return "the fields are in quotation marks".to_owned(),
            b'\t' => "tabs",
            b';' => "semicolons",
            b',' => "commas",
            b'|' => "bars",
            _ => "spaces",
        };
        format!("the fields are separated by {name}")
    }

    /// Returns a line with the format's own separator; every field keeps its column.
    pub(crate) fn applied(self, line: &[u8]) -> Vec<u8> {
        let mut text = line.to_vec();
        self.apply(&mut text);
        text
    }

    /// Applies the translation in place, as [`Translation::applied`]. Adjacent blanks are one separator. Quotation
    /// marks become blanks, and separators inside them become underscores; a comma between digits is a decimal point
    /// if commas do not separate.
    pub(crate) fn apply(self, line: &mut [u8]) {
        let (mut in_field, mut quoted) = (false, false);
        for at in 0..line.len() {
            let byte = line[at];
            let digit = |at: Option<usize>| at.and_then(|at| line.get(at)).is_some_and(u8::is_ascii_digit);
            let separates = byte == self.from && (self.from != b' ' || in_field);
            let put = match byte {
                b'"' => {
                    quoted = !quoted;
                    in_field = true;
                    b' '
                }
                b',' if self.from != b',' && digit(at.checked_sub(1)) && digit(Some(at + 1)) => b'.',
                _ if quoted && (byte == self.from || byte == self.to) => b'_',
                _ if separates => {
                    in_field = false;
                    self.to
                }
                b' ' => continue,
                _ => byte,
            };
            in_field |= !separates;
            line[at] = put;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Translation;

    #[test]
    fn fields_keep_their_columns() {
        let of = |from, to, line: &str| {
            String::from_utf8(Translation { from, to }.applied(line.as_bytes())).expect("text")
        };
        assert_eq!(of(b';', b',', "1;;3"), "1,,3");
        assert_eq!(of(b' ', b',', "  1   2 3"), "  1,  2,3");
        assert_eq!(of(b'\t', b',', "1\t 2\t\t3"), "1, 2,,3");
        assert_eq!(of(b',', b',', "\"1\",\"a,b\",\"\""), " 1 , a_b ,  ");
        assert_eq!(of(b';', b',', "0,5;R;\"1,25\""), "0.5,R, 1.25 ");
    }
}
