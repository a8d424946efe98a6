//! Columns of a table, by its header or by the user, and its names for operations.

use config::{Diagnostic, Place};
use text::shown;

use crate::trace::format::columns::names::{Role, Unit, meaning};
use crate::trace::format::{Settings, blkparse::Flags};
use crate::trace::options::TimeUnit;
use crate::trace::{
    field::Field,
    record::{Fault, FaultKind},
};
use proto::IoOp;

/// Maximum number of columns of a header; a longer line is not a header.
const MAX_COLUMNS: usize = 64;

/// Words allowed in `--columns`.
const WORDS: [&str; 19] = [
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
    "key",
    "size",
    "size_512",
    "flow",
    "response_us",
    "-",
];

/// Roles of a file's columns.
pub(super) struct Table {
    pub(super) roles: Vec<Role>,
    pub(super) exponent: u32,
    pub(super) response_exponent: u32,
    pub(super) offset_unit: u64,
    pub(super) size_unit: u64,
    /// Names of operations.
    pub(super) codes: Codes,
    /// Remarks on what was guessed or left out.
    pub(super) remarks: Vec<String>,
}

/// Reason why a header does not describe a table of requests.
#[derive(Debug)]
pub(super) enum Problem {
    /// Too few of its words name a column: it is not a header.
    NoHeader,
    Missing(&'static str),
    Twice(String, String),
    /// The operations are numbers, and the header does not say which is a read.
    Codes(String),
}

impl Problem {
    pub(super) fn fault(&self) -> Fault {
        let field = match self {
            Problem::NoHeader => "header of a table: time_us,op,offset_bytes,size_bytes",
            Problem::Missing(what) => return Fault::line(FaultKind::BadHeader, missing(what), ""),
            Problem::Twice(..) => "header of a table with one column of each meaning",
            Problem::Codes(_) => "header of a table that says which code is a read: op_0r, op_1r, is_write",
        };
        Fault::line(FaultKind::BadHeader, field, "")
    }

    fn text(&self) -> String {
        match self {
            Problem::NoHeader => "it names no columns".to_owned(),
            Problem::Missing(what) => format!("no column gives the {what}"),
            Problem::Twice(one, two) => format!("`{one}` and `{two}` have the same meaning"),
            Problem::Codes(name) => {
                format!("`{name}` has codes, but the header does not say which one is a read")
            }
        }
    }
}

fn missing(what: &str) -> &'static str {
    match what {
        "time" => "header with a column of times (time_s, time_ms, time_us, time_100ns, time_ns, timestamp)",
        "operation" => "header with a column op",
        "size" => "header with a column of sizes (size_bytes, size_512, nblocks)",
        _ => "header with a column of addresses (offset_bytes, lba_512, key)",
    }
}

/// Column of a header.
struct Column {
    name: String,
    role: Role,
    unit: Unit,
}

/// Splits a header into fields; a comma in brackets does not separate.
fn fields(header: &[u8]) -> Vec<String> {
    let text = header.strip_prefix(b"#").unwrap_or(header);
    let (mut depth, mut fields) = (0_u32, vec![Vec::new()]);
    for byte in text {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                fields.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if let Some(field) = fields.last_mut() {
            field.push(*byte);
        }
    }
    fields.iter().map(|field| shown(field.trim_ascii(), 80)).collect()
}

fn columns(header: &[u8]) -> Vec<(Column, Option<Codes>)> {
    let of = |name: String| {
        let meaning = meaning(&name);
        (Column { name, role: meaning.role, unit: meaning.unit }, meaning.codes)
    };
    fields(header).into_iter().take(MAX_COLUMNS + 1).map(of).collect()
}

/// Roles that identify a header: one of each, with a key as an offset.
const NEEDED: [(&[Role], &str); 4] = [
    (&[Role::Time], "time"),
    (&[Role::Op], "operation"),
    (&[Role::Offset, Role::Key], "address"),
    (&[Role::Size], "size"),
];

/// Returns how many of the needed columns a header names; zero if it contains a number.
fn named(columns: &[(Column, Option<Codes>)]) -> usize {
    let is_number = |name: &str| name.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+'));
    if columns.iter().any(|(column, _)| !column.name.is_empty() && is_number(&column.name)) {
        return 0;
    }
    NEEDED.iter().filter(|(roles, _)| columns.iter().any(|(column, _)| roles.contains(&column.role))).count()
}

