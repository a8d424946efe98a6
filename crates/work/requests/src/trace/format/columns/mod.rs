//! Tables in CSV whose header names each column with its unit: the input for any other trace, and nandscape's own
//! text form.

mod names;
mod table;

use config::Diagnostic;
use proto::IoOp;

use super::super::Objects;
use crate::trace::field::{Field, Fields};
use crate::trace::format::columns::names::Role;
use crate::trace::format::columns::table::{Problem, Table};
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, Settings, any_request};
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};
use crate::trace::{detect::Translation, human, options::TimeUnit};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "csv",
        title: "CSV with a header that names its columns",
        record: "time_UNIT,flow,op,offset_UNIT,size_UNIT[,fua]",
        units: "columns in any order: time_s|ms|us|100ns|ns|ps (decimals allowed); offset_bytes or lba_N and size_bytes \
                or size_N in blocks of N bytes; op R, W, trim, zeroes, flush; flow|device|disk|volume|host, fua (0, 1) and \
                response_UNIT are optional; other common names work too (timestamp, address, lba, nblocks), and key is an object; \
                --columns names the columns of a table without such a header",
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

/// Number of rows after the header that supply what it leaves open.
const ROWS: usize = 2_048;

struct Parser {
    table: Result<Table, Problem>,
    /// Possible content of the next line.
    first: First,
    objects: Objects,
}

/// Possible content of the first line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    /// A header.
    Header,
    /// A header or a row, if the user or a comment has named the columns.
    MaybeHeader,
    /// A row.
    Row,
}

impl Parser {
    fn new(settings: &Settings<'_>) -> Parser {
        let Beginning { comment, lines } = Beginning::of(settings);
        let objects = Objects::default();
        let of_comment = comment.map(|header| Table::of_header(&header, &lines, settings));
        if let Some(text) = settings.columns {
            // Faults in the columns have been reported by `check`.
            let mut table =
                Table::given(text, settings.exponent, settings.sector).map_err(|_| Problem::NoHeader);
            if let (Ok(table), Some(Ok(said))) = (&mut table, of_comment) {
                table.adopt_codes(said);
            }
            return Parser { table, first: First::MaybeHeader, objects };
        }
        if let Some(Ok(table)) = of_comment {
            return Parser { table: Ok(table), first: First::MaybeHeader, objects };
        }
        let (header, rows) = lines.split_first().map_or((&[][..], &[][..]), |(first, rows)| (first, rows));
        Parser { table: Table::of_header(header, rows, settings), first: First::Header, objects }
    }
}

/// Beginning of a file, its fields separated by commas.
struct Beginning {
    /// Last comment before the lines.
    comment: Option<Vec<u8>>,
    lines: Vec<Vec<u8>>,
}

impl Beginning {
    fn of(settings: &Settings<'_>) -> Beginning {
        let (mut comment, mut lines) = (None, Vec::new());
        for line in settings.prefix.split(|b| *b == b'\n').take(ROWS) {
            let text = settings.translation.map_or_else(|| line.to_vec(), |other| other.applied(line));
            match text.trim_ascii() {
                [] => {}
                [b'#', ..] if lines.is_empty() => comment = Some(text),
                [b'#', ..] => {}
                _ => lines.push(text),
            }
        }
        Beginning { comment, lines }
    }
}

/// Refuses columns that do not describe a table of requests.
///
/// # Errors
/// If a word is not a column (with the nearest), or a column is missing or duplicated.
pub(super) fn check(columns: &str) -> Result<(), Diagnostic> {
    Table::given(columns, 0, 1).map(drop)
}

/// Returns whether the header at the beginning of a file leaves open the unit of times, and that of addresses.
pub(super) fn open_units(prefix: &[u8]) -> (bool, bool) {
    let all = Translation::all(&FORMAT).map(Some);
    let settings = |translation| Settings { translation, ..Settings::of_prefix(prefix) };
    let mut headers = std::iter::once(None).chain(all).flat_map(|translation| {
        let Beginning { comment, lines } = Beginning::of(&settings(translation));
        comment.into_iter().chain(lines.into_iter().take(1))
    });
    headers.find_map(|header| table::open_units(&header)).unwrap_or((true, true))
}

/// Returns the header in a comment at the beginning of a file, if it describes a table of requests.
pub(crate) fn comment(settings: &Settings<'_>) -> Option<Vec<u8>> {
    let Beginning { comment, lines } = Beginning::of(settings);
    let header = comment?;
    table::Table::of_header(&header, &lines, settings).ok()?;
    Some(header.strip_prefix(b"#").map_or(&header[..], |header| header).to_vec())
}

/// Returns the diagnostic of a file whose first line names columns that do not describe a table of requests.
pub(crate) fn explain(settings: &Settings<'_>) -> Option<Diagnostic> {
    let Beginning { lines, .. } = Beginning::of(settings);
    let (header, rows) = lines.split_first()?;
    table::explain(header, rows, settings)
}

