//! Tests of `stats` from outside, in one binary: a test is built and linked once.

mod intervals;
mod meters;

// Random numbers for tests of intervals.

/// SplitMix64 (G. Steele et al., OOPSLA 2014), and draws from it.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
    /// Standard exponential.
    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.uniform())
    }
}
