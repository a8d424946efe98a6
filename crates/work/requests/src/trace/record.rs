//! Records of a trace's lines: requests in its own time, faults of single lines, and the notes of a reader.

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

/// The longest read or write: beyond it (NVMe stops at 32 MiB, Linux well below) the unit must be wrong.
pub(crate) const MAX_TRANSFER: u64 = 1 << 30;

/// Where the zero of a trace's clock is in [`RawRequest::at`], in picoseconds: a whole number of seconds, beyond any negative time.
pub(crate) const ZERO: u128 = MAX_TIME;

/// A request as the trace has it, its time not yet rebased.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawRequest {
    /// Picoseconds on the trace's own clock, whose zero is [`ZERO`].
    pub(crate) at: u128,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// The line it stands on, counted from one.
    pub(crate) line: u64,
    pub(crate) flow: u16,
    /// The part of the trace that the line is in.
    pub(crate) part: u16,
    pub(crate) op: IoOp,
    pub(crate) fua: bool,
    /// How long it took when it was recorded, in picoseconds, if the trace says so.
    pub(crate) response: Option<u64>,
}

/// Offset and length in bytes, checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Extent {
    /// Nothing: the extent of a flush.
    pub(crate) const NONE: Extent = Extent { offset: 0, bytes: 0 };

    /// The extent of `op` from two fields and the bytes that one of each means.
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

    /// The extent of `op` from offset and size in their units; the faults say where the two stand.
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

/// Where a parser puts what it reads.
#[derive(Default)]
pub(crate) struct Sheet {
    /// Requests of the current line, in reverse order.
    pending: [Option<RawRequest>; 2],
    /// How often the last of them comes again.
    again: u64,
    /// The current line.
    pub(crate) line: u64,
    /// The current part of the trace, from zero.
    pub(crate) part: u16,
    pub(crate) notes: TraceNotes,
}

impl Sheet {
    /// Adds a request of the current line, at so many picoseconds of the trace's clock; a line gives two at most (a flush and the write
    /// behind it).
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
    /// Says how long the request added last took when it was recorded; none took no time.
    pub(crate) fn responded(&mut self, ps: u128) {
        if let Some(last) = &mut self.pending[0] {
            last.response = u64::try_from(ps).ok().filter(|ps| *ps > 0);
        }
    }
    /// Makes the request added last `times` requests at the same time.
    pub(crate) fn repeat(&mut self, times: u64) {
        self.again = times.saturating_sub(1);
    }
    /// The next request of the current line.
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
    /// Whether the current line gave no request (any more).
    pub(crate) fn is_empty(&self) -> bool {
        self.pending[0].is_none()
    }
    /// Forgets what a bad line gave before its fault.
    pub(crate) fn discard(&mut self) {
        self.pending = [None, None];
        self.again = 0;
    }
    /// The flow that `key` names.
    pub(crate) fn flow(&mut self, key: Field<'_>) -> Result<u16, Fault> {
        self.notes.flows.number(key.text).ok_or(key.fault(FaultKind::LongName, "up to 255 bytes"))
    }
}

// Faults of one line.

/// The kinds of bad lines; `lenient` skips and counts them by kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The line ends before a field.
    MissingField,
    /// The line goes on after the last field.
    ExtraField,
    /// A field that must be a number is not.
    NotANumber,
    /// A number, or an offset plus a length, beyond what 64 bits hold.
    TooLarge,
    /// A word or code that names no operation of the format.
    UnknownOperation,
    /// A request that moves data, of length zero.
    ZeroLength,
    /// A read or write of more than 1 GiB: the unit is wrong.
    ImplausibleLength,
    /// A line beyond 64 KiB.
    LongLine,
    /// Control characters: not text.
    NotText,
    /// The first line is not the format's header.
    BadHeader,
    /// A word that the format does not know.
    UnknownWord,
    /// A name of more than 255 bytes.
    LongName,
    /// A record of bytes that the file does not hold to its end.
    CutOff,
}

