//! CSV whose header names each column with its unit: the way in for any other trace, and nandscape's own text form.

use proto::IoOp;

use crate::trace::fault::{Fault, FaultKind};
use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, LineParser, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "csv",
        title: "CSV with a header that names the units",
        record: "time_UNIT,flow,op,offset_UNIT,size_UNIT[,fua]",
        units: "columns in any order: time_s|ms|us|100ns|ns|ps (decimals allowed); offset_bytes or lba_N and size_bytes \
                or size_N in blocks of N bytes; op R, W, trim, zeroes, flush; flow|device|disk|volume|host and fua (0, 1) \
                may be missing",
        example: "time_us,flow,op,offset_bytes,size_bytes,fua\n0,sda,R,61440,4096,0\n12.5,sda,W,1048576,8192,1\n",
        source: "nandscape",
        time_unit: None,
        sector: None,
        whole_seconds: false,
        one_device: false,
    },
    parser: |_| Box::new(Parser { columns: None }),
    plausible: any_request,
};

struct Parser {
    columns: Option<Columns>,
}

/// More columns than any header has; a longer one is no header.
const MAX_COLUMNS: usize = 64;

/// What each column of the file is.
struct Columns {
    roles: Vec<Role>,
    exponent: u32,
    offset_unit: u64,
    size_unit: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Time,
    Flow,
    Op,
    Offset,
    Size,
    Fua,
    Ignored,
}

const NEEDED: [(Role, &str); 4] = [
    (Role::Time, "header with a column time_s, time_ms, time_us, time_100ns, time_ns or time_ps"),
    (Role::Op, "header with a column op"),
    (Role::Offset, "header with a column offset_bytes or lba_512"),
    (Role::Size, "header with a column size_bytes or size_512"),
];

impl Columns {
    fn read(line: &[u8], sheet: &mut Sheet) -> Result<Columns, Fault> {
        let mut columns = Columns { roles: Vec::new(), exponent: 0, offset_unit: 1, size_unit: 1 };
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
        let empty = |name| Field { text: b"", name, at: 0 };
        let (mut time, mut op, mut offset, mut size) =
            (empty("time"), empty("op"), empty("offset"), empty("size"));
        let (mut flow, mut fua) = (Field { text: b"trace", name: "flow", at: 0 }, None);
        let mut fields = Fields::commas(line);
        for role in &columns.roles {
            match role {
                Role::Time => time = fields.next("time")?,
                Role::Flow => flow = fields.next("flow")?,
                Role::Op => op = fields.next("op")?,
                Role::Offset => offset = fields.next("offset")?,
                Role::Size => size = fields.next("size")?,
                Role::Fua => fua = Some(fields.next("fua")?),
                Role::Ignored => {
                    fields.next("ignored column")?;
                }
            }
        }
        fields.end()?;
        let at = time.decimal_time(columns.exponent)?;
        let op = operation(op)?;
        let fua = fua.map_or(Ok(false), flag)?;
        let extent = Extent::read(op, offset, columns.offset_unit, size, columns.size_unit)?;
        let flow = sheet.flow(flow)?;
        sheet.request(at, op, extent, flow, fua);
        Ok(())
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
