//! A random order of a range in constant memory.

use kernel::mix;

/// Rounds of the network. Four make a permutation look random (Luby and Rackoff, SIAM J. Comput. 17(2), 1988) to
/// whoever sees fewer values than a half has; short ranges are seen whole and take more.
const ROUNDS: usize = 4;
const ROUNDS_OF_SHORT: usize = 10;
/// Ranges below this are short.
const SHORT: u64 = 1 << 12;

/// A keyed bijection of `0..n`.
///
/// A Feistel network over pairs `(left, right)` below about the root of `n` each, the left one added modulo its bound
/// instead of combined bit by bit; what lands at `n` or beyond goes round again (Black and Rogaway, CT-RSA 2002,
/// sections 5 and 4).
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    n: u64,
    left: u64,
    /// Bits of the right half.
    right: u32,
    keys: [u64; ROUNDS_OF_SHORT],
    rounds: usize,
}

impl Permutation {
    /// # Panics
    /// If `n` is zero.
    pub(super) fn new(n: u64, key: u64) -> Permutation {
        // At most one place in about the root of n goes round again.
        let right = n.ilog2().div_ceil(2);
        let left = n.div_ceil(1 << right);
        let keys = std::array::from_fn(|round| mix(key.wrapping_add(mix(round as u64 + 1))));
        let rounds = if n < SHORT { ROUNDS_OF_SHORT } else { ROUNDS };
        Permutation { n, left, right, keys, rounds }
    }

    /// The value at place `at` of `0..n`.
    #[inline]
    pub(super) fn at(&self, at: u64) -> u64 {
        debug_assert!(at < self.n);
        let mut value = self.once(at);
        while value >= self.n {
            value = self.once(value);
        }
        value
    }

    #[inline]
    fn once(&self, value: u64) -> u64 {
        let mask = (1 << self.right) - 1;
        let (mut left, mut right) = (value >> self.right, value & mask);
        for pair in self.keys[..self.rounds].chunks_exact(2) {
            left += below(right, pair[0], self.left);
            if left >= self.left {
                left -= self.left;
            }
            right = right.wrapping_add(mix(left ^ pair[1])) & mask;
        }
        left << self.right | right
    }
}

/// A hash of a half, scaled to `0..bound`.
#[inline]
fn below(half: u64, key: u64, bound: u64) -> u64 {
    ((u128::from(mix(half ^ key)) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::{Permutation, SHORT};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_value_has_one_place(n in 1u64..3000, key: u64) {
            let permutation = Permutation::new(n, key);
            let mut seen = vec![false; n as usize];
            for at in 0..n {
                let value = permutation.at(at) as usize;
                prop_assert!(!std::mem::replace(&mut seen[value], true), "{value} twice");
            }
        }
    }

    /// Chi-square of equal cells at 99 degrees of freedom; 148.2 is the 0.999 quantile.
    fn chi_square(cells: &[f64]) -> f64 {
        let expected = cells.iter().sum::<f64>() / cells.len() as f64;
        cells.iter().map(|c| (c - expected).powi(2) / expected).sum()
    }

    #[test]
    fn places_are_uniform_over_keys_and_neighbours_are_independent() {
        for n in [101, SHORT, 1_000_003] {
            let (mut places, mut steps) = (vec![0.0; 100], vec![0.0; 100]);
            for key in 0..100_000 {
                let permutation = Permutation::new(n, key);
                let (here, next) = (permutation.at(17), permutation.at(18));
                // The next value is any other one.
                let step = (next + n - here) % n;
                assert_ne!(step, 0);
                places[(here * 100 / n) as usize] += if n == 101 { 0.0 } else { 1.0 };
                steps[((step - 1) * 100 / (n - 1)) as usize] += 1.0;
            }
            if n != 101 {
                // 100 cells do not divide 101 values evenly.
                assert!(chi_square(&places) < 148.2, "{n}: {}", chi_square(&places));
            }
            assert!(chi_square(&steps) < 148.2, "{n}: {}", chi_square(&steps));
        }
    }

    #[test]
    fn a_whole_long_range_looks_random() {
        // Pairs of neighbours on a ten by ten grid, for all of a range of four rounds.
        for n in [SHORT, 52_000, 1_000_003] {
            let permutation = Permutation::new(n, 99);
            let mut cells = vec![0.0; 100];
            for at in (0..n - 1).step_by(2) {
                let cell = |at| permutation.at(at) * 10 / n;
                cells[(cell(at) * 10 + cell(at + 1)) as usize] += 1.0;
            }
            assert!(chi_square(&cells) < 148.2, "{n}: {}", chi_square(&cells));
        }
    }
}
