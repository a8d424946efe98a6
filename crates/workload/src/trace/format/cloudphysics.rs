//! The CSV form of CloudPhysics' traces.

use proto::IoOp;

use crate::trace::fault::{Fault, FaultKind};
use crate::trace::field::{Field, Fields};
use crate::trace::format::plain::{Units, plain};
use crate::trace::format::{Format, FormatInfo, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "cloudphysics",
        title: "CloudPhysics CSV",
        record: "version,time,op,size,lbn",
        units: "time in whole s; size in bytes; lbn in sectors of 512 B; op is the SCSI opcode in hex",
        example: "version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633899,28,4096,1048576\n",
        source: "cacheMon/libCacheSim, data/cloudPhysicsIO.csv; opcodes: SCSI SBC-4",
        time_unit: Some(TimeUnit::Second),
        sector: Some(512),
        whole_seconds: true,
        one_device: false,
    },
    parser: |settings| plain(settings, Some("version"), parse),
    plausible: any_request,
};

fn parse(line: &[u8], units: Units, sheet: &mut Sheet) -> Result<(), Fault> {
    let mut fields = Fields::commas(line);
    fields.next("version")?.integer()?;
    let at = fields.next("time")?.whole_time(units.exponent)?;
    let op = scsi(fields.next("SCSI opcode")?)?;
    let size = fields.next("size")?;
    let block = fields.next("block number")?;
    fields.end()?;
    let extent = Extent::read(op, block, units.sector, size, 1)?;
    let flow = sheet.flow(Field { text: b"disk", name: "disk", at: 0 })?;
    sheet.request(at, op, extent, flow, false);
    Ok(())
}

/// The operation of a SCSI block command (SBC-4, table of operation codes).
fn scsi(field: Field<'_>) -> Result<IoOp, Fault> {
    match field.hexadecimal()? {
        // READ(6), (10), (12), (16)
        0x08 | 0x28 | 0xa8 | 0x88 => Ok(IoOp::Read),
        // WRITE(6), (10), (12), (16); WRITE AND VERIFY(10), (12), (16)
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Ok(IoOp::Write),
        // UNMAP
        0x42 => Ok(IoOp::Trim),
        // WRITE SAME(10), (16)
        0x41 | 0x93 => Ok(IoOp::WriteZeroes),
        // SYNCHRONIZE CACHE(10), (16)
        0x35 | 0x91 => Ok(IoOp::Flush),
        _ => Err(field.fault(
            FaultKind::UnknownOperation,
            "reads 08 28 88 a8, writes 0a 2a 8a aa 2e 8e ae, unmap 42, write same 41 93, synchronize 35 91",
        )),
    }
}
