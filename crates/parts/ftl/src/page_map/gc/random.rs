//! Random closed unit.

use super::{Victim, VictimContext, VictimView};
use engine::{Rng, Snapshot};

/// Draws uniformly among the closed units.
#[derive(Clone, Debug)]
pub struct Random {
    rng: Rng,
}

impl Random {
    /// Builds the policy.
    pub fn new(context: &VictimContext) -> Random {
        Random { rng: Rng::stream(context.seed, &format!("{}/gc.random", context.device)) }
    }
}

impl Victim for Random {
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32> {
        Some(view.nth(self.rng.below(view.len() as u64) as usize))
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.rng.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.rng = Rng::load(input)?;
        Some(())
    }
}
