//! Output of iosnoop, from perf-tools and DTrace, and of other tools with such a header.

use proto::IoOp;

use crate::trace::field::{Field, Fields};
use crate::trace::format::blkparse::Flags;
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, Settings, any_request};
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

const SOURCE: &str = "brendangregg/perf-tools, iosnoop and iosnoop_example.txt; DTrace's iosnoop";

/// Format with times.
pub(crate) static TIMED: Format = Format {
    info: FormatInfo {
        name: "iosnoop",
        title: "iosnoop (perf-tools, DTrace)",
        record: "[STARTs] [ENDs] COMM PID TYPE DEV BLOCK BYTES LATms",
        units: "columns as the header names them; STARTs and ENDs in s (STIME and TIME of DTrace in us); an end without a start is reduced by the \
                latency; blocks of 512 B; TYPE as RWBS of blkparse",
        example: "STARTs         ENDs           COMM         PID    TYPE DEV      BLOCK        BYTES     LATms\n\
                  10.000100      10.000718      dd           1809   W    202,1    17039600     4096       0.62\n\
                  10.004962      10.005446      dd           1801   R    202,1    17039616     4096       0.48\n",
        source: SOURCE,
        time_unit: None,
        sector: Some(512),
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: false,
    },
    parser: |settings| Box::new(Parser::new(settings, true)),
    plausible: any_request,
    framing: Framing::Lines,
    separator: None,
};

/// Format without times: only an order.
pub(crate) static UNTIMED: Format = Format {
    info: FormatInfo {
        name: "iosnoop-order",
        title: "iosnoop without -s and -t",
        record: "COMM PID TYPE DEV BLOCK BYTES LATms",
        units: "columns as the header names them; no times: it runs at a queue depth, in the order of completion; blocks of 512 B; TYPE as RWBS \
                of blkparse",
        example: "COMM             PID    TYPE DEV      BLOCK        BYTES     LATms\n\
                  tar              14794  RM   202,1    8457608      4096       7.53\n\
                  tar              14794  WS   202,1    8470336      8192      14.90\n",
        source: SOURCE,
        time_unit: None,
        sector: Some(512),
        whole_seconds: false,
        one_device: false,
        untimed: true,
        binary: false,
    },
    parser: |settings| Box::new(Parser::new(settings, false)),
    plausible: any_request,
    framing: Framing::Lines,
    separator: None,
};

/// Content of a column; times with their unit of 10^n ps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Start(u32),
    End(u32),
    Latency(u32),
    Task,
    Device,
    Kind,
    Block,
    Bytes,
    Path,
    Other,
}

const S: u32 = 12;
const MS: u32 = 9;
const US: u32 = 6;

const NAMES: [(&[u8], Role); 26] = [
    (b"STARTs", Role::Start(S)),
    (b"ENDs", Role::End(S)),
    (b"STIME", Role::Start(US)),
    (b"TIME", Role::End(US)),
    (b"STIME(us)", Role::Start(US)),
    (b"TIME(us)", Role::End(US)),
    (b"TIME(ms)", Role::End(MS)),
    (b"LATms", Role::Latency(MS)),
    (b"LATus", Role::Latency(US)),
    (b"LAT(ms)", Role::Latency(MS)),
    (b"LAT(us)", Role::Latency(US)),
    (b"DTIME", Role::Latency(US)),
    (b"DTIME(us)", Role::Latency(US)),
    (b"COMM", Role::Task),
    (b"DEV", Role::Device),
    (b"DISK", Role::Device),
    (b"DEVICE", Role::Device),
    (b"TYPE", Role::Kind),
    (b"T", Role::Kind),
    (b"D", Role::Kind),
    (b"RWBS", Role::Kind),
    (b"BLOCK", Role::Block),
    (b"SECTOR", Role::Block),
    (b"BYTES", Role::Bytes),
    (b"SIZE", Role::Bytes),
    (b"PATHNAME", Role::Path),
];

/// Columns of a header. Task names may contain blanks: the columns after them are counted from the right.
struct Columns {
    front: Vec<Role>,
    behind: Vec<Role>,
    /// Minimum number of words on a line.
    least: usize,
    /// True if a line may have more words.
    open: bool,
}

struct Parser {
    timed: bool,
    sector: u64,
    columns: Option<Columns>,
}

impl Parser {
    fn new(settings: &Settings<'_>, timed: bool) -> Parser {
        Parser { timed, sector: settings.sector, columns: None }
    }

