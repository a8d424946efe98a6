//! Object store traces of IBM Cloud Object Storage.

use proto::IoOp;

use super::super::Objects;
use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "ibm-cos",
        title: "IBM Cloud Object Storage",
        record: "time REST.OPERATION.OBJECT object [size [first last]]",
        units: "time in ms; size of the object in bytes, and the first and the last byte of a part; GET = read, PUT = write, DELETE = trim, HEAD \
                and COPY are left out; objects are placed in order of first access",
        example: "1219008 REST.PUT.OBJECT 8d4fcda3d675bac9 1056\n\
                  1221974 REST.HEAD.OBJECT 39d177fb735ac5df 528\n\
                  1232437 REST.GET.OBJECT 8d4fcda3d675bac9 1056 0 527\n",
        source: "SNIA IOTTA trace set 36305, README",
        time_unit: Some(TimeUnit::Millisecond),
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

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let mut fields = Fields::blanks(line);
        let at = fields.next("time")?.whole_moment(self.exponent)?;
        let word = fields.next("operation")?;
        let unknown = word.fault(FaultKind::UnknownOperation, "REST.GET.OBJECT, PUT, DELETE, HEAD, COPY");
        let name =
            word.text.strip_prefix(b"REST.").and_then(|name| name.strip_suffix(b".OBJECT")).ok_or(unknown)?;
        let key = fields.next("object")?;
        let size = fields.optional("size");
        let part = fields.optional("first byte");
        let part = part.map(|first| fields.next("last byte").map(|last| (first, last))).transpose()?;
        fields.end()?;
        let op = match name {
            b"GET" => IoOp::Read,
            b"PUT" => IoOp::Write,
            b"DELETE" => IoOp::Trim,
            b"HEAD" | b"COPY" => {
                sheet.notes.remark("HEAD and COPY are left out: they move no data of a client".to_owned());
                return Ok(());
            }
            _ => return Err(unknown),
        };
        let Some(size) = size.filter(|size| size.text != b"0") else {
            sheet.notes.remark("requests of objects without a size are left out".to_owned());
            return Ok(());
        };
        let bytes = size.integer()?;
        let too_large = size.fault(FaultKind::TooLarge, "2^64 bytes of objects");
        let (from, length) = match part {
            None => (0, bytes),
            Some((first, last)) => {
                let behind = last.integer()?.min(bytes.saturating_sub(1)).saturating_add(1);
                let from = first.integer()?;
                let length = behind
                    .checked_sub(from)
                    .ok_or(first.fault(FaultKind::TooLarge, "a byte of the object"))?;
                (from, length)
            }
        };
        let start = self.objects.place(Objects::key(key.text), bytes).ok_or(too_large)?;
        let within = Extent::of(op, (from, 1, length, 1), too_large, too_large)?;
        let offset = start.checked_add(within.offset).ok_or(too_large)?;
        let flow = sheet.flow(Field { text: b"objects", name: "objects", at: 0 })?;
        sheet.request(at, op, Extent { offset, ..within }, flow, false);
        Ok(())
    }
}
