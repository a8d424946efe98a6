//! The block layer of Linux 6.1 in front of one drive: plugs, merges, tags, software and hardware queues, schedulers, throttling of
//! write-back, flushes. It knows no time but what it is told.
//!
//! # Who calls what, and when
//!
//! A [`Queue`] is made for a drive ([`Queue::new`]). Every call gets the time, which never goes back, and an [`Effects`] of the caller, which
//! says what the call brings about. The caller acts on all four lists of it, in any order that keeps each list's own, then
//! [clears](Effects::clear) it; acting on them may take time and calls the queue again.
//!
//! * [`Queue::submit`]: a task asks for a [`Bio`]. It gives the [`Plug`] that it has open (`blk_start_plug`), if it has one. The answer is
//!   [`Submitted::Queued`]; or [`Submitted::MustWait`]: nothing of the rest of the bio is asked again by the caller. Then the task acts on the
//!   effects, flushes its plugs of all queues with `from_schedule` (`io_schedule`), acts on that, and sleeps.
//! * [`Effects::woken`] names it when it may go on; as soon as it has a core it calls [`Queue::resume`], which answers as `submit` does, since
//!   another task may have been quicker. A task can be woken before it sleeps: by what it does itself between the two.
//! * [`Queue::flush_plug`]: at the end of a task's work (`blk_finish_plug`), and with `from_schedule` whenever it goes to sleep for anything.
//! * [`Effects::runs`]: each is one call of [`Queue::dispatch`], in the caller's context, or by a worker of the kernel on a core of that hardware
//!   queue ([`Map::cores_of`]) if it says `later`. A queue is not told twice to the worker before it has been run.
//! * [`Effects::issued`]: commands for the drive. A command is named by its hardware queue and tag until [`Queue::complete`], which may be called
//!   in any order, on any core: where is the driver's business (`rq_affinity`).
//! * [`Effects::done`]: the owners of bios that have ended, each once; also from `submit`, for a flush that a drive without a volatile cache
//!   does not need.
//! * [`Queue::timer`] at [`Queue::next_timer`], which is asked again after each call.
//! * [`Queue::writer_paused`]: whenever a writer of dirty pages is paused.
//!
//! # What is as in the kernel, and what is not
//!
//! The functions that are followed are named where they are. Simpler, since nothing that is measured comes of it: which of several tags that are
//! free is taken (`Tags`); times are exact and not those of a tick; all work of one call is done
//! in an instant. A driver never refuses what has a tag, so `dispatch_busy` and budgets are always at their best. Left out: priorities by
//! class, `REQ_NOWAIT` but for polled bios, control groups, hybrid polling, polled queues with an elevator, discards of several ranges, `chunk_sectors`, `physical_block_size`.

mod batches;
mod bio;
mod complete;
mod device;
mod dispatch;
mod effects;
mod flush;
mod list;
mod map;
mod merge;
mod plug;
mod queue;
pub mod request;
pub mod sched;
mod spec;
mod stats;
mod submit;
mod tags;
#[cfg(test)]
mod tests;
mod wbt;

pub use bio::{Bio, BioFlags, Piece};
pub use device::{Device, Limits};
pub use effects::{Done, Effects, Issued, Run, Woken};
pub use list::RequestList;
pub use map::Map;
pub use merge::{Attempt, Side};
pub use plug::Plug;
pub use queue::{Queue, Stalled, Submitted};
pub use sched::SchedulerPolicy;
pub use spec::BlockSpec;
pub use stats::{BlockStats, KINDS, Waits, kind};
pub use wbt::WbtStats;
