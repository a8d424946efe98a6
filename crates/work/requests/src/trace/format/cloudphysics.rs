//! Traces of CloudPhysics in CSV form.

use super::{Units, plain};
use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

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
    fields.next("version")?.integer()?;
    let at = fields.next("time")?.whole_moment(units.exponent)?;
    let code = fields.next("SCSI opcode")?;
    let op = super::operation_by_scsi_code(code.hexadecimal()?)
        .ok_or(code.fault(FaultKind::UnknownOperation, super::SCSI_CODES))?;
    let size = fields.next("size")?;
    let block = fields.next("block number")?;
    fields.end()?;
    let extent = Extent::read(op, block, units.sector, size, 1)?;
    let flow = sheet.flow(Field { text: b"disk", name: "disk", at: 0 })?;
    sheet.request(at, op, extent, flow, false);
    Ok(())
}
