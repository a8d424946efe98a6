//! Default text output of blkparse.

use proto::IoOp;

use crate::trace::field::{Field, Fields};
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, Settings, any_request};
use crate::trace::options::{Action, TimeUnit};
use crate::trace::record::{Extent, Fault, FaultKind, Sheet};

pub(crate) static FORMAT: Format = Format {
    info: FormatInfo {
        name: "blkparse",
        title: "blkparse text",
        record: "maj,min cpu seq s.ns pid action RWBS sector + sectors [process]",
        units: "time in s with decimals; sectors of 512 B; one event a request (--action, D or else Q)",
        example: "  8,16   1        1     1.427376394  5529  Q  WS 274432 + 8 [fio]\n\
                  \x20 8,16   1        2     1.427390118  5529  D  WS 274432 + 8 [fio]\n\
                  \x20 8,16   1        3     1.427501993     0  C  WS 274432 + 8 [0]\n",
        source: "blkparse(1), blkparse_fmt.c; RWBS: Linux blktrace.c, blk_fill_rwbs",
        time_unit: Some(TimeUnit::Second),
        sector: Some(512),
        whole_seconds: false,
        one_device: false,
        untimed: false,
        binary: false,
    },
    parser: |settings| Box::new(Parser::new(settings)),
    plausible: any_request,
    framing: Framing::Lines,
    separator: None,
};

struct Parser {
    exponent: u32,
    sector: u64,
    action: u8,
    /// True if the action was chosen because no `D` was seen, not requested.
    guessed: bool,
}

impl Parser {
    fn new(settings: &Settings<'_>) -> Parser {
        let (action, guessed) = match settings.action {
            Some(action) => (action, false),
            None if has_action(settings.prefix, Action::Issue) => (Action::Issue, false),
            None if has_action(settings.prefix, Action::Queue) => (Action::Queue, true),
            None => (Action::Issue, false),
        };
        Parser { exponent: settings.exponent, sector: settings.sector, action: action.letter(), guessed }
    }
}

fn has_action(prefix: &[u8], action: Action) -> bool {
    prefix
        .split(|b| *b == b'\n')
        .any(|line| event(line).is_ok_and(|e| e.is_some_and(|e| e.action.text == [action.letter()])))
}

/// Fields of every event.
struct Event<'a> {
    device: Field<'a>,
    time: Field<'a>,
    action: Field<'a>,
    rest: Fields<'a>,
}

/// Returns the event on a line; `None` for the lines around the events (files added, summary per CPU).
fn event(line: &[u8]) -> Result<Option<Event<'_>>, Fault> {
    const AROUND: [&[u8]; 6] = [b"Input file ", b"CPU", b"Total (", b"Throughput (", b"Events (", b"Skips:"];
    let text = line.trim_ascii_start();
    if AROUND.iter().any(|start| text.starts_with(start)) || is_summary(text) {
        return Ok(None);
    }
    let mut rest = Fields::blanks(line);
    let device = rest.next("device")?;
    let numbers = device.text.split(|b| *b == b',').filter(|n| !n.is_empty());
    if numbers.clone().count() != 2 || !device.text.iter().all(|b| b.is_ascii_digit() || *b == b',') {
        return Err(device.fault(FaultKind::UnknownWord, "major,minor"));
    }
    rest.next("CPU")?.integer()?;
    rest.next("sequence number")?.integer()?;
    let time = rest.next("time")?;
    rest.next("process id")?.integer()?;
    let action = rest.next("action")?;
    Ok(Some(Event { device, time, action, rest }))
}

