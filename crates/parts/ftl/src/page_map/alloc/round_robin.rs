//! Groups in turn.

use super::{Allocator, Backend, Ftl, Geometry, Stream};
use engine::Snapshot;

/// Round-robin allocation: takes the groups in stripe order, whatever the address.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    turn: u64,
}

impl RoundRobin {
    /// Builds the policy.
    pub fn new(_: &Geometry) -> RoundRobin {
        RoundRobin { turn: 0 }
    }
}

impl Allocator for RoundRobin {
    fn place(&mut self, _: u64, stream: Stream, ftl: &Ftl, _: &Backend) -> u32 {
        for _ in 0..ftl.geo.groups {
            let group = ftl.geo.group_at(self.turn);
            self.turn += 1;
            if ftl.can_reserve(group, stream) {
                return group;
            }
        }
        ftl.geo.group_at(self.turn)
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.turn.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.turn = u64::load(input)?;
        Some(())
    }
}
