//! SRT records of HP Labs, which DiskSim reads as `hpl`.

use proto::IoOp;

use super::super::{Bytes, fault};
use crate::trace::field::Field;
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, any_request};
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "srt",
        title: "HP Labs SRT (DiskSim `hpl`)",
        record: "u32 size, id, sec, usec, start, stop, bytes, sector, device, driver, cylinder, flags, info[, queue][, suspect]",
        units: "big- or little-endian, detected from the size; time in s and us; start and stop in us from the time; sectors of 512 B; bit 0 of the \
                flags is a read; a text that ends with a form feed may come first",
        example: "00000034 00030001 00000000 000003e8 00000064 00000258 00002000 00000010 00000100 00000001 00000000 00000001 00000000\n\
                  00000034 00030001 00000001 00000000 00000000 000001f4 00000400 00000040 00000200 00000001 00000000 00000100 00000000\n",
        source: "DiskSim 4.0, disksim_iotrace.c (iotrace_hpl_get_ioreq_event) and disksim_hptrace.h",
        time_unit: None,
        sector: None,
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: true,
    },
    parser: |_| Box::new(Parser),
    plausible: any_request,
    framing: Framing::Records(length),
    separator: None,
};

/// Minimum size of a record in bytes.
const LEAST: u64 = 52;
/// Maximum size of a record in bytes: with the queue length and the flags of a suspect request.
const MOST: u64 = 60;
/// Byte that ends the text before the records.
const FORM_FEED: u8 = 0x0c;
/// Types of a request, and of one that an error makes suspect.
const SHORT: u64 = 1;
const SUSPECT: u64 = 4;
/// Flag of a read.
const READ: u64 = 1;

/// Returns the record as numbers, if its first number is its length.
fn begins(start: &[u8]) -> Option<Bytes<'_>> {
    let is = |bytes: &Bytes<'_>| {
        let versioned = (1..=4).contains(&(bytes.u32(4) >> 16));
        start.len() >= 8 && (LEAST..=MOST).contains(&bytes.u32(0)) && versioned
    };
    [true, false].map(|big_endian| Bytes { record: start, big_endian }).into_iter().find(is)
}

fn length(start: &[u8]) -> usize {
    match begins(start) {
        Some(bytes) => bytes.u32(0) as usize,
        // The text before the first record, or bytes that are not a record.
        None => memchr::memchr(FORM_FEED, start).map_or(start.len(), |end| end + 1),
    }
}

struct Parser;

impl LineParser for Parser {
    fn parse(&mut self, record: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let Some(bytes) = begins(record) else {
            let is_text = record.last() == Some(&FORM_FEED) && record.starts_with(b"tracedate")
                || record.windows(9).any(|word| word == b"tracedate");
            return if is_text {
                Ok(())
            } else {
                Err(fault(FaultKind::BadHeader, "record of an SRT trace", 0, 4, ""))
            };
        };
        if bytes.u32(0) != record.len() as u64 {
            return Err(fault(FaultKind::CutOff, "record", 0, 4, ""));
        }
        match bytes.u32(4) & 0xffff {
            SHORT => {}
            SUSPECT => {
                let what = "requests that the recorder marked as suspect are left out, as DiskSim does";
                sheet.notes.remark(what.to_owned());
                return Ok(());
            }
            _ => {
                return Err(fault(
                    FaultKind::UnknownWord,
                    "type of record",
                    4,
                    4,
                    "1 (request), 4 (suspect)",
                ));
            }
        }
        let op = if bytes.u32(44) & READ != 0 { IoOp::Read } else { IoOp::Write };
        let size = fault(FaultKind::TooLarge, "size", 24, 4, "");
        let extent = Extent::of(op, (bytes.u32(28), 512, bytes.u32(24), 1), size, size)?;
        let device = (bytes.u32(32) >> 8 & 0xff).to_string();
        let flow = sheet.flow(Field { text: device.as_bytes(), name: "device", at: 32 })?;
        let us = i128::from(bytes.u32(8)) * 1_000_000 + i128::from(bytes.u32(12));
        sheet.request(us * 1_000_000, op, extent, flow, false);
        sheet.responded(u128::from(bytes.u32(20)) * 1_000_000);
        Ok(())
    }
}
