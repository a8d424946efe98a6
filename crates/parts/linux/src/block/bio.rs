//! Bios: what the floors above ask for, and what is left of it while it is under way.

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
