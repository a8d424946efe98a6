//! Named random streams.

/// Small fast generator (xoshiro256++, Blackman and Vigna 2019). Each component opens its own stream by name, so that
/// adding a component does not change the numbers of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

crate::snapshot!(Rng { state });

impl Rng {
    /// Opens the stream `name` under the run's seed.
    pub fn stream(seed: u64, name: &str) -> Rng {
        // FNV-1a over the name, then SplitMix64 to fill the state, as xoshiro's authors recommend.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut x = seed ^ hash;
        let state = std::array::from_fn(|_| {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(x)
        });
        Rng { state }
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a uniform integer in `0..n`, without bias (Lemire 2019).
    ///
    /// # Panics
    /// If `n` is zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "an empty range has no element");
        let mut wide = u128::from(self.next_u64()) * u128::from(n);
        if (wide as u64) < n {
            let floor = n.wrapping_neg() % n;
            while (wide as u64) < floor {
                wide = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (wide >> 64) as u64
    }

    /// Returns a uniform real number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Permutes a slice uniformly (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// Applies SplitMix64's finaliser: a bijection of 64-bit words that looks random.
#[inline]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named_and_repeatable() {
        let draw = |name| Rng::stream(7, name).next_u64();
        assert_eq!(draw("flash0/gc"), draw("flash0/gc"));
        assert_ne!(draw("flash0/gc"), draw("flash1/gc"));
        assert_ne!(Rng::stream(8, "flash0/gc").next_u64(), draw("flash0/gc"));
    }

    #[test]
    fn reference_vector_of_xoshiro256plusplus() {
        // First outputs for the state 1, 2, 3, 4, from the authors' C code.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let got: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(got, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn below_is_uniform() {
        // Chi-square over 10 cells; 27.88 is the 0.999 quantile at 9 degrees of freedom.
        let mut rng = Rng::stream(1, "test");
        let mut cells = [0f64; 10];
        for _ in 0..100_000 {
            cells[rng.below(10) as usize] += 1.0;
        }
        let chi: f64 = cells.iter().map(|c| (c - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 27.88, "{chi}");
    }
}
