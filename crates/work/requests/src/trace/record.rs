//! Records of a trace's lines: requests in trace time, faults of single lines, and the notes of a reader.

use proto::IoOp;

use super::FlowNames;
use crate::trace::{
    field::{Field, MAX_TIME},
    human,
};
use config::{Diagnostic, Place};
use serde::Serialize;
use std::collections::BTreeMap;
use text::shown;

/// Largest read or write in bytes: beyond it (NVMe stops at 32 MiB, Linux well below) the unit must be wrong.
pub(crate) const MAX_TRANSFER: u64 = 1 << 30;

/// Zero of a trace's clock in [`RawRequest::at`], in picoseconds: a whole number of seconds, beyond any negative
/// time.
pub(crate) const ZERO: u128 = MAX_TIME;

/// A request as recorded, its time not yet rebased.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawRequest {
    /// Time in picoseconds on the trace's own clock, whose zero is [`ZERO`].
    pub(crate) at: u128,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Line number, counted from one.
    pub(crate) line: u64,
    pub(crate) flow: u16,
    /// Part of the trace that contains the line.
    pub(crate) part: u16,
    pub(crate) op: IoOp,
    pub(crate) fua: bool,
    /// Recorded response time in picoseconds, if the trace has it.
    pub(crate) response: Option<u64>,
}

/// Offset and length in bytes, checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Extent {
    /// Empty extent: that of a flush.
    pub(crate) const NONE: Extent = Extent { offset: 0, bytes: 0 };

    /// Reads the extent of `op` from two fields and the bytes per unit of each.
    pub(crate) fn read(
        op: IoOp,
        offset: Field<'_>,
        offset_unit: u64,
        size: Field<'_>,
        size_unit: u64,
    ) -> Result<Extent, Fault> {
        let units = (offset.integer()?, offset_unit, size.integer()?, size_unit);
        Extent::of(op, units, offset.fault(FaultKind::TooLarge, ""), size.fault(FaultKind::TooLarge, ""))
    }

    /// Returns the extent of `op` from offset and size in their units; the faults point to their fields.
    pub(crate) fn of(
        op: IoOp,
        (offset, offset_unit, size, size_unit): (u64, u64, u64, u64),
        of_offset: Fault,
        of_size: Fault,
    ) -> Result<Extent, Fault> {
        const RANGE: &str = "offset + length below 2^64 bytes";
        let bad = |fault: Fault, kind, allowed| Fault { kind, allowed, ..fault };
        let bytes = size.checked_mul(size_unit).ok_or(bad(of_size, FaultKind::TooLarge, RANGE))?;
        let start = offset.checked_mul(offset_unit).ok_or(bad(of_offset, FaultKind::TooLarge, RANGE))?;
        if op == IoOp::Flush {
            return Ok(Extent::NONE);
        }
        if bytes == 0 {
            return Err(bad(of_size, FaultKind::ZeroLength, "at least one byte"));
        }
        if matches!(op, IoOp::Read | IoOp::Write) && bytes > MAX_TRANSFER {
            return Err(bad(of_size, FaultKind::ImplausibleLength, "up to 1 GiB; --sector sets the unit"));
        }
        if start.checked_add(bytes).is_none() {
            return Err(bad(of_offset, FaultKind::TooLarge, RANGE));
        }
        Ok(Extent { offset: start, bytes })
    }
}

/// Output of a parser.
#[derive(Default)]
pub(crate) struct Sheet {
    /// Requests of the current line, in reverse order.
    pending: [Option<RawRequest>; 2],
    /// Number of repetitions of the last of them.
    again: u64,
    /// The current line.
    pub(crate) line: u64,
    /// The current part of the trace, from zero.
    pub(crate) part: u16,
    pub(crate) notes: TraceNotes,
}

impl Sheet {
    /// Adds a request of the current line at this many picoseconds of the trace's clock; a line gives at most two (a
    /// flush and the write after it).
    pub(crate) fn request(&mut self, at: i128, op: IoOp, extent: Extent, flow: u16, fua: bool) {
        self.notes.negative += u64::from(at < 0);
        let request = RawRequest {
            at: ZERO.saturating_add_signed(at),
            offset: extent.offset,
            bytes: extent.bytes,
            line: self.line,
            flow,
            part: self.part,
            op,
            fua,
            response: None,
        };
        self.pending[1] = self.pending[0].replace(request).or(self.pending[1]);
    }
    /// Sets the recorded response time of the request added last; zero means none.
    pub(crate) fn responded(&mut self, ps: u128) {
        if let Some(last) = &mut self.pending[0] {
            last.response = u64::try_from(ps).ok().filter(|ps| *ps > 0);
        }
    }
    /// Repeats the request added last `times` times at the same time.
    pub(crate) fn repeat(&mut self, times: u64) {
        self.again = times.saturating_sub(1);
    }
    /// Returns the next request of the current line.
    pub(crate) fn take(&mut self) -> Option<RawRequest> {
        if let Some(first) = self.pending[1].take() {
            return Some(first);
        }
        if self.again > 0 {
            self.again -= 1;
            return self.pending[0];
        }
        self.pending[0].take()
    }
    /// Returns true if the current line has no (more) requests.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending[0].is_none()
    }
    /// Discards the requests of a bad line from before its fault.
    pub(crate) fn discard(&mut self) {
        self.pending = [None, None];
        self.again = 0;
    }
    /// Returns the flow named `key`.
    pub(crate) fn flow(&mut self, key: Field<'_>) -> Result<u16, Fault> {
        self.notes.flows.number(key.text).ok_or(key.fault(FaultKind::LongName, "up to 255 bytes"))
    }
}

