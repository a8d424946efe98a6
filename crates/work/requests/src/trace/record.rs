//! What a line parser hands over: requests in the trace's own time.

use proto::IoOp;

use crate::trace::fault::{Fault, FaultKind};
use crate::trace::field::{Field, MAX_TIME};
use crate::trace::notes::TraceNotes;

/// The longest read or write: beyond it (NVMe stops at 32 MiB, Linux well below) the unit must be wrong.
pub(crate) const MAX_TRANSFER: u64 = 1 << 30;

/// Where the zero of a trace's clock is in [`RawRequest::at`], in picoseconds: a whole number of seconds, beyond any negative time.
pub(crate) const ZERO: u128 = MAX_TIME;

/// A request as the trace has it, its time not yet rebased.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawRequest {
    /// Picoseconds on the trace's own clock, whose zero is [`ZERO`].
    pub(crate) at: u128,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// The line it stands on, counted from one.
    pub(crate) line: u64,
    pub(crate) flow: u16,
    /// The part of the trace that the line is in.
    pub(crate) part: u16,
    pub(crate) op: IoOp,
    pub(crate) fua: bool,
    /// How long it took when it was recorded, in picoseconds, if the trace says so.
    pub(crate) response: Option<u64>,
}

/// Offset and length in bytes, checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Extent {
    /// Nothing: the extent of a flush.
    pub(crate) const NONE: Extent = Extent { offset: 0, bytes: 0 };

    /// The extent of `op` from two fields and the bytes that one of each means.
    pub(crate) fn read(
        op: IoOp,
        offset: Field<'_>,
        offset_unit: u64,
        size: Field<'_>,
        size_unit: u64,
    ) -> Result<Extent, Fault> {
        let units = (offset.integer()?, offset_unit, size.integer()?, size_unit);
        Extent::of(op, units, offset.fault(FaultKind::TooLarge, ""), size.fault(FaultKind::TooLarge, ""))
    }

    /// The extent of `op` from offset and size in their units; the faults say where the two stand.
    pub(crate) fn of(
        op: IoOp,
        (offset, offset_unit, size, size_unit): (u64, u64, u64, u64),
        of_offset: Fault,
        of_size: Fault,
    ) -> Result<Extent, Fault> {
        const RANGE: &str = "offset + length below 2^64 bytes";
        let bad = |fault: Fault, kind, allowed| Fault { kind, allowed, ..fault };
        let bytes = size.checked_mul(size_unit).ok_or(bad(of_size, FaultKind::TooLarge, RANGE))?;
        let start = offset.checked_mul(offset_unit).ok_or(bad(of_offset, FaultKind::TooLarge, RANGE))?;
        if op == IoOp::Flush {
            return Ok(Extent::NONE);
        }
        if bytes == 0 {
            return Err(bad(of_size, FaultKind::ZeroLength, "at least one byte"));
        }
        if matches!(op, IoOp::Read | IoOp::Write) && bytes > MAX_TRANSFER {
            return Err(bad(of_size, FaultKind::ImplausibleLength, "up to 1 GiB; --sector sets the unit"));
        }
        if start.checked_add(bytes).is_none() {
            return Err(bad(of_offset, FaultKind::TooLarge, RANGE));
        }
        Ok(Extent { offset: start, bytes })
    }
}

/// Where a parser puts what it reads.
#[derive(Default)]
pub(crate) struct Sheet {
    /// Requests of the current line, in reverse order.
    pending: [Option<RawRequest>; 2],
    /// How often the last of them comes again.
    again: u64,
    /// The current line.
    pub(crate) line: u64,
    /// The current part of the trace, from zero.
    pub(crate) part: u16,
    pub(crate) notes: TraceNotes,
}

impl Sheet {
    /// Adds a request of the current line, at so many picoseconds of the trace's clock; a line gives two at most (a flush and the write
    /// behind it).
    pub(crate) fn request(&mut self, at: i128, op: IoOp, extent: Extent, flow: u16, fua: bool) {
        self.notes.negative += u64::from(at < 0);
        let request = RawRequest {
            at: ZERO.saturating_add_signed(at),
            offset: extent.offset,
            bytes: extent.bytes,
            line: self.line,
            flow,
            part: self.part,
            op,
            fua,
            response: None,
        };
        self.pending[1] = self.pending[0].replace(request).or(self.pending[1]);
    }
    /// Says how long the request added last took when it was recorded; none took no time.
    pub(crate) fn responded(&mut self, ps: u128) {
        if let Some(last) = &mut self.pending[0] {
            last.response = u64::try_from(ps).ok().filter(|ps| *ps > 0);
        }
    }
    /// Makes the request added last `times` requests at the same time.
    pub(crate) fn repeat(&mut self, times: u64) {
        self.again = times.saturating_sub(1);
    }
    /// The next request of the current line.
    pub(crate) fn take(&mut self) -> Option<RawRequest> {
        if let Some(first) = self.pending[1].take() {
            return Some(first);
        }
        if self.again > 0 {
            self.again -= 1;
            return self.pending[0];
        }
        self.pending[0].take()
    }
    /// Whether the current line gave no request (any more).
    pub(crate) fn is_empty(&self) -> bool {
        self.pending[0].is_none()
    }
    /// Forgets what a bad line gave before its fault.
    pub(crate) fn discard(&mut self) {
        self.pending = [None, None];
        self.again = 0;
    }
    /// The flow that `key` names.
    pub(crate) fn flow(&mut self, key: Field<'_>) -> Result<u16, Fault> {
        self.notes.flows.number(key.text).ok_or(key.fault(FaultKind::LongName, "up to 255 bytes"))
    }
}
