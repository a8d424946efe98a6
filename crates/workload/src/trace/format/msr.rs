//! The traces of MSR Cambridge.

use proto::IoOp;

use crate::trace::fault::{Fault, FaultKind};
use crate::trace::field::{Field, Fields};
use crate::trace::format::plain::{Units, plain};
use crate::trace::format::{Format, FormatInfo, any_request};
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
    parser: |settings| plain(settings, Some("Timestamp"), parse),
    plausible: any_request,
};

fn parse(line: &[u8], units: Units, sheet: &mut Sheet) -> Result<(), Fault> {
    let mut fields = Fields::commas(line);
    let at = fields.next("timestamp")?.whole_time(units.exponent)?;
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
    let volume = Field { text: &line[host.at..disk.at + disk.text.len()], name: "host name", at: host.at };
    let flow = sheet.flow(volume)?;
    sheet.request(at, op, extent, flow, false);
    Ok(())
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
