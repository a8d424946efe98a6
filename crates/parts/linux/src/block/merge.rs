//! Which bios and requests become one (block/blk-merge.c).

use super::bio::Piece;
use super::has_data;
use super::list::RequestList;
use super::request::{NONE, Request, Requests};
use crate::PAGE;
use proto::IoOp;

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
