//! Storage Performance Council traces (UMass Financial, WebSearch).

use super::{Units, plain};
use crate::trace::field::Fields;
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "spc",
        title: "SPC / UMass CSV",
        record: "ASU,LBA,Size,Opcode,Timestamp[,...]",
        units: "time in s with decimals; LBA in blocks of 512 B; size in bytes; opcode R or W",
        example: "0,20941264,8192,W,0.551706\n0,20939840,8192,r,0.554041\n",
        source: "SPC trace file format specification 1.0.1",
        time_unit: Some(TimeUnit::Second),
        sector: Some(512),
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: false,
    },
    parser: |settings| plain(settings, None, parse),
    plausible: any_request,
    framing: Framing::Lines,
    separator: Some(b','),
};

fn parse(line: &[u8], units: Units, sheet: &mut Sheet) -> Result<(), Fault> {
    // The standard allows additional fields, defined by the owner.
    let mut fields = Fields::commas(line);
    let unit = fields.next("ASU")?;
    unit.integer()?;
    let block = fields.next("LBA")?;
    let size = fields.next("size")?;
    let op = super::operation_by_letter(fields.next("opcode")?)?;
    let at = fields.next("timestamp")?.moment(units.exponent)?;
    let extent = Extent::read(op, block, units.sector, size, 1)?;
    let flow = sheet.flow(unit)?;
    sheet.request(at, op, extent, flow, false);
    Ok(())
}
