//! CSV whose header names each column with its unit: the way in for any other trace, and nandscape's own text form.

use config::{Diagnostic, Place};
use proto::IoOp;

use crate::trace::fault::{Fault, FaultKind};
use crate::trace::field::{Field, Fields};
use crate::trace::format::blkparse::Flags;
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, Settings, any_request, ops};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "csv",
        title: "CSV with a header that names the units",
        record: "time_UNIT,flow,op,offset_UNIT,size_UNIT[,fua]",
        units: "columns in any order: time_s|ms|us|100ns|ns|ps (decimals allowed); offset_bytes or lba_N and size_bytes \
                or size_N in blocks of N bytes; op R, W, trim, zeroes, flush; flow|device|disk|volume|host, fua (0, 1) and \
                response_UNIT may be missing; --columns says what the columns of a table without such a header are",
        example: "time_us,flow,op,offset_bytes,size_bytes,fua\n0,sda,R,61440,4096,0\n12.5,sda,W,1048576,8192,1\n",
        source: "nandscape",
        time_unit: None,
        sector: None,
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: false,
    },
    parser: |settings| Box::new(Parser::new(settings)),
    plausible: any_request,
    framing: Framing::Lines,
    separator: Some(b','),
};

struct Parser {
    columns: Option<Columns>,
    /// Whether the user has named the columns, and no line has been seen.
    may_be_header: bool,
}

impl Parser {
    fn new(settings: &Settings<'_>) -> Parser {
        let given = Columns::given(settings.exponent, settings.sector);
        // What is wrong with them has been said by `check`.
        let columns = settings.columns.and_then(|text| given.named(text).ok());
        Parser { may_be_header: columns.is_some(), columns }
    }
}

/// Refuses columns that name no table of requests.
///
/// # Errors
/// A word that names no column, with the nearest; one that is missing or there twice.
pub(super) fn check(columns: &str) -> Result<(), Diagnostic> {
    Columns::given(0, 1).named(columns).map(drop)
}

/// What `--columns` may name.
const WORDS: [&str; 18] = [
    "time",
    "time_s",
    "time_ms",
    "time_us",
    "time_100ns",
    "time_ns",
    "op",
    "op_0r",
    "op_1r",
    "offset",
    "offset_bytes",
    "lba",
    "lba_4096",
    "size",
    "size_512",
    "flow",
    "response_us",
    "-",
];

/// More columns than any header has; a longer one is no header.
const MAX_COLUMNS: usize = 64;

/// What each column of the file is.
struct Columns {
    roles: Vec<Role>,
    exponent: u32,
    response_exponent: u32,
    offset_unit: u64,
    size_unit: u64,
    /// Bytes of an address unit that has no name.
    sector: u64,
    /// How operations are called.
    codes: Codes,
}

/// How operations are called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Codes {
    Words,
    /// 0 = read, 1 = write.
    ZeroIsRead,
    /// 1 = read, 0 = write.
    OneIsRead,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Time,
    Flow,
    Op,
    Offset,
    Size,
    Fua,
    Response,
    Ignored,
}

const NEEDED: [(Role, &str); 4] = [
    (Role::Time, "header with a column time_s, time_ms, time_us, time_100ns, time_ns or time_ps"),
    (Role::Op, "header with a column op"),
    (Role::Offset, "header with a column offset_bytes or lba_512"),
    (Role::Size, "header with a column size_bytes or size_512"),
];

impl Columns {
    /// No columns yet; times and addresses of those without a unit have these.
    fn given(exponent: u32, sector: u64) -> Columns {
        let (roles, codes) = (Vec::new(), Codes::Words);
        Columns { roles, exponent, response_exponent: 6, offset_unit: 1, size_unit: 1, sector, codes }
    }

