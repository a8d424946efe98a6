//! Trace formats: one file each, and one line in [`FORMATS`], from which detection, the names of `--format`, the
//! documentation and the contract test follow. This file also has the codes of operations, and formats whose lines
//! are self-contained.

mod alibaba;
mod arc;
mod baleen;
mod biosnoop;
mod blkparse;
mod blocks;
mod cachelib;
mod cloudphysics;
pub(crate) mod columns;
mod disksim;
mod etw;
mod femu;
mod fiu;
mod ftrace;
mod ibmcos;
mod iolog;
mod iolog1;
mod iosnoop;
mod kvcache;
mod mqsim;
mod msr;
mod oracle;
mod spc;
mod srt;
mod systor17;
mod tencent;
mod vscsi;

use config::Diagnostic;
use serde::Serialize;

use crate::trace::options::{Action, TimeUnit, TraceOptions};
use crate::trace::record::{Fault, FaultKind, RawRequest, Sheet};
use crate::trace::{detect::Translation, field::Field};
use proto::IoOp;

/// All formats. Content that fits several formats is read as the one with the fewest implausible requests, the first
/// among equals, with a warning.
pub(crate) static FORMATS: &[&Format] = &[
    &mqsim::FORMAT,
    &disksim::FORMAT,
    &femu::FORMAT,
    &blkparse::FORMAT,
    &iolog::V2,
    &iolog::V3,
    &msr::FORMAT,
    &systor17::FORMAT,
    &tencent::FORMAT,
    &alibaba::FORMAT,
    &cloudphysics::FORMAT,
    &spc::FORMAT,
    &fiu::FORMAT,
    &columns::FORMAT,
    &cachelib::FORMAT,
    &kvcache::FORMAT,
    &baleen::FORMAT,
    &ibmcos::FORMAT,
    &biosnoop::FORMAT,
    &iosnoop::TIMED,
    &iosnoop::UNTIMED,
    &ftrace::FORMAT,
    &etw::FORMAT,
    &iolog1::FORMAT,
    &arc::FORMAT,
    &blocks::FORMAT,
    &vscsi::V1,
    &vscsi::V2,
    &oracle::FORMAT,
    &srt::FORMAT,
];

/// Description of a format for the user.
#[derive(Clone, Debug, Serialize)]
pub struct FormatInfo {
    /// Name in `--format`.
    pub name: &'static str,
    /// Title of the format.
    pub title: &'static str,
    /// Fields of a line.
    pub record: &'static str,
    /// Units and codes of the fields.
    pub units: &'static str,
    /// Sample lines.
    pub example: &'static str,
    /// Source of the definition.
    pub source: &'static str,
    /// Unit of its times; `None` if each file has its own.
    pub time_unit: Option<TimeUnit>,
    /// Bytes per address unit; `None` if it records bytes or each file has its own.
    pub sector: Option<u64>,
    /// True if times are whole seconds, so that the requests of a second arrive at once.
    pub whole_seconds: bool,
    /// True if its streams share the addresses of one device, whatever their names.
    pub one_device: bool,
    /// True if it has an order but no times: it runs only at a queue depth.
    pub untimed: bool,
    /// True if it has binary records instead of lines; the example is then in hexadecimal.
    pub binary: bool,
}

impl FormatInfo {
    /// Returns the example as the content of a file.
    pub fn content(&self) -> Vec<u8> {
        if !self.binary {
            return self.example.as_bytes().to_vec();
        }
        let digits: Vec<u8> =
            self.example.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
    }
}

/// A format: its description and its parser.
pub(crate) struct Format {
    pub(crate) info: FormatInfo,
    /// Creates a parser for one file.
    pub(crate) parser: fn(&Settings<'_>) -> Box<dyn LineParser>,
    /// Returns true if a request could occur in a real file of this format; used only by detection.
    pub(crate) plausible: fn(&RawRequest) -> bool,
    /// Division of a file into the parser's input.
    pub(crate) framing: Framing,
    /// Separator of fields, if a different character may replace it.
    pub(crate) separator: Option<u8>,
}

/// Division of a file into the parser's input.
#[derive(Clone, Copy)]
pub(crate) enum Framing {
    /// Lines of text.
    Lines,
    /// Binary records; the function returns the length of the record that begins here, from the bytes available.
    Records(fn(&[u8]) -> usize),
}

/// Settings of a parser, known before the first line.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// Unit of the trace's time: 10^`exponent` ps.
    pub(crate) exponent: u32,
    /// Bytes per address unit.
    pub(crate) sector: u64,
    /// Event of blkparse that the user asked for.
    pub(crate) action: Option<Action>,
    /// The first bytes of the file.
    pub(crate) prefix: &'a [u8],
    /// Columns of a table, if the user names them.
    pub(crate) columns: Option<&'a str>,
    /// Separator of the fields, if it differs from the format's.
    pub(crate) translation: Option<Translation>,
    /// Unit of times given by the user.
    pub(crate) given_unit: Option<TimeUnit>,
    /// Bytes per address unit given by the user.
    pub(crate) given_sector: Option<u64>,
}

