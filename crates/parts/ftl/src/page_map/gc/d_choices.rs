//! Best of a few random units.

use super::{Victim, VictimContext, VictimView};
use engine::{Rng, Snapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `d_choices`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Number of units drawn, with replacement.
    #[schemars(range(min = 1))]
    pub d: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params { d: 10 }
    }
}

/// Draws `d` closed units and takes the one with the fewest valid map units.
#[derive(Clone, Debug)]
pub struct DChoices {
    d: u32,
    rng: Rng,
}

impl DChoices {
    /// Builds the policy.
    pub fn new(params: &Params, context: &VictimContext) -> DChoices {
        let rng = Rng::stream(context.seed, &format!("{}/gc.d_choices", context.device));
        DChoices { d: params.d.max(1), rng }
    }
}

impl Victim for DChoices {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        (0..self.d)
            .map(|_| view.nth(self.rng.below(view.len() as u64) as usize))
            .min_by_key(|ru| view.valid(*ru))
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.rng.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.rng = Rng::load(input)?;
        Some(())
    }
}
