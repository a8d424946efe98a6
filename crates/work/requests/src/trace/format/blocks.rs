//! Lists of block numbers, as used by LIRS and in courses on caches: an order without times.

use proto::IoOp;

use super::{Units, plain};
use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "blocks",
        title: "block list (LIRS)",
        record: "block",
        units: "blocks of 4 KiB (--sector sets another size), decimal or 0x…; `*` on a line of its own ends a phase; all are reads; no times: it \
                runs at a queue depth",
        example: "0\n1\n*\n0x10\n",
        source: "Jiang and Zhang, LIRS, SIGMETRICS '02: the traces beside the simulator; ben-manes/caffeine, LirsTraceReader",
        time_unit: None,
        sector: Some(4096),
        whole_seconds: false,
        one_device: false,
        untimed: true,
        binary: false,
    },
    parser: |settings| plain(settings, None, parse),
    plausible: any_request,
    framing: Framing::Lines,
    separator: None,
};

fn parse(line: &[u8], units: Units, sheet: &mut Sheet) -> Result<(), Fault> {
    let mut fields = Fields::blanks(line);
    let block = fields.next("block")?;
    fields.end()?;
    if block.text == b"*" {
        return Ok(());
    }
    let number = if block.text.starts_with(b"0x") { block.hexadecimal()? } else { block.integer()? };
    let fault = block.fault(FaultKind::TooLarge, "");
    let extent = Extent::of(IoOp::Read, (number, units.sector, 1, units.sector), fault, fault)?;
    let flow = sheet.flow(Field { text: b"disk", name: "disk", at: 0 })?;
    sheet.request(0, IoOp::Read, extent, flow, false);
    Ok(())
}
