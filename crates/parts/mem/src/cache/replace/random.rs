//! Random replacement.

use super::Replacement;
use engine::{Rng, Snapshot};

/// Random way, uniformly among those that may be evicted.
pub struct Random {
    ways: u32,
    rng: Rng,
    /// Number drawn ahead, so that `victim` changes nothing.
    draw: u64,
}

impl Random {
    /// Creates the policy for sets of `ways`, drawing from the stream of `seed`.
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
    fn save(&self, out: &mut Vec<u8>) {
        self.rng.save(out);
        self.draw.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        (self.rng, self.draw) = Snapshot::load(input)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Places, ReplacementPolicy};

    #[test]
    fn random_draws_uniformly_among_those_that_may_go() {
        let draws = |seed: u64| {
            let mut random = ReplacementPolicy::random.build(&Places { sets: 1, ways: 8, seed });
            let mut draw = || {
                let way = random.victim(0, &|way| way % 2 == 1).expect("four may go");
                random.enter(0, way);
                way
            };
            (0..4000).map(|_| draw()).collect::<Vec<u32>>()
        };
        let one = draws(1);
        // Chi-square with 3 degrees of freedom: 16.3 is the 0.999 quantile.
        let count = |way: u32| one.iter().filter(|w| **w == way).count() as f64;
        let chi: f64 = [1, 3, 5, 7].map(|way| (count(way) - 1000.0).powi(2) / 1000.0).iter().sum();
        assert!(chi < 16.3, "{chi}");
        assert_eq!(one, draws(1));
        assert_ne!(one, draws(2));
    }
}
