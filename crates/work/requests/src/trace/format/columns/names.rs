//! Interpretation of a column's name: role, unit and codes.

use proto::IoOp;

use crate::trace::format::columns::table::{self, Codes};
use crate::trace::options::TimeUnit;

/// Content of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Time,
    Flow,
    Op,
    Offset,
    /// Name of an object, in place of an offset.
    Key,
    Size,
    Fua,
    Response,
    Ignored,
}

/// Unit given by a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// No unit.
    Unsaid,
    /// 10^n ps.
    Time(u32),
    /// Number of bytes.
    Bytes(u64),
    /// Sectors, blocks or logical blocks, of unknown size.
    Sectors,
}

/// Role, unit and codes given by a name.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Meaning {
    pub(super) role: Role,
    pub(super) unit: Unit,
    pub(super) codes: Option<Codes>,
}

/// Names by role and implied unit, in lower case, without separators between their words.
const NAMES: [(Role, Unit, &[&str]); 12] = [
    (
        Role::Time,
        Unit::Unsaid,
        &[
            "time",
            "timestamp",
            "timestamps",
            "tstamp",
            "ts",
            "t",
            "arrival",
            "arrivaltime",
            "arrivalts",
            "arrivaltimestamp",
            "starttime",
            "startts",
            "starttimestamp",
            "issuetime",
            "issuets",
            "issuetimestamp",
            "submittime",
            "submitts",
            "submissiontime",
            "reltime",
            "relativetime",
            "relts",
            "eventtime",
            "optime",
            "clock",
            "unixtime",
            "epoch",
            "recordtime",
            "tracetime",
        ],
    ),
    (Role::Time, Unit::Time(5), &["filetime"]),
    (
        Role::Op,
        Unit::Unsaid,
        &[
            "op",
            "ops",
            "type",
            "rw",
            "readwrite",
            "rworwr",
            "opcode",
            "operation",
            "operationtype",
            "operationname",
            "optype",
            "opname",
            "cmd",
            "command",
            "cmdtype",
            "dir",
            "direction",
            "access",
            "accesstype",
            "action",
            "kind",
            "rwbs",
            "rwflag",
            "rwflags",
            "rwtype",
        ],
    ),
    (
        Role::Offset,
        Unit::Unsaid,
        &[
            "offset",
            "off",
            "byteoffset",
            "address",
            "addr",
            "startaddress",
            "startaddr",
            "byteaddress",
            "byteaddr",
            "startoffset",
            "startingoffset",
            "startbyte",
            "diskoffset",
            "logicaloffset",
            "position",
            "pos",
        ],
    ),
    (
        Role::Offset,
        Unit::Sectors,
        &[
            "lba",
            "lbn",
            "slba",
            "sector",
            "sectornumber",
            "sectornum",
            "sectorno",
            "sectornr",
            "startsector",
            "startingsector",
            "startlba",
            "startinglba",
            "sectoroffset",
            "sectoraddress",
            "lbaoffset",
            "block",
            "blocknumber",
            "blocknum",
            "blockno",
            "blocknr",
            "blkno",
            "blk",
            "blockaddress",
            "blockaddr",
            "startblock",
            "startingblock",
            "firstblock",
            "logicalblock",
            "logicalblockaddress",
            "logicalblocknumber",
            "sectorid",
        ],
    ),
    (Role::Offset, Unit::Bytes(4096), &["lpn", "lpa", "page", "pageno", "pagenumber", "startpage"]),
    (
        Role::Size,
        Unit::Unsaid,
        &[
            "size",
            "length",
            "len",
            "bytes",
            "nbytes",
            "numbytes",
            "numberofbytes",
            "bytecount",
            "bytesize",
            "bytelength",
            "datasize",
            "datalength",
            "datalen",
            "count",
            "transfersize",
            "transferlength",
            "xfersize",
            "xferlen",
            "bs",
            "blocksize",
            "objectsize",
            "objsize",
            "valuesize",
        ],
    ),
    (
        Role::Size,
        Unit::Sectors,
        &[
            "sectors",
            "nsectors",
            "nsector",
            "numsectors",
            "nrsectors",
            "nrsector",
            "numberofsectors",
            "sectorcount",
            "sectorscount",
            "sectornums",
            "blocks",
            "nblocks",
            "nblks",
            "numblocks",
            "nrblocks",
            "numberofblocks",
            "blockcount",
            "blockscount",
            "blkcount",
            "nlb",
            "nlbs",
            "numlbas",
            "lbas",
            "nlbas",
            "lbacount",
        ],
    ),
    (Role::Size, Unit::Bytes(4096), &["pages", "npages", "numpages", "nrpages", "pagecount"]),
    (
        Role::Flow,
        Unit::Unsaid,
        &[
            "flow",
            "device",
            "dev",
            "disk",
            "volume",
            "vol",
            "host",
            "hostname",
            "deviceid",
            "devid",
            "devicenumber",
            "deviceno",
            "devicename",
            "diskid",
            "disknumber",
            "disknum",
            "diskno",
            "diskname",
            "volumeid",
            "volid",
            "volumename",
            "lun",
            "lunid",
            "drive",
            "driveid",
            "asu",
            "nsid",
            "namespace",
            "vm",
            "vmid",
            "file",
            "filename",
            "fileid",
        ],
    ),
    (
        Role::Key,
        Unit::Unsaid,
        &[
            "key",
            "object",
            "objectid",
            "objid",
            "oid",
            "obj",
            "objectkey",
            "objectname",
            "cachekey",
            "keyid",
            "contentid",
            "itemid",
        ],
    ),
    (
        Role::Response,
        Unit::Unsaid,
        &[
            "response",
            "responsetime",
            "resptime",
            "latency",
            "lat",
            "elapsed",
            "elapsedtime",
            "servicetime",
            "rt",
            "duration",
        ],
    ),
];

