//! Scheduling: in which order a controller serves what waits.

pub mod fcfs;
pub mod fr_fcfs;

use engine::Time;

config::policies! {
    /// In which order a memory controller serves what waits.
    pub family DramScheduler: dyn Scheduler, context () {
        /// First ready, first come: what hits an open row before what needs another row, what goes in the bus's
        /// present direction before what goes in the other.
        default fr_fcfs(fr_fcfs::Params) => |p: &fr_fcfs::Params, _: &()| fr_fcfs::FrFcfs::new(p),
        /// First come, first served: data move in the order of arrival.
        fcfs => |_: &()| fcfs::Fcfs,
    }
}

/// Decides who may overtake whom.
///
/// Contract: an answer that is no for some amount is no for all larger ones, and no for the largest: nobody starves. A
/// policy without [`Scheduler::banks_pass`] says no to everything.
pub trait Scheduler {
    /// Whether an access to a bank's open row may go before an older one to another row of that bank, which has waited
    /// so long.
    fn row_hit_passes(&self, waited: Time) -> bool;
    /// Whether an access in the bus's present direction may go before an older one in the other direction, when the bus
    /// has carried so many lines since it turned.
    fn direction_passes(&self, lines: u64) -> bool;
    /// Whether an access whose bank is ready may go before an older one whose bank is not.
    fn banks_pass(&self) -> bool;
}
