//! What a call of a queue brings about outside it.

use super::queue::Stalled;
use proto::{IoOp, Status};

/// A request that the driver gets (`queue_rq`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Hardware queue.
    pub hctx: u16,
    /// Its tag in that queue, which names it until [`Queue::complete`](super::Queue::complete).
    pub tag: u32,
    /// The core that submitted it, for completions on the core of the submitter.
    pub core: u16,
    /// What the drive does.
    pub op: IoOp,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; zero for a flush.
    pub bytes: u32,
    /// Force unit access.
    pub fua: bool,
    /// Pages of a victimization that begins with it ([`proto::Command::announced`]).
    pub announced: u32,
}

/// A bio that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The caller's name for it.
    pub owner: u32,
    /// The first error of its parts, or success.
    pub status: Status,
}

/// A task that may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// The task, as it was named in [`Queue::submit`](super::Queue::submit).
    pub task: u32,
    /// What it gives to [`Queue::resume`](super::Queue::resume).
    pub stalled: Stalled,
}

/// A hardware queue that has to be run: a call of [`Queue::dispatch`](super::Queue::dispatch).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Hardware queue.
    pub hctx: u16,
    /// Whether a worker of the kernel (`kblockd`) runs it later, on a core of that queue; otherwise the caller does, at once.
    pub later: bool,
}

/// What a call of a queue brings about. The caller keeps one, gives it to every call, and empties it afterwards: nothing is allocated for
/// it once it has been at its longest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Requests for the driver, in order.
    pub issued: Vec<Issued>,
    /// Bios that have ended.
    pub done: Vec<Done>,
    /// Tasks to be woken, in order.
    pub woken: Vec<Woken>,
    /// Hardware queues to be run, in order.
    pub runs: Vec<Run>,
}

impl Effects {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.issued.clear();
        self.done.clear();
        self.woken.clear();
        self.runs.clear();
    }
}
