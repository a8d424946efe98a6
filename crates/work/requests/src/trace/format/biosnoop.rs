//! Output of biosnoop, from BCC and libbpf-tools.

use crate::trace::field::{Field, Fields};
use crate::trace::format::blkparse::Flags;
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, Settings, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

use proto::IoOp;

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "biosnoop",
        title: "biosnoop (BCC)",
        record: "TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)",
        units: "completion time in s, minus the latency in ms (and the queue time, -Q); sectors of 512 B; T as RWBS of blkparse",
        example: "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n\
                  0.000004    supervise      1950   xvda1   W 13092560   4096      0.74\n\
                  0.000178    jbd2/xvda1-8   304    xvda1   R 13092432   4096      0.61\n",
        source: "iovisor/bcc, tools/biosnoop.py and biosnoop_example.txt; libbpf-tools/biosnoop.c",
        time_unit: Some(TimeUnit::Second),
        sector: Some(512),
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: false,
    },
    parser: |settings| Box::new(Parser::new(settings)),
    plausible: any_request,
    framing: Framing::Lines,
    separator: None,
};

/// Offset of time zero before the first completion, in picoseconds: a request may have been issued before it.
const BEFORE: u128 = 3_600_000_000_000_000;
/// Milliseconds and microseconds in powers of ten of picoseconds.
const MS: u32 = 9;
const US: u32 = 6;

struct Parser {
    exponent: u32,
    sector: u64,
    /// True if the table has a column for the time in the queue.
    queue: bool,
    latency_unit: u32,
}

impl Parser {
    fn new(settings: &Settings<'_>) -> Parser {
        let exponent = settings.exponent;
        Parser { exponent, sector: settings.sector, queue: false, latency_unit: MS }
    }
}

/// Number of columns of a line without the time in the queue.
const COLUMNS: usize = 8;

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let mut fields = Fields::blanks(line);
        let time = fields.next("time")?;
        if time.text == b"TIME(s)" {
            self.queue = memchr::memmem::find(line, b"QUE").is_some();
            self.latency_unit = if memchr::memmem::find(line, b"LAT(us)").is_some() { US } else { MS };
            return Ok(());
        }
        let completed = time.decimal_time(self.exponent)?;
        // The name of a task may have blanks: columns are counted from the right.
        let all: Vec<Field<'_>> = std::iter::from_fn(|| fields.optional("column")).collect();
        let columns = COLUMNS + usize::from(self.queue);
        let Some(first) = (all.len() + 1).checked_sub(columns) else {
            return Err(Fault::line(FaultKind::MissingField, "latency", ""));
        };
        let [_, _, disk, kind, sector, bytes, took @ ..] = &all[first..] else {
            return Err(Fault::line(FaultKind::MissingField, "latency", ""));
        };
        let mut ps = 0;
        for part in took {
            ps += part.decimal_time(self.latency_unit)?;
        }
        let at = (completed + BEFORE)
            .checked_sub(ps)
            .ok_or(time.fault(FaultKind::TooLarge, "a latency below an hour"))?;
        let flags = Flags::read(Field { name: "T", ..*kind })?;
        let flow = sheet.flow(*disk)?;
        let size = Field { name: "bytes", ..*bytes };
        let length = size.integer()?;
        let op = match flags.op {
            Some(op) if length > 0 => op,
            _ if flags.flush => IoOp::Flush,
            _ => {
                sheet.notes.passthrough += 1;
                return Ok(());
            }
        };
        if op == IoOp::Flush {
            // The sector is -1 or the largest number.
            sheet.request(at as i128, op, Extent::NONE, flow, false);
        } else {
            let extent = Extent::read(op, Field { name: "sector", ..*sector }, self.sector, size, 1)?;
            sheet.request(at as i128, op, extent, flow, flags.fua);
        }
        sheet.responded(ps);
        Ok(())
    }
}
