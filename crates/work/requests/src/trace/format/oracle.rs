//! Traces of libCacheSim (oracleGeneral): records of 24 bytes.

use proto::IoOp;

use super::super::{Bytes, Objects, fault};
use crate::trace::field::Field;
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, Settings, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

/// Size of a record in bytes.
const RECORD: usize = 24;

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "oracle-general",
        title: "libCacheSim oracleGeneral",
        record: "u32 time, u64 object, u32 size, i64 next access",
        units: "24 bytes, little-endian; time in s; size in bytes; the next access is a request number, -1 for none; all are reads; \
                objects are placed in order of first access, on pages of 4 KiB",
        example: "00000000 0700000000000000 00100000 0200000000000000\n\
                  01000000 0900000000000000 00020000 ffffffffffffffff\n\
                  01000000 0700000000000000 00100000 ffffffffffffffff\n",
        source: "cacheMon/libCacheSim, traceReader/customizedReader/oracle/oracleGeneralBin.h",
        time_unit: Some(TimeUnit::Second),
        sector: None,
        whole_seconds: true,
        one_device: true,
        untimed: false,
        binary: true,
    },
    parser: |settings| Box::new(Parser::new(settings)),
    plausible: any_request,
    framing: Framing::Records(|_| RECORD),
    separator: None,
};

struct Parser {
    exponent: u32,
    objects: Objects,
    records: i64,
    empty: bool,
}

impl Parser {
    fn new(settings: &Settings<'_>) -> Parser {
        Parser { exponent: settings.exponent, objects: Objects::default(), records: 0, empty: false }
    }
}

impl LineParser for Parser {
    fn parse(&mut self, record: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        if record.len() != RECORD {
            return Err(fault(FaultKind::CutOff, "record", 0, 0, ""));
        }
        let bytes = Bytes::little(record);
        let (key, size, next) = (bytes.u64(4), bytes.u32(12), bytes.u64(16).cast_signed());
        // The next access of an object is a later request: this distinguishes these records from arbitrary bytes.
        self.records += 1;
        if next >= 0 && next < self.records || next < -2 {
            return Err(fault(
                FaultKind::NotANumber,
                "next access",
                16,
                8,
                "the number of a later request, -1",
            ));
        }
        if size == 0 {
            // A request of a missing object.
            if !self.empty {
                sheet.notes.remark("accesses of size zero move no data: they are left out".to_owned());
            }
            self.empty = true;
            return Ok(());
        }
        let place = self.objects.place(key, size);
        let at = place.ok_or(fault(FaultKind::TooLarge, "size", 12, 4, "2^64 bytes of objects"))?;
        let of_size = fault(FaultKind::TooLarge, "size", 12, 4, "");
        let extent = Extent::of(IoOp::Read, (at, 1, size, 1), of_size, of_size)?;
        let flow = sheet.flow(Field { text: b"objects", name: "objects", at: 0 })?;
        let time = i128::from(bytes.u32(0)) * 10_i128.pow(self.exponent);
        sheet.request(time, IoOp::Read, extent, flow, false);
        Ok(())
    }
}
