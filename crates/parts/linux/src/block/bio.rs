//! Bios: what the floors above ask for, what is left of it while it is under way, and which bios and requests become
//! one.

use super::{
    has_data,
    request::{NONE, Request, RequestList, Requests},
};
use crate::PAGE;
use engine::{Slab, Time};
use proto::{IoOp, Status};

/// What a bio says of itself beside its extent. `REQ_RAHEAD` has none: nothing in the block layer looks at it but for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BioFlags {
    /// `REQ_SYNC`: somebody waits for it. A read, a preflush and force unit access are always so (`op_is_sync`).
    pub sync: bool,
    /// `REQ_IDLE`: more will follow. With `sync`, a write past the page cache (`dio_bio_write_op`), which is not throttled.
    pub idle: bool,
    /// `REQ_BACKGROUND`: write-back that nobody waits for (`wbc_to_write_flags`).
    pub background: bool,
    /// `REQ_META`: metadata of a file system.
    pub meta: bool,
    /// `REQ_PRIO`: it matters more than others.
    pub prio: bool,
    /// `REQ_PREFLUSH`: everything written before is durable before this begins.
    pub preflush: bool,
    /// `REQ_FUA`: durable before it completes.
    pub fua: bool,
    /// `REQ_POLLED`: its task looks for the completion itself. A device without queues for it, and a bio that is split or a flush, ignore it
    /// (`submit_bio_noacct`, `bio_split_rw`).
    pub polled: bool,
}

/// What is asked of the block layer (`struct bio`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// What it does. [`IoOp::Flush`] is a write of nothing with `preflush`, as Linux has it (`blkdev_issue_flush`).
    pub op: IoOp,
    /// First byte on the drive, a multiple of its logical block.
    pub offset: u64,
    /// Length in bytes, a multiple of its logical block; zero for a flush alone.
    pub bytes: u32,
    /// What else it says.
    pub flags: BioFlags,
    /// The caller's name for it, which comes back in [`Done`](super::Done).
    pub owner: u32,
    /// Pages of a victimization that begins with it ([`proto::Command::announced`]); a request announces the sum of its bios.
    pub announced: u32,
}

impl Bio {
    /// Whether it is synchronous (`op_is_sync`).
    #[inline]
    pub(super) fn is_sync(&self) -> bool {
        is_sync(self.op, self.flags)
    }

    /// Whether it goes through the flush machinery (`op_is_flush`).
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

/// A bio that fits a request.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The part of the bio that was asked for.
    pub bio: Bio,
    /// That bio's record.
    pub(super) whole: u32,
    /// Whether a further part follows, or its task looks for it alone: such a one is not merged (`__bio_split_to_limits`).
    pub(super) nomerge: bool,
}

/// A bio that was asked for, until all of it is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    owner: u32,
    /// Parts under way, and one more until the last of them has been made.
    left: u32,
    status: Status,
}

/// Bios under way.
#[derive(Debug, Default)]
pub(super) struct Wholes {
    slab: Slab<Whole>,
}

impl Wholes {
    pub(super) fn begin(&mut self, owner: u32) -> u32 {
        self.slab.insert(Whole { owner, left: 1, status: Status::Success })
    }

    /// One more part of it is under way.
    pub(super) fn add(&mut self, whole: u32) {
        self.slab[whole].left += 1;
    }

    /// A part of it has ended; its owner and the first error of its parts, if it was the last one.
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

/// What a task sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Leave to write (`rq_qos_throttle`).
    Throttled,
    /// A tag of this hardware queue (`blk_mq_get_tag`).
    Tag(u16),
}

/// A bio whose task sleeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// What is left of it.
    pub(super) rest: Bio,
    pub(super) whole: u32,
    pub(super) task: u32,
    pub(super) since: Time,
    pub(super) stage: Stage,
}

// Which bios and requests become one (block/blk-merge.c).

/// Requests of a list that are asked whether they take up a bio (`blk_bio_list_merge`).
const CHECKED: u32 = 8;

/// Where a bio was taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Behind what the request had.
    Back,
    /// In front of it.
    Front,
}

/// What came of asking a request to take up a bio (`enum bio_merge_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// They do not belong together.
    None,
    /// They do, but a limit is in the way.
    Failed,
    /// Taken up.
    Merged(Side),
}

/// Whether two extents side by side may be one command: a page that is not full can only be the last one, since the drive's list of pages has
/// no gaps (`req_gap_back_merge` with NVMe's `virt_boundary`).
fn without_gap(op: IoOp, first: u32) -> bool {
    !has_data(op) || u64::from(first).is_multiple_of(PAGE)
}

impl Request {
    /// Whether it may become longer (`rq_mergeable`).
    fn is_mergeable(&self) -> bool {
        let kind = matches!(self.op, IoOp::Read | IoOp::Write | IoOp::Trim);
        kind && !self.nomerge && self.flush_steps.is_none() && !self.flags.preflush && !self.flags.fua
    }
}

impl Piece {
    /// Whether it may join a request (`bio_mergeable`).
    pub(super) fn is_mergeable(&self) -> bool {
        !self.nomerge && !self.bio.is_flush()
    }
}

impl Requests {
    /// A request takes up a bio that lies beside it, within the limits (`blk_attempt_bio_merge`, `bio_attempt_back_merge`,
    /// `bio_attempt_front_merge`). One that has reached a limit takes up nothing any more (`req_set_nomerge`).
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

    /// Whether a request may become longer by so much (`ll_back_merge_fn`, `ll_new_hw_segment`).
    fn fits(&self, name: u32, bytes: u32, segments: u32) -> bool {
        let request = &self[name];
        let long = request.bytes.checked_add(bytes);
        long.is_some_and(|long| long <= self.limits.of(request.op))
            && (!has_data(request.op) || request.segments + segments <= self.limits.segments)
    }

    /// A request of a list takes up a bio; the last ones are asked first (`blk_bio_list_merge`).
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

    /// A request takes up another one that lies behind it (`attempt_merge`, `ll_merge_requests_fn`). The other one has nothing left
    /// afterwards; whether it was so.
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