/// Fields of a row.
struct Row<'a> {
    time: Field<'a>,
    op: Field<'a>,
    /// Offset or key of the request.
    place: Field<'a>,
    size: Field<'a>,
    flow: Field<'a>,
    volume: Option<Field<'a>>,
    fua: Option<Field<'a>>,
    response: Option<Field<'a>>,
}

impl<'a> Row<'a> {
    fn of(line: &'a [u8], roles: &[Role]) -> Result<Row<'a>, Fault> {
        let empty = |name| Field { text: b"", name, at: 0 };
        let mut row = Row {
            time: empty("time"),
            op: empty("op"),
            place: empty("offset"),
            size: empty("size"),
            flow: Field { text: b"trace", name: "flow", at: 0 },
            volume: None,
            fua: None,
            response: None,
        };
        let mut fields = Fields::commas(line);
        let mut named = false;
        for role in roles {
            match role {
                Role::Time => row.time = fields.next("time")?,
                Role::Flow if named => row.volume = Some(fields.next("flow")?),
                Role::Flow => {
                    row.flow = fields.next("flow")?;
                    named = true;
                }
                Role::Op => row.op = fields.next("op")?,
                Role::Offset => row.place = fields.next("offset")?,
                Role::Key => row.place = fields.next("key")?,
                Role::Size => row.size = fields.next("size")?,
                Role::Fua => row.fua = Some(fields.next("fua")?),
                Role::Response => row.response = Some(fields.next("response")?),
                Role::Ignored => {
                    fields.next("ignored column")?;
                }
            }
        }
        fields.end()?;
        Ok(row)
    }
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let first = std::mem::replace(&mut self.first, First::Row);
        let table = self.table.as_mut().map_err(|problem| problem.fault())?;
        for remark in table.remarks.drain(..) {
            sheet.notes.remark(remark);
        }
        if first == First::Header {
            return Ok(());
        }
        let row = Row::of(line, &table.roles)?;
        let at = match row.time.moment(table.exponent) {
            Err(_) if first == First::MaybeHeader && !row.time.text.iter().any(u8::is_ascii_digit) => {
                sheet.notes.remark("the first line is treated as a header".to_owned());
                return Ok(());
            }
            at => at?,
        };
        let (op, forced) = table.codes.operation(row.op)?;
        let Some(op) = op else {
            sheet.notes.remark("operations that move no data, such as HEAD, are left out".to_owned());
            return Ok(());
        };
        let fua = row.fua.map_or(Ok(false), flag)? || forced;
        let took = row.response.filter(|field| !field.text.is_empty());
        let took = took.map_or(Ok(0), |field| field.decimal_time(table.response_exponent))?;
        let of_objects = table.roles.contains(&Role::Key);
        let extent = if of_objects {
            let Some(extent) = object(&mut self.objects, op, &row, table.size_unit, sheet)? else {
                return Ok(());
            };
            extent
        } else {
            let of_size = row.size.fault(FaultKind::TooLarge, "");
            let units = (number(row.place)?, table.offset_unit, number(row.size)?, table.size_unit);
            Extent::of(op, units, row.place.fault(FaultKind::TooLarge, ""), of_size)?
        };
        let flow = match row.volume {
            None => sheet.flow(row.flow)?,
            // Host and disk: both name the volume.
            Some(volume) => {
                let name = [row.flow.text, b",", volume.text].concat();
                sheet.flow(Field { text: &name, ..row.flow })?
            }
        };
        sheet.request(at, op, extent, flow, fua);
        sheet.responded(took);
        Ok(())
    }

    fn names_objects(&self) -> bool {
        self.table.as_ref().is_ok_and(|table| table.roles.contains(&Role::Key))
    }
}

/// Returns the place of an object; `None` if it was missing or has no size.
fn object(
    objects: &mut Objects,
    op: IoOp,
    row: &Row<'_>,
    unit: u64,
    sheet: &mut Sheet,
) -> Result<Option<Extent>, Fault> {
    let bytes = if row.size.text.is_empty() { 0 } else { number(row.size)? };
    if bytes == 0 {
        sheet.notes.remark("requests of objects without a size are left out".to_owned());
        return Ok(None);
    }
    let too_large = row.size.fault(FaultKind::TooLarge, "2^64 bytes of objects");
    let extent = Extent::of(op, (0, 1, bytes, unit), too_large, too_large)?;
    let offset = objects.place(Objects::key(row.place.text), extent.bytes).ok_or(too_large)?;
    Ok(Some(Extent { offset, ..extent }))
}

/// Reads a whole number, in hexadecimal after `0x`.
fn number(field: Field<'_>) -> Result<u64, Fault> {
    if field.text.starts_with(b"0x") { field.hexadecimal() } else { field.integer() }
}

fn flag(field: Field<'_>) -> Result<bool, Fault> {
    match field.text {
        b"0" | b"" => Ok(false),
        b"1" => Ok(true),
        _ => Err(field.fault(FaultKind::UnknownWord, "0, 1")),
    }
}

