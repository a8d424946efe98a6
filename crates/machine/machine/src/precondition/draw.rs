//! Which unit is written next.

use engine::Rng;
use requests::synth::{Permutation, Zipf};

/// Draws of units of a share, with replacement.
pub(super) enum Draw {
    /// Each unit is as likely.
    Uniform(u64),
    /// By rank, and ranks scattered over the share.
    Zipf(Box<(Zipf, Permutation)>),
}

impl Draw {
    #[inline]
    pub(super) fn unit(&self, rng: &mut Rng) -> u64 {
        match self {
            Draw::Uniform(units) => rng.below(*units),
            Draw::Zipf(ranks) => ranks.1.at(ranks.0.rank(|| rng.unit())),
        }
    }
}
