//! Traces of the FEMU and IODA replayer.

use super::{Units, plain};
use crate::trace::field::Fields;
use crate::trace::format::{Format, FormatInfo, Framing};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "femu",
        title: "FEMU / IODA replayer",
        record: "time disk offset bytes type",
        units: "time in ms, decimals allowed; offset and length in bytes; type 1 = read, 0 = write",
        example: "0.125 0 409600 4096 1\n0.251 0 1048576 131072 0\n",
        source: "MoatLab/IODA-SOSP21-AE#3",
        time_unit: Some(TimeUnit::Millisecond),
        sector: None,
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: false,
    },
    parser: |settings| plain(settings, None, parse),
    // A disk moves whole sectors. Without this check every DiskSim trace would fit as well.
    plausible: |request| request.offset % 512 == 0 && request.bytes % 512 == 0,
    framing: Framing::Lines,
    separator: Some(b' '),
};

fn parse(line: &[u8], units: Units, sheet: &mut Sheet) -> Result<(), Fault> {
    let mut fields = Fields::blanks(line);
    let at = fields.next("time")?.moment(units.exponent)?;
    let disk = fields.next("disk")?;
    disk.integer()?;
    let offset = fields.next("offset")?;
    let bytes = fields.next("length")?;
    let op = super::one_is_read(fields.next("type")?)?;
    fields.end()?;
    let extent = Extent::read(op, offset, 1, bytes, 1)?;
    let flow = sheet.flow(disk)?;
    sheet.request(at, op, extent, flow, false);
    Ok(())
}
