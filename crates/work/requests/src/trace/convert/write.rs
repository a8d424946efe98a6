//! One line of each format that can be written.

use std::fmt::Write as _;

use proto::{IoOp, IoRequest};

use crate::trace::convert::labels::{Label, without};

/// A format that can be written.
pub(crate) struct Writer {
    pub(crate) name: &'static str,
    /// What stands before the first request.
    pub(crate) header: &'static str,
    /// What a stream is called.
    pub(crate) label: Label,
    /// Writes a request of the stream `label`, which `is_new` if it had none before; or says why it cannot.
    pub(crate) line: fn(&IoRequest, label: &str, is_new: bool, &mut Line) -> Result<(), &'static str>,
    /// Writes what stands after the last request.
    pub(crate) end: fn(labels: &mut dyn Iterator<Item = &str>, &mut Line),
}

/// The text of a line, and what the format could not keep.
#[derive(Default)]
pub(crate) struct Line {
    pub(crate) text: Vec<u8>,
    pub(crate) times_cut: u64,
    pub(crate) fua_lost: u64,
    last_time: u64,
    scratch: String,
}

impl Line {
    /// The time in units of `ps`, cut off.
    fn time(&mut self, request: &IoRequest, ps: u64) -> u64 {
        let at = request.at.ps();
        self.times_cut += u64::from(!at.is_multiple_of(ps));
        self.last_time = at / ps;
        self.last_time
    }
    fn drops_fua(&mut self, request: &IoRequest) {
        self.fua_lost += u64::from(request.fua);
    }
    fn push(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.scratch.clear();
        // Writing to a string does not fail.
        let _ = self.scratch.write_fmt(arguments);
        self.text.extend_from_slice(self.scratch.as_bytes());
    }
}

/// Every format that can be written.
pub(crate) static WRITERS: [Writer; 4] = [
    Writer { name: "mqsim", header: "", label: number, line: mqsim, end: |_, _| {} },
    Writer { name: "msr", header: "", label: host_and_disk, line: msr, end: |_, _| {} },
    Writer {
        name: "iolog3",
        header: "fio version 3 iolog\n",
        label: |name, _, attempt| without(name, char::is_whitespace, attempt),
        line: iolog3,
        end: iolog3_end,
    },
    Writer {
        name: "csv",
        header: "time_ps,flow,op,offset_bytes,size_bytes,fua\n",
        label: |name, _, attempt| without(name, |c| c == ',' || c.is_whitespace(), attempt),
        line: csv,
        end: |_, _| {},
    },
];

/// A number if the name is one, the stream's own number otherwise, or the next free one.
fn number(name: &str, flow: u16, attempt: u32) -> String {
    let own = name.parse::<u32>().ok().filter(|n| n.to_string() == name).unwrap_or(u32::from(flow));
    own.wrapping_add(attempt).to_string()
}

fn mqsim(request: &IoRequest, label: &str, _: bool, line: &mut Line) -> Result<(), &'static str> {
    const SECTOR: u64 = 512;
    let kind = match request.op {
        IoOp::Read => 1,
        IoOp::Write => 0,
        _ => return Err("it has reads and writes only"),
    };
    if !request.offset.is_multiple_of(SECTOR) || !request.bytes.is_multiple_of(SECTOR) {
        return Err("it counts in sectors of 512 B, and the request does not");
    }
    let ns = line.time(request, 1_000);
    line.drops_fua(request);
    line.push(format_args!("{ns} {label} {} {} {kind}\n", request.offset / SECTOR, request.bytes / SECTOR));
    Ok(())
}

/// `host,disk`: as it was if it has that form, disk 0 otherwise.
fn host_and_disk(name: &str, _: u16, attempt: u32) -> String {
    let is_pair = name.split_once(',').is_some_and(|(host, disk)| {
        !host.is_empty() && !disk.is_empty() && disk.bytes().all(|b| b.is_ascii_digit()) && disk.len() < 19
    });
    match attempt {
        0 if is_pair && !name.contains(char::is_whitespace) => name.to_owned(),
        _ => format!("{},0", without(name, |c| c == ',' || c.is_whitespace(), attempt)),
    }
}

fn msr(request: &IoRequest, label: &str, _: bool, line: &mut Line) -> Result<(), &'static str> {
    const FILETIME_TICK_PS: u64 = 100_000;
    let kind = match request.op {
        IoOp::Read => "Read",
        IoOp::Write => "Write",
        _ => return Err("it has reads and writes only"),
    };
    let ticks = line.time(request, FILETIME_TICK_PS);
    line.drops_fua(request);
    line.push(format_args!("{ticks},{label},{kind},{},{},0\n", request.offset, request.bytes));
    Ok(())
}

fn iolog3(request: &IoRequest, label: &str, is_new: bool, line: &mut Line) -> Result<(), &'static str> {
    let action = match request.op {
        IoOp::Read => "read",
        IoOp::Write => "write",
        IoOp::Trim => "trim",
        IoOp::Flush => "sync",
        IoOp::WriteZeroes => "",
    };
    let us = line.time(request, 1_000_000);
    if is_new {
        line.push(format_args!("{us} {label} add\n{us} {label} open\n"));
    }
    if action.is_empty() {
        return Err("it has no writes of zeroes");
    }
    line.drops_fua(request);
    line.push(format_args!("{us} {label} {action} {} {}\n", request.offset, request.bytes));
    Ok(())
}

fn iolog3_end(labels: &mut dyn Iterator<Item = &str>, line: &mut Line) {
    let us = line.last_time;
    for label in labels {
        line.push(format_args!("{us} {label} close\n"));
    }
}

fn csv(request: &IoRequest, label: &str, _: bool, line: &mut Line) -> Result<(), &'static str> {
    let op = match request.op {
        IoOp::Read => "R",
        IoOp::Write => "W",
        IoOp::Trim => "trim",
        IoOp::WriteZeroes => "zeroes",
        IoOp::Flush => "flush",
    };
    let (ps, fua) = (line.time(request, 1), u8::from(request.fua));
    line.push(format_args!("{ps},{label},{op},{},{},{fua}\n", request.offset, request.bytes));
    Ok(())
}
