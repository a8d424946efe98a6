//! ASCII traces of DiskSim.

use proto::IoOp;

use super::{Units, plain};
use crate::trace::field::Fields;
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "disksim",
        title: "DiskSim ASCII",
        record: "time device start_block blocks flags",
        units: "time in ms with decimals; blocks of 512 B; flags in hex, bit 0 = read",
        example: "13.191135 30 0 5 1\n25.911729 18 28601 12 0\n",
        source: "DiskSim 4.0, disksim_iotrace.c (iotrace_ascii_get_ioreq_event) and disksim_reqflags.h",
        time_unit: Some(TimeUnit::Millisecond),
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

/// Flag of a read (`disksim_reqflags.h`); the others (asynchronous, time-critical …) have no effect here.
const READ: u64 = 1;

fn parse(line: &[u8], units: Units, sheet: &mut Sheet) -> Result<(), Fault> {
    let mut fields = Fields::blanks(line);
    let at = fields.next("time")?.moment(units.exponent)?;
    let device = fields.next("device")?;
    device.integer()?;
    let start = fields.next("start block")?;
    let blocks = fields.next("number of blocks")?;
    let flags = fields.next("flags")?.hexadecimal()?;
    fields.end()?;
    let op = if flags & READ != 0 { IoOp::Read } else { IoOp::Write };
    let extent = Extent::read(op, start, units.sector, blocks, units.sector)?;
    let flow = sheet.flow(device)?;
    sheet.request(at, op, extent, flow, false);
    Ok(())
}
