//! Which ready warp of a multiprocessor issues next.

pub mod greedy_then_oldest;
pub mod loose_round_robin;
pub mod two_level;

/// A set of warps of one multiprocessor: bit `n` is the warp in slot `n`.
pub type Warps = u128;

/// What a scheduler may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpView {
    /// Warps whose next instruction can be issued in this cycle.
    pub ready: Warps,
    /// Warps that wait for something far: a value from global memory, or the other warps of their block.
    pub far: Warps,
}

config::policies! {
    /// Which ready warp of a multiprocessor issues next.
    pub family WarpScheduling = "gpu.scheduler": dyn WarpScheduler, context () {
        /// The next ready warp after the one that issued last, in the order of slots.
        default loose_round_robin => loose_round_robin::LooseRoundRobin::new,
        /// The warp that issued last as long as it is ready, then the oldest.
        ///
        /// Cache-conscious wavefront scheduling (Rogers et al., MICRO 2012) names it GTO.
        greedy_then_oldest => greedy_then_oldest::GreedyThenOldest::new,
        /// Round robin among a few active warps; one that waits for memory or a barrier gives its place to another.
        ///
        /// Two-level scheduling (Gebhart et al., ISCA 2011; Narasiman et al., MICRO 2011).
        two_level(two_level::Params) => two_level::TwoLevel::new,
    }
}

/// Chooses among the ready warps of one multiprocessor.
///
/// Contract: the answer is one of the view's ready warps. A scheduler may decline, but not when every warp that has
/// entered and not left is ready or far. Asked again with the same view right after it has declined, it declines again.
/// No call allocates after as many warps as there are slots have entered.
pub trait WarpScheduler {
    /// A warp begins in a slot.
    fn enter(&mut self, slot: u32);
    /// The warp in a slot has issued its last instruction.
    fn leave(&mut self, slot: u32);
    /// The warp that issues next.
    fn pick(&mut self, view: &WarpView) -> Option<u32>;
}

/// The warps of a set, lowest slot first.
#[inline]
pub fn slots(mut warps: Warps) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let slot = (warps != 0).then(|| warps.trailing_zeros())?;
        warps &= warps - 1;
        Some(slot)
    })
}

/// The first warp of a set at or after `from`, cyclically.
#[inline]
fn next_from(warps: Warps, from: u32) -> Option<u32> {
    let behind = warps & (Warps::MAX.checked_shl(from).unwrap_or(0));
    let chosen = if behind != 0 { behind } else { warps };
    (chosen != 0).then(|| chosen.trailing_zeros())
}