/// Prefixes of names that carry no meaning.
const EMPTY: [&str; 3] = ["request", "req", "io"];

/// Interprets a name.
pub(super) fn meaning(name: &str) -> Meaning {
    let (plain, legend) = legend(name);
    let words = words(plain);
    let of = |role, unit, codes| Meaning { role, unit, codes };
    match words.concat().as_str() {
        "op0r" | "iswrite" | "write" | "writeflag" => {
            return of(Role::Op, Unit::Unsaid, Some(Codes::ZeroIsRead));
        }
        "op1r" | "isread" | "read" | "readflag" => return of(Role::Op, Unit::Unsaid, Some(Codes::OneIsRead)),
        "fua" => return of(Role::Fua, Unit::Unsaid, None),
        _ => {}
    }
    let (role, unit) = known(&words).unwrap_or((Role::Ignored, Unit::Unsaid));
    let codes = (role == Role::Op).then_some(legend).flatten();
    of(role, unit, codes)
}

/// Returns the role and the unit of a name by its words.
fn known(words: &[String]) -> Option<(Role, Unit)> {
    let find = |words: &[String]| {
        let key = words.concat();
        let front = EMPTY.iter().filter_map(|front| key.strip_prefix(front));
        let mut keys = std::iter::once(key.as_str()).chain(front);
        keys.find_map(|key| NAMES.iter().find(|(.., names)| names.contains(&key)))
            .map(|(role, unit, _)| (*role, *unit))
    };
    if let Some(found) = find(words) {
        return Some(found);
    }
    let (last, front) = words.split_last()?;
    let front = front.strip_suffix(&["in".to_owned()]).unwrap_or(front);
    let (role, _) = find(front)?;
    let unit = unit(last)?;
    let fits = match role {
        Role::Time | Role::Response => matches!(unit, Unit::Time(_)),
        Role::Offset | Role::Size => !matches!(unit, Unit::Time(_)),
        _ => false,
    };
    fits.then_some((role, unit))
}

/// Returns the unit named by a word.
fn unit(word: &str) -> Option<Unit> {
    let time = |unit: TimeUnit| Some(Unit::Time(unit.exponent()));
    match word {
        "s" | "sec" | "secs" | "second" | "seconds" => time(TimeUnit::Second),
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => time(TimeUnit::Millisecond),
        "us" | "usec" | "usecs" | "micros" | "microsecond" | "microseconds" => time(TimeUnit::Microsecond),
        "100ns" | "filetime" => time(TimeUnit::Filetime),
        "ns" | "nsec" | "nsecs" | "nanos" | "nanosecond" | "nanoseconds" => time(TimeUnit::Nanosecond),
        "ps" | "picosecond" | "picoseconds" => time(TimeUnit::Picosecond),
        "b" | "byte" | "bytes" => Some(Unit::Bytes(1)),
        "kb" | "kib" | "k" => Some(Unit::Bytes(1 << 10)),
        "mb" | "mib" => Some(Unit::Bytes(1 << 20)),
        "sector" | "sectors" | "block" | "blocks" | "blk" | "blks" | "lba" | "lbas" => Some(Unit::Sectors),
        "page" | "pages" => Some(Unit::Bytes(4096)),
        _ => {
            let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
            let times = match &word[digits..] {
                "" | "b" => 1,
                "k" | "kb" | "kib" => 1 << 10,
                _ => return None,
            };
            let bytes = word[..digits].parse::<u64>().ok()?.checked_mul(times)?;
            (1..=1 << 20).contains(&bytes).then_some(Unit::Bytes(bytes))
        }
    }
}

