//! Requests: one or more bios side by side, which become one command; and lists of requests.

use super::bio::{BioFlags, Piece, Wholes, is_sync};
use super::wbt::Account;
use super::{Done, Limits};
use engine::{Slab, Time};
use proto::{IoOp, Status};

/// No request, tag or token.
pub const NONE: u32 = u32::MAX;

/// One or more bios side by side (`struct request`).
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What it does.
    pub op: IoOp,
    /// The flags of the bio that it was made for.
    pub flags: BioFlags,
    /// First byte on the drive.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Segments of memory.
    pub segments: u32,
    /// The task that asked for its first bio.
    pub task: u32,
    /// The core whose software queue it belongs to.
    pub core: u16,
    /// Its hardware queue.
    pub hctx: u16,
    /// Whether it takes up nothing any more (`RQF_NOMERGE`).
    pub nomerge: bool,
    /// Since when it has been (`start_time_ns`).
    pub start: Time,
    /// When it was given to the driver (`io_start_time_ns`).
    pub issued: Time,
    /// When its scheduler wants it to be served at the latest (`fifo_time`).
    pub deadline: Time,
    /// What its scheduler has given it, or [`NONE`].
    pub token: u32,
    /// Pages that it announces.
    pub(super) announced: u32,
    /// The driver's tag, or [`NONE`].
    pub(super) tag: u32,
    /// The scheduler's tag, or [`NONE`].
    pub(super) sched_tag: u32,
    /// Whether it counts among those that a task waits for where requests are given out in batches.
    pub(super) in_batch_of_sync: bool,
    /// Steps of its flush sequence that are done; none for a request that has no such sequence.
    pub(super) flush_steps: Option<u8>,
    /// How the throttling of write-back counts it.
    pub(super) account: Account,
    pub(super) bios: Bios,
    pub(super) next: u32,
    pub(super) previous: u32,
}

impl Request {
    /// A request of nothing.
    pub(super) fn empty(op: IoOp, core: u16, hctx: u16, now: Time) -> Request {
        Request {
            op,
            flags: BioFlags::default(),
            offset: 0,
            bytes: 0,
            segments: 0,
            task: NONE,
            core,
            hctx,
            nomerge: false,
            start: now,
            issued: now,
            deadline: Time::MAX,
            token: NONE,
            announced: 0,
            tag: NONE,
            sched_tag: NONE,
            in_batch_of_sync: false,
            flush_steps: None,
            account: Account::None,
            bios: Bios::default(),
            next: NONE,
            previous: NONE,
        }
    }

    /// First byte behind it.
    #[inline]
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }

    /// Whether somebody waits for it (`op_is_sync`).
    #[inline]
    pub fn is_sync(&self) -> bool {
        is_sync(self.op, self.flags)
    }

    /// Whether data goes to the drive (`op_is_write`): a discard is a write, too.
    #[inline]
    pub fn is_write(&self) -> bool {
        matches!(self.op, IoOp::Write | IoOp::Trim | IoOp::WriteZeroes)
    }
}

/// The bios of a request, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bios {
    first: u32,
    last: u32,
}

impl Default for Bios {
    fn default() -> Bios {
        Bios { first: NONE, last: NONE }
    }
}

#[derive(Clone, Copy, Debug)]
struct Link {
    whole: u32,
    next: u32,
}

/// All requests of a queue with their bios, and the limits that they keep.
#[derive(Debug)]
pub struct Requests {
    slab: Slab<Request>,
    links: Slab<Link>,
    pub(super) limits: Limits,
}

impl std::ops::Index<u32> for Requests {
    type Output = Request;
    #[inline]
    fn index(&self, name: u32) -> &Request {
        &self.slab[name]
    }
}
impl std::ops::IndexMut<u32> for Requests {
    #[inline]
    fn index_mut(&mut self, name: u32) -> &mut Request {
        &mut self.slab[name]
    }
}

impl Requests {
    pub(super) fn new(limits: Limits) -> Requests {
        Requests { slab: Slab::default(), links: Slab::default(), limits }
    }

    /// Requests that there are.
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Stores a request and names it.
    pub(super) fn insert(&mut self, request: Request) -> u32 {
        self.slab.insert(request)
    }

