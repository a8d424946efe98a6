//! Which unit is written next.

use kernel::Rng;
use workload::synth::{Permutation, Zipf};

/// Draws of units of a share, with replacement.
pub(super) enum Draw {
    /// Each unit is as likely.
    Uniform(u64),
    /// By rank, and ranks scattered over the share.
    Zipf(Zipf, Permutation),
}

impl Draw {
    #[inline]
    pub(super) fn unit(&self, rng: &mut Rng) -> u64 {
        match self {
            Draw::Uniform(units) => rng.below(*units),
            Draw::Zipf(zipf, scatter) => scatter.at(zipf.rank(|| rng.unit())),
        }
    }
}
