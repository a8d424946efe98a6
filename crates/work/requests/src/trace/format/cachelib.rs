//! Traces of Meta's caches that come with CacheLib: block storage, key-value caches and CDN, by the names of their
//! columns.

use proto::IoOp;
use text::shown;

use super::super::Objects;
use crate::trace::field::{Field, Fields};
use crate::trace::format::baleen::BLOCK;
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, Settings, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "cachelib",
        title: "CacheLib (Meta's block, key-value and CDN traces)",
        record: "header with op_time|timestamp, block_id|key|cacheKey, op_name|op|OpType, io_size|size|objectSize[, io_offset][, op_count] …",
        units: "time in s; sizes and offsets in bytes; operations by their first word: get = read, put, set, add = write, delete = trim; a line of \
                op_count n is n requests; objects are placed in order of first access",
        example: "op_time,block_id,block_id_size,io_size,io_offset,user_name,user_namespace,op_name,op_count,host_name,rs_shard_id\n\
                  1702511878,12ce23eaa5534a38,40,8388608,0,4235083322,3487869255,getChunkData.NotInitialized,1,518845025,4\n\
                  1702511879,452acba5d9a1721a,40,4096,8192,4235083322,3487869255,putChunk.Permanent,2,518845025,4\n",
        source: "facebook/CacheLib, docs: Cachebench FB HW eval, trace columns",
        time_unit: Some(TimeUnit::Second),
        sector: None,
        whole_seconds: true,
        one_device: true,
        untimed: false,
        binary: false,
    },
    parser: |settings| Box::new(Parser::new(settings)),
    plausible: any_request,
    framing: Framing::Lines,
    separator: Some(b','),
};

/// Maximum requests per line: *chosen*, so that a wrong column does not make an endless trace.
const MOST_TIMES: u64 = 1 << 20;
/// Names of each column in the traces, by role.
const NAMES: [(Role, &[&str]); 6] = [
    (Role::Time, &["op_time", "timestamp"]),
    (Role::Key, &["block_id", "key", "cachekey"]),
    (Role::Op, &["op_name", "op", "optype"]),
    (Role::Size, &["io_size", "size", "objectsize"]),
    (Role::Offset, &["io_offset"]),
    (Role::Count, &["op_count"]),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Time,
    Key,
    Op,
    Size,
    Offset,
    Count,
}

struct Parser {
    exponent: u32,
    objects: Objects,
    columns: Option<Vec<Option<Role>>>,
}

impl Parser {
    fn new(settings: &Settings<'_>) -> Parser {
        Parser { exponent: settings.exponent, objects: Objects::default(), columns: None }
    }
}

/// Returns the role of each column of the header.
fn header(line: &[u8]) -> Result<Vec<Option<Role>>, Fault> {
    const WHAT: &str = "header of a CacheLib trace";
    let mut fields = Fields::commas(line);
    let mut columns = Vec::new();
    while let Some(field) = fields.optional("column") {
        let name = shown(field.text, 40).to_ascii_lowercase();
        let role = NAMES.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(role, _)| *role);
        if role.is_some() && columns.contains(&role) {
            return Err(field.fault(FaultKind::UnknownWord, "one column of each meaning"));
        }
        columns.push(role);
    }
    let needed = [Role::Key, Role::Op, Role::Size];
    if needed.iter().all(|role| columns.contains(&Some(*role))) && columns.len() > 4 {
        return Ok(columns);
    }
    Err(Fault::line(FaultKind::BadHeader, WHAT, ""))
}

/// Returns the operation named by the first word of a name.
fn operation(field: Field<'_>) -> Result<IoOp, Fault> {
    let word = field.text.to_ascii_lowercase();
    let is = |words: &[&[u8]]| words.iter().any(|start| word.starts_with(start));
    match () {
        () if is(&[b"get", b"read"]) || matches!(word.as_slice(), b"1" | b"2" | b"5") => Ok(IoOp::Read),
        () if is(&[b"put", b"set", b"add", b"write"]) || matches!(word.as_slice(), b"3" | b"4" | b"6") => {
            Ok(IoOp::Write)
        }
        () if is(&[b"del"]) => Ok(IoOp::Trim),
        () => Err(field.fault(FaultKind::UnknownOperation, "get…, put…, set…, add…, delete…")),
    }
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let Some(columns) = &self.columns else {
            let columns = header(line)?;
            if !columns.contains(&Some(Role::Time)) {
                sheet.notes.remark("no times are recorded: all requests arrive at one instant".to_owned());
            }
            self.columns = Some(columns);
            return Ok(());
        };
        let mut found = [None; NAMES.len()];
        let mut fields = Fields::commas(line);
        for role in columns {
            let field = fields.next("column")?;
            if let Some(role) = role {
                found[*role as usize] = Some(field);
            }
        }
        fields.end()?;
        let of =
            |role: Role, name| found[role as usize].ok_or(Fault::line(FaultKind::MissingField, name, ""));
        let at = found[Role::Time as usize].map_or(Ok(0), |time| time.moment(self.exponent))?;
        let (key, op) = (of(Role::Key, "key")?, operation(of(Role::Op, "operation")?)?);
        let size = of(Role::Size, "size")?;
        let offset = found[Role::Offset as usize];
        let times = found[Role::Count as usize].map_or(Ok(1), |count| count.integer())?;
        if size.integer()? == 0 {
            sheet.notes.remark("requests of size zero, for missing objects, are left out".to_owned());
            return Ok(());
        }
        let zero = Field { text: b"0", name: "offset", at: 0 };
        let within = Extent::read(op, offset.unwrap_or(zero), 1, size, 1)?;
        let end = within.offset + within.bytes;
        let room = if offset.is_some() { BLOCK.max(end) } else { end };
        let too_large = size.fault(FaultKind::TooLarge, "2^64 bytes of objects");
        let start = self.objects.place(Objects::key(key.text), room).ok_or(too_large)?;
        if times > MOST_TIMES {
            let count = found[Role::Count as usize].unwrap_or(zero);
            return Err(count.fault(FaultKind::TooLarge, "up to 1,048,576 requests per line"));
        }
        let flow = sheet.flow(Field { text: b"objects", name: "objects", at: 0 })?;
        let extent = Extent { offset: start + within.offset, bytes: within.bytes };
        sheet.request(at, op, extent, flow, false);
        sheet.repeat(times);
        Ok(())
    }
}