// Faults of one line.

/// Kinds of bad lines; `lenient` skips and counts them by kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The line ends before a field.
    MissingField,
    /// The line continues after the last field.
    ExtraField,
    /// A field that must be a number is not.
    NotANumber,
    /// A number, or an offset plus a length, exceeds 64 bits.
    TooLarge,
    /// A word or code is not an operation of the format.
    UnknownOperation,
    /// A request that moves data has length zero.
    ZeroLength,
    /// A read or write is larger than 1 GiB: the unit is wrong.
    ImplausibleLength,
    /// A line is longer than 64 KiB.
    LongLine,
    /// Control characters: the content is not text.
    NotText,
    /// The first line is not the format's header.
    BadHeader,
    /// A word is unknown to the format.
    UnknownWord,
    /// A name is longer than 255 bytes.
    LongName,
    /// A binary record is cut off by the end of the file.
    CutOff,
}

impl FaultKind {
    /// Returns the name shown to people.
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::MissingField => "missing field",
            FaultKind::ExtraField => "extra field",
            FaultKind::NotANumber => "not a number",
            FaultKind::TooLarge => "number too large",
            FaultKind::UnknownOperation => "unknown operation",
            FaultKind::ZeroLength => "zero length",
            FaultKind::ImplausibleLength => "implausible length",
            FaultKind::LongLine => "line too long",
            FaultKind::NotText => "not text",
            FaultKind::BadHeader => "bad header",
            FaultKind::UnknownWord => "unknown word",
            FaultKind::LongName => "name too long",
            FaultKind::CutOff => "record cut off",
        }
    }
}

/// A bad line. Plain data: a lenient pass over millions of them allocates nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// Field at fault.
    pub(crate) field: &'static str,
    /// Start of the field in the line, in bytes from zero.
    pub(crate) at: usize,
    /// Length of the field in bytes.
    pub(crate) len: usize,
    /// Allowed values of the field.
    pub(crate) allowed: &'static str,
}

impl Fault {
    /// Returns a fault of a whole line.
    pub(crate) fn line(kind: FaultKind, field: &'static str, allowed: &'static str) -> Fault {
        Fault { kind, field, at: 0, len: 0, allowed }
    }

    /// Converts the fault to a diagnostic; `record` is the layout of a line of `format`.
    pub(crate) fn diagnostic(
        &self,
        format: &str,
        record: &str,
        source: &str,
        number: u64,
        line: &[u8],
    ) -> Diagnostic {
        let given = shown(line.get(self.at..self.at + self.len).unwrap_or_default(), 40);
        let what = match self.kind {
            FaultKind::MissingField => format!("the line ends before the {}", self.field),
            FaultKind::ExtraField => format!("more fields than `{record}`: `{given}`"),
            FaultKind::NotANumber => format!("the {} is not a number: `{given}`", self.field),
            FaultKind::TooLarge => format!("the {} is too large: `{given}`", self.field),
            FaultKind::UnknownOperation => format!("unknown {}: `{given}`", self.field),
            FaultKind::ZeroLength => format!("a request of length zero ({})", self.field),
            FaultKind::ImplausibleLength => {
                format!("the {} is more than 1 GiB: `{given}`; the unit is probably wrong", self.field)
            }
            FaultKind::LongLine => "a line longer than 64 KiB".to_owned(),
            FaultKind::NotText => "control characters: this is not text".to_owned(),
            FaultKind::BadHeader => format!("the first line is not the {}", self.field),
            FaultKind::UnknownWord => format!("unknown {}: `{given}`", self.field),
            FaultKind::LongName => format!("the {} is longer than 255 bytes", self.field),
            FaultKind::CutOff => "the file ends inside a record".to_owned(),
        };
        let shown_line = shown(line, 200);
        let column = match self.kind {
            FaultKind::LongLine | FaultKind::NotText | FaultKind::BadHeader => 0,
            _ => shown(line.get(..self.at).unwrap_or(line), usize::MAX).chars().count() as u64 + 1,
        };
        let place =
            Place { source: source.to_owned(), line: number, column, text: shown_line, key: String::new() };
        let mut diagnostic = Diagnostic::new(what).at(place);
        if !self.allowed.is_empty() {
            diagnostic.allowed = vec![self.allowed.to_owned()];
        }
        diagnostic.help(format!(
            "a line of `{format}` is `{record}`; --format chooses a different format, --lenient skips and counts bad lines"
        ))
    }
}

