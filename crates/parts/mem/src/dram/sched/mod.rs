//! Scheduling: the order in which a controller serves waiting accesses.

pub mod fcfs;
pub mod fr_fcfs;

use engine::Time;

config::policies! {
    /// Scheduling policy of a memory controller.
    pub family DramScheduler: dyn Scheduler, context () {
        /// First ready, first come: row hits before accesses to a different row, accesses in the bus's present
        /// direction before those in the other.
        default fr_fcfs(fr_fcfs::Params) => |p: &fr_fcfs::Params, _: &()| fr_fcfs::FrFcfs::new(p),
        /// First come, first served: data move in the order of arrival.
        fcfs => |_: &()| fcfs::Fcfs,
    }
}

/// Decides which accesses may overtake others.
///
/// Contract: an answer of false for some amount is false for all larger ones, and false for the largest: no access
/// starves. A policy without [`Scheduler::banks_pass`] always returns false.
pub trait Scheduler {
    /// Returns true if an access to a bank's open row may overtake an older one to a different row of that bank, which
    /// has waited for `waited`.
    fn row_hit_passes(&self, waited: Time) -> bool;
    /// Returns true if an access in the bus's present direction may overtake an older one in the other direction, when
    /// the bus has carried `lines` lines since it turned.
    fn direction_passes(&self, lines: u64) -> bool;
    /// Returns true if an access whose bank is ready may overtake an older one whose bank is not.
    fn banks_pass(&self) -> bool;
}
