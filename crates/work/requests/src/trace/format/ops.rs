//! The codes that formats use for operations. They contradict each other: that is why each format names its own.

use proto::IoOp;

use crate::trace::fault::{Fault, FaultKind};
use crate::trace::field::Field;

/// 1 is a read, 0 a write (MQSim, FEMU).
pub(crate) fn one_is_read(field: Field<'_>) -> Result<IoOp, Fault> {
    match field.text {
        b"1" => Ok(IoOp::Read),
        b"0" => Ok(IoOp::Write),
        _ => Err(field.fault(FaultKind::UnknownOperation, "1 (read), 0 (write)")),
    }
}

/// 0 is a read, 1 a write (Tencent).
pub(crate) fn zero_is_read(field: Field<'_>) -> Result<IoOp, Fault> {
    match field.text {
        b"0" => Ok(IoOp::Read),
        b"1" => Ok(IoOp::Write),
        _ => Err(field.fault(FaultKind::UnknownOperation, "0 (read), 1 (write)")),
    }
}

/// `R` or `W`, in either case.
pub(crate) fn letter(field: Field<'_>) -> Result<IoOp, Fault> {
    match field.text {
        b"R" | b"r" => Ok(IoOp::Read),
        b"W" | b"w" => Ok(IoOp::Write),
        _ => Err(field.fault(FaultKind::UnknownOperation, "R (read), W (write)")),
    }
}

/// The operation of a SCSI block command (SBC-4, table of operation codes).
pub(crate) fn scsi(opcode: u64) -> Option<IoOp> {
    match opcode {
        // READ(6), (10), (12), (16)
        0x08 | 0x28 | 0xa8 | 0x88 => Some(IoOp::Read),
        // WRITE(6), (10), (12), (16); WRITE AND VERIFY(10), (12), (16)
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Some(IoOp::Write),
        // UNMAP
        0x42 => Some(IoOp::Trim),
        // WRITE SAME(10), (16)
        0x41 | 0x93 => Some(IoOp::WriteZeroes),
        // SYNCHRONIZE CACHE(10), (16)
        0x35 | 0x91 => Some(IoOp::Flush),
        _ => None,
    }
}

/// What [`scsi`] knows.
pub(crate) const SCSI: &str =
    "reads 08 28 88 a8, writes 0a 2a 8a aa 2e 8e ae, unmap 42, write same 41 93, synchronize 35 91";
