//! Disk events of Event Tracing for Windows, as `xperf -a dumper` prints them.

use proto::IoOp;

use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "etw",
        title: "Windows ETW disk events (xperf)",
        record: "DiskRead|DiskWrite, TimeStamp, Process ( PID), ThreadID, [CPU,] IrpPtr, ByteOffset, IOSize, ElapsedTime, DiskNum, …",
        units: "completion time in us, minus ElapsedTime in us; offset and size in bytes, hexadecimal; other events are left out",
        example: "BeginHeader\n  DiskRead,  TimeStamp,     Process Name ( PID),   ThreadID,             IrpPtr,   ByteOffset,     IOSize, ElapsedTime,  DiskNum, IrpFlags, DiskSvcTime, I/O Pri,  VolSnap,         FileObject, FileName\nEndHeader\n\
                  DiskRead,       8612,        xperf.exe (3984),      11844, 0xffffe288b23f1b20, 0x018f0b8000, 0x00001000,         283,        0, 0x060043,         283,       3, Original, 0xffffe288272d0d20, \"C:\\$Mft\"\n\
                  DiskWrite,      9000,           System (   4),          0, 0xffffe288b23f1b20, 0x0000001000, 0x00000200,         100,        0, 0x060043,         100,       3, Original, 0xffffe288272d0d20, \"C:\\a\"\n",
        source: "the header of xperf's dumper (SNIA IOTTA, Microsoft Production and Enterprise traces); DiskIo_TypeGroup1, Win32 ETW",
        time_unit: Some(TimeUnit::Microsecond),
        sector: None,
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: false,
    },
    parser: |settings| Box::new(Parser { exponent: settings.exponent, header: false }),
    plausible: any_request,
    framing: Framing::Lines,
    separator: None,
};

/// Offset of time zero before the recorder's, in picoseconds: a request may have been issued before recording began.
const BEFORE: u128 = 3_600_000_000_000_000;

struct Parser {
    exponent: u32,
    header: bool,
}

impl Parser {
    /// Reads the request after `IrpPtr`, the first hexadecimal field: names of processes may contain commas.
    fn transfer(&self, op: IoOp, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let mut fields = Fields::commas(line);
        fields.next("event")?;
        let time = fields.next("time")?;
        let completed = time.whole_time(self.exponent)?;
        fields.next("process")?;
        let mut pointer = fields.next("IrpPtr")?;
        while !pointer.text.starts_with(b"0x") {
            pointer = fields.next("IrpPtr")?;
        }
        let flush = op == IoOp::Flush;
        let place = if flush { None } else { Some((fields.next("ByteOffset")?, fields.next("IOSize")?)) };
        let took = fields.next("ElapsedTime")?.whole_time(self.exponent)?;
        let disk = fields.next("DiskNum")?;
        disk.integer()?;
        let extent = match place {
            None => Extent::NONE,
            Some((offset, size)) => {
                let units = (offset.hexadecimal()?, 1, size.hexadecimal()?, 1);
                let of_size = size.fault(FaultKind::TooLarge, "");
                Extent::of(op, units, offset.fault(FaultKind::TooLarge, ""), of_size)?
            }
        };
        let late = time.fault(FaultKind::TooLarge, "an ElapsedTime below an hour");
        let at = (completed + BEFORE).checked_sub(took).ok_or(late)?;
        let flow = sheet.flow(disk)?;
        sheet.request(at as i128, op, extent, flow, false);
        sheet.responded(took);
        Ok(())
    }
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let event: Field<'_> = Fields::commas(line).next("event")?;
        match event.text {
            b"BeginHeader" => self.header = true,
            b"EndHeader" => self.header = false,
            _ if self.header || memchr::memmem::find(line, b"TimeStamp").is_some() => {}
            b"DiskRead" => return self.transfer(IoOp::Read, line, sheet),
            b"DiskWrite" => return self.transfer(IoOp::Write, line, sheet),
            b"DiskFlush" => return self.transfer(IoOp::Flush, line, sheet),
            // Any other event: its name and a time.
            name => {
                let named = name.first().is_some_and(u8::is_ascii_uppercase);
                let mut fields = Fields::commas(line);
                fields.next("event")?;
                let time = fields.optional("time");
                let is_event = named
                    && (time.is_some_and(|time| time.integer().is_ok()) || name.starts_with(b"OS Version"));
                if !is_event {
                    return Err(event.fault(FaultKind::UnknownWord, "an event and its time"));
                }
            }
        }
        Ok(())
    }
}
