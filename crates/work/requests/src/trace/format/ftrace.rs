//! Events of Linux's block layer and NVMe driver, as ftrace, trace-cmd and perf script print them.

use proto::IoOp;

use crate::trace::field::{Field, Fields};
use crate::trace::format::blkparse::Flags;
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, Settings, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "ftrace",
        title: "ftrace and perf script (block_rq_issue, block_bio_queue, nvme_setup_cmd)",
        record: "task-pid [cpu] flags seconds: block_rq_issue: major,minor RWBS bytes () sector + sectors [task]",
        units: "time in s with decimals; sectors of 512 B; of nvme_setup_cmd slba and len (from zero) in blocks of 512 B (--sector sets the \
                drive's); uses the first of block_rq_issue, nvme_setup_cmd, block_io_start, block_rq_insert and block_bio_queue found at the \
                beginning; other events are left out",
        example: "# tracer: nop\n\
                  fio-1234 [003] d..1. 1234.567890: block_rq_issue: 259,0 R 4096 () 2048 + 8 [fio]\n\
                  fio-1234 [003] d..1. 1234.567990: block_rq_issue: 259,0 WS 8192 () 4096 + 16 none,0,0 [fio]\n",
        source: "Linux, include/trace/events/block.h (block_rq, block_bio), drivers/nvme/host/trace.h (nvme_setup_cmd) and trace.c",
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

/// Events that can represent a request, the one nearest to the drive first.
const EVENTS: [(&[u8], Event); 5] = [
    (b"block_rq_issue:", Event::Request),
    (b"nvme_setup_cmd:", Event::Nvme),
    (b"block_io_start:", Event::Request),
    (b"block_rq_insert:", Event::Request),
    (b"block_bio_queue:", Event::Bio),
];

/// Layout of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    /// `259,0 WS 8192 () 4096 + 16 none,0,0 [fio]`, of the class `block_rq`.
    Request,
    /// `259,0 WS 4096 + 16 [fio]`, of the class `block_bio`.
    Bio,
    /// `nvme0: disk=nvme0n1, …`
    Nvme,
}

struct Parser {
    exponent: u32,
    sector: u64,
    /// Event that represents a request.
    event: (&'static [u8], Event),
}

impl Parser {
    fn new(settings: &Settings<'_>) -> Parser {
        let there = |(name, _): &&(&[u8], Event)| memchr::memmem::find(settings.prefix, name).is_some();
        let event = *EVENTS.iter().find(there).unwrap_or(&EVENTS[0]);
        Parser { exponent: settings.exponent, sector: settings.sector, event }
    }
}

/// Returns the time before an event's name, which ends with a colon: `1234.567890:`.
fn time(line: &[u8], end: usize) -> Option<Field<'_>> {
    let head = line[..end].trim_ascii_end().strip_suffix(b":")?;
    let from = head.iter().rposition(|b| !b.is_ascii_digit() && *b != b'.').map_or(0, |at| at + 1);
    let text = &head[from..];
    let decimal = text.contains(&b'.') && text[0].is_ascii_digit();
    decimal.then_some(Field { text, name: "time", at: from })
}

/// Returns true for a line of a different event, or text that trace-cmd and perf print around the events.
fn is_other(line: &[u8]) -> bool {
    const WORDS: [&[u8]; 4] = [b"cpus=", b"version =", b"CPU:", b"CPU "];
    let text = line.trim_ascii_start();
    let event = memchr::memmem::find_iter(line, b": ").any(|at| time(line, at + 1).is_some());
    event || WORDS.iter().any(|word| text.starts_with(word))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let Some(name) = memchr::memmem::find(line, self.event.0) else {
            return if is_other(line) {
                Ok(())
            } else {
                Err(Fault::line(FaultKind::UnknownWord, "line: no event with a time", ""))
            };
        };
        // perf script prints the group first: `block:block_rq_issue:`.
        let start = line[..name].iter().rposition(|b| b.is_ascii_whitespace()).map_or(0, |at| at + 1);
        let time = time(line, start).ok_or(Fault::line(
            FaultKind::MissingField,
            "time in front of the event",
            "",
        ))?;
        let at = time.moment(self.exponent)?;
        let rest = name + self.event.0.len();
        match self.event.1 {
            Event::Nvme => self.nvme(line, rest, at, sheet),
            event => block(line, rest, at, event, sheet),
        }
    }
}

