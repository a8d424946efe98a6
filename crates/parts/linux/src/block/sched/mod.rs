//! Schedulers: which request goes to the drive next.

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
    /// Which request goes to the drive next.
    pub family SchedulerPolicy: dyn Scheduler, context Context {
        /// In the order in which requests come; each goes to the drive at once if its task is not about to sleep.
        default none => none::Passing::new,
        /// By position, in batches of one direction; reads first, and none later than its deadline if it can be helped.
        mq_deadline(mq_deadline::Params) => mq_deadline::Deadline::new,
        /// As many reads, writes and discards at the drive as their latency targets allow.
        kyber(kyber::Params) => kyber::Kyber::new,
        /// Process by process, in slices of time, as Linux had it until 4.20.
        cfq(cfq::Params) => cfq::Cfq::new,
    }
}

/// What a scheduler is told when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Cores and hardware queues.
    pub map: Map,
    /// Requests that a hardware queue holds (`q->nr_requests`).
    pub requests: u32,
    /// Bits of a word of their tags.
    pub word: u32,
}

/// What schedulers count; each leaves alone what it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerStats {
    /// `mq_deadline`: batches of reads.
    pub read_batches: u64,
    /// `mq_deadline`: batches of writes.
    pub write_batches: u64,
    /// `mq_deadline`: batches that began with a request that was past its deadline. `cfq`: slices that were over while something waited.
    pub expired: u64,
    /// `mq_deadline`: batches of writes that began although reads waited, because writes had waited long enough.
    pub starved: u64,
    /// `kyber`: times that a request of reads, writes, discards, others found no token.
    pub throttled: [u64; 4],
    /// `kyber`: changes of the depth of reads, writes, discards.
    pub resizes: [u64; 3],
    /// `kyber`: tokens of reads, writes, discards.
    pub depth: [Gauge; 3],
    /// `kyber`: ends of a window at which the drive was congested.
    pub congested: u64,
}

/// Chooses the request that goes to the drive next (`struct elevator_mq_ops`).
///
/// Contract:
/// * A request that was inserted and not dispatched is the scheduler's, with its links; any other it leaves alone.
/// * [`dispatch`](Scheduler::dispatch) gives each inserted request once, whatever queue it belongs to. It may decline although it has one, if a
///   later call of [`finish`](Scheduler::finish) names the hardware queue to be run again.
/// * A request that was taken up by another one in [`insert`](Scheduler::insert) or [`bio_merge`](Scheduler::bio_merge) is in `freed`, without
///   bios, and no longer the scheduler's.
/// * Nothing is allocated once as many requests have waited as ever will.
pub trait Scheduler {
    /// Whether requests get tags of their own, and a driver's tag only when they are dispatched (`q->elevator`). Without, they go past the
    /// scheduler where they can.
    fn is_elevator(&self) -> bool;
    /// Whether requests are given out in batches, as before Linux 5.0, in place of a limit on tags.
    fn gives_batches(&self) -> bool {
        false
    }
    /// Tags of each word that such a bio may have (`limit_depth`).
    fn shallow(&self, synchronous: bool, write: bool) -> u32;
    /// The least of [`shallow`](Scheduler::shallow).
    fn least_shallow(&self) -> u32;
    /// A waiting request takes up a bio that comes from a core (`bio_merge`).
    fn bio_merge(
        &mut self,
        requests: &mut Requests,
        piece: &Piece,
        core: u16,
        freed: &mut Vec<u32>,
    ) -> Option<Side>;
    /// A request comes (`insert_requests`). `merges`: it may be taken up by one that waits.
    fn insert(&mut self, requests: &mut Requests, name: u32, merges: bool, now: Time, freed: &mut Vec<u32>);
    /// The next request for a hardware queue (`dispatch_request`).
    fn dispatch(&mut self, requests: &mut Requests, hctx: u16, now: Time) -> Option<u32>;
    /// Whether something waits for a hardware queue (`has_work`).
    fn has_work(&self, hctx: u16) -> bool;
    /// A request that was dispatched is no more (`finish_request`); hardware queues that are to be run again are told to `run`.
    fn finish(&mut self, request: &mut Request, run: &mut Vec<u16>);
    /// The drive has done a request (`completed_request`).
    fn completed(&mut self, request: &Request, now: Time);
    /// When [`timer`](Scheduler::timer) wants to be called.
    fn next_timer(&self) -> Option<Time>;
    /// Time has come.
    fn timer(&mut self, now: Time);
    /// What was counted.
    fn stats(&self) -> SchedulerStats;
    /// Counts from here on.
    fn reset_stats(&mut self, now: Time);
}
