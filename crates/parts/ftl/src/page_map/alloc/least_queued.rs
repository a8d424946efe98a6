//! Least loaded of the next few groups.

use super::{Allocator, Backend, Ftl, Geometry, Stream};
use engine::Snapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `least_queued`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Number of groups that are examined, from the one whose turn it is: the cost of a decision.
    #[schemars(range(min = 1))]
    pub look: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params { look: 8 }
    }
}

/// Allocation to that of the next `look` groups in stripe order with space whose die has the fewest waiting operations.
#[derive(Clone, Copy, Debug)]
pub struct LeastQueued {
    look: u32,
    turn: u64,
}

impl LeastQueued {
    /// Builds the policy.
    pub fn new(params: &Params, _: &Geometry) -> LeastQueued {
        LeastQueued { look: params.look.max(1), turn: 0 }
    }
}

impl Allocator for LeastQueued {
    fn place(&mut self, _: u64, stream: Stream, ftl: &Ftl, backend: &Backend) -> u32 {
        let mut best: Option<(u32, u64)> = None;
        let mut seen = 0;
        for n in 0..u64::from(ftl.geo.groups) {
            let position = self.turn + n;
            let group = ftl.geo.group_at(position);
            if !ftl.can_reserve(group, stream) {
                continue;
            }
            let load = backend.load(ftl.geo.first_die_of_group(group));
            if best.is_none_or(|(least, _)| load < least) {
                best = Some((load, position));
            }
            seen += 1;
            if seen == self.look || load == 0 {
                break;
            }
        }
        let position = best.map_or(self.turn, |(_, position)| position);
        self.turn = position + 1;
        ftl.geo.group_at(position)
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.turn.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.turn = u64::load(input)?;
        Some(())
    }
}
