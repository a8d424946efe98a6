//! Traces of Meta's Tectonic that come with Baleen.

use proto::IoOp;

use super::super::Objects;
use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

/// Block size of Tectonic in bytes: `MAX_BLOCK_SIZE` of Baleen's simulator.
pub(super) const BLOCK: u64 = 8 << 20;

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "baleen",
        title: "Baleen (Tectonic)",
        record: "block_id io_offset io_size op_time op_name …",
        units: "time in s with decimals; offset (within the block) and size in bytes; op_name 1, 2, 5 = read (get), 3, 4, 6 = write (put); \
                further columns name pipeline, users and hosts; blocks of 8 MiB are placed in order of first access",
        example: "# block_id io_offset io_size op_time op_name pipeline user_namespace user_name\n\
                  1041 0 131072 1569888000.5 1 2 7 9\n1042 4194304 1048576 1569888001.25 4 2 7 9\n",
        source: "wonglkd/BCacheSim, cachesim/legacy_utils.py (OpType, MAX_BLOCK_SIZE) and the traces of Baleen, FAST '24",
        time_unit: Some(TimeUnit::Second),
        sector: None,
        whole_seconds: false,
        one_device: true,
        untimed: false,
        binary: false,
    },
    parser: |settings| Box::new(Parser { exponent: settings.exponent, objects: Objects::default() }),
    plausible: any_request,
    framing: Framing::Lines,
    separator: Some(b' '),
};

struct Parser {
    exponent: u32,
    objects: Objects,
}

/// Number of columns after the name of the operation, minimum and maximum, in the traces of 2019 to 2023.
const MORE: std::ops::RangeInclusive<usize> = 3..=5;

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        if line.starts_with(b"block_id") {
            return Ok(());
        }
        let mut fields = Fields::blanks(line);
        let block = fields.next("block")?;
        let offset = fields.next("offset")?;
        let size = fields.next("size")?;
        let at = fields.next("time")?.moment(self.exponent)?;
        let name = fields.next("operation")?;
        let op = match name.text {
            b"1" | b"2" | b"5" => IoOp::Read,
            b"3" | b"4" | b"6" => IoOp::Write,
            _ => {
                return Err(name.fault(FaultKind::UnknownOperation, "1, 2, 5 (get), 3, 4, 6 (put)"));
            }
        };
        let mut more = 0;
        while fields.optional("further column").is_some() {
            more += 1;
        }
        if !MORE.contains(&more) {
            return Err(Fault::line(
                FaultKind::MissingField,
                "user's columns",
                "3 to 5 columns after op_name",
            ));
        }
        let within = Extent::read(op, offset, 1, size, 1)?;
        let room = BLOCK.max(within.offset + within.bytes);
        let too_large = block.fault(FaultKind::TooLarge, "2^64 bytes of blocks");
        let start = self.objects.place(Objects::key(block.text), room).ok_or(too_large)?;
        let flow = sheet.flow(Field { text: b"blocks", name: "blocks", at: 0 })?;
        let extent = Extent { offset: start + within.offset, bytes: within.bytes };
        sheet.request(at, op, extent, flow, false);
        Ok(())
    }
}