    /// A request for a bio (`blk_mq_bio_to_request`).
    pub(super) fn of_bio(&mut self, piece: &Piece, core: u16, hctx: u16, now: Time) -> u32 {
        let bio = &piece.bio;
        let name = self.insert(Request {
            flags: bio.flags,
            offset: bio.offset,
            bytes: bio.bytes,
            segments: self.limits.segments_of(bio.op, bio.bytes),
            nomerge: piece.nomerge,
            announced: bio.announced,
            ..Request::empty(bio.op, core, hctx, now)
        });
        self.link(name, piece.whole, false);
        name
    }

    /// A bio joins a request, in front of its others or behind them.
    pub(super) fn link(&mut self, name: u32, whole: u32, front: bool) {
        let bios = self.slab[name].bios;
        let link = self.links.insert(Link { whole, next: if front { bios.first } else { NONE } });
        if !front && bios.last != NONE {
            self.links[bios.last].next = link;
        }
        let bios = &mut self.slab[name].bios;
        if front || bios.first == NONE {
            bios.first = link;
        }
        if !front || bios.last == NONE {
            bios.last = link;
        }
    }

    /// The bios of one request go over to another one, behind its own.
    pub(super) fn hand_over(&mut self, from: u32, to: u32) {
        let moved = std::mem::take(&mut self.slab[from].bios);
        let bios = &mut self.slab[to].bios;
        if moved.first == NONE {
            return;
        }
        let last = std::mem::replace(&mut bios.last, moved.last);
        if last == NONE {
            bios.first = moved.first;
        } else {
            self.links[last].next = moved.first;
        }
    }

    /// All bios of a request end (`blk_update_request`).
    pub(super) fn end_bios(&mut self, name: u32, status: Status, wholes: &mut Wholes, done: &mut Vec<Done>) {
        let mut at = std::mem::take(&mut self.slab[name].bios).first;
        while at != NONE {
            let Link { whole, next } = self.links[at];
            self.links.remove(at);
            if let Some((owner, status)) = wholes.end(whole, status) {
                done.push(Done { owner, status });
            }
            at = next;
        }
    }

    /// A request without bios is no more.
    pub(super) fn remove(&mut self, name: u32) {
        self.slab.remove(name);
    }
}

// Lists of requests, linked through the requests themselves.

/// A list of requests. A request is in one list at most.
#[derive(Clone, Copy, Debug)]
pub struct RequestList {
    first: u32,
    last: u32,
}

impl Default for RequestList {
    fn default() -> RequestList {
        RequestList { first: NONE, last: NONE }
    }
}

impl RequestList {
    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// The first request.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// The last request.
    #[inline]
    pub fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// A request joins at the end.
    pub fn push_back(&mut self, requests: &mut Requests, name: u32) {
        let last = self.last;
        (requests[name].next, requests[name].previous) = (NONE, last);
        self.last = name;
        if last == NONE {
            self.first = name;
        } else {
            requests[last].next = name;
        }
    }

    /// A request joins in front.
    pub fn push_front(&mut self, requests: &mut Requests, name: u32) {
        let first = self.first;
        (requests[name].next, requests[name].previous) = (first, NONE);
        self.first = name;
        if first == NONE {
            self.last = name;
        } else {
            requests[first].previous = name;
        }
    }

    /// A request of this list joins in front of another one, which is in it as well.
    pub fn move_before(&mut self, requests: &mut Requests, name: u32, before: u32) {
        self.remove(requests, name);
        let previous = requests[before].previous;
        (requests[name].next, requests[name].previous) = (before, previous);
        requests[before].previous = name;
        if previous == NONE {
            self.first = name;
        } else {
            requests[previous].next = name;
        }
    }

    /// A request of this list leaves it.
    pub fn remove(&mut self, requests: &mut Requests, name: u32) {
        let (next, previous) = (requests[name].next, requests[name].previous);
        if previous == NONE {
            self.first = next;
        } else {
            requests[previous].next = next;
        }
        if next == NONE {
            self.last = previous;
        } else {
            requests[next].previous = previous;
        }
        (requests[name].next, requests[name].previous) = (NONE, NONE);
    }

    /// The first request leaves.
    pub fn pop_front(&mut self, requests: &mut Requests) -> Option<u32> {
        let name = self.first()?;
        self.remove(requests, name);
        Some(name)
    }

    /// All requests of another list join at the end.
    pub fn append(&mut self, requests: &mut Requests, other: RequestList) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other;
            return;
        }
        requests[self.last].next = other.first;
        requests[other.first].previous = self.last;
        self.last = other.last;
    }

    /// What it holds; it is empty afterwards.
    #[must_use]
    pub fn take(&mut self) -> RequestList {
        std::mem::take(self)
    }
}
