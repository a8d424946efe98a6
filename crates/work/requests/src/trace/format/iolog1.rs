//! I/O logs of fio, version 1: an order without times.

use proto::IoOp;

use super::{Units, plain};
use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "iolog1",
        title: "fio I/O log, version 1",
        record: "rw,offset,length",
        units: "rw 0 = read, 1 = write, 2 = sync; offset and length in bytes; no times: it runs at a queue depth",
        example: "0,61440,4096\n1,774144,8192\n",
        source: "fio HOWTO, Trace file format v1; iolog.c (read_iolog)",
        time_unit: None,
        sector: None,
        whole_seconds: false,
        one_device: false,
        untimed: true,
        binary: false,
    },
    parser: |settings| plain(settings, None, parse),
    plausible: any_request,
    framing: Framing::Lines,
    separator: Some(b','),
};

fn parse(line: &[u8], _: Units, sheet: &mut Sheet) -> Result<(), Fault> {
    let mut fields = Fields::commas(line);
    let rw = fields.next("rw")?;
    let op = match rw.text {
        b"0" => IoOp::Read,
        b"1" => IoOp::Write,
        b"2" => IoOp::Flush,
        _ => return Err(rw.fault(FaultKind::UnknownOperation, "0 (read), 1 (write), 2 (sync)")),
    };
    let extent = Extent::read(op, fields.next("offset")?, 1, fields.next("length")?, 1)?;
    fields.end()?;
    let flow = sheet.flow(Field { text: b"file", name: "file", at: 0 })?;
    sheet.request(0, op, extent, flow, false);
    Ok(())
}
