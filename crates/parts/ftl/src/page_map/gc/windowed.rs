//! Greedy among the oldest.

use super::{Victim, VictimContext, VictimView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `windowed_greedy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Number of oldest units that are examined.
    #[schemars(range(min = 1))]
    pub window: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params { window: 32 }
    }
}

/// Takes the unit with the fewest valid map units among the `window` units closed first.
#[derive(Clone, Copy, Debug)]
pub struct Windowed {
    window: usize,
}

impl Windowed {
    /// Builds the policy.
    pub fn new(params: &Params, _: &VictimContext) -> Windowed {
        Windowed { window: params.window.max(1) as usize }
    }
}

impl Victim for Windowed {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        view.by_age().take(self.window).min_by_key(|ru| view.valid(*ru))
    }
}