impl Fault {
    /// Returns the fault of a binary record and the record, both in hexadecimal.
    pub(crate) fn in_hex(self, record: &[u8]) -> (Fault, String) {
        let text: Vec<String> = record.iter().take(64).map(|byte| format!("{byte:02x}")).collect();
        (Fault { at: self.at * 3, len: (self.len * 3).saturating_sub(1), ..self }, text.join(" "))
    }
}

/// Returns true if bytes hold control characters that no text trace has.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().any(|b| matches!(b, 0..=8 | 14..=31 | 127))
}

// Notes of a reader: everything that was changed, skipped or guessed is reported.

/// Notes on how a trace was read. Complete once the reader has returned `None`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TraceNotes {
    /// Format of the trace.
    pub format: &'static str,
    /// Compression of the file: `plain`, `gzip` …
    pub compression: &'static str,
    /// Other formats that the content fits.
    pub also_fits: Vec<&'static str>,
    /// Remarks that are not counts: ambiguity, time resolution …
    pub remarks: Vec<String>,
    /// Number of lines read.
    pub lines: u64,
    /// Number of requests in the lines.
    pub requests: u64,
    /// Number of requests handed out, before a remap splits them.
    pub delivered: u64,
    /// Number of lines without a request: headers, comments, other events.
    pub other_lines: u64,
    /// Number of pass-through commands (blkparse), which address no data.
    pub passthrough: u64,
    /// Bad lines that `lenient` skipped, by kind.
    pub skipped: BTreeMap<FaultKind, Skipped>,
    /// Reasons of the first bad lines, one line each.
    pub bad_lines: Vec<String>,
    /// Number of requests that `lenient` skipped because they fit the device at no address.
    pub beyond_device: u64,
    /// Number of requests before the start of the clip.
    pub clipped: u64,
    /// True if all streams are put on one device unchanged, with shared addresses.
    pub one_device: bool,
    /// Number of requests moved to a different address.
    pub remapped: u64,
    /// Number of requests split by `compact`: their regions are not adjacent.
    pub split: u64,
    /// Number of trims of untouched regions, dropped by `compact`.
    pub trims_of_nothing: u64,
    /// Number of requests that come after a later one in the file.
    pub unsorted: u64,
    /// Largest difference between such a request and an earlier one in the file, in picoseconds.
    pub lateness_ps: u128,
    /// Sort window that sorts everything read so far; zero if it was in order.
    pub sort_window_needed: u64,
    /// Number of requests with negative times.
    pub negative: u64,
    /// Number of times that a 32-bit clock wrapped to zero.
    pub wraps: u64,
    /// Period of that clock in picoseconds.
    pub wraps_after_ps: u128,
    /// Number of late requests that `lenient` moved to the time of the previous request.
    pub clamped: u64,
    /// Number of requests later than the sort window reaches, when times are not used.
    pub taken_late: u64,
    /// Streams by flow number.
    pub flows: FlowNames,
}

/// Bad lines of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Skipped {
    /// Number of such lines.
    pub count: u64,
    /// Number of the first line, counted from one.
    pub first_line: u64,
}

impl TraceNotes {
    /// Counts a bad line.
    pub(crate) fn skip(&mut self, kind: FaultKind, line: u64) {
        self.skipped.entry(kind).or_insert(Skipped { count: 0, first_line: line }).count += 1;
    }
    /// Adds a remark once.
    pub(crate) fn remark(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Returns everything a user must know, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = self.remarks.clone();
        let mut counted = |count: u64, text: &str| {
            if count > 0 {
                all.push(format!("{} {text}", human::count(count)));
            }
        };
        counted(
            self.negative,
            "requests have negative times: all are shifted so that the earliest is at time zero",
        );
        let clock = format!(
            "times the 32-bit clock wraps to zero after {} (2^32 of its units): later times continue from there",
            human::span(self.wraps_after_ps)
        );
        counted(self.wraps, &clock);
        let late = format!(
            "requests are out of order, by up to {}; they were sorted (a sort window of {} is enough)",
            human::span(self.lateness_ps),
            human::count(self.sort_window_needed),
        );
        counted(self.unsorted, &late);
        counted(
            self.clamped,
            "requests were later than the sort window allows: moved to the time of the previous request",
        );
        counted(
            self.taken_late,
            "requests are out of order beyond the sort window: they keep their place, as no times are used",
        );
        for (kind, skipped) in &self.skipped {
            let text = format!("lines skipped: {}, first on line {}", kind.name(), skipped.first_line);
            counted(skipped.count, &text);
        }
        counted(self.beyond_device, "requests skipped: beyond the device");
        counted(self.passthrough, "pass-through commands skipped: they address no data");
        counted(self.clipped, "requests before the start of the clip dropped");
        counted(self.remapped, "requests moved to fit the device");
        counted(self.split, "of them split, because their regions are not adjacent");
        counted(self.trims_of_nothing, "trims dropped: no request had touched their data");
        counted(self.flows.shared(), "requests of streams beyond the 65,535th share the flow `other`");
        let streams = self.flows.names().len() as u64;
        if self.one_device && streams > 1 {
            let shared = "streams, each with its own addresses, share the addresses of one device; \
                          --remap compact separates them, --volumes one declares them one volume";
            all.push(format!("{} {shared}", human::count(streams)));
        }
        all
    }
}