impl<'a> Settings<'a> {
    /// Returns the settings of a file of which only the beginning is known.
    pub(crate) fn of_prefix(prefix: &'a [u8]) -> Settings<'a> {
        Settings {
            exponent: TimeUnit::Second.exponent(),
            sector: 512,
            action: None,
            prefix,
            columns: None,
            translation: None,
            given_unit: None,
            given_sector: None,
        }
    }
}

/// Parser of the lines of one file, in order.
pub(crate) trait LineParser: Send {
    /// Reads a line that is neither blank nor a `#` comment, and puts its requests on the sheet.
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault>;
    /// Returns true if requests name objects instead of addresses: their sizes are arbitrary.
    fn names_objects(&self) -> bool {
        false
    }
}

/// Accepts every request as plausible.
pub(crate) fn any_request(_: &RawRequest) -> bool {
    true
}

/// Returns the formats in the order in which detection prefers them.
pub fn formats() -> impl Iterator<Item = &'static FormatInfo> {
    FORMATS.iter().map(|format| &format.info)
}

/// Returns the format called `name`, or a diagnostic with the nearest name.
pub(crate) fn named(name: &str) -> Result<&'static Format, Diagnostic> {
    FORMATS.iter().find(|format| format.info.name == name).copied().ok_or_else(|| {
        Diagnostic::new(format!("unknown trace format `{name}`"))
            .allowed(name, formats().map(|info| info.name))
            .help("`list formats` shows the record of each")
    })
}

impl Format {
    /// Returns the units of a file, the user's over the format's own; refuses an option without effect.
    pub(crate) fn settings<'a>(
        &self,
        options: &'a TraceOptions,
        prefix: &'a [u8],
    ) -> Result<Settings<'a>, Diagnostic> {
        let info = &self.info;
        let is_table = info.name == columns::FORMAT.info.name;
        let columns = options.columns.as_deref().filter(|_| is_table);
        let inert = |option: &str, why: &str| {
            Err(Diagnostic::new(format!("{option} does not apply to the format `{}`: {why}", info.name)))
        };
        if options.time_unit.is_some() && info.untimed {
            return inert("--time-unit", "it has no times");
        }
        let asked = options.time_unit.is_some() || options.sector.is_some();
        let (open_time, open_address) = if asked && is_table && columns.is_none() {
            columns::open_units(prefix)
        } else {
            (info.time_unit.is_some() || columns.is_some(), info.sector.is_some() || columns.is_some())
        };
        if options.time_unit.is_some() && !open_time {
            return inert("--time-unit", "its header names the unit");
        }
        if options.columns.is_some() && !is_table {
            return inert("--columns", "its columns are known; --format csv reads any table");
        }
        if let Some(columns) = columns {
            columns::check(columns)?;
        }
        if options.sector.is_some() && !open_address {
            return inert("--sector", "its addresses are in bytes, or its header names the unit");
        }
        if options.action.is_some() && info.name != blkparse::FORMAT.info.name {
            return inert("--action", "its lines are requests, not events");
        }
        // A table with columns named by the user has times in seconds and sectors of 512 B by default.
        let unit = options.time_unit.or(info.time_unit).unwrap_or(TimeUnit::Second);
        let sector = options.sector.or(info.sector).unwrap_or(512);
        Ok(Settings {
            exponent: unit.exponent(),
            sector,
            action: options.action,
            columns,
            given_unit: options.time_unit,
            given_sector: options.sector,
            ..Settings::of_prefix(prefix)
        })
    }
}

