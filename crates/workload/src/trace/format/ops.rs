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
