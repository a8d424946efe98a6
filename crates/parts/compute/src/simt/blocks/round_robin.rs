//! Block scheduler `round_robin`: multiprocessors with room in turn.

use super::{BlockScheduler, Place, Room};

/// Gives the next block to the next multiprocessor with room.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    blocks: u32,
    next: u32,
    /// Multiprocessor to ask first.
    turn: u16,
}

impl RoundRobin {
    /// Builds the policy.
    pub fn new(_: &u16) -> RoundRobin {
        RoundRobin { blocks: 0, next: 0, turn: 0 }
    }
}

impl BlockScheduler for RoundRobin {
    fn begin(&mut self, blocks: u32) {
        *self = RoundRobin { blocks, next: 0, turn: 0 };
    }
    fn place(&mut self, room: &Room<'_>) -> Option<Place> {
        if self.next == self.blocks {
            return None;
        }
        let sm = room.first(self.turn, |_| true)?;
        let block = self.next;
        self.next += 1;
        self.turn = room.behind(sm);
        Some(Place { block, sm })
    }
}
