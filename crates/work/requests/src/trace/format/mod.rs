//! The formats: one file each, and one line in [`FORMATS`], which makes detection, the names of `--format`, the
//! documentation and the contract test. Here besides: codes of operations, and lines that say all there is to say.

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

/// Every format. Content that fits several is read as the one that has the fewest implausible
/// requests, the first among equals, with a warning.
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

/// What a user should know of a format.
#[derive(Clone, Debug, Serialize)]
pub struct FormatInfo {
    /// What `--format` calls it.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The fields of a line.
    pub record: &'static str,
    /// Units and codes of the fields.
    pub units: &'static str,
    /// Lines of it.
    pub example: &'static str,
    /// Where the definition stands.
    pub source: &'static str,
    /// Unit of its times; `None` if each file says its own.
    pub time_unit: Option<TimeUnit>,
    /// Bytes per address unit; `None` if it records bytes or each file says its own.
    pub sector: Option<u64>,
    /// Whether times are whole seconds, so that the requests of a second arrive at once.
    pub whole_seconds: bool,
    /// Whether its streams share the addresses of one device, whatever their names.
    pub one_device: bool,
    /// Whether it has an order and no times: it runs at a queue depth alone.
    pub untimed: bool,
    /// Whether it has records of bytes and no lines; the example is then in hexadecimal.
    pub binary: bool,
}

impl FormatInfo {
    /// The example as a file has it.
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
    /// A parser for one file.
    pub(crate) parser: fn(&Settings<'_>) -> Box<dyn LineParser>,
    /// Whether a request could stand in a real file of this format; only detection asks.
    pub(crate) plausible: fn(&RawRequest) -> bool,
    /// How a file is cut into what the parser takes.
    pub(crate) framing: Framing,
    /// What stands between two fields, if another character may stand there as well.
    pub(crate) separator: Option<u8>,
}

/// How a file is cut into what a parser takes at a time.
#[derive(Clone, Copy)]
pub(crate) enum Framing {
    /// Into lines of text.
    Lines,
    /// Into records of bytes: how long the one is that begins here, of what is there of it and behind it.
    Records(fn(&[u8]) -> usize),
}

/// What a parser needs to know before the first line.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// A unit of the trace's time is 10^`exponent` ps.
    pub(crate) exponent: u32,
    /// Bytes per address unit.
    pub(crate) sector: u64,
    /// The blkparse event that the user asked for.
    pub(crate) action: Option<Action>,
    /// The first bytes of the file.
    pub(crate) prefix: &'a [u8],
    /// What the columns of a table are, if the user says so.
    pub(crate) columns: Option<&'a str>,
    /// What separates the fields, if it is not the format's own character.
    pub(crate) translation: Option<Translation>,
    /// The unit of times that the user says.
    pub(crate) given_unit: Option<TimeUnit>,
    /// Bytes per address unit that the user says.
    pub(crate) given_sector: Option<u64>,
}

impl<'a> Settings<'a> {
    /// Those of a file of which only the beginning is known.
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

/// Reads the lines of one file in their order.
pub(crate) trait LineParser: Send {
    /// Reads a line that is neither blank nor a `#` comment; puts its requests on the sheet.
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault>;
    /// Whether requests name objects instead of addresses: their sizes are any.
    fn names_objects(&self) -> bool {
        false
    }
}

/// Every request is plausible.
pub(crate) fn any_request(_: &RawRequest) -> bool {
    true
}

/// The formats in the order in which detection prefers them.
pub fn formats() -> impl Iterator<Item = &'static FormatInfo> {
    FORMATS.iter().map(|format| &format.info)
}

/// The format called `name`, or a diagnostic with the nearest name.
pub(crate) fn named(name: &str) -> Result<&'static Format, Diagnostic> {
    FORMATS.iter().find(|format| format.info.name == name).copied().ok_or_else(|| {
        Diagnostic::new(format!("unknown trace format `{name}`"))
            .allowed(name, formats().map(|info| info.name))
            .help("`list formats` shows the record of each")
    })
}

impl Format {
    /// The units of a file, the user's over the format's own; refuses an option that would change nothing.
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
        // A table whose columns the user names has times in seconds and sectors of 512 B, unless the user says more.
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

/// Whether a line is a header of `names`, some of which may be missing but the first; a header is accepted in a file that has none as
/// a rule, because spreadsheets and data frames add one. Other names are another table.
pub(crate) fn is_header(line: &[u8], names: &str) -> bool {
    let plain = |name: &[u8]| -> Vec<u8> {
        name.iter().filter(|b| b.is_ascii_alphanumeric()).map(u8::to_ascii_lowercase).collect()
    };
    let all: Vec<Vec<u8>> = names.split([',', ' ']).map(|name| plain(name.as_bytes())).collect();
    let given: Vec<Vec<u8>> = line.split(|b| *b == b',').map(plain).collect();
    let mut known = all.iter();
    // A few of them may be the header of anything.
    given.len() * 5 > all.len() * 3
        && given.first() == all.first()
        && given.iter().all(|name| known.any(|known| known == name))
}

// Formats whose lines say all there is to say, but for a header that may come first.

/// Units of a file.
#[derive(Clone, Copy)]
pub(crate) struct Units {
    /// A unit of its times is 10^`exponent` ps.
    pub(crate) exponent: u32,
    /// Bytes of an address unit.
    pub(crate) sector: u64,
}

/// Reads a line and puts its requests on the sheet.
pub(crate) type ParseLine = fn(&[u8], Units, &mut Sheet) -> Result<(), Fault>;

struct PlainLines {
    units: Units,
    /// Columns of the header, until the first line has been seen.
    header: Option<&'static str>,
    parse: ParseLine,
}

/// A parser that reads line by line with `parse`; the first line may be a header of the columns `header`.
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

// The codes that formats use for operations. They contradict each other: that is why each format names its own.

/// 1 is a read, 0 a write (MQSim, FEMU).
pub(crate) fn one_is_read(field: Field<'_>) -> Result<IoOp, Fault> {
    match field.text {
        b"1" => Ok(IoOp::Read),
        b"0" => Ok(IoOp::Write),
        _ => Err(field.fault(FaultKind::UnknownOperation, "1 (read), 0 (write)")),
    }
}

/// 0 is a read, 1 a write (Tencent).
pub(crate) fn zero_is_read(field: Field<'_>) -> Result<IoOp, Fault> {
    match field.text {
        b"0" => Ok(IoOp::Read),
        b"1" => Ok(IoOp::Write),
        _ => Err(field.fault(FaultKind::UnknownOperation, "0 (read), 1 (write)")),
    }
}

/// `R` or `W`, in either case.
pub(crate) fn operation_by_letter(field: Field<'_>) -> Result<IoOp, Fault> {
    match field.text {
        b"R" | b"r" => Ok(IoOp::Read),
        b"W" | b"w" => Ok(IoOp::Write),
        _ => Err(field.fault(FaultKind::UnknownOperation, "R (read), W (write)")),
    }
}

/// The operation of a SCSI block command (SBC-4, table of operation codes).
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

/// What [`operation_by_scsi_code`] knows.
pub(crate) const SCSI_CODES: &str =
    "reads 08 28 88 a8, writes 0a 2a 8a aa 2e 8e ae, unmap 42, write same 41 93, synchronize 35 91";