/// Returns true for ` Reads Queued:  163, 652KiB   Writes Queued: …` and similar lines with a word of the summary
/// before a colon.
fn is_summary(text: &[u8]) -> bool {
    const WORDS: [&[u8]; 7] =
        [b"Reads ", b"Read ", b"Writes ", b"Write ", b"PC Reads ", b"IO unplugs:", b"Timer unplugs:"];
    text.contains(&b':') && WORDS.iter().any(|start| text.starts_with(start))
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], sheet: &mut Sheet) -> Result<(), Fault> {
        let Some(mut event) = event(line)? else {
            return Ok(());
        };
        let at = event.time.moment(self.exponent)?;
        let known = event.action.text.iter().all(u8::is_ascii_alphabetic) && event.action.text.len() <= 2;
        if !known {
            return Err(event.action.fault(FaultKind::UnknownWord, "Q G I D C M F S P U T X A B m"));
        }
        if self.guessed && event.action.text == [Action::Issue.letter()] {
            return Err(event.action.fault(
                FaultKind::UnknownWord,
                "the trace began with Q events and no D events, so Q was taken: choose with --action Q or --action D",
            ));
        }
        if event.action.text != [self.action] {
            return Ok(());
        }
        let flags = Flags::read(event.rest.next("RWBS")?)?;
        let start = event.rest.optional("sector");
        let plus = event.rest.optional("+");
        let count = event.rest.optional("number of sectors");
        let extent = match (start, plus, count) {
            (Some(start), Some(plus), Some(count)) if plus.text == b"+" => Some((start, count)),
            _ => None,
        };
        let Some((start, count)) = extent else {
            if flags.flush {
                let flow = sheet.flow(event.device)?;
                sheet.request(at, IoOp::Flush, Extent::NONE, flow, false);
                return Ok(());
            }
            // `R 36 (12 00 …) [udevd]`: a pass-through command has no sectors.
            if flags.op.is_none() || start.is_some_and(|f| f.integer().is_ok()) {
                sheet.notes.passthrough += 1;
                return Ok(());
            }
            let at = line.len();
            return Err(Fault { kind: FaultKind::MissingField, field: "sectors", at, len: 0, allowed: "" });
        };
        let Some(op) = flags.op else {
            sheet.notes.passthrough += 1;
            return Ok(());
        };
        let extent = Extent::read(op, start, self.sector, count, self.sector)?;
        let flow = sheet.flow(event.device)?;
        if flags.flush {
            sheet.request(at, IoOp::Flush, Extent::NONE, flow, false);
        }
        sheet.request(at, op, extent, flow, flags.fua);
        Ok(())
    }
}

/// RWBS field: an optional `F` (flush first), the operation, then `F` (force unit access) and hints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flags {
    pub(super) op: Option<IoOp>,
    pub(super) flush: bool,
    pub(super) fua: bool,
}

impl Flags {
    pub(super) fn read(field: Field<'_>) -> Result<Flags, Fault> {
        const ALLOWED: &str = "[F] then R, W, D (discard), F (flush) or N, then F (FUA), A, S, M, B, E";
        let bad = || field.fault(FaultKind::UnknownOperation, ALLOWED);
        let is_op = |b: &u8| matches!(b, b'R' | b'W' | b'D' | b'F' | b'N');
        let (preflush, rest) = match field.text {
            [b'F', next, ..] if is_op(next) => (true, &field.text[1..]),
            all => (false, all),
        };
        let (&op, hints) = rest.split_first().ok_or_else(bad)?;
        if !is_op(&op) || !hints.iter().all(|b| matches!(b, b'F' | b'A' | b'S' | b'M' | b'B' | b'E')) {
            return Err(bad());
        }
        let op_is = match op {
            b'R' => Some(IoOp::Read),
            b'W' => Some(IoOp::Write),
            b'D' => Some(IoOp::Trim),
            _ => None,
        };
        Ok(Flags { op: op_is, flush: preflush || op == b'F', fua: hints.contains(&b'F') })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(text: &str) -> Option<(Option<IoOp>, bool, bool)> {
        let field = Field { text: text.as_bytes(), name: "RWBS", at: 0 };
        Flags::read(field).ok().map(|f| (f.op, f.flush, f.fua))
    }

    /// Checks the letters that the kernel's `blk_fill_rwbs` and blkparse's `fill_rwbs` write.
    #[test]
    fn the_place_of_an_f_says_what_it_means() {
        assert_eq!(flags("R"), Some((Some(IoOp::Read), false, false)));
        assert_eq!(flags("RAM"), Some((Some(IoOp::Read), false, false)));
        assert_eq!(flags("WS"), Some((Some(IoOp::Write), false, false)));
        assert_eq!(flags("WFSM"), Some((Some(IoOp::Write), false, true)));
        assert_eq!(flags("FWFS"), Some((Some(IoOp::Write), true, true)));
        assert_eq!(flags("FWS"), Some((Some(IoOp::Write), true, false)));
        assert_eq!(flags("FN"), Some((None, true, false)));
        assert_eq!(flags("F"), Some((None, true, false)));
        assert_eq!(flags("FF"), Some((None, true, false)));
        assert_eq!(flags("D"), Some((Some(IoOp::Trim), false, false)));
        assert_eq!(flags("DS"), Some((Some(IoOp::Trim), false, false)));
        assert_eq!(flags("DE"), Some((Some(IoOp::Trim), false, false)));
        assert_eq!(flags("N"), Some((None, false, false)));
        assert_eq!(flags("Z"), None);
        assert_eq!(flags("WX"), None);
    }
}
