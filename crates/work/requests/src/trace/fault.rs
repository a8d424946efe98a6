//! What can be wrong with one line.

use config::{Diagnostic, Place};
use serde::Serialize;
use text::shown;

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
                format!("the {} is more than 1 GiB: `{given}`; the unit must be wrong", self.field)
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
            "a line of `{format}` is `{record}`; --format chooses another format, --lenient skips and counts bad lines"
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
