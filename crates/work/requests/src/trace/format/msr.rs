//! Traces of MSR Cambridge.

use proto::IoOp;

use super::{Units, plain};
use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, any_request};
use crate::trace::options::TimeUnit;
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "msr",
        title: "MSR Cambridge CSV",
        record: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
        units: "times in 100 ns (Windows FILETIME); offset and size in bytes; type Read or Write; excerpts may leave out Hostname, \
                DiskNumber and ResponseTime",
        example: "128166385295514663,hm,0,Write,9056014336,2048,2833\n\
                  128166385295514878,hm,0,Read,11855351808,512,2617\n",
        source: "SNIA IOTTA trace set 387, README",
        time_unit: Some(TimeUnit::Filetime),
        sector: None,
        whole_seconds: false,
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
    let time = fields.next("timestamp")?;
    let at = time.whole_moment(units.exponent)?;
    // Excerpts leave out the host, or host and disk, and the response time.
    let mut volume = [None; 2];
    let mut word = fields.next("type")?;
    for place in &mut volume {
        if operation(word).is_some() {
            break;
        }
        *place = Some(word);
        word = fields.next("type")?;
    }
    let op = operation(word).ok_or(word.fault(FaultKind::UnknownOperation, "Read, Write"))?;
    if let [Some(_), Some(disk)] = volume {
        disk.integer()?;
    }
    let offset = fields.next("offset")?;
    let size = fields.next("size")?;
    let response = fields.optional("response time");
    if response.is_some() {
        fields.end()?;
    }
    let took = response.map_or(Ok(0), |response| response.whole_time(units.exponent))?;
    let extent = Extent::read(op, offset, 1, size, 1)?;
    // Host and disk are adjacent unless they were quoted: one slice of the line names the volume without a copy.
    let joined;
    let name = match volume {
        [Some(host), Some(disk)] if host.at + host.text.len() + 1 == disk.at => {
            &line[host.at..disk.at + disk.text.len()]
        }
        [Some(host), Some(disk)] => {
            joined = [host.text, b",", disk.text].concat();
            &joined
        }
        [Some(host), None] => host.text,
        _ => b"disk",
    };
    let flow = sheet.flow(Field { text: name, name: "host name", at: time.text.len() })?;
    sheet.request(at, op, extent, flow, false);
    sheet.responded(took);
    Ok(())
}

fn operation(field: Field<'_>) -> Option<IoOp> {
    let is = |word: &[u8]| field.text.eq_ignore_ascii_case(word);
    match field.text {
        _ if is(b"Read") => Some(IoOp::Read),
        _ if is(b"Write") => Some(IoOp::Write),
        _ => None,
    }
}
