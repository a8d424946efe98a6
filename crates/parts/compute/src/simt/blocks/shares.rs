//! Blocks that belong to multiprocessors before they begin.

use super::{Place, Room};

/// Groups of `stride` consecutive blocks dealt to the multiprocessors in turn. Each takes its own in their order; those
/// with room take turns.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    blocks: u32,
    stride: u32,
    /// Blocks that each multiprocessor has taken.
    taken: Vec<u32>,
    /// The multiprocessor that is asked first.
    turn: u16,
}

impl Shares {
    /// No kernel yet.
    pub(super) fn new(sms: u16) -> Shares {
        Shares { blocks: 0, stride: 1, taken: vec![0; sms.into()], turn: 0 }
    }

    /// Blocks of a chunk: as many groups as multiprocessors, at most.
    pub(super) fn chunk(&self, blocks: u32) -> u32 {
        blocks.div_ceil(self.taken.len() as u32)
    }

    /// Multiprocessors.
    pub(super) fn sms(&self) -> u32 {
        self.taken.len() as u32
    }

    /// A kernel begins.
    pub(super) fn begin(&mut self, blocks: u32, stride: u32) {
        (self.blocks, self.stride, self.turn) = (blocks, stride.max(1), 0);
        self.taken.fill(0);
    }

    /// The next block of a multiprocessor.
    #[inline]
    fn next(&self, sm: u16) -> Option<u32> {
        let (taken, stride) = (self.taken[usize::from(sm)], self.stride);
        let group = u64::from(taken / stride) * self.taken.len() as u64 + u64::from(sm);
        let block = group * u64::from(stride) + u64::from(taken % stride);
        // Below a number of 32 bits: it is one.
        (block < u64::from(self.blocks)).then_some(block as u32)
    }

    /// The next block, and who takes it.
    pub(super) fn place(&mut self, room: &Room<'_>) -> Option<Place> {
        let sm = room.first(self.turn, |sm| self.next(sm).is_some())?;
        let block = self.next(sm)?;
        self.taken[usize::from(sm)] += 1;
        self.turn = room.behind(sm);
        Some(Place { block, sm })
    }
}
