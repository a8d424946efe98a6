//! Traces of MLPerf Storage's KV cache benchmark: what it decides to move, by tier.

use proto::IoOp;

use super::super::Objects;
use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, any_request, is_header};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "kv-cache",
        title: "MLPerf Storage KV cache",
        record: "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase",
        units: "time in s with decimals; operation Read or Write; Tier-2 is the drive, Tier-0 (GPU) and Tier-1 (CPU) are memory and left out; \
                objects, called Key, are placed in order of first access",
        example: "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\n1762300000.125000,Write,131072,Tier-2,user_0001_ctx,Prefill\n\
                  1762300000.250000,Read,131072,Tier-2,user_0001_ctx,Decode\n",
        source: "mlcommons/storage, kv_cache_benchmark, IOTracer (--io-trace-log)",
        time_unit: Some(TimeUnit::Second),
        sector: None,
        whole_seconds: false,
        one_device: true,
        untimed: false,
        binary: false,
    },
    parser: |settings| {
        Box::new(Parser {
            exponent: settings.exponent,
            objects: Objects::default(),
            first: true,
            nameless: 0,
        })
    },
    plausible: any_request,
    framing: Framing::Lines,
    separator: Some(b','),
};

struct Parser {
    exponent: u32,
    objects: Objects,
    first: bool,
    /// Number of objects without a key so far.
    nameless: u64,
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        if std::mem::take(&mut self.first) && is_header(line, FORMAT.info.record) {
            return Ok(());
        }
        let mut fields = Fields::commas(line);
        let at = fields.next("timestamp")?.moment(self.exponent)?;
        let word = fields.next("operation")?;
        let op = match word.text {
            text if text.eq_ignore_ascii_case(b"Read") => IoOp::Read,
            text if text.eq_ignore_ascii_case(b"Write") => IoOp::Write,
            _ => return Err(word.fault(FaultKind::UnknownOperation, "Read, Write")),
        };
        let size = fields.next("size of the object")?;
        let tier = fields.next("tier")?;
        // Traces of the first version end here.
        let key = fields.optional("key").map_or(b"".as_slice(), |key| key.text);
        fields.optional("phase");
        fields.end()?;
        let bytes = size.integer()?;
        match tier.text {
            b"Tier-2" | b"nvme" => {}
            b"Tier-0" | b"Tier-1" | b"gpu" | b"cpu" => {
                sheet.notes.remark(
                    "lines of Tier-0 (GPU) and Tier-1 (CPU) are left out: they do not reach a drive"
                        .to_owned(),
                );
                return Ok(());
            }
            _ => return Err(tier.fault(FaultKind::UnknownWord, "Tier-0, Tier-1, Tier-2")),
        }
        if bytes == 0 {
            return Err(size.fault(FaultKind::ZeroLength, "at least one byte"));
        }
        let number = if key.is_empty() {
            sheet.notes.remark("each object without a key counts as a separate object".to_owned());
            self.nameless += 1;
            self.nameless
        } else {
            Objects::key(key)
        };
        let place = self.objects.place(number, bytes);
        let offset = place.ok_or(size.fault(FaultKind::TooLarge, "2^64 bytes of objects"))?;
        let flow = sheet.flow(Field { text: b"objects", name: "objects", at: 0 })?;
        sheet.request(at, op, Extent { offset, bytes }, flow, false);
        Ok(())
    }
}