impl Table {
    fn new() -> Table {
        Table {
            roles: Vec::new(),
            exponent: TimeUnit::Second.exponent(),
            response_exponent: TimeUnit::Microsecond.exponent(),
            offset_unit: 1,
            size_unit: 1,
            codes: Codes::Words,
            remarks: Vec::new(),
        }
    }

    /// Builds a table from columns named by the user; times and addresses without a unit have those of the settings.
    pub(super) fn given(text: &str, exponent: u32, sector: u64) -> Result<Table, Diagnostic> {
        let refused = |what: String, word: &str| {
            let help = "--columns names them from left to right: time,op,offset,size; `-` skips one; units as time_us, lba_512, size_512; \
                        key for objects";
            let place = Place { source: "--columns".to_owned(), text: text.to_owned(), ..Place::default() };
            Err(Diagnostic::new(what).at(place).allowed(word, WORDS).help(help))
        };
        let mut table = Table { exponent, ..Table::new() };
        for word in text.split([',', ';', ' ', '\t']).filter(|word| !word.is_empty()) {
            let said = meaning(word);
            let passed = matches!(word, "-" | "_");
            if said.role == Role::Ignored && !passed {
                return refused(format!("no column `{word}`"), word);
            }
            let twice = table.roles.contains(&said.role) && !matches!(said.role, Role::Ignored | Role::Flow);
            if twice {
                return refused(format!("the column `{word}` duplicates another one"), word);
            }
            table.take(said.role, said.unit, sector);
            table.codes = said.codes.unwrap_or(table.codes);
        }
        let lacks = NEEDED.iter().find(|(roles, _)| !roles.iter().any(|role| table.roles.contains(role)));
        match lacks {
            Some((_, "address")) => refused("no column gives the offset".to_owned(), "offset"),
            Some((_, "operation")) => refused("no column gives the op".to_owned(), "op"),
            Some((_, name)) => refused(format!("no column gives the {name}"), name),
            None => Ok(table),
        }
    }

    /// Adopts the codes of a header in a comment, unless the user gives some.
    pub(super) fn adopt_codes(&mut self, said: Table) {
        if self.codes == Codes::Words {
            self.codes = said.codes;
        }
    }

    fn take(&mut self, role: Role, unit: Unit, sector: u64) {
        let bytes = match unit {
            Unit::Bytes(bytes) => bytes,
            Unit::Sectors => sector,
            _ => 1,
        };
        match (role, unit) {
            (Role::Time, Unit::Time(exponent)) => self.exponent = exponent,
            (Role::Response, Unit::Time(exponent)) => self.response_exponent = exponent,
            (Role::Offset, _) => self.offset_unit = bytes,
            (Role::Size, _) => self.size_unit = bytes,
            _ => {}
        }
        self.roles.push(role);
    }

    /// Builds the table that `header` names; `rows` after it supply what it leaves open.
    pub(super) fn of_header(
        header: &[u8],
        rows: &[Vec<u8>],
        settings: &Settings<'_>,
    ) -> Result<Table, Problem> {
        let mut columns = columns(header);
        if columns.len() > MAX_COLUMNS || named(&columns) < 2 {
            return Err(Problem::NoHeader);
        }
        let is = |role: Role| move |(column, _): &&(Column, _)| column.role == role;
        // An offset locates a request; a key beside it is a name.
        let has_offset = columns.iter().any(|column| is(Role::Offset)(&column));
        for (column, _) in &mut columns {
            if column.role == Role::Key && has_offset {
                column.role = Role::Ignored;
            }
        }
        for (roles, name) in NEEDED {
            let mut found = columns.iter().filter(|(column, _)| roles.contains(&column.role));
            match (found.next(), found.next()) {
                (None, _) => return Err(Problem::Missing(name)),
                (Some((one, _)), Some((two, _))) => {
                    return Err(Problem::Twice(one.name.clone(), two.name.clone()));
                }
                _ => {}
            }
        }
        let sector = settings.given_sector.unwrap_or(512);
        let mut table = Table::new();
        let mut ignored = Vec::new();
        for (at, (column, codes)) in columns.iter().enumerate() {
            let twice =
                matches!(column.role, Role::Response | Role::Fua) && table.roles.contains(&column.role);
            let role = if twice { Role::Ignored } else { column.role };
            table.take(role, column.unit, sector);
            if role == Role::Ignored {
                ignored.push(shown(column.name.as_bytes(), 40));
            }
            if role == Role::Op {
                table.codes = codes.clone().unwrap_or(Codes::Words);
                if table.codes == Codes::Words && super::has_codes(rows, at) {
                    return Err(Problem::Codes(column.name.clone()));
                }
            }
        }
        table.time_unit(&columns, rows, settings);
        table.sectors(&columns, rows, settings);
        if !ignored.is_empty() {
            table.remarks.push(format!("unknown columns are ignored: {}", ignored.join(", ")));
        }
        Ok(table)
    }

