//! Block traces of Alibaba's cloud.

use super::{Units, plain};
use crate::trace::field::Fields;
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "alibaba",
        title: "Alibaba block CSV",
        record: "device_id,opcode,offset,length,timestamp",
        units: "time in whole us; offset and length in bytes; opcode R or W",
        example: "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,360448,1577808144360813\n",
        source: "alibaba/block-traces, README",
        time_unit: Some(TimeUnit::Microsecond),
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
    let device = fields.next("device")?;
    device.integer()?;
    let op = super::operation_by_letter(fields.next("opcode")?)?;
    let offset = fields.next("offset")?;
    let length = fields.next("length")?;
    let at = fields.next("timestamp")?.whole_moment(units.exponent)?;
    fields.end()?;
    let extent = Extent::read(op, offset, 1, length, 1)?;
    let flow = sheet.flow(device)?;
    sheet.request(at, op, extent, flow, false);
    Ok(())
}
