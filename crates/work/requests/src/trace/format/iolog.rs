//! I/O logs of fio, versions 2 and 3.

use proto::IoOp;

use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, Settings, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static V2: Format = Format {
    info: FormatInfo {
        name: "iolog2",
        title: "fio I/O log, version 2",
        record: "filename action offset length",
        units: "offset and length in bytes; action read, write, sync, datasync, trim; `filename wait time` adds us",
        example: "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 61440 4096\n/dev/sda wait 250 0\n\
                  /dev/sda write 774144 8192\n/dev/sda close\n",
        source: "fio HOWTO, Trace file format v2; iolog.c",
        time_unit: Some(TimeUnit::Microsecond),
        sector: None,
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: false,
    },
    parser: |settings| Box::new(Parser::new(settings, Version::Two)),
    plausible: any_request,
    framing: Framing::Lines,
    separator: None,
};

pub(crate) static V3: Format = Format {
    info: FormatInfo {
        name: "iolog3",
        title: "fio I/O log, version 3",
        record: "timestamp filename action offset length",
        units: "timestamp in us; offset and length in bytes; action read, write, sync, datasync, trim",
        example: "fio version 3 iolog\n12 /dev/sda add\n68 /dev/sda open\n72 /dev/sda read 61440 4096\n\
                  363 /dev/sda write 491520 4096\n488 /dev/sda close\n",
        source: "fio HOWTO, Trace file format v3; iolog.c (utime_since_now)",
        time_unit: Some(TimeUnit::Microsecond),
        sector: None,
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: false,
    },
    parser: |settings| Box::new(Parser::new(settings, Version::Three)),
    plausible: any_request,
    framing: Framing::Lines,
    separator: None,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    Two,
    Three,
}

struct Parser {
    exponent: u32,
    version: Version,
    header_seen: bool,
    /// Sum of the waits so far, in version 2.
    waited: i128,
}

impl Parser {
    fn new(settings: &Settings<'_>, version: Version) -> Parser {
        Parser { exponent: settings.exponent, version, header_seen: false, waited: 0 }
    }

    fn header(&self, line: &[u8]) -> Result<(), Fault> {
        let (expected, field): (&[u8], _) = match self.version {
            Version::Two => (b"fio version 2 iolog", "header `fio version 2 iolog`"),
            Version::Three => (b"fio version 3 iolog", "header `fio version 3 iolog`"),
        };
        if line.trim_ascii() == expected {
            return Ok(());
        }
        Err(Fault::line(FaultKind::BadHeader, field, "fio version 2 iolog, fio version 3 iolog"))
    }
}

enum Word {
    File,
    Wait,
    Io(IoOp),
}

fn word(field: Field<'_>) -> Result<Word, Fault> {
    Ok(match field.text {
        b"add" | b"open" | b"close" => Word::File,
        b"wait" => Word::Wait,
        b"read" => Word::Io(IoOp::Read),
        b"write" => Word::Io(IoOp::Write),
        b"trim" => Word::Io(IoOp::Trim),
        // Data-only and full syncs are the same command to a device.
        b"sync" | b"datasync" => Word::Io(IoOp::Flush),
        _ => {
            return Err(field.fault(
                FaultKind::UnknownOperation,
                "read, write, trim, sync, datasync, add, open, close, wait (version 2)",
            ));
        }
    })
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        if !std::mem::replace(&mut self.header_seen, true) {
            return self.header(line);
        }
        let mut fields = Fields::blanks(line);
        let at = match self.version {
            Version::Two => self.waited,
            Version::Three => fields.next("timestamp")?.whole_moment(self.exponent)?,
        };
        let file = fields.next("file name")?;
        let action = fields.next("action")?;
        match word(action)? {
            Word::File => fields.end(),
            Word::Wait if self.version == Version::Three => {
                Err(action.fault(FaultKind::UnknownOperation, "version 3 has timestamps instead of `wait`"))
            }
            Word::Wait => {
                let wait = fields.next("time to wait")?;
                let ps = wait.whole_moment(self.exponent)?;
                self.waited = self.waited.checked_add(ps).ok_or(wait.fault(FaultKind::TooLarge, ""))?;
                fields.optional("length");
                fields.end()
            }
            Word::Io(op) => {
                let extent = match (op, fields.optional("offset")) {
                    (IoOp::Flush, None) => Extent::NONE,
                    (_, Some(offset)) => Extent::read(op, offset, 1, fields.next("length")?, 1)?,
                    (_, None) => fields.next("offset").map(|_| Extent::NONE)?,
                };
                fields.end()?;
                let flow = sheet.flow(file)?;
                sheet.request(at, op, extent, flow, false);
                Ok(())
            }
        }
    }
}