    /// Infers the unit of the times, if the header does not give it.
    fn time_unit(&mut self, columns: &[(Column, Option<Codes>)], rows: &[Vec<u8>], settings: &Settings<'_>) {
        let found = columns.iter().enumerate().find(|(_, (column, _))| column.role == Role::Time);
        if let Some((at, (column, _))) = found.filter(|(_, (column, _))| column.unit == Unit::Unsaid) {
            self.exponent = settings.given_unit.map_or_else(
                || {
                    let (unit, remark) = super::time_unit(rows, at, &column.name);
                    self.remarks.push(remark);
                    unit.exponent()
                },
                TimeUnit::exponent,
            );
        }
        let response = columns.iter().find(|(column, _)| column.role == Role::Response);
        if let Some((column, _)) = response.filter(|(column, _)| column.unit == Unit::Unsaid) {
            self.response_exponent = self.exponent;
            self.remarks.push(format!("assuming that `{}` has the unit of the times", column.name));
        }
    }

    /// Infers the unit of addresses and sizes, if the header does not give it.
    fn sectors(&mut self, columns: &[(Column, Option<Codes>)], rows: &[Vec<u8>], settings: &Settings<'_>) {
        let sector = settings.given_sector.unwrap_or(512);
        let mut in_sectors: Vec<&str> = Vec::new();
        let of_lba =
            columns.iter().any(|(column, _)| column.role == Role::Offset && column.unit != Unit::Unsaid);
        for (at, (column, _)) in columns.iter().enumerate() {
            let moved = matches!(column.role, Role::Offset | Role::Size);
            let by_values = column.role == Role::Size
                && column.unit == Unit::Unsaid
                && of_lba
                && super::in_sectors(rows, at, sector);
            if by_values {
                self.size_unit = sector;
            }
            if moved && column.unit == Unit::Sectors || by_values {
                in_sectors.push(&column.name);
            }
        }
        if !in_sectors.is_empty() && settings.given_sector.is_none() {
            let names = in_sectors.join("` and `");
            self.remarks
                .push(format!("`{names}` count sectors of {sector} B; --sector sets a different size"));
        }
    }
}

/// Returns whether a header leaves open the unit of times, and that of addresses or sizes; `None` if it does not
/// describe a table.
pub(super) fn open_units(header: &[u8]) -> Option<(bool, bool)> {
    let columns = columns(header);
    (named(&columns) == NEEDED.len()).then(|| {
        let has = |roles: &[Role], unit: Unit| {
            columns.iter().any(|(column, _)| roles.contains(&column.role) && column.unit == unit)
        };
        let addresses = [Role::Offset, Role::Size];
        (has(&[Role::Time], Unit::Unsaid), has(&addresses, Unit::Sectors) || has(&[Role::Size], Unit::Unsaid))
    })
}

/// Returns the diagnostic of a header that names columns but does not describe a table of requests.
pub(super) fn explain(header: &[u8], rows: &[Vec<u8>], settings: &Settings<'_>) -> Option<Diagnostic> {
    let problem = Table::of_header(header, rows, settings).err()?;
    if matches!(problem, Problem::NoHeader) {
        return None;
    }
    let mut taken: Vec<Role> = Vec::new();
    let mut words = Vec::new();
    for (column, _) in columns(header) {
        let twice = taken.contains(&column.role);
        taken.push(column.role);
        words.push(match column.role {
            _ if twice => "-".to_owned(),
            Role::Time => format!("time_{}", unit_name(column.unit)),
            Role::Op if matches!(problem, Problem::Codes(_)) => "op_0r".to_owned(),
            Role::Op => "op".to_owned(),
            Role::Offset => address("offset", "lba", column.unit),
            Role::Size => address("size", "size_512", column.unit),
            Role::Key => "key".to_owned(),
            Role::Flow => "flow".to_owned(),
            Role::Fua => "fua".to_owned(),
            Role::Response | Role::Ignored => "-".to_owned(),
        });
    }
    let codes = if matches!(problem, Problem::Codes(_)) { " (0 = read; op_1r: 1 = read)" } else { "" };
    let what = format!("the table's header does not describe requests: {}", problem.text());
    let help = format!(
        "name its columns from left to right with --columns, such as {}{codes}; `-` skips one",
        words.join(",")
    );
    Some(Diagnostic::new(what).help(help))
}