    fn header(&self, line: &[u8]) -> Result<Columns, Fault> {
        let bad = |what| Fault::line(FaultKind::BadHeader, what, "");
        let mut fields = Fields::blanks(line);
        let mut roles = Vec::new();
        while let Some(field) = fields.optional("column") {
            let known = NAMES.iter().find(|(name, _)| *name == field.text);
            roles.push(known.map_or(Role::Other, |(_, role)| *role));
        }
        if ![Role::Kind, Role::Block, Role::Bytes].iter().all(|role| roles.contains(role)) {
            return Err(bad("header of iosnoop: TYPE, BLOCK and BYTES among its columns"));
        }
        let start = roles.iter().any(|role| matches!(role, Role::Start(_)));
        let end = roles.iter().any(|role| matches!(role, Role::End(_)));
        let took = roles.iter().any(|role| matches!(role, Role::Latency(_)));
        if self.timed != (start || end && took) {
            return Err(bad("header of iosnoop with its times (-s, -t)"));
        }
        let task = roles.iter().position(|role| *role == Role::Task);
        let mut behind = task.map_or(Vec::new(), |task| roles.split_off(task));
        // Paths may contain blanks too: nothing after the task is counted.
        if behind.contains(&Role::Path) {
            behind.truncate(1);
        }
        let least = roles.len() + behind.len();
        let behind = behind.split_off(usize::from(task.is_some()));
        Ok(Columns { front: roles, behind, least, open: task.is_some() })
    }
}

/// Returns true for lines that the tools print around their tables.
fn is_around(line: &[u8]) -> bool {
    const WORDS: [&[u8]; 6] = [b"Tracing ", b"Attach", b"Ending tracing", b"^C", b"WARNING", b"MAJOR MINOR"];
    let text = line.trim_ascii_start();
    WORDS.iter().any(|word| text.starts_with(word))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        if is_around(line) {
            return Ok(());
        }
        let Some(columns) = &self.columns else {
            self.columns = Some(self.header(line)?);
            return Ok(());
        };
        let mut fields = Fields::blanks(line);
        let all: Vec<Field<'_>> = std::iter::from_fn(|| fields.optional("column")).collect();
        if all.len() < columns.least {
            return Err(Fault::line(FaultKind::MissingField, "last column of the header", ""));
        }
        if let Some(more) = all.get(columns.least).filter(|_| !columns.open) {
            return Err(more.fault(FaultKind::ExtraField, ""));
        }
        let right = &all[all.len() - columns.behind.len()..];
        let cells = columns.front.iter().zip(&all).chain(columns.behind.iter().zip(right));
        let (mut start, mut end, mut took) = (None, None, None);
        let zero = Field { text: b"", name: "column", at: 0 };
        let (mut device, mut kind, mut block, mut bytes) =
            (Field { text: b"disk", ..zero }, zero, zero, zero);
        for (role, field) in cells {
            match role {
                Role::Start(unit) => start = Some(Field { name: "start", ..*field }.moment(*unit)?),
                Role::End(unit) => end = Some(Field { name: "end", ..*field }.moment(*unit)?),
                Role::Latency(unit) => took = Some(Field { name: "latency", ..*field }.decimal_time(*unit)?),
                Role::Device => device = *field,
                Role::Kind => kind = Field { name: "TYPE", ..*field },
                Role::Block => block = Field { name: "block", ..*field },
                Role::Bytes => bytes = Field { name: "bytes", ..*field },
                Role::Task | Role::Path | Role::Other => {}
            }
        }
        let took = took.or_else(|| u128::try_from(end? - start?).ok()).unwrap_or(0);
        let at = start.or_else(|| Some(end? - took as i128)).filter(|_| self.timed).unwrap_or(0);
        let flags = Flags::read(kind)?;
        let flow = sheet.flow(device)?;
        let length = bytes.integer()?;
        match flags.op {
            Some(op) if length > 0 => {
                let extent = Extent::read(op, block, self.sector, bytes, 1)?;
                sheet.request(at, op, extent, flow, flags.fua);
            }
            _ if flags.flush => sheet.request(at, IoOp::Flush, Extent::NONE, flow, false),
            _ => {
                sheet.notes.passthrough += 1;
                return Ok(());
            }
        }
        sheet.responded(took);
        Ok(())
    }
}
