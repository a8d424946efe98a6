//! Traces of Tencent's cloud block storage.

use super::{Units, plain};
use crate::trace::field::Fields;
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "tencent",
        title: "Tencent CBS CSV",
        record: "Timestamp,Offset,Size,IOType,VolumeID",
        units: "time in whole s since 1970; offset and size in sectors of 512 B; type 0 = read, 1 = write; not sorted",
        example: "1538323200,4247200,128,1,1058\n1538323199,13896880,128,0,1063\n",
        source: "SNIA IOTTA trace set 28064",
        time_unit: Some(TimeUnit::Second),
        sector: Some(512),
        whole_seconds: true,
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
    let at = fields.next("timestamp")?.whole_moment(units.exponent)?;
    let offset = fields.next("offset")?;
    let size = fields.next("size")?;
    let op = super::zero_is_read(fields.next("type")?)?;
    let volume = fields.next("volume")?;
    volume.integer()?;
    fields.end()?;
    let extent = Extent::read(op, offset, units.sector, size, units.sector)?;
    let flow = sheet.flow(volume)?;
    sheet.request(at, op, extent, flow, false);
    Ok(())
}
