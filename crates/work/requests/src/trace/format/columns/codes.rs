//! How the operations of a table are called.

use proto::IoOp;

use crate::trace::fault::{Fault, FaultKind};
use crate::trace::field::Field;
use crate::trace::format::blkparse::Flags;
use crate::trace::format::ops;

/// How operations are called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Codes {
    Words,
    /// 0 = read, 1 = write.
    ZeroIsRead,
    /// 1 = read, 0 = write.
    OneIsRead,
    /// As the header says; `None` moves no data.
    Legend(Vec<(String, Option<IoOp>)>),
}

/// An operation, and whether it is written through; `None` moves no data.
pub(super) type Called = (Option<IoOp>, bool);

impl Codes {
    /// The operation, and whether it is written through.
    pub(super) fn operation(&self, field: Field<'_>) -> Result<Called, Fault> {
        let text = match field.text {
            text if text.eq_ignore_ascii_case(b"false") => b"0",
            text if text.eq_ignore_ascii_case(b"true") => b"1",
            text => text,
        };
        let code = Field { text, ..field };
        match self {
            Codes::ZeroIsRead => ops::zero_is_read(code).map(|op| (Some(op), false)),
            Codes::OneIsRead => ops::one_is_read(code).map(|op| (Some(op), false)),
            Codes::Legend(codes) => {
                let found = codes.iter().find(|(code, _)| code.as_bytes() == field.text);
                let unknown = field.fault(FaultKind::UnknownOperation, "the codes of the header");
                found.map(|(_, op)| (*op, false)).ok_or(unknown)
            }
            Codes::Words => words(field),
        }
    }
}

fn words(field: Field<'_>) -> Result<Called, Fault> {
    if let Some(op) = word(field.text) {
        return Ok((Some(op), false));
    }
    if IDLE.iter().any(|word| field.text.eq_ignore_ascii_case(word)) {
        return Ok((None, false));
    }
    // Other text may be letters of the kernel: RA, WS, WFS, D, FN.
    let fault = field.fault(
        FaultKind::UnknownOperation,
        "R, W, read, write, trim, discard, T, D, zeroes, flush, sync, get, put, delete; op_0r and op_1r are codes",
    );
    let flags = Flags::read(field).map_err(|_| fault)?;
    let op = flags.op.or(flags.flush.then_some(IoOp::Flush)).ok_or(fault)?;
    Ok((Some(op), flags.fua))
}

/// Operations that move no data of a device.
const IDLE: [&[u8]; 5] = [b"head", b"list", b"stat", b"open", b"close"];

/// The operation that a word means, in either case.
pub(super) fn word(text: &[u8]) -> Option<IoOp> {
    const WORDS: [(&[u8], IoOp); 26] = [
        (b"R", IoOp::Read),
        (b"W", IoOp::Write),
        (b"read", IoOp::Read),
        (b"reads", IoOp::Read),
        (b"rd", IoOp::Read),
        (b"get", IoOp::Read),
        (b"write", IoOp::Write),
        (b"writes", IoOp::Write),
        (b"wr", IoOp::Write),
        (b"put", IoOp::Write),
        (b"set", IoOp::Write),
        (b"trim", IoOp::Trim),
        (b"discard", IoOp::Trim),
        (b"unmap", IoOp::Trim),
        (b"deallocate", IoOp::Trim),
        (b"delete", IoOp::Trim),
        (b"del", IoOp::Trim),
        (b"T", IoOp::Trim),
        (b"D", IoOp::Trim),
        (b"zeroes", IoOp::WriteZeroes),
        (b"write_zeroes", IoOp::WriteZeroes),
        (b"flush", IoOp::Flush),
        (b"sync", IoOp::Flush),
        (b"fsync", IoOp::Flush),
        (b"datasync", IoOp::Flush),
        (b"fdatasync", IoOp::Flush),
    ];
    WORDS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)).map(|(_, op)| *op)
}
