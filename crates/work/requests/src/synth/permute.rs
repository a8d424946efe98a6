//! A keyed permutation of `0..n` in constant memory, for covering every block of a device exactly once in random
//! order.

use super::split_mix;

/// A keyed bijection of `0..n`.
///
/// Four rounds (eight for fewer than 65 536 values, where few bits mix slowly) of multiply by an odd number, add, and
/// xor-shift by half the width; each step is a bijection on `ceil(log2 n)` bits. Values at or beyond `n` are mapped
/// again (cycle walking), fewer than two rounds on average.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    multiply: [u64; 8],
    divide: [u64; 8],
    add: [u64; 8],
}

impl Permutation {
    /// Creates the permutation of `0..n` selected by `key`; `n` of zero counts as one.
    pub fn new(n: u64, key: u64) -> Permutation {
        let n = n.max(1);
        let bits = 64 - (n - 1).leading_zeros();
        let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
        let mut state = key;
        let multiply: [u64; 8] = std::array::from_fn(|_| split_mix(&mut state) | 1);
        let divide = multiply.map(inverse);
        let add = std::array::from_fn(|_| split_mix(&mut state));
        Permutation { n, mask, shift: bits.div_ceil(2).max(1), multiply, divide, add }
    }

    /// Returns the number of values.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// Returns false: a permutation has at least one value.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the value at place `i`, which must be below [`len`](Self::len).
    #[inline]
    pub fn at(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mut x = self.round_trip(i);
        while x >= self.n {
            x = self.round_trip(x);
        }
        x
    }

    /// Returns the place of value `x`, which must be below [`len`](Self::len).
    #[inline]
    pub fn place_of(&self, mut x: u64) -> u64 {
        debug_assert!(x < self.n);
        x = self.round_back(x);
        while x >= self.n {
            x = self.round_back(x);
        }
        x
    }

    #[inline]
    fn round_trip(&self, mut x: u64) -> u64 {
        for round in 0..4 {
            x = self.step(x, round);
        }
        if self.mask < 1 << 16 {
            for round in 4..8 {
                x = self.step(x, round);
            }
        }
        x
    }

    #[inline]
    fn step(&self, x: u64, round: usize) -> u64 {
        let x = x.wrapping_mul(self.multiply[round]).wrapping_add(self.add[round]) & self.mask;
        x ^ (x >> self.shift)
    }

    #[inline]
    fn round_back(&self, mut x: u64) -> u64 {
        if self.mask < 1 << 16 {
            for round in (4..8).rev() {
                x = self.step_back(x, round);
            }
        }
        for round in (0..4).rev() {
            x = self.step_back(x, round);
        }
        x
    }

    /// Applies an xor-shift by at least half the width, which is its own inverse.
    #[inline]
    fn step_back(&self, x: u64, round: usize) -> u64 {
        let x = x ^ (x >> self.shift);
        x.wrapping_sub(self.add[round]).wrapping_mul(self.divide[round]) & self.mask
    }
}

/// Returns the inverse of an odd number modulo 2^64 by Newton's iteration: three digits are right at first, each step
/// doubles them.
fn inverse(odd: u64) -> u64 {
    (0..5).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn every_value_comes_exactly_once(n in 1u64..5000, key: u64) {
            let permutation = Permutation::new(n, key);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let x = permutation.at(i);
                prop_assert!(x < n);
                prop_assert!(!seen[x as usize], "{x} twice");
                prop_assert_eq!(permutation.place_of(x), i);
                seen[x as usize] = true;
            }
        }

        #[test]
        fn wide_ranges_stay_in_range_and_do_not_collide(n in 1u64 << 40..1u64 << 50, key: u64, first: u64) {
            let permutation = Permutation::new(n, key);
            let first = first % (n - 1000);
            let mut values: Vec<u64> = (first..first + 1000).map(|i| permutation.at(i)).collect();
            prop_assert!(values.iter().all(|&x| x < n));
            values.sort_unstable();
            values.dedup();
            prop_assert_eq!(values.len(), 1000);
        }
    }

    fn chi_square(counts: &[u64], expected: f64) -> f64 {
        counts.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum()
    }

    #[test]
    fn the_place_of_a_value_is_uniform_over_keys() {
        // Where does value 0 of a 16-block device land, over 160 000 keys? 15 degrees of freedom: the 99.99 % point
        // is 44.3.
        for n in [16u64, 13] {
            let mut counts = vec![0u64; n as usize];
            for key in 0..10_000 * n {
                counts[Permutation::new(n, key).at(3) as usize] += 1;
            }
            let chi = chi_square(&counts, 10_000.0);
            assert!(chi < 44.3, "n = {n}: {chi}");
        }
    }

    #[test]
    fn successive_values_look_independent() {
        // Pairs (x_i, x_i+1) and lag-2 pairs over a 32 x 32 grid, and the low five bits, each against uniform:
        // 1023 degrees of freedom, the 99.99 % point is 1200. Sampling without replacement only lowers the statistic.
        for n in [1u64 << 20, 1_000_003, 3_000_000] {
            for key in [1, 77] {
                let permutation = Permutation::new(n, key);
                let values: Vec<u64> = (0..n).map(|i| permutation.at(i)).collect();
                let cell = |x: u64| (x as u128 * 32 / n as u128) as usize;
                for lag in [1usize, 2, 8] {
                    let mut high = vec![0u64; 1024];
                    let mut low = vec![0u64; 1024];
                    for pair in values.windows(lag + 1).step_by(lag + 1) {
                        high[cell(pair[0]) * 32 + cell(pair[lag])] += 1;
                        low[(pair[0] % 32 * 32 + pair[lag] % 32) as usize] += 1;
                    }
                    let expected = (n as usize / (lag + 1)) as f64 / 1024.0;
                    assert!(chi_square(&high, expected) < 1200.0, "high n={n} lag={lag}");
                    assert!(chi_square(&low, expected) < 1200.0, "low n={n} lag={lag}");
                }
            }
        }
    }

    #[test]
    fn distances_between_neighbours_are_triangular() {
        // For two independent uniforms on (0, 1), P(|x - y| < d) = 2d - d^2.
        let n = 1u64 << 22;
        let permutation = Permutation::new(n, 5);
        let near = (0..n - 1).filter(|&i| permutation.at(i).abs_diff(permutation.at(i + 1)) < n / 10).count();
        let expected = 0.19 * (n - 1) as f64;
        let sigma = (expected * 0.81).sqrt();
        assert!((near as f64 - expected).abs() < 5.0 * sigma, "{near} against {expected}");
    }
}