// Units that a header leaves open, inferred from the rows.

/// Plausible request rates per second: below the highest that storage serves, above the lowest worth recording:
/// *chosen*.
const RATES: std::ops::RangeInclusive<f64> = 10.0..=2e7;

/// Seconds since 1970 at 2001 and at 2038.
const EPOCH: std::ops::Range<f64> = 1e9..2.15e9;

/// Minimum request rate of a trace with times since 1970, per second: *chosen*, to exclude a counter of microseconds.
const SLOWEST: f64 = 0.01;

/// Values of FILETIME at 1970 and at 2038, in units of 100 ns since 1601.
const FILETIMES: std::ops::Range<f64> = 1.164_447_36e17..1.379e17;

/// Returns the likely unit of times without one, and a sentence about it.
fn time_unit(rows: &[Vec<u8>], column: usize, name: &str) -> (TimeUnit, String) {
    let mut times = Vec::with_capacity(rows.len());
    let mut decimal = false;
    for row in rows {
        let Some(field) = nth(row, column) else { continue };
        // Read as if they were seconds.
        if let Ok(ps) = field.moment(12) {
            decimal |= field.text.contains(&b'.');
            times.push(ps as f64 / 1e12);
        }
    }
    let first = times.iter().copied().fold(f64::INFINITY, f64::min);
    let last = times.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let within =
        |range: &std::ops::Range<f64>, per_s: f64| first / per_s >= range.start && last / per_s < range.end;
    let epochs = [
        (TimeUnit::Second, 1.0),
        (TimeUnit::Millisecond, 1e3),
        (TimeUnit::Microsecond, 1e6),
        (TimeUnit::Filetime, 1e7),
        (TimeUnit::Nanosecond, 1e9),
    ];
    let span = (last - first).max(0.0);
    let rate = |per_s: f64| times.len() as f64 / (span / per_s);
    let since_1970 = |per_s: f64| within(&EPOCH, per_s) && rate(per_s) >= SLOWEST;
    if let Some((unit, _)) = epochs.iter().find(|(_, per_s)| since_1970(*per_s)) {
        let what = format!("`{name}` has no unit: {} since 1970, by its values (--time-unit)", unit.name());
        return (*unit, what);
    }
    if within(&FILETIMES, 1.0) {
        let what = format!("`{name}` has no unit: 100 ns since 1601 (FILETIME), by its values (--time-unit)");
        return (TimeUnit::Filetime, what);
    }
    let order: &[(TimeUnit, f64)] = if decimal {
        &[(TimeUnit::Second, 1.0), (TimeUnit::Millisecond, 1e3), (TimeUnit::Microsecond, 1e6)]
    } else {
        &[
            (TimeUnit::Microsecond, 1e6),
            (TimeUnit::Nanosecond, 1e9),
            (TimeUnit::Millisecond, 1e3),
            (TimeUnit::Second, 1.0),
        ]
    };
    let (unit, per_s) = *order.iter().find(|(_, per_s)| RATES.contains(&rate(*per_s))).unwrap_or(&order[0]);
    let meaning = |unit: TimeUnit, per_s: f64| {
        let span = human::span((span / per_s * 1e12) as u128);
        format!("{} ({span}, {})", unit.name(), human::rate(rate(per_s)))
    };
    let others: Vec<String> = order
        .iter()
        .filter(|(other, _)| *other != unit)
        .map(|(unit, per_s)| meaning(*unit, *per_s))
        .collect();
    let what = if span > 0.0 {
        format!(
            "the header does not name the unit of `{name}`: assuming {}; it could be {}; set --time-unit",
            meaning(unit, per_s),
            others.join(", or ")
        )
    } else {
        format!("the header does not name the unit of `{name}`: assuming {}; set --time-unit", unit.name())
    };
    (unit, what)
}

/// Returns true if sizes without a unit are sectors, like the addresses: most of them are not multiples of a sector.
fn in_sectors(rows: &[Vec<u8>], column: usize, sector: u64) -> bool {
    let sizes = rows.iter().filter_map(|row| nth(row, column)?.integer().ok());
    let (mut whole, mut other) = (0, 0);
    for size in sizes {
        *(if size.is_multiple_of(sector) { &mut whole } else { &mut other }) += 1;
    }
    other > whole
}

/// Returns true if all values of a column are codes: only digits.
fn has_codes(rows: &[Vec<u8>], column: usize) -> bool {
    let mut values = rows.iter().filter_map(|row| nth(row, column)).peekable();
    values.peek().is_some()
        && values.all(|value| !value.text.is_empty() && value.text.iter().all(u8::is_ascii_digit))
}

/// Returns a column of a row.
fn nth(row: &[u8], column: usize) -> Option<Field<'_>> {
    let mut fields = Fields::commas(row);
    for _ in 0..column {
        fields.optional("column")?;
    }
    fields.optional("column")
}