    /// The columns that a user names.
    fn named(mut self, text: &str) -> Result<Columns, Diagnostic> {
        let refused = |what: String, word: &str| {
            let help = "--columns names them from left to right: time,op,offset,size; `-` passes over one; units as time_us, lba_512, size_512";
            let place = Place { source: "--columns".to_owned(), text: text.to_owned(), ..Place::default() };
            Err(Diagnostic::new(what).at(place).allowed(word, WORDS).help(help))
        };
        for word in text.split([',', ';', ' ', '\t']).filter(|word| !word.is_empty()) {
            let name = word.to_ascii_lowercase();
            let field = Field { text: word.as_bytes(), name: "column", at: 0 };
            let role = match name.as_str() {
                "-" | "_" => Ok(Role::Ignored),
                "time" | "timestamp" => Ok(Role::Time),
                "offset" => Ok(Role::Offset),
                "size" | "length" | "bytes" => Ok(Role::Size),
                "lba" | "sector" => {
                    self.offset_unit = self.sector;
                    Ok(Role::Offset)
                }
                "sectors" => {
                    self.size_unit = self.sector;
                    Ok(Role::Size)
                }
                other => self.role(other, field),
            };
            match role {
                Ok(Role::Ignored) if !matches!(word, "-" | "_") => {
                    return refused(format!("no column `{word}`"), word);
                }
                Ok(role) if role != Role::Ignored && self.roles.contains(&role) => {
                    return refused(format!("the column `{word}` says what another one says"), word);
                }
                Ok(role) => self.roles.push(role),
                Err(_) => return refused(format!("no column `{word}`"), word),
            }
        }
        let missing =
            [(Role::Time, "time"), (Role::Op, "op"), (Role::Offset, "offset"), (Role::Size, "size")];
        match missing.iter().find(|(role, _)| !self.roles.contains(role)) {
            Some((_, name)) => refused(format!("no column is the {name}"), name),
            None => Ok(self),
        }
    }

    fn read(line: &[u8], sheet: &mut Sheet) -> Result<Columns, Fault> {
        let mut columns = Columns::given(0, 1);
        let mut fields = Fields::commas(line);
        let mut ignored = Vec::new();
        while let Some(field) = fields.optional("column") {
            if columns.roles.len() == MAX_COLUMNS {
                return Err(field.fault(FaultKind::ExtraField, "up to 64 columns"));
            }
            let name = field.text.to_ascii_lowercase();
            let role = columns.role(&String::from_utf8_lossy(&name), field)?;
            if role != Role::Ignored && columns.roles.contains(&role) {
                return Err(field.fault(FaultKind::UnknownWord, "one column of each meaning"));
            }
            if role == Role::Ignored {
                ignored.push(crate::trace::fault::shown(field.text, 40));
            }
            columns.roles.push(role);
        }
        for (role, missing) in NEEDED {
            if !columns.roles.contains(&role) {
                return Err(Fault::line(FaultKind::BadHeader, missing, ""));
            }
        }
        if !ignored.is_empty() {
            sheet.notes.remark(format!("columns without a meaning here are ignored: {}", ignored.join(", ")));
        }
        Ok(columns)
    }

    fn role(&mut self, name: &str, field: Field<'_>) -> Result<Role, Fault> {
        let role = match name {
            "flow" | "device" | "disk" | "volume" | "host" => Role::Flow,
            "op" => Role::Op,
            "op_0r" | "op_1r" => {
                self.codes = if name == "op_0r" { Codes::ZeroIsRead } else { Codes::OneIsRead };
                Role::Op
            }
            "fua" => Role::Fua,
            "offset_bytes" => Role::Offset,
            "size_bytes" => Role::Size,
            _ if name.starts_with("time_") => {
                const UNITS: &str = "time_s, time_ms, time_us, time_100ns, time_ns, time_ps";
                let unit: TimeUnit =
                    name["time_".len()..].parse().map_err(|_| field.fault(FaultKind::UnknownWord, UNITS))?;
                self.exponent = unit.exponent();
                Role::Time
            }
            _ if name.starts_with("response_") => {
                const UNITS: &str =
                    "response_s, response_ms, response_us, response_100ns, response_ns, response_ps";
                let unit = name["response_".len()..].parse::<TimeUnit>();
                self.response_exponent =
                    unit.map_err(|_| field.fault(FaultKind::UnknownWord, UNITS))?.exponent();
                Role::Response
            }
            _ if name.starts_with("lba_") => {
                self.offset_unit = block(&name["lba_".len()..], field)?;
                Role::Offset
            }
            _ if name.starts_with("size_") => {
                self.size_unit = block(&name["size_".len()..], field)?;
                Role::Size
            }
            _ => Role::Ignored,
        };
        Ok(role)
    }
}

