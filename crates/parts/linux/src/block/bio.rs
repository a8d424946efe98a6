//! Bios as submitted by the upper layers, their unfinished parts, and the merging of bios and requests.

use super::{
    has_data,
    request::{NONE, Request, RequestList, Requests},
};
use crate::PAGE;
use engine::{Slab, Time};
use proto::{IoOp, Status};

/// Flags of a bio. `REQ_RAHEAD` is left out: the block layer uses it for errors only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BioFlags {
    /// `REQ_SYNC`: a task waits for it. Reads, preflushes and force unit access are always synchronous (`op_is_sync`).
    pub sync: bool,
    /// `REQ_IDLE`: more will follow. With `sync`: a write that bypasses the page cache (`dio_bio_write_op`), not
    /// throttled.
    pub idle: bool,
    /// `REQ_BACKGROUND`: write-back that no task waits for (`wbc_to_write_flags`).
    pub background: bool,
    /// `REQ_META`: file-system metadata.
    pub meta: bool,
    /// `REQ_PRIO`: higher priority.
    pub prio: bool,
    /// `REQ_PREFLUSH`: all earlier writes are durable before this one begins.
    pub preflush: bool,
    /// `REQ_FUA`: durable before it completes.
    pub fua: bool,
    /// `REQ_POLLED`: the task polls for the completion. Ignored for a split bio, for a flush, and by a device without
    /// polled queues (`submit_bio_noacct`, `bio_split_rw`).
    pub polled: bool,
}

/// Unit of I/O submitted to the block layer (`struct bio`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// Operation. [`IoOp::Flush`] is an empty write with `preflush`, as in Linux (`blkdev_issue_flush`).
    pub op: IoOp,
    /// First byte on the drive, a multiple of the logical block size.
    pub offset: u64,
    /// Length in bytes, a multiple of the logical block size; zero for a flush alone.
    pub bytes: u32,
    /// Flags.
    pub flags: BioFlags,
    /// Caller's identifier, returned in [`Done`](super::Done).
    pub owner: u32,
    /// Pages of the victimization that begins with this bio ([`proto::Command::announced`]); a request announces the
    /// sum over its bios.
    pub announced: u32,
}

impl Bio {
    /// Returns whether the bio is synchronous (`op_is_sync`).
    #[inline]
    pub(super) fn is_sync(&self) -> bool {
        is_sync(self.op, self.flags)
    }

    /// Returns whether the bio goes through the flush machinery (`op_is_flush`).
    #[inline]
    pub(super) fn is_flush(&self) -> bool {
        self.flags.preflush || self.flags.fua
    }
}

/// `op_is_sync`.
#[inline]
pub(super) fn is_sync(op: IoOp, flags: BioFlags) -> bool {
    op == IoOp::Read || flags.sync || flags.fua || flags.preflush
}

/// Part of a bio, small enough for one request.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Extent and flags of this part.
    pub bio: Bio,
    /// Record of the whole bio.
    pub(super) whole: u32,
    /// Set if another part follows or the bio is polled: such a part is not merged (`__bio_split_to_limits`).
    pub(super) nomerge: bool,
}

/// Bio in progress, until all of its parts are done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    owner: u32,
    /// Parts in progress, plus one until the last part has been made.
    left: u32,
    status: Status,
}

/// Bios in progress.
#[derive(Debug, Default)]
pub(super) struct Wholes {
    slab: Slab<Whole>,
}

impl Wholes {
    pub(super) fn begin(&mut self, owner: u32) -> u32 {
        self.slab.insert(Whole { owner, left: 1, status: Status::Success })
    }

    /// Adds a part in progress.
    pub(super) fn add(&mut self, whole: u32) {
        self.slab[whole].left += 1;
    }

    /// Ends a part. After the last part, returns the bio's owner and the first error of its parts.
    pub(super) fn end(&mut self, whole: u32, status: Status) -> Option<(u32, Status)> {
        let record = &mut self.slab[whole];
        if record.status == Status::Success {
            record.status = status;
        }
        record.left -= 1;
        let ended = (record.left == 0).then_some((record.owner, record.status));
        if ended.is_some() {
            self.slab.remove(whole);
        }
        ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }
}

/// Reason for which a task sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Permission to write (`rq_qos_throttle`).
    Throttled,
    /// Tag of this hardware queue (`blk_mq_get_tag`).
    Tag(u16),
}

/// Bio of a sleeping task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// Unsubmitted rest of the bio.
    pub(super) rest: Bio,
    pub(super) whole: u32,
    pub(super) task: u32,
    pub(super) since: Time,
    pub(super) stage: Stage,
}