/// Splits a name into words, in lower case: `IOType`, `io_type` and `io type` have the same.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let letters: Vec<char> = name.replace(['µ', 'μ'], "u").replace("iB", "ib").chars().collect();
    for (n, c) in letters.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| letters[n]);
        let next_is_small = letters.get(n + 1).is_some_and(|next| next.is_ascii_lowercase());
        let small = before.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let large = before.is_some_and(|b| b.is_ascii_uppercase());
        let begins = c.is_ascii_uppercase() && (small || large && next_is_small);
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Splits a name into the name without the codes in brackets after it, and the codes: `op type [Put:0, Get:1]`,
/// `rw (0=read, 1=write)`.
fn legend(name: &str) -> (&str, Option<Codes>) {
    let Some(from) = name.find(['[', '(']) else { return (name, None) };
    let inside = name[from + 1..].trim_end().trim_end_matches([']', ')']);
    let mut codes: Vec<(String, Option<IoOp>)> = Vec::new();
    for pair in inside.split([',', ';', '/', '|']) {
        let Some((left, right)) = pair.split_once([':', '=']) else { return (name, None) };
        let (left, right) = (left.trim(), right.trim());
        let is_code = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (code, word) = if is_code(left) { (left, right) } else { (right, left) };
        codes.push((code.to_owned(), table::operation_by_word(word.as_bytes())));
    }
    (&name[..from], Some(Codes::Legend(codes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_its_role_and_its_unit() {
        for (names, role, unit) in [
            (
                &["timestamp", "Time", "ts", "arrival_time", "ArrivalTime", "request time"][..],
                Role::Time,
                Unit::Unsaid,
            ),
            (
                &["time_us", "ts_us", "TimestampUs", "time (µs)", "timestamp [usec]", "time in us"],
                Role::Time,
                Unit::Time(6),
            ),
            (&["time_100ns", "filetime"], Role::Time, Unit::Time(5)),
            (
                &["op", "rw", "R/W", "IOType", "iotype", "io_type", "req_type", "opcode", "Type"],
                Role::Op,
                Unit::Unsaid,
            ),
            (&["offset", "address", "byte_offset", "ByteOffset"], Role::Offset, Unit::Unsaid),
            (&["offset_bytes", "offset (B)", "address_bytes"], Role::Offset, Unit::Bytes(1)),
            (
                &["lba", "LBN", "start_sector", "sector", "StartLBA", "offset_sectors"],
                Role::Offset,
                Unit::Sectors,
            ),
            (&["lba_4096", "lba_4k"], Role::Offset, Unit::Bytes(4096)),
            (&["size", "length", "io_size", "bytes", "nbytes"], Role::Size, Unit::Unsaid),
            (&["size_bytes", "length_bytes", "len_b"], Role::Size, Unit::Bytes(1)),
            (&["nblocks", "num_sectors", "size_sectors", "sector_count", "nlb"], Role::Size, Unit::Sectors),
            (&["size_kb", "size (KiB)"], Role::Size, Unit::Bytes(1024)),
            (&["volume_id", "DiskNumber", "lun", "device"], Role::Flow, Unit::Unsaid),
            (&["object id", "key", "objID"], Role::Key, Unit::Unsaid),
            (&["latency_us", "response_us"], Role::Response, Unit::Time(6)),
            (&["process_id", "pid", "cpu", "block_id_size", "user_name", "id"], Role::Ignored, Unit::Unsaid),
        ] {
            for name in names {
                let seen = meaning(name);
                assert_eq!((seen.role, seen.unit), (role, unit), "{name}");
            }
        }
    }

    #[test]
    fn codes_stand_in_brackets() {
        let read = |codes: &str| meaning(codes).codes;
        let legend = |pairs: &[(&str, Option<IoOp>)]| {
            Some(Codes::Legend(pairs.iter().map(|(code, op)| ((*code).to_owned(), *op)).collect()))
        };
        let all = [("0", Some(IoOp::Write)), ("1", Some(IoOp::Read)), ("2", Some(IoOp::Trim)), ("3", None)];
        assert_eq!(read("op type [Put:0, Get:1, Delete:2, Head: 3]"), legend(&all));
        assert_eq!(read("rw (0=read/1=write)"), legend(&[("0", Some(IoOp::Read)), ("1", Some(IoOp::Write))]));
        assert_eq!(read("is_write"), Some(Codes::ZeroIsRead));
        assert_eq!(read("op"), None);
    }
}
