//! Kernel scheduler `large_chunk`: several kernels of each application in turn.

use super::{Admitted, AppView, KernelScheduler, Turns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of [`LargeChunk`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Consecutive kernels of an application; at least one. No source gives a number.
    #[schemars(range(min = 1))]
    pub kernels: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params { kernels: 8 }
    }
}

/// Gives an application `kernels` kernels in its turn.
#[derive(Clone, Copy, Debug)]
pub struct LargeChunk {
    most: u32,
    turns: Turns,
}

impl LargeChunk {
    /// Builds the policy.
    pub fn new(params: &Params, _: &u16) -> LargeChunk {
        LargeChunk { most: params.kernels, turns: Turns::default() }
    }
}

impl KernelScheduler for LargeChunk {
    fn ended(&mut self, app: usize, _: u32) {
        self.turns.ended(app, |kernels| kernels < self.most);
    }
    fn admit(&mut self, apps: &[AppView]) -> Admitted {
        self.turns.admit(apps)
    }
}