/// Reads an event of the block layer, after its name.
fn block(line: &[u8], from: usize, at: i128, event: Event, sheet: &mut Sheet) -> Result<(), Fault> {
    let mut fields = Fields::blanks(line).from(from);
    let device = fields.next("device")?;
    let flags = Flags::read(fields.next("RWBS")?)?;
    if event == Event::Request {
        fields.next("bytes")?.integer()?;
        let mut word = fields.next("command")?;
        // A pass-through command is in parentheses, in several words.
        while !word.text.ends_with(b")") {
            word = fields.next("end of the command")?;
        }
    }
    let sector = fields.next("sector")?;
    let plus = fields.next("+")?;
    if plus.text != b"+" {
        return Err(plus.fault(FaultKind::UnknownWord, "+"));
    }
    let count = fields.next("number of sectors")?;
    let flow = sheet.flow(device)?;
    if flags.flush {
        sheet.request(at, IoOp::Flush, Extent::NONE, flow, false);
    }
    let Some(op) = flags.op else {
        sheet.notes.passthrough += u64::from(!flags.flush);
        return Ok(());
    };
    if count.integer()? == 0 {
        sheet.notes.passthrough += u64::from(!flags.flush);
        return Ok(());
    }
    let extent = Extent::read(op, sector, 512, count, 512)?;
    sheet.request(at, op, extent, flow, flags.fua);
    Ok(())
}

/// Returns the value after `name=`, up to a comma, a blank or the end of the command.
fn value<'a>(line: &'a [u8], from: usize, name: &'static str) -> Option<Field<'a>> {
    let key = format!("{name}=");
    let at = memchr::memmem::find(&line[from..], key.as_bytes())? + from + key.len();
    let len = line[at..].iter().position(|b| matches!(b, b',' | b' ' | b')')).unwrap_or(line.len() - at);
    Some(Field { text: &line[at..at + len], name, at })
}

impl Parser {
    /// `nvme0: disk=nvme0n1, qid=3, cmdid=12, nsid=1, flags=0x0, meta=0x0, cmd=(nvme_cmd_read slba=123, len=7, ctrl=0x0, …)`
    fn nvme(&self, line: &[u8], from: usize, at: i128, sheet: &mut Sheet) -> Result<(), Fault> {
        let missing = |name| Fault::line(FaultKind::MissingField, name, "");
        let command = memchr::memmem::find(&line[from..], b"cmd=(").ok_or(missing("command"))? + from + 5;
        let end =
            line[command..].iter().position(|b| matches!(b, b' ' | b')')).unwrap_or(line.len() - command);
        let op = match &line[command..command + end] {
            b"nvme_cmd_read" => IoOp::Read,
            b"nvme_cmd_write" => IoOp::Write,
            b"nvme_cmd_write_zeroes" => IoOp::WriteZeroes,
            b"nvme_cmd_flush" => IoOp::Flush,
            // A deallocation gives the number of its ranges but not their places; administration commands move no
            // data.
            _ => {
                sheet.notes.passthrough += 1;
                return Ok(());
            }
        };
        let drive = Fields::blanks(line).from(from).next("drive")?;
        let name = value(line, from, "disk")
            .unwrap_or(Field { text: drive.text.strip_suffix(b":").unwrap_or(drive.text), ..drive });
        let flow = sheet.flow(name)?;
        if op == IoOp::Flush {
            sheet.request(at, op, Extent::NONE, flow, false);
            return Ok(());
        }
        let block = value(line, command, "slba").ok_or(missing("slba"))?;
        let length = value(line, command, "len").ok_or(missing("len"))?;
        // Counted from zero (NVM Command Set, Read: Number of Logical Blocks).
        let blocks = length.integer()? + 1;
        let of_length = length.fault(FaultKind::TooLarge, "");
        let units = (block.integer()?, self.sector, blocks, self.sector);
        let extent = Extent::of(op, units, block.fault(FaultKind::TooLarge, ""), of_length)?;
        // Bit 14 of the control word is force unit access.
        let control = value(line, command, "ctrl").map_or(Ok(0), |control| control.hexadecimal())?;
        sheet.request(at, op, extent, flow, control & 1 << 14 != 0);
        Ok(())
    }
}
