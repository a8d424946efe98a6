//! What a device says of itself, and the limits of a request that follow from it.

use super::spec::BlockSpec;
use crate::PAGE;
use proto::IoOp;

/// What the driver of a device tells the block layer when it makes the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Most bytes of a command (MDTS of NVMe); zero: the device has no limit.
    pub max_transfer: u64,
    /// Bytes of a logical block: a power of two from 512 to 4096.
    pub block: u32,
    /// Submission queues that a host may have.
    pub queues: u16,
    /// Commands of one queue under way at once. Linux has one less than the queue has entries (`nvme_alloc_io_tag_set`).
    pub queue_depth: u32,
    /// Whether it has a volatile write cache (`QUEUE_FLAG_WC`): without one, flushes are done at once.
    pub write_cache: bool,
    /// Whether it takes force unit access (`QUEUE_FLAG_FUA`); without it, the block layer flushes behind the write.
    pub fua: bool,
}

/// `NVME_MAX_KB_SZ` in bytes.
const DRIVER_TRANSFER: u64 = 4096 << 10;
/// `NVME_MAX_SEGS`.
const DRIVER_SEGMENTS: u64 = 127;

/// The limits of a request (`queue_limits`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a read or a write (`max_sectors`).
    pub bytes: u32,
    /// Most bytes of zeroes written without data (`max_write_zeroes_sectors`): what the device transfers at most.
    pub zeroes: u32,
    /// Most bytes deallocated (`max_discard_sectors`).
    pub discard: u32,
    /// Most segments of memory of a read or a write.
    pub segments: u32,
    /// Bytes of a segment: pages of memory that lie side by side, a page at least.
    pub segment: u32,
}

impl Limits {
    /// As `nvme_set_queue_limits` and `blk_queue_max_hw_sectors` compute them, with the host's own `max_sectors_kb`. The driver takes 4 MiB a
    /// command and 127 segments at most: 508 KiB of pages that do not lie side by side.
    pub fn new(spec: &BlockSpec, device: &Device) -> Limits {
        let block = u64::from(device.block);
        let transfer =
            if device.max_transfer == 0 { DRIVER_TRANSFER } else { device.max_transfer.min(DRIVER_TRANSFER) };
        let whole = |bytes: u64| (bytes - bytes % block).max(block) as u32;
        Limits {
            bytes: whole(transfer.min(spec.max_sectors.get())),
            zeroes: whole(transfer),
            discard: whole(u64::from(u32::MAX)),
            segments: (transfer / PAGE + 1).min(DRIVER_SEGMENTS) as u32,
            segment: spec.contiguous.get().max(PAGE) as u32,
        }
    }

    /// Most bytes of a request, whatever its segments (`blk_queue_get_max_sectors`).
    #[inline]
    pub fn of(&self, op: IoOp) -> u32 {
        match op {
            IoOp::Trim => self.discard,
            IoOp::WriteZeroes => self.zeroes,
            IoOp::Read | IoOp::Write | IoOp::Flush => self.bytes,
        }
    }

    /// Most bytes that a bio can keep without being split (`bio_split_rw`, `bio_split_discard`, `bio_split_write_zeroes`).
    #[inline]
    pub fn unsplit(&self, op: IoOp) -> u32 {
        let segments = self.segments.saturating_mul(self.segment);
        if has_data(op) { self.of(op).min(segments) } else { self.of(op) }
    }

    /// Segments of so many bytes of memory.
    #[inline]
    pub(super) fn segments_of(&self, op: IoOp, bytes: u32) -> u32 {
        if has_data(op) { bytes.div_ceil(self.segment) } else { 1 }
    }
}

/// Whether a command of this kind carries data, and so has segments.
#[inline]
pub(super) fn has_data(op: IoOp) -> bool {
    matches!(op, IoOp::Read | IoOp::Write)
}
