//! A 192-bit unsigned sum: wide enough for 2^64 squares of any `u64`.

/// `high * 2^128 + low`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wide {
    high: u64,
    low: u128,
}

impl Wide {
    pub(crate) const ZERO: Wide = Wide { high: 0, low: 0 };

    /// `a * b`, exact.
    pub(crate) fn product(a: u64, b: u128) -> Wide {
        let low = u128::from(a) * (b & u128::from(u64::MAX));
        let high = u128::from(a) * (b >> 64);
        let (sum, carry) = low.overflowing_add(high << 64);
        Wide { high: (high >> 64) as u64 + u64::from(carry), low: sum }
    }

    #[inline]
    pub(crate) fn add(&mut self, o: Wide) {
        let (low, carry) = self.low.overflowing_add(o.low);
        self.low = low;
        self.high += o.high + u64::from(carry);
    }

    #[inline]
    pub(crate) fn add_square(&mut self, v: u64) {
        let (low, carry) = self.low.overflowing_add(u128::from(v) * u128::from(v));
        self.low = low;
        self.high += u64::from(carry);
    }

    /// `self - o`; the caller knows that `o` is not larger.
    pub(crate) fn minus(self, o: Wide) -> Wide {
        let (low, borrow) = self.low.overflowing_sub(o.low);
        Wide { high: self.high - o.high - u64::from(borrow), low }
    }

    pub(crate) fn as_f64(self) -> f64 {
        const TWO_POW_128: f64 = (1u128 << 127) as f64 * 2.0;
        self.high as f64 * TWO_POW_128 + self.low as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Wide;

    #[test]
    fn product_carries_into_the_high_word() {
        // (2^64 - 1) * (2^128 - 1) = 2^192 - 2^128 - 2^64 + 1
        let p = Wide::product(u64::MAX, u128::MAX);
        assert_eq!(p, Wide { high: u64::MAX - 1, low: u128::MAX - u128::from(u64::MAX) + 1 });
    }

    #[test]
    fn squares_sum_beyond_128_bits_and_subtract_back() {
        let mut s = Wide::ZERO;
        for _ in 0..1000 {
            s.add_square(u64::MAX);
        }
        let all = Wide::product(1000, u128::from(u64::MAX) * u128::from(u64::MAX));
        assert_eq!(s, all);
        let mut again = s.minus(Wide::product(1, 7));
        again.add(Wide::product(1, 7));
        assert_eq!(again, s);
        assert_eq!(s.minus(all), Wide::ZERO);
    }

    #[test]
    fn as_real_number() {
        assert_eq!(Wide { high: 1, low: 0 }.as_f64(), libm::exp2(128.0));
    }
}
