//! Binary traces of VMware's vscsiStats, as CloudPhysics and libCacheSim keep them: versions 1 and 2.

use super::super::{Bytes, fault};
use crate::trace::field::Field;
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

const SOURCE: &str =
    "cacheMon/libCacheSim, traceReader/customizedReader/vscsi.h (trace_v1_record_t, trace_v2_record_t)";
const UNITS: &str = "little-endian; len in bytes; lbn in blocks of 512 B; ts in us; cmd is the SCSI opcode; the upper byte of ver is the version";

pub(crate) static V1: Format = Format {
    info: FormatInfo {
        name: "vscsi1",
        title: "vscsiStats, version 1",
        record: "u32 sn, u32 len, u32 nSG, u16 cmd, u16 ver, u64 lbn, u64 ts",
        units: UNITS,
        example: "01000000 00100000 01000000 2800 0001 0800000000000000 40420f0000000000\n\
                  02000000 00020000 01000000 2a00 0001 1000000000000000 44460f0000000000\n",
        source: SOURCE,
        time_unit: Some(TimeUnit::Microsecond),
        sector: Some(512),
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: true,
    },
    parser: |settings| {
        Box::new(Parser { exponent: settings.exponent, sector: settings.sector, fields: &FIELDS_1 })
    },
    plausible: any_request,
    framing: Framing::Records(|_| FIELDS_1.bytes),
    separator: None,
};

pub(crate) static V2: Format = Format {
    info: FormatInfo {
        name: "vscsi2",
        title: "vscsiStats, version 2",
        record: "u16 cmd, u16 ver, u32 sn, u32 len, u32 nSG, u64 lbn, u64 ts, u64 rt",
        units: "as version 1; rt is the response time in us",
        example: "2800 0002 01000000 00100000 01000000 0800000000000000 40420f0000000000 f401000000000000\n\
                  2a00 0002 02000000 00020000 01000000 1000000000000000 44460f0000000000 0000000000000000\n",
        source: SOURCE,
        time_unit: Some(TimeUnit::Microsecond),
        sector: Some(512),
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: true,
    },
    parser: |settings| {
        Box::new(Parser { exponent: settings.exponent, sector: settings.sector, fields: &FIELDS_2 })
    },
    plausible: any_request,
    framing: Framing::Records(|_| FIELDS_2.bytes),
    separator: None,
};

/// Offsets of the fields of a version.
struct Layout {
    version: u64,
    bytes: usize,
    command: usize,
    length: usize,
    block: usize,
    time: usize,
    response: Option<usize>,
}

static FIELDS_1: Layout =
    Layout { version: 1, bytes: 32, command: 12, length: 4, block: 16, time: 24, response: None };
static FIELDS_2: Layout =
    Layout { version: 2, bytes: 40, command: 0, length: 8, block: 16, time: 24, response: Some(32) };

struct Parser {
    exponent: u32,
    sector: u64,
    fields: &'static Layout,
}

impl LineParser for Parser {
    fn parse(&mut self, record: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let fields = self.fields;
        if record.len() != fields.bytes {
            return Err(fault(FaultKind::CutOff, "record", 0, 0, ""));
        }
        let bytes = Bytes::little(record);
        if bytes.u16(fields.command + 2) >> 8 != fields.version {
            return Err(fault(
                FaultKind::UnknownWord,
                "version",
                fields.command + 2,
                2,
                "1 or 2 in the upper byte",
            ));
        }
        let code = bytes.u16(fields.command);
        let op = super::operation_by_scsi_code(code).ok_or(fault(
            FaultKind::UnknownOperation,
            "SCSI opcode",
            fields.command,
            2,
            super::SCSI_CODES,
        ))?;
        let (block, length) = (bytes.u64(fields.block), bytes.u32(fields.length));
        let extent = Extent::of(
            op,
            (block, self.sector, length, 1),
            fault(FaultKind::TooLarge, "block", fields.block, 8, ""),
            fault(FaultKind::TooLarge, "length", fields.length, 4, ""),
        )?;
        let flow = sheet.flow(Field { text: b"disk", name: "disk", at: 0 })?;
        let unit = 10_u128.pow(self.exponent);
        sheet.request((u128::from(bytes.u64(fields.time)) * unit) as i128, op, extent, flow, false);
        sheet.responded(fields.response.map_or(0, |at| u128::from(bytes.u64(at)) * unit));
        Ok(())
    }
}
