//! Division by a number that is fixed when the device is built.

/// A divisor. Geometry is mostly powers of two; those become shifts. What else divides a number below 2^32 becomes a multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastDiv {
    by: u64,
    /// 64 when `by` is no power of two.
    shift: u32,
    /// 2^64 over `by`, rounded up: its product with a number has the quotient above 2^64, as long as both are below 2^32 (Lemire, Kaser and Kurz, "Faster remainder by direct
    /// computation", 2019).
    reciprocal: u64,
}

const NARROW: u64 = 1 << 32;

impl FastDiv {
    /// Divides by `by`.
    ///
    /// # Panics
    /// If it is 0.
    pub fn new(by: u64) -> FastDiv {
        assert!(by > 0, "division by zero");
        let shift = if by.is_power_of_two() { by.trailing_zeros() } else { 64 };
        FastDiv { by, shift, reciprocal: if shift < 64 { 0 } else { u64::MAX / by + 1 } }
    }
    /// The quotient.
    #[inline]
    pub fn quotient(self, n: u64) -> u64 {
        if self.shift < 64 {
            n >> self.shift
        } else if n < NARROW && self.by < NARROW {
            ((u128::from(self.reciprocal) * u128::from(n)) >> 64) as u64
        } else {
            n / self.by
        }
    }
    /// Quotient and remainder.
    #[inline]
    pub fn div_rem(self, n: u64) -> (u64, u64) {
        let q = self.quotient(n);
        (q, n - q * self.by)
    }
    /// The divisor.
    #[inline]
    pub fn get(self) -> u64 {
        self.by
    }
}

#[cfg(test)]
mod tests {
    use super::{FastDiv, NARROW};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divides(n: u64, by in 1u64..5000) {
            prop_assert_eq!(FastDiv::new(by).div_rem(n), (n / by, n % by));
        }

        /// What a multiplication divides, and what is next to it: multiples of the divisor and their neighbours, where a quotient that is a little off is a wrong one.
        #[test]
        fn divides_below_2_to_the_32nd(by in 1..NARROW + 2, times: u64, off in 0u64..3) {
            let most = (NARROW + 2) / by;
            let n = (times % (most + 1) * by + off).saturating_sub(1);
            prop_assert_eq!(FastDiv::new(by).div_rem(n), (n / by, n % by));
        }
    }

    /// The largest numbers by the divisors next to them, and by those next to powers of two.
    #[test]
    fn divides_at_the_bounds() {
        let near = |at: u64| at.saturating_sub(2)..=at + 2;
        let divisors = (1..=32).flat_map(|bit| near(1 << bit)).filter(|by| *by > 0);
        for by in divisors {
            for n in near(NARROW).chain(near(NARROW / by * by)) {
                assert_eq!(FastDiv::new(by).div_rem(n), (n / by, n % by), "{n} by {by}");
            }
        }
    }
}