fn block(text: &str, field: Field<'_>) -> Result<u64, Fault> {
    let size = text.parse().ok().filter(|size| (1..=1 << 20).contains(size));
    size.ok_or(field.fault(
        FaultKind::UnknownWord,
        "offset_bytes, lba_512, size_bytes, size_512: any block of 1 B to 1 MiB",
    ))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let Some(columns) = &self.columns else {
            self.columns = Some(Columns::read(line, sheet)?);
            return Ok(());
        };
        let may_be_header = std::mem::take(&mut self.may_be_header);
        let empty = |name| Field { text: b"", name, at: 0 };
        let (mut time, mut op, mut offset, mut size) =
            (empty("time"), empty("op"), empty("offset"), empty("size"));
        let (mut flow, mut fua) = (Field { text: b"trace", name: "flow", at: 0 }, None);
        let mut response = None;
        let mut fields = Fields::commas(line);
        for role in &columns.roles {
            match role {
                Role::Time => time = fields.next("time")?,
                Role::Flow => flow = fields.next("flow")?,
                Role::Op => op = fields.next("op")?,
                Role::Offset => offset = fields.next("offset")?,
                Role::Size => size = fields.next("size")?,
                Role::Fua => fua = Some(fields.next("fua")?),
                Role::Response => response = Some(fields.next("response")?),
                Role::Ignored => {
                    fields.next("ignored column")?;
                }
            }
        }
        fields.end()?;
        let at = match time.decimal_time(columns.exponent) {
            Err(_) if may_be_header && !time.text.iter().any(u8::is_ascii_digit) => {
                sheet.notes.remark("the first line is taken for a header".to_owned());
                return Ok(());
            }
            at => at?,
        };
        let (op, forced) = columns.operation(op)?;
        let fua = fua.map_or(Ok(false), flag)? || forced;
        let units = (number(offset)?, columns.offset_unit, number(size)?, columns.size_unit);
        let of_size = size.fault(FaultKind::TooLarge, "");
        let extent = Extent::of(op, units, offset.fault(FaultKind::TooLarge, ""), of_size)?;
        let took = response.filter(|field| !field.text.is_empty());
        let took = took.map_or(Ok(0), |field| field.decimal_time(columns.response_exponent))?;
        let flow = sheet.flow(flow)?;
        sheet.request(at, op, extent, flow, fua);
        sheet.responded(took);
        Ok(())
    }
}

/// A whole number, in hexadecimal behind `0x`.
fn number(field: Field<'_>) -> Result<u64, Fault> {
    if field.text.starts_with(b"0x") { field.hexadecimal() } else { field.integer() }
}

impl Columns {
    /// The operation, and whether it is written through.
    fn operation(&self, field: Field<'_>) -> Result<(IoOp, bool), Fault> {
        match self.codes {
            Codes::ZeroIsRead => ops::zero_is_read(field).map(|op| (op, false)),
            Codes::OneIsRead => ops::one_is_read(field).map(|op| (op, false)),
            // What is no word may be letters of the kernel: RA, WS, WFS, D, FN.
            Codes::Words => operation(field).map(|op| (op, false)).or_else(|fault| {
                let flags = Flags::read(field).map_err(|_| fault)?;
                let op = flags.op.or(flags.flush.then_some(IoOp::Flush)).ok_or(fault)?;
                Ok((op, flags.fua))
            }),
        }
    }
}

fn flag(field: Field<'_>) -> Result<bool, Fault> {
    match field.text {
        b"0" | b"" => Ok(false),
        b"1" => Ok(true),
        _ => Err(field.fault(FaultKind::UnknownWord, "0, 1")),
    }
}

fn operation(field: Field<'_>) -> Result<IoOp, Fault> {
    const WORDS: [(&[u8], IoOp); 11] = [
        (b"R", IoOp::Read),
        (b"W", IoOp::Write),
        (b"read", IoOp::Read),
        (b"write", IoOp::Write),
        (b"trim", IoOp::Trim),
        (b"discard", IoOp::Trim),
        (b"T", IoOp::Trim),
        (b"D", IoOp::Trim),
        (b"zeroes", IoOp::WriteZeroes),
        (b"flush", IoOp::Flush),
        (b"sync", IoOp::Flush),
    ];
    let found = WORDS.iter().find(|(word, _)| field.text.eq_ignore_ascii_case(word));
    found.map(|(_, op)| *op).ok_or(
        field.fault(
            FaultKind::UnknownOperation,
            "R, W, read, write, trim, discard, T, D, zeroes, flush, sync",
        ),
    )
}