fn unit_name(unit: Unit) -> &'static str {
    let all = [
        TimeUnit::Second,
        TimeUnit::Millisecond,
        TimeUnit::Filetime,
        TimeUnit::Nanosecond,
        TimeUnit::Picosecond,
    ];
    let found = all.into_iter().find(|known| unit == Unit::Time(known.exponent()));
    found.map_or("us", TimeUnit::name)
}

fn address(plain: &str, sectors: &str, unit: Unit) -> String {
    match unit {
        Unit::Sectors => sectors.to_owned(),
        Unit::Bytes(bytes) if bytes > 1 && plain == "offset" => format!("lba_{bytes}"),
        Unit::Bytes(bytes) if bytes > 1 => format!("{plain}_{bytes}"),
        _ => plain.to_owned(),
    }
}

// Names of operations in a table.

/// Naming of operations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Codes {
    Words,
    /// 0 = read, 1 = write.
    ZeroIsRead,
    /// 1 = read, 0 = write.
    OneIsRead,
    /// Names from the header; `None` moves no data.
    Legend(Vec<(String, Option<IoOp>)>),
}

/// An operation, and whether it is written through; `None` moves no data.
pub(super) type Called = (Option<IoOp>, bool);

impl Codes {
    /// Returns the operation, and whether it is written through.
    pub(super) fn operation(&self, field: Field<'_>) -> Result<Called, Fault> {
        let text = match field.text {
            text if text.eq_ignore_ascii_case(b"false") => b"0",
            text if text.eq_ignore_ascii_case(b"true") => b"1",
            text => text,
        };
        let code = Field { text, ..field };
        match self {
            Codes::ZeroIsRead => super::super::zero_is_read(code).map(|op| (Some(op), false)),
            Codes::OneIsRead => super::super::one_is_read(code).map(|op| (Some(op), false)),
            Codes::Legend(codes) => {
                let found = codes.iter().find(|(code, _)| code.as_bytes() == field.text);
                let unknown = field.fault(FaultKind::UnknownOperation, "the codes of the header");
                found.map(|(_, op)| (*op, false)).ok_or(unknown)
            }
            Codes::Words => called_by_words(field),
        }
    }
}

fn called_by_words(field: Field<'_>) -> Result<Called, Fault> {
    if let Some(op) = operation_by_word(field.text) {
        return Ok((Some(op), false));
    }
    if IDLE.iter().any(|word| field.text.eq_ignore_ascii_case(word)) {
        return Ok((None, false));
    }
    // Other text may be letters of the kernel: RA, WS, WFS, D, FN.
    let fault = field.fault(
        FaultKind::UnknownOperation,
        "R, W, read, write, trim, discard, T, D, zeroes, flush, sync, get, put, delete; op_0r and op_1r are codes",
    );
    let flags = Flags::read(field).map_err(|_| fault)?;
    let op = flags.op.or(flags.flush.then_some(IoOp::Flush)).ok_or(fault)?;
    Ok((Some(op), flags.fua))
}

/// Operations that move no data of a device.
const IDLE: [&[u8]; 5] = [b"head", b"list", b"stat", b"open", b"close"];

/// Returns the operation that a word means, in either case.
pub(super) fn operation_by_word(text: &[u8]) -> Option<IoOp> {
    const WORDS: [(&[u8], IoOp); 26] = [
        (b"R", IoOp::Read),
        (b"W", IoOp::Write),
        (b"read", IoOp::Read),
        (b"reads", IoOp::Read),
        (b"rd", IoOp::Read),
        (b"get", IoOp::Read),
        (b"write", IoOp::Write),
        (b"writes", IoOp::Write),
        (b"wr", IoOp::Write),
        (b"put", IoOp::Write),
        (b"set", IoOp::Write),
        (b"trim", IoOp::Trim),
        (b"discard", IoOp::Trim),
        (b"unmap", IoOp::Trim),
        (b"deallocate", IoOp::Trim),
        (b"delete", IoOp::Trim),
        (b"del", IoOp::Trim),
        (b"T", IoOp::Trim),
        (b"D", IoOp::Trim),
        (b"zeroes", IoOp::WriteZeroes),
        (b"write_zeroes", IoOp::WriteZeroes),
        (b"flush", IoOp::Flush),
        (b"sync", IoOp::Flush),
        (b"fsync", IoOp::Flush),
        (b"datasync", IoOp::Flush),
        (b"fdatasync", IoOp::Flush),
    ];
    WORDS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)).map(|(_, op)| *op)
}
