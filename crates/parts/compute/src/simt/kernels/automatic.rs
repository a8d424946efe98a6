//! Kernel scheduler `automatic`: a kernel of each application in turn, or several small ones.

use super::{Admitted, AppView, KernelScheduler, Turns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of [`Automatic`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Blocks per multiprocessor below which a kernel is small: MQMS's block stride. Zero: no kernel is small. No
    /// source gives a number.
    pub stride: u32,
    /// Most consecutive kernels of an application; at least one. No source gives a number.
    #[schemars(range(min = 1))]
    pub kernels: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params { stride: 4, kernels: 8 }
    }
}

/// Gives an application one kernel in its turn, or up to `kernels` as long as they have fewer than `few` blocks.
#[derive(Clone, Copy, Debug)]
pub struct Automatic {
    few: u64,
    most: u32,
    turns: Turns,
}

impl Automatic {
    /// Builds the policy.
    pub fn new(params: &Params, sms: &u16) -> Automatic {
        let few = u64::from(params.stride) * u64::from(*sms);
        Automatic { few, most: params.kernels, turns: Turns::default() }
    }
}

impl KernelScheduler for Automatic {
    fn ended(&mut self, app: usize, blocks: u32) {
        self.turns.ended(app, |kernels| u64::from(blocks) < self.few && kernels < self.most);
    }
    fn admit(&mut self, apps: &[AppView]) -> Admitted {
        self.turns.admit(apps)
    }
}
