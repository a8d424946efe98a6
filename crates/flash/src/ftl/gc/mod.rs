//! Garbage collection: which reclaim unit next.

pub mod greedy;

use super::index::VictimView;

/// Chooses the reclaim unit that garbage collection takes back next.
///
/// Contract: a pure decision over the view plus the policy's own state; the answer is one of the closed units of the
/// view, which is never empty; no call costs more than the view's iterators allow, and none walks all closed units.
pub trait Victim {
    /// The unit to reclaim, by number in the group. `None` if the policy wants to wait.
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32>;
}
