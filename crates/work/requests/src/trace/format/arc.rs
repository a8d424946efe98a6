//! Traces of ARC: an order without times.

use proto::IoOp;

use super::{Units, plain};
use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "arc",
        title: "ARC (Megiddo and Modha)",
        record: "start_block blocks ignored number",
        units: "blocks of 512 B; all are reads; no times: it runs at a queue depth",
        example: "46402 7 0 0\n46410 8 0 1\n",
        source: "Megiddo and Modha, ARC, FAST '03: the note beside the traces (each line has four fields); ben-manes/caffeine, ArcTraceReader",
        time_unit: None,
        sector: Some(512),
        whole_seconds: false,
        one_device: false,
        untimed: true,
        binary: false,
    },
    parser: |settings| plain(settings, None, parse),
    plausible: any_request,
    framing: Framing::Lines,
    separator: Some(b' '),
};

fn parse(line: &[u8], units: Units, sheet: &mut Sheet) -> Result<(), Fault> {
    let mut fields = Fields::blanks(line);
    let start = fields.next("start block")?;
    let blocks = fields.next("number of blocks")?;
    let ignored = fields.next("ignored field")?;
    if ignored.integer()? != 0 {
        return Err(ignored.fault(FaultKind::UnknownWord, "0"));
    }
    fields.next("number of the request")?.integer()?;
    fields.end()?;
    let extent = Extent::read(IoOp::Read, start, units.sector, blocks, units.sector)?;
    let flow = sheet.flow(Field { text: b"disk", name: "disk", at: 0 })?;
    sheet.request(0, IoOp::Read, extent, flow, false);
    Ok(())
}
