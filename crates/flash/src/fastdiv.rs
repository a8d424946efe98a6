//! Division by a number that is fixed when the device is built.

/// A divisor. Geometry is mostly powers of two; those become shifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FastDiv {
    by: u64,
    /// 64 when `by` is no power of two.
    shift: u32,
}

impl FastDiv {
    pub(crate) fn new(by: u64) -> FastDiv {
        assert!(by > 0, "division by zero");
        FastDiv { by, shift: if by.is_power_of_two() { by.trailing_zeros() } else { 64 } }
    }
    #[inline]
    pub(crate) fn div(self, n: u64) -> u64 {
        if self.shift < 64 { n >> self.shift } else { n / self.by }
    }
    /// Quotient and remainder.
    #[inline]
    pub(crate) fn div_rem(self, n: u64) -> (u64, u64) {
        let q = self.div(n);
        (q, n - q * self.by)
    }
    #[inline]
    pub(crate) fn get(self) -> u64 {
        self.by
    }
}

#[cfg(test)]
mod tests {
    use super::FastDiv;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divides(n: u64, by in 1u64..5000) {
            prop_assert_eq!(FastDiv::new(by).div_rem(n), (n / by, n % by));
        }
    }
}
