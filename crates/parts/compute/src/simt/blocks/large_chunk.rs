//! Block scheduler `large_chunk`: a contiguous chunk for each multiprocessor.

use super::{BlockScheduler, Place, Room, Shares};

/// Multiprocessor i takes the blocks of the i-th chunk, in order.
#[derive(Clone, Debug)]
pub struct LargeChunk {
    shares: Shares,
}

impl LargeChunk {
    /// Builds the policy.
    pub fn new(sms: &u16) -> LargeChunk {
        LargeChunk { shares: Shares::new(*sms) }
    }
}

impl BlockScheduler for LargeChunk {
    fn begin(&mut self, blocks: u32) {
        self.shares.begin(blocks, self.shares.chunk(blocks));
    }
    fn place(&mut self, room: &Room<'_>) -> Option<Place> {
        self.shares.place(room)
    }
}
