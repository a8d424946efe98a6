//! Groups of consecutive blocks in turn.

use super::{BlockScheduler, Place, Room, Shares};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of [`Strided`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Consecutive blocks of a group; at least one. No source names a number: 4 is what a multiprocessor of the GTX 580
    /// model holds at once.
    #[schemars(range(min = 1))]
    pub stride: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params { stride: 4 }
    }
}

/// Groups of `stride` blocks go round the multiprocessors; kernels of fewer blocks than one group for each are cut into a
/// chunk for each.
#[derive(Clone, Debug)]
pub struct Strided {
    stride: u32,
    shares: Shares,
}

impl Strided {
    /// Builds the policy.
    pub fn new(params: &Params, sms: &u16) -> Strided {
        Strided { stride: params.stride.max(1), shares: Shares::new(*sms) }
    }
}

impl BlockScheduler for Strided {
    fn begin(&mut self, blocks: u32) {
        let few = u64::from(blocks) < u64::from(self.stride) * u64::from(self.shares.sms());
        let stride = if few { self.shares.chunk(blocks) } else { self.stride };
        self.shares.begin(blocks, stride);
    }
    fn place(&mut self, room: &Room<'_>) -> Option<Place> {
        self.shares.place(room)
    }
}
