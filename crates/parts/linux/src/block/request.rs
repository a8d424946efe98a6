//! Requests and lists of requests. A request is one or more adjacent bios that become one command.

use super::bio::{BioFlags, Piece, Wholes, is_sync};
use super::wbt::Account;
use super::{Done, Limits};
use engine::{Slab, Time};
use proto::{IoOp, Status};

/// Absence of a request, tag or token.
pub const NONE: u32 = u32::MAX;

/// One or more adjacent bios (`struct request`).
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Operation.
    pub op: IoOp,
    /// Flags of the bio that it was created for.
    pub flags: BioFlags,
    /// First byte on the drive.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Memory segments.
    pub segments: u32,
    /// Task that submitted its first bio.
    pub task: u32,
    /// Core whose software queue it belongs to.
    pub core: u16,
    /// Hardware queue.
    pub hctx: u16,
    /// True if the request accepts no further merges (`RQF_NOMERGE`).
    pub nomerge: bool,
    /// Time at which it was created (`start_time_ns`).
    pub start: Time,
    /// Time at which it was given to the driver (`io_start_time_ns`).
    pub issued: Time,
    /// Scheduler's deadline for dispatch (`fifo_time`).
    pub deadline: Time,
    /// Scheduler's token, or [`NONE`].
    pub token: u32,
    /// Pages that it announces.
    pub(super) announced: u32,
    /// Driver tag, or [`NONE`].
    pub(super) tag: u32,
    /// Scheduler tag, or [`NONE`].
    pub(super) sched_tag: u32,
    /// True if the request counts as synchronous where requests are allocated in batches.
    pub(super) in_batch_of_sync: bool,
    /// Completed steps of its flush sequence; `None` for a request without one.
    pub(super) flush_steps: Option<u8>,
    /// Account of the write-back throttling.
    pub(super) account: Account,
    pub(super) bios: Bios,
    pub(super) next: u32,
    pub(super) previous: u32,
}

impl Request {
    /// Creates an empty request.
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

    /// First byte after the request.
    #[inline]
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }

    /// Returns whether a task waits for it (`op_is_sync`).
    #[inline]
    pub fn is_sync(&self) -> bool {
        is_sync(self.op, self.flags)
    }

    /// Returns whether it changes data on the drive (`op_is_write`); a discard counts as a write.
    #[inline]
    pub fn is_write(&self) -> bool {
        matches!(self.op, IoOp::Write | IoOp::Trim | IoOp::WriteZeroes)
    }
}

/// Bios of a request, in order.
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

/// Requests of a queue, with their bios and limits.
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

    /// Number of requests.
    pub(super) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Stores a request and returns its index.
    pub(super) fn insert(&mut self, request: Request) -> u32 {
        self.slab.insert(request)
    }

    /// Creates a request for a bio (`blk_mq_bio_to_request`).
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

    /// Adds a bio to a request, at the front or at the back.
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

    /// Moves the bios of one request to the back of another.
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

    /// Ends all bios of a request (`blk_update_request`).
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

    /// Removes a request without bios.
    pub(super) fn remove(&mut self, name: u32) {
        self.slab.remove(name);
    }
}

// Lists of requests, linked through the requests themselves.

/// List of requests. A request is in at most one list.
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
    /// Returns whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// First request.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Last request.
    #[inline]
    pub fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// Appends a request.
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

    /// Prepends a request.
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

    /// Moves a request of this list in front of another request of the list.
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

    /// Removes a request from the list.
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

    /// Removes and returns the first request.
    pub fn pop_front(&mut self, requests: &mut Requests) -> Option<u32> {
        let name = self.first()?;
        self.remove(requests, name);
        Some(name)
    }

    /// Appends all requests of another list.
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

    /// Takes all requests, leaving the list empty.
    #[must_use]
    pub fn take(&mut self) -> RequestList {
        std::mem::take(self)
    }
}