impl FaultKind {
    /// As a person would say it.
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

/// One bad line. Plain data: a lenient pass over millions of them allocates nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// The field it is about.
    pub(crate) field: &'static str,
    /// Where the field starts in the line, in bytes from zero.
    pub(crate) at: usize,
    /// How long the field is in bytes.
    pub(crate) len: usize,
    /// What the field may be.
    pub(crate) allowed: &'static str,
}

impl Fault {
    /// A fault of a whole line.
    pub(crate) fn line(kind: FaultKind, field: &'static str, allowed: &'static str) -> Fault {
        Fault { kind, field, at: 0, len: 0, allowed }
    }

    /// As a diagnostic; `record` is the layout of a line of `format`.
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
    /// The fault of a record of bytes, and the record, as they are in hexadecimal.
    pub(crate) fn in_hex(self, record: &[u8]) -> (Fault, String) {
        let text: Vec<String> = record.iter().take(64).map(|byte| format!("{byte:02x}")).collect();
        (Fault { at: self.at * 3, len: (self.len * 3).saturating_sub(1), ..self }, text.join(" "))
    }
}

/// Whether bytes hold control characters that no text trace has.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().any(|b| matches!(b, 0..=8 | 14..=31 | 127))
}

// The notes of a reader: nothing that was changed, skipped or guessed goes unsaid.

/// What happened while a trace was read. Complete once the reader has returned `None`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TraceNotes {
    /// The format it was read as.
    pub format: &'static str,
    /// How the file was packed: `plain`, `gzip` …
    pub compression: &'static str,
    /// Other formats that the content fits as well.
    pub also_fits: Vec<&'static str>,
    /// Remarks that are not counts: ambiguity, time resolution …
    pub remarks: Vec<String>,
    /// Lines taken.
    pub lines: u64,
    /// Requests that the lines held.
    pub requests: u64,
    /// Requests handed out, before those split by a remap.
    pub delivered: u64,
    /// Lines without a request of their own: headers, comments, events of another kind.
    pub other_lines: u64,
    /// Pass-through commands (blkparse), which address no data.
    pub passthrough: u64,
    /// Bad lines that `lenient` skipped, by kind.
    pub skipped: BTreeMap<FaultKind, Skipped>,
    /// Why the first of them are bad, a line each.
    pub bad_lines: Vec<String>,
    /// Requests that `lenient` skipped because they fit the device under no address.
    pub beyond_device: u64,
    /// Requests before the start of the clip.
    pub clipped: u64,
    /// Whether all streams are put on one device as they are, with the same addresses.
    pub one_device: bool,
    /// Requests moved to another address.
    pub remapped: u64,
    /// Requests of which `compact` cut a part off or apart: their regions do not lie side by side.
    pub split: u64,
    /// Trims of regions that no request had touched, dropped by `compact`.
    pub trims_of_nothing: u64,
    /// Requests that come after a later one in the file.
    pub unsorted: u64,
    /// How much earlier such a request is than one before it, at most, in picoseconds.
    pub lateness_ps: u128,
    /// A sort window that puts everything read so far in order; zero if it was in order.
    pub sort_window_needed: u64,
    /// Requests whose times are negative.
    pub negative: u64,
    /// How often a clock of 32 bits began again at zero.
    pub wraps: u64,
    /// How long it takes to, in picoseconds.
    pub wraps_after_ps: u128,
    /// Late requests that `lenient` moved to the time of the request before.
    pub clamped: u64,
    /// Requests that are later than the sort window reaches, where no time is used.
    pub taken_late: u64,
    /// The streams by flow number.
    pub flows: FlowNames,
}

/// Bad lines of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Skipped {
    /// How many.
    pub count: u64,
    /// Number of the first, counted from one.
    pub first_line: u64,
}

impl TraceNotes {
    /// Counts a bad line.
    pub(crate) fn skip(&mut self, kind: FaultKind, line: u64) {
        self.skipped.entry(kind).or_insert(Skipped { count: 0, first_line: line }).count += 1;
    }
    /// Notes something once.
    pub(crate) fn remark(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Everything a user must know, a sentence each.
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
