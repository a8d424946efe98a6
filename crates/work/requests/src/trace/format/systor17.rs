//! Traces of SYSTOR '17 (an enterprise VDI).

use super::{Units, plain};
use crate::trace::field::Fields;
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "systor17",
        title: "SYSTOR '17 CSV",
        record: "Timestamp,Response,IOType,LUN,Offset,Size",
        units: "times in s with decimals; offset and size in bytes; type R or W; not sorted",
        example: "Timestamp,Response,IOType,LUN,Offset,Size\n\
                  1456095145.133076000,0.000806000,R,0,899056122368,131072\n\
                  1456095145.126285000,0.008044000,W,0,4256049987072,122880\n",
        source: "SNIA IOTTA, SYSTOR '17 traces, README",
        time_unit: Some(TimeUnit::Second),
        sector: None,
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: false,
    },
    parser: |settings| plain(settings, Some(FORMAT.info.record), parse),
    plausible: any_request,
    framing: Framing::Lines,
    separator: Some(b','),
};

fn parse(line: &[u8], units: Units, sheet: &mut Sheet) -> Result<(), Fault> {
    let mut fields = Fields::commas(line);
    let at = fields.next("timestamp")?.moment(units.exponent)?;
    let response = fields.next("response time")?;
    let took = if response.text.is_empty() { 0 } else { response.decimal_time(units.exponent)? };
    let op = super::operation_by_letter(fields.next("type")?)?;
    let lun = fields.next("LUN")?;
    lun.integer()?;
    let offset = fields.next("offset")?;
    let size = fields.next("size")?;
    fields.end()?;
    let extent = Extent::read(op, offset, 1, size, 1)?;
    let flow = sheet.flow(lun)?;
    sheet.request(at, op, extent, flow, false);
    sheet.responded(took);
    Ok(())
}
