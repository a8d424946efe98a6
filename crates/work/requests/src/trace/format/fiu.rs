//! Traces of Florida International University (IODedup).

use super::{Units, plain};
use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "fiu",
        title: "FIU (IODedup)",
        record: "time pid process lba blocks type major minor md5",
        units: "time in whole ns; blocks of 512 B; type R or W",
        example: "89966445123456 4892 syslogd 904265560 8 W 6 0 531e779f44dad4cbf0ad4a2f4ba9e5c2\n\
                  89966445223456 2522 kjournald 904265568 8 R 6 0 4fd0e9e4b1d8b3cb1b1c4a4ab9e8cbf1\n",
        source: "SNIA IOTTA trace set 411, README",
        time_unit: Some(TimeUnit::Nanosecond),
        sector: Some(512),
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: false,
    },
    parser: |settings| plain(settings, None, parse),
    plausible: any_request,
    framing: Framing::Lines,
    separator: Some(b' '),
};

fn parse(line: &[u8], units: Units, sheet: &mut Sheet) -> Result<(), Fault> {
    let mut fields = Fields::blanks(line);
    let at = fields.next("time")?.whole_moment(units.exponent)?;
    fields.next("process id")?.integer()?;
    fields.next("process")?;
    let block = fields.next("block address")?;
    let blocks = fields.next("number of blocks")?;
    let op = super::operation_by_letter(fields.next("type")?)?;
    let major = fields.next("major device number")?;
    major.integer()?;
    let minor = fields.next("minor device number")?;
    minor.integer()?;
    fields.next("MD5 of the content")?;
    fields.end()?;
    let extent = Extent::read(op, block, units.sector, blocks, units.sector)?;
    let device = &line[major.at..minor.at + minor.text.len()];
    let flow = sheet.flow(Field { text: device, name: "device", at: major.at })?;
    sheet.request(at, op, extent, flow, false);
    Ok(())
}