// Merging of bios and requests (block/blk-merge.c).

/// Number of requests of a list that are tried for a merge (`blk_bio_list_merge`).
const CHECKED: u32 = 8;

/// End of the request at which a bio was merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// After the request's last byte.
    Back,
    /// Before the request's first byte.
    Front,
}

/// Result of an attempt to merge a bio into a request (`enum bio_merge_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Not mergeable.
    None,
    /// Mergeable, but over a limit.
    Failed,
    /// Merged.
    Merged(Side),
}

/// Returns whether two adjacent extents can be one command. Only the last page may be partial, since the drive's list
/// of pages has no gaps (`req_gap_back_merge` with NVMe's `virt_boundary`).
fn without_gap(op: IoOp, first: u32) -> bool {
    !has_data(op) || u64::from(first).is_multiple_of(PAGE)
}

impl Request {
    /// Returns whether the request may grow (`rq_mergeable`).
    fn is_mergeable(&self) -> bool {
        let kind = matches!(self.op, IoOp::Read | IoOp::Write | IoOp::Trim);
        kind && !self.nomerge && self.flush_steps.is_none() && !self.flags.preflush && !self.flags.fua
    }
}

impl Piece {
    /// Returns whether the piece may join a request (`bio_mergeable`).
    pub(super) fn is_mergeable(&self) -> bool {
        !self.nomerge && !self.bio.is_flush()
    }
}

impl Requests {
    /// Merges an adjacent bio into a request, within the limits (`blk_attempt_bio_merge`, `bio_attempt_back_merge`,
    /// `bio_attempt_front_merge`). A request that has reached a limit accepts no further bio (`req_set_nomerge`).
    pub fn attempt_bio_merge(&mut self, name: u32, piece: &Piece) -> Attempt {
        let (bio, request) = (&piece.bio, &self[name]);
        if request.op != bio.op || !request.is_mergeable() || !piece.is_mergeable() {
            return Attempt::None;
        }
        let side = if request.end() == bio.offset {
            Side::Back
        } else if bio.offset + u64::from(bio.bytes) == request.offset {
            Side::Front
        } else {
            return Attempt::None;
        };
        let first = if side == Side::Back { request.bytes } else { bio.bytes };
        if !without_gap(bio.op, first) {
            return Attempt::Failed;
        }
        let segments = self.limits.segments_of(bio.op, bio.bytes);
        if !self.fits(name, bio.bytes, segments) {
            self[name].nomerge = true;
            return Attempt::Failed;
        }
        let request = &mut self[name];
        request.bytes += bio.bytes;
        request.segments += segments;
        request.announced += bio.announced;
        if side == Side::Front {
            request.offset = bio.offset;
        }
        self.link(name, piece.whole, side == Side::Front);
        Attempt::Merged(side)
    }

    /// Returns whether a request may grow by `bytes` and `segments` (`ll_back_merge_fn`, `ll_new_hw_segment`).
    fn fits(&self, name: u32, bytes: u32, segments: u32) -> bool {
        let request = &self[name];
        let long = request.bytes.checked_add(bytes);
        long.is_some_and(|long| long <= self.limits.of(request.op))
            && (!has_data(request.op) || request.segments + segments <= self.limits.segments)
    }

    /// Merges a bio into a request of a list, trying the latest requests first (`blk_bio_list_merge`).
    pub fn attempt_list_merge(&mut self, list: &RequestList, piece: &Piece) -> Option<Side> {
        let mut at = list.last().unwrap_or(NONE);
        for _ in 0..CHECKED {
            if at == NONE {
                return None;
            }
            match self.attempt_bio_merge(at, piece) {
                Attempt::None => at = self[at].previous,
                Attempt::Failed => return None,
                Attempt::Merged(side) => return Some(side),
            }
        }
        None
    }

    /// Merges the next request into this one (`attempt_merge`, `ll_merge_requests_fn`); returns whether it did. The
    /// merged request is empty afterwards.
    pub fn attempt_request_merge(&mut self, name: u32, next: u32) -> bool {
        let (first, second) = (&self[name], &self[next]);
        let possible = first.op == second.op
            && first.is_mergeable()
            && second.is_mergeable()
            && first.end() == second.offset
            && without_gap(first.op, first.bytes)
            && self.fits(name, second.bytes, second.segments);
        if !possible {
            return false;
        }
        let second = *second;
        let first = &mut self[name];
        first.bytes += second.bytes;
        first.segments += second.segments;
        first.announced += second.announced;
        first.start = first.start.min(second.start);
        self.hand_over(next, name);
        true
    }
}
