//! Numbers in records of bytes.

use crate::trace::fault::{Fault, FaultKind};

/// A record of bytes, its numbers little-endian unless it says otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    pub(crate) record: &'a [u8],
    pub(crate) big_endian: bool,
}

impl<'a> Bytes<'a> {
    pub(crate) fn little(record: &'a [u8]) -> Bytes<'a> {
        Bytes { record, big_endian: false }
    }

    fn number(&self, at: usize, len: usize) -> u64 {
        let bytes = self.record.get(at..at + len).unwrap_or_default().iter();
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        if self.big_endian { bytes.fold(0, add) } else { bytes.rev().fold(0, add) }
    }
    /// The number of 16 bits at a byte of the record; zero beyond its end.
    pub(crate) fn u16(&self, at: usize) -> u64 {
        self.number(at, 2)
    }
    /// As [`Bytes::u16`], of 32 bits.
    pub(crate) fn u32(&self, at: usize) -> u64 {
        self.number(at, 4)
    }
    /// As [`Bytes::u16`], of 64 bits.
    pub(crate) fn u64(&self, at: usize) -> u64 {
        self.number(at, 8)
    }
}

/// A fault of the bytes of a field.
pub(crate) fn fault(
    kind: FaultKind,
    field: &'static str,
    at: usize,
    len: usize,
    allowed: &'static str,
) -> Fault {
    Fault { kind, field, at, len, allowed }
}
