//! Victims: which used block Storengine reclaims next.

pub mod greedy;
pub mod round_robin;

use super::space::Space;
use std::cell::Cell;

/// View for the choice of a victim: used blocks, all of whose groups are programmed.
pub struct VictimView<'a> {
    space: &'a Space,
    weighed: Cell<u64>,
}

impl<'a> VictimView<'a> {
    pub(super) fn new(space: &'a Space) -> VictimView<'a> {
        VictimView { space, weighed: Cell::new(0) }
    }
    /// Returns the number of blocks of the flash.
    pub fn blocks(&self) -> u32 {
        self.space.blocks()
    }
    /// Returns the first used block from `block` on, by address.
    pub fn used_from(&self, block: u32) -> Option<u32> {
        self.space.used.first(None, block..self.blocks())
    }
    /// Iterates over used blocks, by address.
    pub fn used(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.used_from(0), |block| self.used_from(block + 1))
    }
    /// Returns the number of valid groups of a block.
    pub fn valid(&self, block: u32) -> u32 {
        self.weighed.set(self.weighed.get() + 1);
        self.space.valid(block)
    }
    /// Returns the number of valid-group counts examined.
    pub(super) fn weighed(&self) -> u64 {
        self.weighed.get()
    }
}

/// Chooses the block that is reclaimed next.
///
/// Contract: a pure decision over the view plus the policy's own state; the answer is a used block, of which at least
/// one exists. If a block can be reclaimed with gain, one is chosen within as many choices as blocks exist.
pub trait Victim {
    /// Returns the block to reclaim.
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32>;
}

config::policies! {
    /// Which used block Storengine reclaims next.
    pub family GroupVictim: dyn Victim, context () {
        /// One block after the other, from the beginning of the address space to its end and again.
        ///
        /// FlashAbacus, section 4.3: nothing needs to be examined, and all blocks wear alike. A block is taken
        /// regardless of its valid groups.
        default round_robin => round_robin::RoundRobin::new,
        /// Fewest valid groups first.
        ///
        /// Least data moved for the space gained (Bux and Iliadis, Performance Evaluation 67(11), 2010). Examines every
        /// used block's count.
        greedy => greedy::Greedy::new,
    }
}