/// Returns true if a line is a header of `names`, of which all but the first may be missing. Headers are accepted
/// even in formats that usually have none, because spreadsheets and data frames add one. Other names are a different
/// table.
pub(crate) fn is_header(line: &[u8], names: &str) -> bool {
    let plain = |name: &[u8]| -> Vec<u8> {
        name.iter().filter(|b| b.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect()
    };
    let all: Vec<Vec<u8>> = names.split([',', ' ']).map(|name| plain(name.as_bytes())).collect();
    let given: Vec<Vec<u8>> = line.split(|b| *b == b',').map(plain).collect();
    let mut known = all.iter();
    // A few of them could be the header of anything.
    given.len() * 5 > all.len() * 3
        && given.first() == all.first()
        && given.iter().all(|name| known.any(|known| known == name))
}

// Formats whose lines are self-contained, except for an optional header at the start.

/// Units of a file.
#[derive(Clone, Copy)]
pub(crate) struct Units {
    /// Unit of its times: 10^`exponent` ps.
    pub(crate) exponent: u32,
    /// Bytes per address unit.
    pub(crate) sector: u64,
}

/// Reads a line and puts its requests on the sheet.
pub(crate) type ParseLine = fn(&[u8], Units, &mut Sheet) -> Result<(), Fault>;

struct PlainLines {
    units: Units,
    /// Columns of the header, until the first line has been read.
    header: Option<&'static str>,
    parse: ParseLine,
}

/// Creates a parser that reads line by line with `parse`; the first line may be a header of the columns `header`.
pub(crate) fn plain(
    settings: &Settings<'_>,
    header: Option<&'static str>,
    parse: ParseLine,
) -> Box<dyn LineParser> {
    let units = Units { exponent: settings.exponent, sector: settings.sector };
    Box::new(PlainLines { units, header, parse })
}

impl LineParser for PlainLines {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        match self.header.take() {
            Some(header) if is_header(line, header) => Ok(()),
            _ => (self.parse)(line, self.units, sheet),
        }
    }
}

// Operation codes of formats. They contradict each other, so each format names its own.

/// Reads 1 as a read, 0 as a write (MQSim, FEMU).
pub(crate) fn one_is_read(field: Field<'_>) -> Result<IoOp, Fault> {
    match field.text {
        b"1" => Ok(IoOp::Read),
        b"0" => Ok(IoOp::Write),
        _ => Err(field.fault(FaultKind::UnknownOperation, "1 (read), 0 (write)")),
    }
}

/// Reads 0 as a read, 1 as a write (Tencent).
pub(crate) fn zero_is_read(field: Field<'_>) -> Result<IoOp, Fault> {
    match field.text {
        b"0" => Ok(IoOp::Read),
        b"1" => Ok(IoOp::Write),
        _ => Err(field.fault(FaultKind::UnknownOperation, "0 (read), 1 (write)")),
    }
}

/// Reads `R` or `W`, in either case.
pub(crate) fn operation_by_letter(field: Field<'_>) -> Result<IoOp, Fault> {
    match field.text {
        b"R" | b"r" => Ok(IoOp::Read),
        b"W" | b"w" => Ok(IoOp::Write),
        _ => Err(field.fault(FaultKind::UnknownOperation, "R (read), W (write)")),
    }
}

/// Returns the operation of a SCSI block command (SBC-4, table of operation codes).
pub(crate) fn operation_by_scsi_code(opcode: u64) -> Option<IoOp> {
    match opcode {
        // READ(6), (10), (12), (16)
        0x08 | 0x28 | 0xa8 | 0x88 => Some(IoOp::Read),
        // WRITE(6), (10), (12), (16); WRITE AND VERIFY(10), (12), (16)
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Some(IoOp::Write),
        // UNMAP
        0x42 => Some(IoOp::Trim),
        // WRITE SAME(10), (16)
        0x41 | 0x93 => Some(IoOp::WriteZeroes),
        // SYNCHRONIZE CACHE(10), (16)
        0x35 | 0x91 => Some(IoOp::Flush),
        _ => None,
    }
}

/// Codes known to [`operation_by_scsi_code`].
pub(crate) const SCSI_CODES: &str =
    "reads 08 28 88 a8, writes 0a 2a 8a aa 2e 8e ae, unmap 42, write same 41 93, synchronize 35 91";
