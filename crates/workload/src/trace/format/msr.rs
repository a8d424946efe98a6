//! The traces of MSR Cambridge.

use proto::IoOp;

use crate::trace::fault::{Fault, FaultKind};
use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, LineParser, Settings, any_request, is_header};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "msr",
        title: "MSR Cambridge CSV",
        record: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
        units: "times in 100 ns (Windows FILETIME); offset and size in bytes; type Read or Write",
        example: "128166385295514663,hm,0,Write,9056014336,2048,2833\n\
                  128166385295514878,hm,0,Read,11855351808,512,2617\n",
        source: "SNIA IOTTA trace set 387, README",
        time_unit: Some(TimeUnit::Filetime),
        sector: None,
        whole_seconds: false,
        one_device: false,
    },
    parser: |settings| Box::new(Parser::new(settings)),
    plausible: any_request,
};

struct Parser {
    exponent: u32,
    first: bool,
}

impl Parser {
    fn new(settings: &Settings<'_>) -> Parser {
        Parser { exponent: settings.exponent, first: true }
    }
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        if std::mem::take(&mut self.first) && is_header(line, "Timestamp") {
            return Ok(());
        }
        let mut fields = Fields::commas(line);
        let at = fields.next("timestamp")?.whole_time(self.exponent)?;
        let host = fields.next("host name")?;
        let disk = fields.next("disk number")?;
        disk.integer()?;
        let op = operation(fields.next("type")?)?;
        let offset = fields.next("offset")?;
        let size = fields.next("size")?;
        fields.next("response time")?.integer()?;
        fields.end()?;
        let extent = Extent::read(op, offset, 1, size, 1)?;
        // Host and disk stand side by side: one slice of the line names the volume without a copy.
        let volume =
            Field { text: &line[host.at..disk.at + disk.text.len()], name: "host name", at: host.at };
        let flow = sheet.flow(volume)?;
        sheet.request(at, op, extent, flow, false);
        Ok(())
    }
}

fn operation(field: Field<'_>) -> Result<IoOp, Fault> {
    if field.text.eq_ignore_ascii_case(b"Read") {
        Ok(IoOp::Read)
    } else if field.text.eq_ignore_ascii_case(b"Write") {
        Ok(IoOp::Write)
    } else {
        Err(field.fault(FaultKind::UnknownOperation, "Read, Write"))
    }
}
