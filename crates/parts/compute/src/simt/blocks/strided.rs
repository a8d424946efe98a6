//! Block scheduler `strided`: groups of consecutive blocks in turn.

use super::{BlockScheduler, Place, Room, Shares};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of [`Strided`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Consecutive blocks per group; at least one. No source gives a number: 4 is the residency of a multiprocessor in
    /// the GTX 580 model.
    #[schemars(range(min = 1))]
    pub stride: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params { stride: 4 }
    }
}

/// Deals groups of `stride` blocks to the multiprocessors in turn. Kernels with fewer blocks than one group for each
/// are cut into one chunk for each.
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
