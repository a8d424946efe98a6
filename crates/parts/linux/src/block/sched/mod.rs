//! I/O schedulers, which select the next request for the drive.

pub mod cfq;
pub mod kyber;
pub mod mq_deadline;
pub mod none;

use super::Map;
use super::bio::{Piece, Side};
use super::request::{Request, Requests};
use engine::Time;
use stats::Gauge;

config::policies! {
    /// I/O scheduler.
    pub family SchedulerPolicy: dyn Scheduler, context Context {
        /// Order of arrival; requests go to the drive at once unless their task is about to sleep.
        default none => none::Passing::new,
        /// Order of position, in batches of one direction; reads first, and deadlines for both.
        mq_deadline(mq_deadline::Params) => mq_deadline::Deadline::new,
        /// Limits on reads, writes and discards at the drive, adapted to their latency targets.
        kyber(kyber::Params) => kyber::Kyber::new,
        /// Time slices for each process, as in Linux until 4.20.
        cfq(cfq::Params) => cfq::Cfq::new,
    }
}

/// Properties of a queue, passed to its scheduler on creation.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Cores and hardware queues.
    pub map: Map,
    /// Requests that a hardware queue holds (`q->nr_requests`).
    pub requests: u32,
    /// Bits of a word of the tags.
    pub word: u32,
}

/// Counters of schedulers; each fills in its own only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerStats {
    /// `mq_deadline`: batches of reads.
    pub read_batches: u64,
    /// `mq_deadline`: batches of writes.
    pub write_batches: u64,
    /// `mq_deadline`: batches that began with a request past its deadline. `cfq`: slices that ended while a request
    /// waited.
    pub expired: u64,
    /// `mq_deadline`: batches of writes begun while reads waited, because writes had waited long enough.
    pub starved: u64,
    /// `kyber`: times that a read, write, discard or other request found no token.
    pub throttled: [u64; 4],
    /// `kyber`: depth changes of reads, writes, discards.
    pub resizes: [u64; 3],
    /// `kyber`: tokens of reads, writes, discards.
    pub depth: [Gauge; 3],
    /// `kyber`: windows at whose end the drive was congested.
    pub congested: u64,
}

/// Selects the next request for the drive (`struct elevator_mq_ops`).
///
/// Contract:
/// * A request that was inserted and not dispatched belongs to the scheduler, with its links; the scheduler touches no
///   other.
/// * [`dispatch`](Scheduler::dispatch) returns each inserted request once, whatever queue it belongs to. It may decline
///   although it has one, if a later call of [`finish`](Scheduler::finish) names the hardware queue to be run again.
/// * A request that was merged into another in [`insert`](Scheduler::insert) or [`bio_merge`](Scheduler::bio_merge) is
///   in `freed`, without bios, and no longer belongs to the scheduler.
/// * No allocation after the number of waiting requests has peaked.
pub trait Scheduler {
    /// Returns whether requests get scheduler tags, and a driver tag only on dispatch (`q->elevator`). Otherwise they
    /// bypass the scheduler where possible.
    fn is_elevator(&self) -> bool;
    /// Returns whether requests are allocated in batches, as before Linux 5.0, instead of by a limit on tags.
    fn gives_batches(&self) -> bool {
        false
    }
    /// Bits of each tag word that such a bio may use (`limit_depth`).
    fn shallow(&self, synchronous: bool, write: bool) -> u32;
    /// Minimum of [`shallow`](Scheduler::shallow).
    fn least_shallow(&self) -> u32;
    /// Merges a bio from a core into a waiting request (`bio_merge`).
    fn bio_merge(
        &mut self,
        requests: &mut Requests,
        piece: &Piece,
        core: u16,
        freed: &mut Vec<u32>,
    ) -> Option<Side>;
    /// Inserts a request (`insert_requests`). `merges`: it may be merged into a waiting one.
    fn insert(&mut self, requests: &mut Requests, name: u32, merges: bool, now: Time, freed: &mut Vec<u32>);
    /// Selects the next request for a hardware queue (`dispatch_request`).
    fn dispatch(&mut self, requests: &mut Requests, hctx: u16, now: Time) -> Option<u32>;
    /// Returns whether a request waits for a hardware queue (`has_work`).
    fn has_work(&self, hctx: u16) -> bool;
    /// Handles the end of a dispatched request (`finish_request`); appends hardware queues to run again to `run`.
    fn finish(&mut self, request: &mut Request, run: &mut Vec<u16>);
    /// Handles the completion of a request at the drive (`completed_request`).
    fn completed(&mut self, request: &Request, now: Time);
    /// Time of the next call of [`timer`](Scheduler::timer).
    fn next_timer(&self) -> Option<Time>;
    /// Runs the timers that are due.
    fn timer(&mut self, now: Time);
    /// Counters since the last reset.
    fn stats(&self) -> SchedulerStats;
    /// Restarts the counters.
    fn reset_stats(&mut self, now: Time);
}
