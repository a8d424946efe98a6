//! ASCII traces of MQSim.

use super::{Units, plain};
use crate::trace::field::Fields;
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "mqsim",
        title: "MQSim ASCII",
        record: "time device start_sector sectors type",
        units: "time in whole ns; sectors of 512 B; type 1 = read, 0 = write",
        example: "938513000 4 264719034 16 0\n938828000 3 197570570 16 1\n",
        source: "CMU-SAFARI/MQSim, ASCII_Trace_Definition.h and README",
        time_unit: Some(TimeUnit::Nanosecond),
        sector: Some(512),
        whole_seconds: false,
        one_device: true,
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
    let device = fields.next("device")?;
    device.integer()?;
    let start = fields.next("start sector")?;
    let sectors = fields.next("number of sectors")?;
    let op = super::one_is_read(fields.next("type")?)?;
    fields.end()?;
    let extent = Extent::read(op, start, units.sector, sectors, units.sector)?;
    let flow = sheet.flow(device)?;
    sheet.request(at, op, extent, flow, false);
    Ok(())
}
