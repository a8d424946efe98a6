//! Which used block Storengine reclaims next.

pub mod greedy;
pub mod round_robin;

use super::space::Space;
use std::cell::Cell;

/// What the choice of a victim may look at: used blocks, of which all groups are programmed.
pub struct VictimView<'a> {
    space: &'a Space,
    weighed: Cell<u64>,
}

impl<'a> VictimView<'a> {
    pub(super) fn new(space: &'a Space) -> VictimView<'a> {
        VictimView { space, weighed: Cell::new(0) }
    }
    /// Blocks of the flash.
    pub fn blocks(&self) -> u32 {
        self.space.blocks()
    }
    /// The first used block from `block` on, by address.
    pub fn used_from(&self, block: u32) -> Option<u32> {
        self.space.used.first(None, block..self.blocks())
    }
    /// Used blocks, by address.
    pub fn used(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.used_from(0), |block| self.used_from(block + 1))
    }
    /// Valid groups of a block.
    pub fn valid(&self, block: u32) -> u32 {
        self.weighed.set(self.weighed.get() + 1);
        self.space.valid(block)
    }
    /// How many counts of valid groups were looked at.
    pub(super) fn weighed(&self) -> u64 {
        self.weighed.get()
    }
}

/// Chooses the block that is reclaimed next.
///
/// Contract: a pure decision over the view plus the policy's own state; the answer is a used block, of which there is at least
/// one; where a block can be reclaimed with gain, one is chosen within as many choices as there are blocks.
pub trait Victim {
    /// The block to reclaim.
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32>;
}

config::policies! {
    /// Which used block Storengine reclaims next.
    pub family GroupVictim: dyn Victim, context () {
        /// One after the other, from the beginning of the address space to its end and again.
        ///
        /// As in FlashAbacus, section 4.3: nothing has to be looked at, and all blocks wear alike. A block is taken
        /// whatever is valid in it.
        default round_robin => round_robin::RoundRobin::new,
        /// Fewest valid groups first.
        ///
        /// Least data moved for the space (Bux and Iliadis, Performance Evaluation 67(11), 2010). It looks at every used
        /// block's count.
        greedy => greedy::Greedy::new,
    }
}
