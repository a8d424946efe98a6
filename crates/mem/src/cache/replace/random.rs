//! Random.

use super::Replacement;
use kernel::Rng;

/// A way drawn at random, uniformly among those that may go.
pub struct Random {
    ways: u32,
    rng: Rng,
    /// Drawn ahead, so that asking changes nothing.
    draw: u64,
}

impl Random {
    /// For sets of `ways`, drawing from the stream of `seed`.
    pub fn new(ways: u32, seed: u64) -> Random {
        let mut rng = Rng::stream(seed, "replacement");
        let draw = rng.next_u64();
        Random { ways, rng, draw }
    }
}

impl Replacement for Random {
    fn enter(&mut self, _set: u32, _way: u32) {
        self.draw = self.rng.next_u64();
    }
    fn touch(&mut self, _set: u32, _way: u32) {}
    fn leave(&mut self, _set: u32, _way: u32) {}
    fn victim(&mut self, _set: u32, may: &dyn Fn(u32) -> bool) -> Option<u32> {
        let mut allowed = (0..self.ways).filter(|way| may(*way));
        let count = allowed.clone().count() as u128;
        allowed.nth(((u128::from(self.draw) * count) >> 64) as usize)
    }
}
